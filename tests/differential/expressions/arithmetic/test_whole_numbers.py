"""Arithmetic of whole numbers in expressions; against the row by row twin it is in `test_evaluation.py`."""

from __future__ import annotations

import numpy as np
import pytest

from differential.columns.rows import decode_rows, encode_rows
from differential.columns.schema import Schema
from differential.columns.symbols.table import SymbolTable
from differential.errors import RowError
from differential.expressions.arithmetic.whole_numbers import beyond, combined
from differential.expressions.expression import Expr, col, lit, when
from differential.linear.chain import LinearChain

SCHEMA = Schema.of("a: int, n: int?")
MIN, MAX = -(2**63), 2**63 - 1


def run(chain: LinearChain, rows: list[tuple[object, ...]]) -> list[tuple[object, ...]]:
    symbols = SymbolTable()
    words = np.concatenate([encode_rows(SCHEMA, rows, symbols), np.ones((2, len(rows)), np.int64)])
    found = chain.compile(symbols)(words)
    return [] if found is None else decode_rows(chain.schema_out, found, symbols)


@pytest.mark.parametrize(
    ("expr", "shown", "good", "bad"),
    [
        (col.a + 1, r"col.a \+ 1", MAX - 1, MAX),
        (col.a - 1, "col.a - 1", MIN + 1, MIN),
        (0 - col.a, "0 - col.a", MAX, MIN),
        (col.a * 2, r"col.a \* 2", 2**62 - 1, 2**62),
        (-col.a, "-col.a", MAX, MIN),
        (abs(col.a), r"abs\(col.a\)|col.a.abs\(\)", MIN + 1, MIN),
        (col.a // -1, "col.a // -1", MIN + 1, MIN),
        (col.a + col.a, r"col.a \+ col.a", 2**62 - 1, 2**62),
        (col.a + lit(1), r"col.a \+ 1", MAX - 1, MAX),
    ],
)
def test_a_result_beyond_64_bits_names_expression_line_and_row(
    expr: Expr, shown: str, good: int, bad: int
) -> None:
    chain = LinearChain.over(SCHEMA).select({"x": expr})
    assert len(run(chain, [(good, 1)])) == 1
    match = rf"({shown}) \(.*test_whole_numbers.py:\d+\) leaves 64 bits in the row with a={bad}\."
    with pytest.raises(RowError, match=match):
        run(chain, [(good, 1), (bad, 2)])


def test_a_remainder_of_minus_one_always_fits() -> None:
    assert run(LinearChain.over(SCHEMA).select({"x": col.a % -1}), [(MIN, 1), (5, 1)]) == [(0,), (0,)]


def test_what_is_null_is_not_looked_at() -> None:
    """Below a null is a 0, which the expression adds 1 to, too."""
    for expr in (col.a + (col.n + 1), -(col.a + (col.n + 1)), abs(col.a + (col.n + 1))):
        assert run(LinearChain.over(SCHEMA).select({"x": expr}), [(MAX, None)]) == [(None,)]
    least = MIN + (col.n * 1)
    for expr in (-least, abs(least), least // -1):
        assert run(LinearChain.over(SCHEMA).select({"x": expr}), [(5, None)]) == [(None,)]
        with pytest.raises(RowError):
            run(LinearChain.over(SCHEMA).select({"x": expr}), [(5, 0)])


def test_rows_that_a_condition_excludes_may_be_too_large() -> None:
    small = when(col.a < 10).then(col.a * 2**60).otherwise(-1)
    assert run(LinearChain.over(SCHEMA).select({"x": small}), [(1, 0), (100, 0)]) == [(2**60,), (-1,)]
    filled = col.n.fill_null(col.a * 2**60)
    assert run(LinearChain.over(SCHEMA).select({"x": filled}), [(1, None), (100, 5)]) == [(2**60,), (5,)]
    chain = LinearChain.over(SCHEMA).filter(col.a < 10).filter(col.a * 2**60 > 2**60).filter(col.a != 3)
    assert run(chain, [(1, 0), (2, 0), (3, 0), (100, 0)]) == [(2, 0)]
    with pytest.raises(RowError, match="in the row with a=9"):
        run(chain, [(1, 0), (9, 0), (100, 0)])


def test_constants_that_are_too_large_fail_in_the_rows_that_take_them() -> None:
    chosen = when(col.a == 0).then(lit(MAX) + 1).otherwise(col.a)
    assert run(LinearChain.over(SCHEMA).select({"x": chosen}), [(5, 0)]) == [(5,)]
    with pytest.raises(RowError, match=r"9223372036854775807 \+ 1 .*leaves 64 bits"):
        run(LinearChain.over(SCHEMA).select({"x": chosen}), [(5, 0), (0, 0)])


def test_operands_have_rows_or_are_constants() -> None:
    column, one, none = np.array([1, 2]), np.array(1), np.empty(0, np.int64)
    for left, right, shape in ((column, one, (2,)), (one, column, (2,)), (one, one, ()), (none, one, (0,))):
        values, fits = combined("+", left, right)
        assert fits and values.shape == shape
        assert not beyond("+", left, right).any()
    assert beyond("*", column, np.array(MAX)).tolist() == [False, True]
