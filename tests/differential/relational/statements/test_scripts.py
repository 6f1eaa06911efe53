"""Scripts: semicolons in quotes and comments end nothing, and places are those of the whole text."""

from __future__ import annotations

import pytest

from differential.errors import SqlError
from differential.relational.statements.scripts import pieces_of


@pytest.mark.parametrize("dialect", ["spark", "postgres", "duckdb"])
def test_statements_end_at_semicolons_outside_of_quotes_and_comments(dialect: str) -> None:
    text = "select ';' /* ; */;; -- ;\nexplain select 'a;b';\n  show tables"
    pieces = pieces_of(text, dialect, "<sql>")
    assert [piece.text.text for piece in pieces] == ["select ';'", "explain select 'a;b'", "show tables"]
    assert [piece.verb for piece in pieces] == ["SELECT", "EXPLAIN", "SHOW"]
    assert str(pieces[2].error("so", 1)) == "<sql>:3:8: so"
    assert pieces[1].behind(1).text.text == "select 'a;b'"
    assert str(pieces[1].behind(1).error("so")) == "<sql>:2:9: so"


def test_a_verb_that_there_is_not_is_named_with_its_place() -> None:
    with pytest.raises(SqlError, match=r"^views\.sql:2:3: there is no statement truncate: write DELETE FROM"):
        pieces_of("select 1;\n  truncate table t", "spark", "views.sql")


@pytest.mark.parametrize("dialect", ["spark", "postgres", "duckdb"])
def test_statements_of_plain_rows_are_told_apart_without_their_tokens(dialect: str) -> None:
    text = """create table t (a int, b string); insert into t values (1, 'x;y'),
        (2, '-- b') ; ;\n insert into t (a) values (3); select ';insert into t values (4)';
        insert into t values (5, upper('x')) -- ; insert into t values (6, 'x')
        ; insert into t values (7, '')"""
    pieces = pieces_of(text, dialect, "<sql>")
    assert [piece.verb for piece in pieces] == ["CREATE", "INSERT", "INSERT", "SELECT", "INSERT", "INSERT"]
    assert [piece.rows is not None for piece in pieces] == [False, True, True, False, False, True]
    for piece in pieces:
        if piece.rows is not None:
            shown = piece.text.text[piece.rows.rows_start : piece.rows.stop].split()
            assert shown[0][0] == "(" and shown[-1][-1] == ")"
    assert str(pieces[2].error("so")) == "<sql>:3:2: so"
    assert str(pieces[5].error("so")) == "<sql>:5:11: so"
