"""whole.py: aggregates of all rows have one row at every time, also of nothing.

always_*   one row, on however many workers; where it begins late: processes/queries/test_replacing.py
of_*       what each aggregate is of nothing, and which columns may be null
"""

from __future__ import annotations

from collections import Counter
from typing import cast

import msgpack
import pytest
from hypothesis import given
from hypothesis import strategies as st
from reference import collection as plainly
from reference.collection import Collection as Rows
from reference.dataflow import Change, Cluster, check_at_times
from strategies_collections import examples, histories

import differential as dd
import timely
from differential import Collection, col
from timely.building.dataflow import Dataflow

ASKED = [("count", 0), ("sum", 0), ("avg", 0), ("count_distinct", 0), ("any", 1), ("count_if", 1)]


def _sums(source: Collection) -> Collection:
    given = source.select(v=col.v, high=col.v > 0)
    return given.agg(
        n=dd.count(),
        total=dd.sum("v"),
        mean=dd.avg("v"),
        values=dd.count_distinct("v"),
        some=dd.any_of("high"),
        high=dd.count_if("high"),
    )


def _sums_plainly(rows: Rows) -> Rows:
    given = plainly.map_rows(rows, lambda row: (row[1], cast(int, row[1]) > 0))
    return plainly.aggregate_all(given, ASKED)


@pytest.mark.parametrize("depth", [1, 2, 3])
def test_always_one_row_at_every_time_with_rows_that_come_and_go(depth: int) -> None:
    @examples(0.8)
    @given(histories(depth), st.integers(1, 3), st.integers(0, 2**20))
    def holds(changes: list[Change], workers: int, seed: int) -> None:
        check_at_times(_sums, _sums_plainly, [changes], depth=depth, workers=workers, seed=seed)

    holds()


def test_always_a_collection_to_which_nothing_ever_comes() -> None:
    for workers in (1, 2, 3):
        check_at_times(_sums, _sums_plainly, [[]], depth=2, workers=workers, seed=workers)


def test_always_before_an_epoch_is_over_in_which_something_comes() -> None:
    cluster = Cluster(lambda flow: dd.input(flow, "rows", "v: int").agg(n=dd.count()).output("out"), 2)
    cluster.seal()
    cluster.run()
    cluster.change("rows", [((5,), 1)])
    cluster.seal()
    cluster.run()
    assert cluster.changes("out") == {(0,): Counter({(0,): 1}), (1,): Counter({(0,): -1, (1,): 1})}


def test_of_nothing_every_aggregate_and_which_may_be_null() -> None:
    aggregates = {
        "count": dd.count(), "values": dd.count("v"), "different": dd.count_distinct("v"),
        "high": dd.count_if(col.v > 1), "total": dd.sum("v"), "mean": dd.avg("v"),
        "spread": dd.variance("v"), "any": dd.any_of(col.v > 1), "all": dd.all_of(col.v > 1),
        "least": dd.min("v"), "most": dd.max("s"),
        "at": dd.argmin("s", by="v"), "top": dd.argmax("v", by="s"),
        "first": dd.first("v", by="s"), "last": dd.last("s", by="v"), "list": dd.collect("v"),
        "set": dd.collect_set("s"),
    }  # fmt: skip
    counts, lists = {"count", "values", "different", "high"}, {"list", "set"}
    rows = dd.input(Dataflow("queries"), "rows", "v: int, s: string")
    types = {column.name: str(column.type) for column in rows.agg(**aggregates).schema}
    assert {name for name, type_ in types.items() if type_ == "int"} == counts
    assert all(types[name].endswith("?") for name in types.keys() - counts - lists), types
    for chosen in (aggregates, *({name: one} for name, one in aggregates.items())):
        found = Cluster(
            lambda flow, chosen=chosen: (  # type: ignore[misc]  # as it is now
                dd.input(flow, "rows", "v: int, s: string").agg(**chosen).output("out")
            )
        )
        found.seal()
        found.run()
        ((row, times),) = plainly.accumulated_at(found.changes("out"), (0,)).items()
        want = [0 if name in counts else msgpack.packb([]) if name in lists else None for name in chosen]
        assert list(row) == want and times == 1


def test_of_rows_that_a_client_reads_lists_are_empty() -> None:
    with timely.connect(workers=1, embedded=True) as cluster:
        flow = cluster.install(
            lambda flow: dd.input(flow, "rows", "v: int").agg(all=dd.collect("v")).output("out")
        )
        flow.wait(flow.seal())
        (row,) = flow.output("out").snapshot().to_pylist()
        assert row["all"] == []


def test_always_in_loops_from_iteration_0_on() -> None:
    """What goes round is counted while it grows: the answer of each iteration takes the place of the last."""

    def build(source: Collection) -> Collection:
        return source.iterate(
            lambda x: x.agg(n=dd.count()).select(k=dd.min_of(col.n, 1), v=dd.min_of(col.n, 1) * 4)
        )

    def plain(rows: Rows) -> Rows:
        del rows
        return plainly.collection([(1, 4)])

    for workers in (1, 2):
        changes: list[Change] = [((1, 1), (1, 0), 1), ((1, 2), (0, 1), 2), ((1, 1), (2, 0), -1)]
        check_at_times(build, plain, [changes], depth=2, workers=workers, seed=3)
