"""What pages of reference say: lines of tables, the names in them, and the parameters that are written.

`test_reference_page.py` and `test_timely_reference_page.py` hold them against what there is.
"""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple, cast

__all__ = ["Line", "differences", "lines_of", "names_in"]

_ABOUT = frozenset(
    {"here", "as an object", "class", "error", "method", "function", "you override", "you call"}
    | {"you set in the class"}
)
"""Heads of columns whose cells a line is about."""


class Line(NamedTuple):
    """One line of a table: its cells, and those of the table's head."""

    cells: tuple[str, ...]
    head: tuple[str, ...]


def lines_of(page: str) -> list[Line]:
    """The lines of all tables."""
    found: list[Line] = []
    head: tuple[str, ...] = ()
    for text in page.splitlines():
        if not text.startswith("|"):
            head = ()
            continue
        cells = tuple(cell.strip() for cell in re.split(r"(?<!\\)\|", text)[1:-1])
        if not head:
            head = cells
        elif set(text) - set("|- "):
            found.append(Line(cells, head))
    return found


def names_in(line: Line, prefixes: Iterable[str]) -> Iterator[tuple[str, str, str | None]]:
    """(of what, name, parameters) of all that a line is about, as `prefix.name(parameters)`."""
    named = re.compile(rf"({'|'.join(map(re.escape, prefixes))})\.(\w+)(?:\((.*)\))?")
    for name, cell in zip(line.head, line.cells, strict=True):
        if name in _ABOUT:
            for span in re.findall(r"`([^`]+)`", cell):
                if (form := named.fullmatch(span)) is not None and form[2] != "…":
                    yield form[1], form[2], form[3]


def differences(written: str, function: Callable[..., object]) -> list[str]:  # type: ignore[explicit-any]
    """How parameters that are written differ from those that a function has."""
    arguments = cast(ast.Lambda, ast.parse(f"lambda {written.replace('…', '...')}: 0", mode="eval").body).args
    plain = [each.arg for each in [*arguments.posonlyargs, *arguments.args]]
    star = [arguments.vararg.arg] if arguments.vararg else []
    only = [each.arg for each in arguments.kwonlyargs]
    rest = [arguments.kwarg.arg] if arguments.kwarg else []
    first = len(plain) - len(arguments.defaults)
    given = dict(zip(plain[first:], arguments.defaults, strict=True))
    given |= {
        name: value for name, value in zip(only, arguments.kw_defaults, strict=True) if value is not None
    }
    has = [
        each for name, each in inspect.signature(function).parameters.items() if name not in ("self", "cls")
    ]
    found = []
    if [*plain, *star, *only, *rest] != [each.name for each in has]:
        found.append(f"({written}) is ({', '.join(each.name for each in has)})")
        return found
    for each in has:
        if (each.default is not each.empty) != (each.name in given):
            found.append(f"{each.name} may be left out, or may not")
        elif each.name in given:
            value = ast.literal_eval(given[each.name])
            if value is not ... and value != each.default:
                found.append(f"{each.name} is {each.default!r} if it is left out")
        if (each.kind is each.KEYWORD_ONLY) != (each.name in only):
            found.append(f"{each.name} is written behind *, or is not")
    return found
