"""What documents speak of is there: a renamed file or class must not lose a reader.

files_*      every path in backticks in README.md, CONTRIBUTING.md and docs/ exists
names_*      a name that stands in a file, "`Name` in `file.py`", is defined there
links_*      every relative link leads to a file
glossary_*   each name stands in the file that its line gives; no word is defined twice
decisions_*  each decision has its parts and is listed
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from house import ROOT, report

PATH_OF_OURS = re.compile(r"`((?:progress|timely|differential|examples|tests|bench|docs|scripts)/[\w./]*)`")
WRITTEN_BY_BENCHMARKS = {"bench/results/"}
"""Named before anybody has run a benchmark on a fresh clone."""

NAME_IN_FILE = re.compile(r"`([A-Za-z_][\w.]*)`\s+(?:in|of)\s+`([\w/]+\.py)`")
LINK = re.compile(r"\]\(([^)#:]+)(?:#[^)]*)?\)")
DOCUMENTS = [
    ROOT / "README.md",
    ROOT / "CONTRIBUTING.md",
    *sorted((ROOT / "docs").rglob("*.md")),
    *sorted((ROOT / "examples").glob("*.md")),
]
DECISIONS = sorted((ROOT / "docs" / "decisions").glob("0*.md"))


def _name(document: Path) -> str:
    return str(document.relative_to(ROOT))


def _outside_blocks(text: str) -> str:
    return re.sub(r"^ *```.*?^ *```$", "", text, flags=re.DOTALL | re.MULTILINE)


def _glossary() -> list[tuple[str, str, str]]:
    """(word, name in the code, file) of each line."""
    rows = re.findall(
        r"^\| (.+?) \| .+ \| `(.+?)` \| `(.+?)` \|$",
        (ROOT / "docs" / "glossary.md").read_text(),
        flags=re.MULTILINE,
    )
    return [(word, name, file) for word, name, file in rows]


@pytest.mark.parametrize("document", DOCUMENTS, ids=_name)
def test_files_that_are_named_exist(document: Path) -> None:
    named = PATH_OF_OURS.findall(document.read_text())
    report(path for path in named if path not in WRITTEN_BY_BENCHMARKS and not (ROOT / path).exists())


@pytest.mark.parametrize("document", DOCUMENTS, ids=_name)
def test_names_are_defined_in_the_files_that_are_given(document: Path) -> None:
    report(
        f"{name} is not defined in {file}"
        for name, file in NAME_IN_FILE.findall(document.read_text())
        if (ROOT / file).is_file() and not _defines((ROOT / file).read_text(), name.split(".")[-1])
    )


def _defines(code: str, name: str) -> bool:
    """Return True if the code has a class, a function, a variable or an attribute of this name."""
    return bool(
        re.search(rf"^\s*(?:(?:class|def) {name}\b|(?:self\.)?{name}\s*[:=])", code, flags=re.MULTILINE)
    )


@pytest.mark.parametrize("document", DOCUMENTS, ids=_name)
def test_links_lead_somewhere(document: Path) -> None:
    links = LINK.findall(_outside_blocks(document.read_text()))
    report(link for link in links if not (document.parent / link).exists())


def test_glossary_names_stand_in_the_files_that_are_given() -> None:
    rows = _glossary()
    assert len(rows) > 50, "the glossary has lost its form: | word | meaning | `name` | `file` |"
    report(
        f"{word}: no {name} in {file}"
        for word, name, file in rows
        if not (ROOT / file).is_file() or not re.search(rf"\b{name}\b", (ROOT / file).read_text())
    )


def test_glossary_every_line_of_a_table_is_read() -> None:
    lines = (ROOT / "docs" / "glossary.md").read_text().splitlines()
    written = [line for line in lines if line.startswith("| ") and not line.startswith("| word | meaning |")]
    assert len(written) == len(_glossary())


def test_glossary_defines_no_word_twice() -> None:
    words = [word for words, _, _ in _glossary() for word in words.split(", ")]
    report(word for word in words if words.count(word) > 1)


@pytest.mark.parametrize("decision", DECISIONS, ids=_name)
def test_decisions_have_their_parts_and_are_listed(decision: Path) -> None:
    text = decision.read_text()
    report(
        part
        for part in ("## Context", "## Decision", "## Why", "## Consequences")
        if f"\n{part}\n" not in text
    )
    assert f"({decision.name})" in (decision.parent / "README.md").read_text()
