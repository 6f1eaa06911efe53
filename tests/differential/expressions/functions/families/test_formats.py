"""Values put into texts, against DuckDB's printf. `tests/spark/functions` has Spark's."""

from __future__ import annotations

from decimal import Decimal

import pytest
from duckdb_values import against_duckdb
from expression_values import values_of

import differential as dd
from differential import Schema, col
from differential.errors import ExpressionError
from differential.expressions.expression import Expr

INTS = [
    0,
    1,
    -1,
    12,
    -4_567_890,
    2**63 - 1,
    -(2**63),
    *(3**n for n in range(39)),
    *(-(7**n) for n in range(22)),
]
FLOATS = [0.0, 0.5, 1.25, -2.75, 1e6, -1e-3, 4096.0625, *(n / 64 for n in range(-40, 40))]
TEXTS = ["", "a", "it's", "%s", "ab" * 40, "x y"]


def of(expr: Expr, *values: object, type_: str = "string?") -> list[object]:
    """The values of an expression over `v`."""
    return values_of(expr, [(value,) for value in values], Schema.of(f"v: {type_}"))


def test_numbers_and_texts_are_written_as_by_duckdb() -> None:
    def claims(*patterns: str) -> list[tuple[Expr, str]]:
        return [(dd.format_string(each, col.v), f"printf('{each}', v)") for each in patterns]

    against_duckdb("int", INTS, claims("%d", "<%8d>", "<%-22d>", "%+d", "% d", "%025d", "%x", "%o", "%d %%"))
    # of six binary digits, so that no half is rounded
    against_duckdb("float", FLOATS, claims("%f", "%.7f", "%15.6f", "%.12e", "%+.12e"))
    against_duckdb("string", TEXTS, claims("%s", "<%5s>", "<%-5s>", "%.1s"))


def test_several_values_and_nulls_stand_where_they_are_named() -> None:
    schema = Schema.of("s: string?, n: int?, b: bool")
    rows: list[tuple[object, ...]] = [("a", 7, True), (None, None, False), ("", -7, True)]
    expr = dd.format_string("%2$s|%s|%<S|%,5d|%b|%3$B%n", col.s, col.n, col.b)
    assert values_of(expr, list(rows), schema) == [
        "7|a|A|    7|true|TRUE\n", "null|null|NULL| null|false|FALSE\n", "-7|||   -7|true|TRUE\n",
    ]  # fmt: skip
    assert (
        values_of(dd.format_string("no %5%%-4%. value", col.s), list(rows), schema)
        == ["no     %%   . value"] * 3
    )
    assert of(dd.format_string("100 %%"), 1, type_="int") == ["100 %"]
    assert of(dd.format_string("%s", dd.lit(1.5)), 1, type_="int") == ["1.5"]


def test_halves_go_up_from_the_digits_that_are_shown() -> None:
    assert of(dd.format_string("%.2f", col.v), 0.125, 1.005, -0.125, 2.675, type_="float") == [
        "0.13", "1.01", "-0.13", "2.68",
    ]  # fmt: skip
    exact = Decimal("9999999999999999999999.995"), Decimal("-0.005")
    assert of(dd.format_string("%,.2f", col.v), *exact, type_="decimal(38, 3)") == [
        "10,000,000,000,000,000,000,000.00", "-0.01",
    ]  # fmt: skip
    assert of(dd.format_string("%s %g", col.v, col.v), 1e7, float("nan"), 1e-5, type_="float") == [
        "1.0E7 1.00000e+07", "NaN NaN", "1.0E-5 1.00000e-05",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("pattern", "kind", "message"),
    [
        ("%d", "float", "'%d' takes int, and value 1 is float; write %f"),
        ("%.2f", "int", "'%.2f' takes float or decimal, and value 1 is int; write %s"),
        ("%s", "timestamp", "value 1 is timestamp; write date_format(…), and %s"),
        ("%s %s", "int", "'%s' stands for value 2, which is not there"),
        ("50%", "int", "for a percent sign write %%"),
        ("%tY", "int", "of a time write date_format"),
        ("%c", "int", "write chr"),
        ("%<s", "int", "%< repeats the one before"),
        ("%0$s", "int", "counted from 1"),
        ("%-s", "int", "the flag '-' needs a width"),
        ("%,x", "int", "the flag ',' says nothing there"),
        ("%++d", "int", "is there twice"),
        ("%-05d", "int", "exclude each other"),
        ("%.1d", "int", "no digits behind a point"),
        ("%1001s", "int", "at most 1,000"),
        ("%5n", "int", "the end of a line %n"),
        ("%D", "int", "the conversions are"),
    ],
)
def test_what_has_no_meaning_is_refused(pattern: str, kind: str, message: str) -> None:
    with pytest.raises(ExpressionError) as raised:
        of(dd.format_string(pattern, col.v), type_=kind)
    assert message in str(raised.value)


def test_a_format_without_its_values_is_refused() -> None:
    with pytest.raises(ExpressionError, match="stands for value 1, which is not there"):
        dd.format_string("%s")
    with pytest.raises(ExpressionError, match=r"Of the column write format_string\('%s', col.s\)"):
        dd.format_string("%s", "s")
