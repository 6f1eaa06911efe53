"""Functions of texts against DuckDB on odd texts, and where Spark means something else than DuckDB."""

from __future__ import annotations

import itertools
from decimal import Decimal

import pytest
from duckdb_values import against_duckdb
from expression_values import values_of

import differential as dd
from differential import Schema, col
from differential.errors import ExpressionError
from differential.expressions.expression import Expr

PARTS = ("", "a", "ab", "aba", "é", "ß ", "😀", "%_", ",", ",,", "\n")
PAIRS = [first + second + "a,b" * (len(first) % 2) for first in PARTS for second in PARTS]
TEXTS = [None, *dict.fromkeys(PAIRS), *(part + "," + part for part in PARTS), "x" * 300]


def of(expr: Expr, *values: object, type_: str = "string?") -> list[object]:
    """The values of an expression over `v`."""
    return values_of(expr, [(value,) for value in values], Schema.of(f"v: {type_}"))


def test_texts_are_cut_and_searched_as_by_duckdb() -> None:
    v = col.v
    assert len(TEXTS) > 100
    claims = [(v.str.repeat(n), f"repeat(v, {n})") for n in (-1, 0, 1, 3)]
    claims += [(v.str.left(n), f"left(v, {n})") for n in (0, 1, 2, 100)]
    claims += [(v.str.right(n), f"right(v, {n})") for n in (0, 1, 2, 100)]
    claims += [(v.str.instr(part), f"instr(v, '{part}')") for part in ("a", "ab", "b,", "é", "zz", "😀")]
    claims += [
        (v.str.split_part(part, n), f"split_part(v, '{part}', {n})")
        for part, n in itertools.product((",", "ab", "😀"), (1, 2, 9, -1, -2, -9))
    ]
    claims += [(v.str.translate(a, b), f"translate(v, '{a}', '{b}')") for a, b in (("ab", "ba"), ("aé", "x"))]
    against_duckdb("string?", TEXTS, claims)


def test_texts_are_cut_as_by_spark_where_duckdb_does_so_otherwise() -> None:
    assert of(col.v.str.left(-1), "ab") == of(col.v.str.right(-1), "ab") == [""]
    assert of(col.v.str.instr(""), "", "ab", "é", None) == [1, 1, 1, None]
    assert of(col.v.str.split_part("", 1), "ab") == ["ab"] and of(col.v.str.split_part("", 2), "ab") == [""]
    assert of(col.v.str.translate("aba", "xyz"), "ab") == ["xy"], "the first of a letter counts"


def test_a_part_is_located_from_a_character_on() -> None:
    assert of(dd.locate("a", col.v, 2), "aba", "é😀a", "ab", None) == [3, 3, 0, None]
    assert of(dd.position("a", col.v), "aba", "ba") == [1, 2]
    assert of(dd.locate("a", col.v, 0), "aba") == [0]
    assert of(dd.locate("", col.v, 3), "aba") == [1]


def test_parts_up_to_a_separator_count_from_either_end() -> None:
    text = "www.apache.org"
    assert [of(col.v.str.substring_index(".", n), text)[0] for n in (2, 1, 9, 0, -1, -2, -9)] == [
        "www.apache", "www", text, "", "org", "apache.org", text,
    ]  # fmt: skip
    assert of(col.v.str.substring_index("aa", -1), "aaaa", "baaab") == ["", "b"]
    assert of(col.v.str.substring_index("aa", -2), "aaaa") == ["a"], "as Spark finds them, overlapping"
    assert of(col.v.str.substring_index("", 1), "ab") == [""]


def test_numbers_are_printed_with_commas_and_halves_go_to_the_even_digit() -> None:
    assert of(col.v.format_number(2), 1234567.891, -0.001, 0.125, 2.675, 1e21, type_="float") == [
        "1,234,567.89", "-0.00", "0.12", "2.67", "1,000,000,000,000,000,000,000.00",
    ]  # fmt: skip
    assert of(col.v.format_number(0), 0.5, 1.5, float("nan"), float("-inf"), type_="float") == [
        "0", "2", "NaN", "-∞",
    ]  # fmt: skip
    assert of(col.v.format_number(1), 12345, None, type_="int?") == ["12,345.0", None]
    assert of(col.v.format_number(1), Decimal("1234.25"), type_="decimal(9, 2)") == ["1,234.2"]


@pytest.mark.parametrize(
    ("expr", "said"),
    [
        (col.v.str.split_part(",", 0), "there is no part 0"),
        (dd.length(col.v).format_number(-1), "0 to 340 digits"),
    ],
)
def test_what_has_no_meaning_is_refused(expr: Expr, said: str) -> None:
    with pytest.raises(ExpressionError, match=said):
        expr.type_in(Schema.of("v: string"))
