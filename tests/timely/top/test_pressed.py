"""Keys come one at a time, and the terminal is as before afterwards."""

from __future__ import annotations

import os
import sys
import termios
from collections.abc import Iterator
from pathlib import Path

import pytest

from timely.top.pressed import Pressed


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[int, int]]:
    """The two ends of a terminal, of which one is the program's input."""
    ours, theirs = os.openpty()
    with os.fdopen(theirs, "r", closefd=True) as file:
        monkeypatch.setattr(sys, "stdin", file)
        yield ours, theirs
    os.close(ours)


def test_a_key_comes_without_the_end_of_its_line(terminal: tuple[int, int]) -> None:
    ours, theirs = terminal
    before = termios.tcgetattr(theirs)
    with Pressed() as pressed:
        os.write(ours, b"kq")
        assert [pressed.wait(5), pressed.wait(5), pressed.wait(0.01)] == ["k", "q", ""]
        assert termios.tcgetattr(theirs) != before
    assert termios.tcgetattr(theirs) == before


def test_without_a_terminal_no_key_comes(monkeypatch: pytest.MonkeyPatch) -> None:
    with Path(os.devnull).open() as file:
        monkeypatch.setattr(sys, "stdin", file)
        with Pressed() as pressed:
            assert pressed.wait(0.01) == ""
