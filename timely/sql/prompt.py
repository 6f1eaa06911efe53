"""Statements from a prompt: lines until a semicolon ends them, and commands that begin with a backslash."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import TextIO

__all__ = ["is_whole", "read_statements"]

_HELP = """a statement ends with ;
  \\d         tables and views        \\d NAME    columns of one
  \\q         end                     \\?         this
CREATE TABLE, CREATE VIEW, DROP, INSERT, DELETE, UPDATE, SELECT, SUBSCRIBE, EXPLAIN, SHOW: docs/sql.md"""

_QUOTED = re.compile(r"'(?:[^']|'')*'|\"[^\"]*\"|`[^`]*`|--[^\n]*|/\*.*?\*/", re.DOTALL)
"""Texts, names in quotes and comments, in which a semicolon ends nothing."""


def is_whole(text: str) -> bool:
    """Return True if a semicolon ends the last statement of a text."""
    bare = _QUOTED.sub(" ", text).rstrip()
    return bare.endswith(";") and not any(quote in bare for quote in "'\"`")


def read_statements(ask: Callable[[str], str], out: TextIO) -> Iterator[str]:
    """Yield what a user types, statement by statement. `ask` shows a prompt, and returns a line."""
    lines: list[str] = []
    while True:
        try:
            line = ask("sql> " if not lines else "...> ")
        except EOFError:
            print(file=out)
            return
        except KeyboardInterrupt:  # what was typed is dropped
            print(file=out)
            lines.clear()
            continue
        command = line.strip().rstrip(";").split()
        if not lines and command and command[0].startswith("\\"):
            if command[0] == "\\q":
                return
            yield from _commanded(command, out)
            continue
        lines.append(line)
        text = "\n".join(lines)
        if not text.strip():
            lines.clear()
        elif is_whole(text):
            lines.clear()
            yield text


def _commanded(command: list[str], out: TextIO) -> Iterator[str]:
    """Yield the statements that a command with a backslash stands for."""
    if command[0] == "\\d" and len(command) == 1:
        yield "show tables; show views"
    elif command[0] == "\\d":
        yield f"show columns from {command[1]}"
    else:
        print(_HELP, file=out)
