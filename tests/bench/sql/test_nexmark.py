"""Nexmark in little: are the rows what the queries need, and is every answer DuckDB's?"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

import timely
from bench.sql.answers import difference
from bench.sql.engines import by_duckdb, by_us
from bench.sql.nexmark import generated
from bench.sql.nexmark_queries import QUERIES
from bench.sql.stream import Query, Stream

STREAM = generated(40_000, 3, 2_500)
WARM = generated(500, 1, 50)


def column(stream: Stream, table: str, name: str) -> pa.ChunkedArray:
    return stream.tables[table].rows.column(name)


def times(stream: Stream, table: str) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    return column(stream, table, "date_time").cast(pa.int64()).to_numpy() // 1_000


def test_the_same_seed_gives_the_same_rows() -> None:
    again, other = generated(40_000, 3, 2_500), generated(40_000, 3, 2_500, seed=7)
    assert all(again.tables[name].rows == table.rows for name, table in STREAM.tables.items())
    assert other.tables["bid"].rows != STREAM.tables["bid"].rows


def test_of_fifty_events_one_is_a_person_and_three_are_auctions() -> None:
    counts = {name: table.rows.num_rows for name, table in STREAM.tables.items()}
    assert counts == {"person": 950, "auction": 2_850, "bid": 43_700, "side_input": 10_000}


def test_bids_are_for_auctions_and_by_persons_that_are_there() -> None:
    for table, name, of in (
        ("bid", "auction", "auction"),
        ("bid", "bidder", "person"),
        ("auction", "seller", "person"),
    ):
        begins = times(STREAM, of)[column(STREAM, table, name).to_numpy()]
        assert (begins <= times(STREAM, table)).all(), (table, name)
    hot = pc.value_counts(column(STREAM, "bid", "auction")).field("counts")
    assert pc.max(hot).as_py() > 500, "some are hot"


def test_every_row_comes_once_and_a_watermark_is_never_passed() -> None:
    for name, table in STREAM.tables.items():
        ends = [epoch.come.stop for epoch in table.epochs]
        if name == "side_input":
            assert table.is_fixed
            continue
        assert [epoch.come.start for epoch in table.epochs] == [0, *ends[:-1]]
        assert ends[-1] == table.rows.num_rows == table.last.num_rows
        when = times(STREAM, name)
        assert (np.diff(when) > 0).all()
        for watermark, end in zip(STREAM.watermarks, ends, strict=True):
            assert when[end - 1] <= watermark + 1 and (when[end:] > watermark).all()


@pytest.fixture(scope="module", params=[1, 2])
def cluster(request: pytest.FixtureRequest) -> Iterator[timely.Cluster]:
    with timely.connect(workers=request.param, embedded=True) as cluster:
        yield cluster


@pytest.mark.parametrize("query", QUERIES, ids=lambda query: query.name)
def test_answers_are_those_of_duckdb(cluster: timely.Cluster, query: Query) -> None:
    _, wanted = by_duckdb(query, STREAM, 1)
    assert wanted, "something is found"
    followed = by_us(cluster, query, STREAM, WARM)
    assert difference(followed.rows, wanted) is None
    assert len(followed.change_ms) == STREAM.changes
    assert cluster.sql("show tables").collect() == cluster.sql("show views").collect() == []
