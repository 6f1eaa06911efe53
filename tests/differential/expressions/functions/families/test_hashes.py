"""Hashes of values of every type, against Spark's: `tests/spark/functions` compares more of them."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal

import pytest
from expression_values import values_of

import differential as dd
from differential import Schema, col
from differential.errors import ExpressionError
from differential.expressions.expression import Expr

XXH64 = {
    "": -7444071767201028348, "a": -8582455328737087284, "abc": 1423657621850124518,
    "b" * 31: 688022552932669415, "b" * 32: -1438608897990026366, "xyz" * 50: -5644881509534801361,
}  # fmt: skip
"""Of Spark 4, with its seed 42."""
KINDS: dict[str, list[object]] = {
    "int?": [0, -1, 2**63 - 1, None],
    "float?": [0.0, 1.5, float("nan"), float("-inf"), None],
    "bool?": [True, False, None],
    "date?": [dt.date(2024, 2, 29), dt.date(1969, 12, 31), None],
    "timestamp?": [dt.datetime(2024, 2, 29, 12, tzinfo=dt.UTC), dt.datetime(1900, 1, 1, tzinfo=dt.UTC), None],
    "decimal(18, 2)?": [Decimal("1.25"), Decimal("-7.77"), None],
    "decimal(38, 2)?": [Decimal("1.25"), Decimal("-1.28"), Decimal("1.28"), Decimal(10) ** 30, None],
    "bytes?": [b"", b"\xff" * 40, None],
}
SPARKS: dict[str, list[int]] = {
    "int?": [-5252525462095825812, 3858142552250413010, -3246596055638297850, 42],
    "float?": [-5252525462095825812, 7738255526519901366, -3127944061524951246, 5326262080505358431, 42],
    "bool?": [-6698625589789238999, 3614696996920510707, 42],
    "date?": [4183429117450946631, 2017008487422258757, 42],
    "timestamp?": [2906971207710284459, 155858819934112402, 42],
    "decimal(18, 2)?": [2287599437899865974, 5696589689567029349, 42],
    "decimal(38, 2)?": [
        284054986895877072, -7898411661632158123, 6715097930120473301, 7289449273527730619, 42,
    ],
    "bytes?": [-7444071767201028348, -7065438605025439737, 42],
}  # fmt: skip


def hashed(schema: str, *rows: tuple[object, ...]) -> list[object]:
    """The hash of all columns."""
    columns = Schema.of(schema)
    return values_of(dd.xxhash64(*(col(name) for name in columns.names)), list(rows), columns)


def test_texts_of_all_lengths_have_the_hash_of_spark() -> None:
    assert hashed("v: string", *((text,) for text in XXH64)) == list(XXH64.values())


@pytest.mark.parametrize("kind", KINDS)
def test_values_of_every_type_have_the_hash_of_spark(kind: str) -> None:
    assert hashed(f"v: {kind}", *((value,) for value in KINDS[kind])) == SPARKS[kind]


def test_a_hash_is_the_seed_of_the_next_and_null_leaves_it() -> None:
    rows: list[tuple[object, ...]] = [(1, "a"), (None, "a"), (1, None), (None, None)]
    both = hashed("k: int?, s: string?", *rows)
    assert both[1:] == [XXH64["a"], *hashed("k: int", (1,)), 42]
    assert both[0] not in both[1:]
    assert values_of(dd.xxhash64(col.s, 7), [("a",), ("b",)], Schema.of("s: string"))[0] != XXH64["a"]


def test_narrow_numbers_of_spark_have_hashes_of_their_own() -> None:
    ints = values_of(dd.xxhash64_as("int", col.v), [(1,), (-1,)], Schema.of("v: int"))
    assert ints == [-6698625589789238999, 2017008487422258757]  # as a bool, and as the day -1
    assert values_of(dd.xxhash64_as("float", col.v), [(1.5,)], Schema.of("v: float")) == [6163473420726370430]
    wide = values_of(
        dd.xxhash64_as("bigint, string", col.v, col.s), [(7, "a")], Schema.of("v: int, s: string")
    )
    assert wide == hashed("v: int, s: string", (7, "a"))


@pytest.mark.parametrize(
    ("expr", "message"),
    [
        (dd.xxhash64(col.v), "takes int or float or .* for 'values'"),
        (dd.xxhash64_as("int", col.k, col.k), "names 1 types, and there are 2 values"),
        (dd.xxhash64_as("string", col.k), "'string': write tinyint, smallint, int, bigint"),
        (dd.xxhash64_as("double", col.k), "'double' is no type of a value that is int"),
    ],
)
def test_what_has_no_hash_is_refused(expr: Expr, message: str) -> None:
    with pytest.raises(ExpressionError, match=message):
        values_of(expr, [((1,), 2)], Schema.of("v: array<int>, k: int"))


def test_a_text_is_no_column() -> None:
    with pytest.raises(ExpressionError, match=r"Of the column write xxhash64\(col.s\)"):
        dd.xxhash64("s")
