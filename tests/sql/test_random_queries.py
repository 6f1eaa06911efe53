"""Queries that SQL can say, drawn at random: what they come to at every epoch is what DuckDB says of the
tables as they are then, rows having come and gone, with one to three workers.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sql.judge import Judge
from sql.queries import Query, queries
from sql.running import Stays, check, contents


@pytest.fixture(scope="module")
def judge() -> Iterator[Judge]:
    database = Judge()
    yield database
    database.close()


@given(queries(), contents, st.integers(1, 3), st.integers(0, 2**20))
def test_what_sql_can_say_comes_to_what_sql_says_at_every_epoch(
    judge: Judge, query: Query, stays: list[Stays], workers: int, seed: int
) -> None:
    check(judge, query, stays, workers, seed)
