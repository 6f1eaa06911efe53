"""docs/errors.md quotes messages that the code has: a reader who searches the page for what he sees finds it.

quoted_*   every piece of a message between two `…` stands in a text of the code
page_*     the reader of the page finds the messages, and a piece that is missing
"""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path

from house import PACKAGES, ROOT, report

PAGE = ROOT / "docs" / "errors.md"


def messages_of(page: str) -> list[str]:
    """First cells of the tables whose head is "the message says"."""
    messages = []
    in_table = False
    for line in page.splitlines():
        if not line.startswith("|"):
            in_table = False
        elif line.startswith("| the message says |"):
            in_table = True
        elif in_table and set(line) - set("|- "):
            messages.append(re.split(r"(?<!\\)\|", line)[1].strip().replace("\\|", "|"))
    return messages


def texts_of(path: Path) -> list[str]:
    """Texts of a file, each with `…` where a value is filled in."""
    texts = []
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.JoinedStr):
            texts.append("".join(_constant(part) for part in node.values))
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            texts.append(node.value)
    return texts


def _constant(part: ast.expr) -> str:
    return str(part.value) if isinstance(part, ast.Constant) else "…"


@cache
def texts_of_the_code() -> str:
    files = sorted(path for package in PACKAGES for path in (ROOT / package).rglob("*.py"))
    return "\n".join(text for path in files for text in texts_of(path))


def missing(message: str, texts: str) -> list[str]:
    """Pieces of a message that stand in no text."""
    pieces = (piece.strip() for piece in message.split("…"))
    return [piece for piece in pieces if piece.strip(" .,:;()'") and piece not in texts]


def test_quoted_messages_stand_in_the_code() -> None:
    messages = messages_of(PAGE.read_text())
    assert len(messages) > 50
    texts = texts_of_the_code()
    report(
        f"{message!r}: no {piece!r} in the code" for message in messages for piece in missing(message, texts)
    )


def test_page_is_read_as_it_is_written() -> None:
    other = "| class | means |\n|---|---|\n| x | y |\n\n"
    page = other + "| the message says | means |\n|---|---|\n| a \\| … b | c |\n"
    assert messages_of(page) == ["a | … b"]
    assert missing("a | … b", "no a | x b") == []
    assert missing("a | … gone", "no a | x b") == ["gone"]
