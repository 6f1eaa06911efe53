"""What is typed at the prompt."""

from __future__ import annotations

import io
from collections.abc import Iterator

import pytest

from timely.sql.prompt import is_whole, read_statements


@pytest.mark.parametrize(
    ("text", "whole"),
    [("select 1;", True), ("select 1", False), ("select ';'", False), ("select 'it''s;' ; -- x", True),
     ("select 'a;", False), ("select 1 -- ;", False), ("select 1 /* ; */;", True)],
)  # fmt: skip
def test_a_statement_is_whole_with_a_semicolon_outside_of_quotes(text: str, whole: bool) -> None:
    assert is_whole(text) == whole


def test_lines_become_statements_and_commands(capsys: pytest.CaptureFixture[str]) -> None:
    typed: Iterator[str | type[BaseException]] = iter(
        ["", "select", "  1;", "lost", KeyboardInterrupt, "\\d", "\\d t", "\\?", "select 2;", EOFError]
    )
    prompts: list[str] = []

    def ask(prompt: str) -> str:
        prompts.append(prompt)
        line = next(typed)
        if isinstance(line, str):
            return line
        raise line

    out = io.StringIO()
    assert list(read_statements(ask, out)) == [
        "select\n  1;",
        "show tables; show views",
        "show columns from t",
        "select 2;",
    ]
    assert prompts[:4] == ["sql> ", "sql> ", "...> ", "sql> "] and "a statement ends with ;" in out.getvalue()
