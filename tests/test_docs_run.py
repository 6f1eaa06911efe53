"""The documents run: what README.md, docs/ and the folders' own READMEs show is what a reader gets.

  written_*   each block says what it is, and a block that is not run says why
  run_*       every document's programs and commands succeed and print what is shown
  setup_*     the commands that set a machine up exist, and CI runs them on a fresh clone
  runner_*    the runner itself fails when it must

How blocks are written is said in `documents.py`.
"""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

import pytest
from documents import (
    SETUP_COMMANDS,
    DocumentError,
    blocks,
    make_scratch,
    markdown_below,
    problems_in,
    run_document,
    starts_spark,
)
from forked_processes import CAN_FORK
from forked_workers import Nurseries
from house import ROOT
from shared_sessions import DOCUMENTS_WITH_SPARK

DOCUMENTS = [
    *(ROOT / name for name in ("README.md", "CONTRIBUTING.md", "tests/README.md", "changelog.d/README.md")),
    *(path for folder in ("docs", "examples", "bench") for path in markdown_below(ROOT / folder)),
]
PRESENT = [document for document in DOCUMENTS if document.exists()]


def _name(document: Path) -> str:
    return str(document.relative_to(ROOT))


@pytest.mark.parametrize("document", PRESENT, ids=_name)
def test_written_every_block_says_what_it_is(document: Path) -> None:
    assert problems_in(document.read_text()) == []


@pytest.mark.timeout(600)
@pytest.mark.parametrize("document", PRESENT, ids=_name)
def test_run_every_program_and_command_prints_what_is_shown(
    document: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, _nurseries: Nurseries
) -> None:
    text = document.read_text()
    if not any(block.is_run for block in blocks(text)):
        return
    has_spark = starts_spark(text)
    assert not has_spark or _name(document) in DOCUMENTS_WITH_SPARK, "one process runs all that start Spark"
    make_scratch(tmp_path)
    forks = _nurseries.program if CAN_FORK and not has_spark else None
    # Of its own, for tables of Spark lie there; and a short one, for sockets of workers do.
    with tempfile.TemporaryDirectory(prefix="doc-", ignore_cleanup_errors=True) as temporary:
        monkeypatch.setenv("TMPDIR", temporary)
        run_document(_name(document), text, tmp_path, forks=forks)


def test_setup_commands_exist_and_are_executable() -> None:
    for command in SETUP_COMMANDS:
        assert os.access(ROOT / command, os.X_OK), command


def test_setup_commands_of_the_readme_are_run_by_ci() -> None:
    """They cannot be run from here: one of them is what started this test."""
    in_ci = (ROOT / ".ci" / "run").read_text().split()
    readme = (ROOT / "README.md").read_text()
    for command in ("./scripts/demo", "./scripts/test"):
        assert command in readme, f"the README does not show {command}"
        assert command in in_ci, f".ci/run does not run {command}"


GOOD = """
```python
total = 2
print("epoch", total)
```

```output
epoch ...
```

```python
print(total + 1)
```

```console
$ echo one && echo two && echo three
one
...
three
$ printf '%s\\n' \\
    continued
continued
```
"""


def test_runner_accepts_a_document_that_is_right(tmp_path: Path) -> None:
    assert problems_in(GOOD) == []
    assert run_document("good.md", GOOD, tmp_path) == 3


@pytest.mark.parametrize(
    ("document", "complaint"),
    [
        ("```python\nprint(1)\n```\n```output\n2\n```\n", "good.md:2: shown is"),
        ("```python\nprint(1)\nprint(2)\n```\n```output\n1\n```\n", "good.md:2: shown is"),
        ("```console\n$ true\n$ echo one\ntwo\n```\n", "good.md:3: shown is"),
        ("```sh\necho one\n```\n```output\none\ntwo\n```\n", "good.md:2: shown is"),
        ("```sh\nfalse\ntrue\n```\n", "exit 1"),
        ("```console\n$ exit 3\n```\n", "exit 3"),
        (
            "```python\nprint(1)\n```\n\n```python\nraise SystemExit(4)\n```\n",
            "good.md:6: the program failed",
        ),
    ],
)
def test_runner_refuses_a_document_that_is_wrong(document: str, complaint: str, tmp_path: Path) -> None:
    with pytest.raises(DocumentError, match=complaint):
        run_document("good.md", document, tmp_path)


def test_runner_shows_the_line_of_the_document_where_a_program_failed(tmp_path: Path) -> None:
    with pytest.raises(DocumentError, match=r'wrong\.md", line 3'):
        run_document("wrong.md", "```python\nx = 1\nassert x == 2\n```\n", tmp_path)


def test_runner_writes_files_before_programs_import_them(tmp_path: Path) -> None:
    document = (
        "```python\nimport mine\nprint(mine.answer)\n```\n```output\n42\n```\n"
        "```python file=mine.py\nanswer = 42\n```\n"
    )
    assert run_document("files.md", document, tmp_path) == 2


@pytest.mark.parametrize(
    ("document", "complaint"),
    [
        ("```\nx\n```\n", "say what the block is"),
        ("```py\nx\n```\n", "'py' is none of"),
        ("```python (not run)\nx\n```\n", "says why"),
        ("```output\nx\n```\n", "directly after"),
        ("```python\nx\n```\nwords\n```output\nx\n```\n", "directly after"),
        ("```console\nls\n```\n", "begins with a command"),
    ],
)
def test_runner_refuses_blocks_that_would_silently_not_be_checked(document: str, complaint: str) -> None:
    problems = problems_in(document)
    assert len(problems) == 1
    assert complaint in problems[0]


def test_runner_leaves_out_only_what_gives_its_reason(tmp_path: Path) -> None:
    document = "```python (not run: needs a cluster)\nraise SystemExit(1)\n```\n```text\nfalse\n```\n"
    assert problems_in(document) == []
    assert run_document("reasons.md", document, tmp_path) == 0


def test_runner_skips_the_commands_that_set_a_machine_up(tmp_path: Path) -> None:
    document = "```console\n$ ./scripts/demo --epochs 2\nepoch 0\n```\n```sh\n./scripts/test\n```\n"
    assert run_document("setup.md", document, tmp_path) == 2
