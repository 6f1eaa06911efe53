"""sqlglot's tree is read strictly: a part that no reader names is refused."""

from __future__ import annotations

import pytest
import sqlglot
from sqlglot import exp

from differential import SqlError
from differential.relational.reading.texts import SqlText


def test_places_are_those_of_the_first_token() -> None:
    text = SqlText("select a,\n   sum(b + 1)\nfrom t", "spark")
    tree = text.statement()
    call = tree.find(exp.Sum)
    assert call is not None
    assert str(text.site(call)) == "<sql>:2:4"
    assert str(text.error(call, "no\nline")) == "<sql>:2:4: no line"


def test_a_part_that_is_not_named_is_refused() -> None:
    text = SqlText("select count(*) from t where a not like 'x'", "duckdb")
    tree = text.statement()
    like = tree.find(exp.Like)
    assert like is not None
    text.parts_of(like, "this", "expression", "negate")
    with pytest.raises(SqlError, match="negate of Like is not supported"):
        text.parts_of(like, "this", "expression")


def test_sqlglot_has_the_parts_that_readers_name() -> None:
    """They change between its minor versions: `NOT LIKE` was once a Not of a Like."""
    parts = {
        exp.Like: {"this", "expression"},
        exp.Select: {
            "expressions",
            "from_",
            "joins",
            "where",
            "group",
            "having",
            "qualify",
            "order",
            "limit",
        },
        exp.Join: {"this", "side", "kind", "method", "on", "using"},
        exp.In: {"this", "expressions", "query"},
        exp.Group: {"expressions", "rollup", "cube", "grouping_sets", "all"},
        exp.Window: {"this", "partition_by", "order", "spec", "alias", "over"},
        exp.Ordered: {"this", "desc", "nulls_first"},
        exp.Union: {"this", "expression", "distinct"},
        exp.With: {"expressions", "recursive"},
    }
    for node, names in parts.items():
        assert names <= set(node.arg_types), node
    assert sqlglot.parse_one("a not like 'x'").args.get("negate") is True


@pytest.mark.parametrize(
    ("text", "place"),
    [("select 'open", "1:8"), ("select a from (select b", "1:23"), ("select a b c from t", "1:12")],
)
def test_texts_that_cannot_be_read(text: str, place: str) -> None:
    with pytest.raises(SqlError) as caught:
        SqlText(text, "spark").statements()
    assert str(caught.value).startswith(f"<sql>:{place}: ")


def test_lengths_and_dialects_are_checked_first() -> None:
    with pytest.raises(SqlError, match="too many"):
        SqlText("x" * 600_000, "spark")
    with pytest.raises(SqlError, match="write one of spark, postgres, duckdb"):
        SqlText("select 1", "oracle")
