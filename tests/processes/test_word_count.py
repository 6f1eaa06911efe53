"""The example `word_count.py`: the same output whatever runs it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from house import ROOT

EXPECTED = """epoch 0   brown 1   dog 1   fox 1   jumps 1   lazy 1   over 1   quick 1   the 2
epoch 1   dog 2   sleeps 1   the 3
epoch 2   a 2   and 1   dog 3   fox 2
"""


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, ROOT / "examples" / "word_count.py", *arguments],
        capture_output=True,
        text=True,
        check=False,
        timeout=100,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )


@pytest.mark.parametrize("arguments", [(), ("--workers", "1"), ("--workers", "2")], ids=" ".join)
def test_words_of_its_own_text_are_counted(arguments: tuple[str, ...]) -> None:
    result = run(*arguments)
    assert (result.returncode, result.stdout) == (0, EXPECTED), result.stderr


def test_words_of_a_file_are_counted_paragraph_by_paragraph(tmp_path: Path) -> None:
    file = tmp_path / "text.txt"
    file.write_text("b a\nb\n\na\n")
    assert run(str(file)).stdout == "epoch 0   a 1   b 2\nepoch 1   a 2\n"


def test_a_missing_file_is_one_clear_line() -> None:
    result = run("nowhere.txt")
    assert result.returncode == 1 and result.stdout == ""
    assert result.stderr == "word_count: [Errno 2] No such file or directory: 'nowhere.txt'\n"
