"""claiming.py: a claim lets its rows pass, and each of them is a failure with its time and difference."""

from __future__ import annotations

import numpy as np
import pytest

from differential.columns.schema import Schema
from differential.columns.symbols.table import SymbolTable
from differential.errors import NotEmptyError
from differential.expressions.expression import col
from differential.linear.chain import LinearChain
from differential.linear.failures.claiming import Claim
from differential.linear.failures.failing import apart

SCHEMA = Schema.of("a: int")
WORDS = np.array([[1, 1, 2], [0, 4, 4], [1, -1, 5]], np.int64)


def test_all_rows_pass_and_fail_whatever_their_differences() -> None:
    symbols = SymbolTable()
    chain = LinearChain.over(SCHEMA).claim("no rows")
    rows, failed = apart(chain.passes(symbols), WORDS, symbols)
    assert rows is not None and (rows == WORDS).all()
    assert [(one.kind, one.expression, one.record, one.time, one.diff) for one in failed] == [
        ("NotEmptyError", "no rows", "a=1", 0, 1),
        ("NotEmptyError", "no rows", "a=1", 4, -1),
        ("NotEmptyError", "no rows", "a=2", 4, 5),
    ]
    assert failed[0].row == failed[1].row != failed[2].row, "so that what comes and goes cancels"


def test_only_rows_that_come_so_far_are_claimed_of() -> None:
    symbols = SymbolTable()
    chain = LinearChain.over(SCHEMA).filter(col.a > 1).negate().claim("no rows").filter(col.a > 2)
    rows, failed = apart(chain.passes(symbols), WORDS, symbols)
    assert rows is None or rows.shape[1] == 0
    assert [(one.record, one.diff) for one in failed] == [("a=2", -5)], "as the claim gets them"
    assert chain.risky is not None and len(chain.risky.steps) == 3


def test_by_itself_a_claim_raises_for_any_row_and_for_none_it_does_not() -> None:
    claim = Claim("no rows", SCHEMA)
    function = claim.compile(SymbolTable())
    nothing = WORDS[:, :0]
    assert function(nothing) is nothing
    with pytest.raises(NotEmptyError, match="^no rows does not hold"):
        function(WORDS)
    assert claim.describe() == "no rows"
