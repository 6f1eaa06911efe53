"""Tables and texts as HTML, which notebooks show in place of a `repr`.

Names and values come from users and their data, so all of them are escaped: nothing of them is markup.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from html import escape
from typing import Final, Protocol

from ..limits import CELL_CHARS_MAX

__all__ = [
    "ROWS_SHOWN_MAX",
    "ShownText",
    "cell_text",
    "html_or_text",
    "html_table",
    "html_text",
]

ROWS_SHOWN_MAX: Final = 20
_TEXT_CHARACTERS_MAX: Final = 100_000
_STYLE: Final = "text-align:left;white-space:pre-wrap;vertical-align:top"


class _Printer(Protocol):
    """What IPython gives to `_repr_pretty_`."""

    def text(self, text: str) -> object:
        """Write a text."""
        ...


class ShownText(str):
    """A text of several lines, which notebooks show as lines."""

    __slots__ = ()

    def _repr_html_(self) -> str:
        return html_text(self)

    def _repr_pretty_(self, printer: _Printer, cycle: bool) -> None:
        del cycle
        printer.text(str(self))


def html_text(text: str) -> str:
    """Return a text as HTML, with its lines and spaces."""
    cut = text if len(text) <= _TEXT_CHARACTERS_MAX else f"{text[: _TEXT_CHARACTERS_MAX - 1]}…"
    return f"<pre>{escape(cut)}</pre>"


def html_table(
    title: str, columns: Sequence[tuple[str, str]], rows: Sequence[Sequence[object]], note: str = ""
) -> str:
    """Return a table as HTML.

    Args:
        title: a line above it.
        columns: name and type of each; an empty type is not shown.
        rows: the values; the first 20 are shown.
        note: a line below it.
    """
    heads = "".join(f'<th style="{_STYLE}">{escape(name)}{_type(kind)}</th>' for name, kind in columns)
    lines = [
        "<tr>" + "".join(f'<td style="{_STYLE}">{escape(cell_text(value))}</td>' for value in row) + "</tr>"
        for row in rows[:ROWS_SHOWN_MAX]
    ]
    below = f"<div>{escape(note)}</div>" if note else ""
    body = f"<table><thead><tr>{heads}</tr></thead><tbody>{''.join(lines)}</tbody></table>" if columns else ""
    return f"<div><strong>{escape(title)}</strong></div>{body}{below}"


def _type(kind: str) -> str:
    return f"<br><small>{escape(kind)}</small>" if kind else ""


def cell_text(value: object) -> str:
    """Return a value as the text of a cell: of a long one its beginning, and how long it is."""
    match value:
        case None:
            text = "null"
        case bool():
            text = str(value).lower()
        case bytes():
            text = value.hex(" ")
        case _:
            text = str(value)
    if len(text) <= CELL_CHARS_MAX:
        return text
    return f"{text[:CELL_CHARS_MAX]} … ({len(text):,} characters)"


def html_or_text(thing: object, draw: Callable[[], str]) -> str:
    """Return what `draw` returns; if it raises, the `repr` of the thing, and the error. A notebook shows a
    thing at the end of a cell: no error of that may look like one of the cell.
    """
    try:
        return draw()
    except Exception as error:
        try:
            return html_text(f"{thing!r}\n{type(error).__name__}: {error}")
        except Exception:
            return html_text(object.__repr__(thing))
