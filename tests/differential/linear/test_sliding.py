"""sliding.py: each row once for each window that it is in."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from reference.timed.plain import windows_of

from differential.columns.schema import Schema
from differential.columns.symbols.table import SymbolTable
from differential.errors import RowError
from differential.linear.chain import LinearChain

SCHEMA = Schema.of("id: int, at: int?")

times = st.one_of(st.none(), st.integers(-30, 30), st.sampled_from([2**61, -(2**61)]))


@given(st.lists(times, max_size=5), st.integers(1, 12), st.integers(1, 12), st.integers(-5, 5))
def test_a_row_is_in_the_windows_around_its_time(
    values: list[int | None], size: int, every: int, origin: int
) -> None:
    rows = [(number, int(at is not None), at or 0, 7, 2) for number, at in enumerate(values)]
    words = np.array(rows, np.int64).reshape(-1, 5).T.copy()
    chain = LinearChain.over(SCHEMA).slide("at", (size, every, origin), ("start", "end"))
    assert [str(column) for column in chain.schema_out][2:] == ["start: int", "end: int"]
    made = chain.compile(SymbolTable())(words)
    wanted = [
        (number, 1, at, start, start + size, 7, 2)
        for number, at in enumerate(values)
        if at is not None
        for start in windows_of(at, size, every, origin)
    ]
    assert sorted(wanted) == ([] if made is None else sorted(map(tuple, made.T.tolist())))


def test_a_time_beyond_all_windows_is_an_error_with_the_column() -> None:
    chain = LinearChain.over(SCHEMA).slide("at", (5, 5, 0), ("start", "end"))
    words = np.array([[1], [1], [2**62], [0], [1]], np.int64)
    with pytest.raises(RowError, match="'at'"):
        chain.compile(SymbolTable())(words)
