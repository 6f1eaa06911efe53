"""What users and their data have written is text in HTML, and nothing that raises reaches a notebook."""

from __future__ import annotations

import datetime
import html.parser
from typing import NoReturn

from hypothesis import given
from hypothesis import strategies as st

from timely.limits import CELL_CHARS_MAX
from timely.user_code.html_tables import (
    ShownText,
    cell_text,
    html_or_text,
    html_table,
    html_text,
)


class Reader(html.parser.HTMLParser):
    """Reads tags, and the texts of cells."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.cells: list[str] = []
        self._in_cell = False
        self.feed(page)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        if tag == "td":
            self.cells.append("")
            self._in_cell = True

    def handle_endtag(self, tag: str) -> None:
        self._in_cell = self._in_cell and tag != "td"

    def handle_data(self, data: str) -> None:
        if self._in_cell:
            self.cells[-1] += data


TEXTS = st.text(st.characters(codec="utf-8"), max_size=40) | st.sampled_from(["<script>", "&lt;", "'\">"])


@given(TEXTS, TEXTS, st.lists(TEXTS, max_size=5))
def test_no_text_becomes_markup(title: str, name: str, values: list[str]) -> None:
    page = html_table(title, [(name, title)], [(value,) for value in values], name)
    read = Reader(page)
    assert read.tags <= {"div", "strong", "table", "thead", "tbody", "tr", "th", "td", "br", "small"}
    assert [_lines(cell) for cell in read.cells] == [_lines(value) for value in values]


def _lines(text: str) -> str:
    """A text as HTML keeps it: a carriage return is a line."""
    return text.replace("\r\n", "\n").replace("\r", "\n")


def test_tables_and_cells_are_cut() -> None:
    page = html_table("many", [("n", "int")], [(n,) for n in range(50)])
    assert len(Reader(page).cells) == 20
    assert cell_text("é" * 1_000_000) == "é" * CELL_CHARS_MAX + " … (1,000,000 characters)"
    assert cell_text("é" * CELL_CHARS_MAX) == "é" * CELL_CHARS_MAX


def test_a_cell_has_all_digits_and_bytes_in_hexadecimal() -> None:
    values = (2**63 - 1, 0.1, True, None, "x", b"\x01\xab", [1, "a"], datetime.date(2026, 1, 2))
    assert [cell_text(value) for value in values] == [
        "9223372036854775807", "0.1", "true", "null", "x", "01 ab", "[1, 'a']", "2026-01-02",
    ]  # fmt: skip


def test_a_text_is_cut() -> None:
    assert len(html_text("x" * 2**20)) < 101_000


def test_what_raises_is_shown_in_words() -> None:
    class Broken:
        def __repr__(self) -> str:
            raise ValueError("no repr")

    def fails() -> NoReturn:
        raise ValueError("<no rows>")

    assert html_or_text(7, lambda: "seven") == "seven"
    assert html_or_text(7, fails) == "<pre>7\nValueError: &lt;no rows&gt;</pre>"
    assert "Broken" in html_or_text(Broken(), fails)


def test_a_shown_text_is_a_text() -> None:
    shown = ShownText("a <- b\n  c")
    written: list[str] = []

    class Printer:
        def text(self, text: str) -> None:
            written.append(text)

    shown._repr_pretty_(Printer(), False)
    assert shown == "a <- b\n  c" == written[0]
    assert shown._repr_html_() == "<pre>a &lt;- b\n  c</pre>"
