"""`docs/reading.md` can be read in one afternoon: what it names is there, and is not too long together."""

from __future__ import annotations

import ast
import re
from pathlib import Path

from house import ROOT

LINES_MAX = 5_500
"""Lines of the whole list; of a file of which parts are named, the docstring and these count."""

_ROW = re.compile(r"^\| (?:`([^`]+)`(?:: ([^|]+))?|\[[^\]]+\]\(([^)]+)\)) \|", re.MULTILINE)


def test_the_reading_list_fits_into_an_afternoon() -> None:
    rows = _ROW.findall((ROOT / "docs" / "reading.md").read_text())
    assert len(rows) >= 15
    lines: dict[Path, set[int]] = {}
    for code, parts, document in rows:
        file = ROOT / code if code else ROOT / "docs" / document
        lines[file] = lines.get(file, set()) | _lines_of(file, re.findall(r"`([^`]+)`", parts))
    by_file = {file.name: len(numbers) for file, numbers in lines.items()}
    assert sum(by_file.values()) <= LINES_MAX, (sum(by_file.values()), by_file)


def _lines_of(file: Path, parts: list[str]) -> set[int]:
    """Return the numbers of the lines to read: all, or those of the docstring and of the named parts."""
    text = file.read_text()
    if not parts:
        return set(range(len(text.splitlines())))
    body = ast.parse(text).body
    nodes = [body[0], *(_definition(body, part, file) for part in parts)]
    return {line for node in nodes for line in range(node.lineno - 1, node.end_lineno or node.lineno)}


def _definition(body: list[ast.stmt], part: str, file: Path) -> ast.stmt:
    """Return the definition of a class or function, or of a method as `Class.method`."""
    name, _, rest = part.partition(".")
    for node in body:
        if isinstance(node, ast.ClassDef | ast.FunctionDef) and node.name == name:
            return _definition(node.body, rest, file) if rest else node
    raise AssertionError(f"docs/reading.md names {part!r}, which {file.relative_to(ROOT)} lacks")
