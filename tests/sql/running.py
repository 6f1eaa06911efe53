"""Runs a random query, by collections and by its SQL text, over tables whose rows come and go; DuckDB is
asked at every epoch.
"""

from __future__ import annotations

from hypothesis import strategies as st
from reference.collection import accumulated_at
from reference.dataflow import Cluster, compact_traces, trace_rows, traces
from sql.expressions import CONSTANTS, ORDERED
from sql.judge import Judge, differences
from sql.queries import TABLES, Query

import differential as dd
from differential.plan.nodes import OneRow
from differential.plan.rewriting import beneath
from timely.building.dataflow import Dataflow

__all__ = ["Stays", "check", "contents"]

EPOCHS = 4
"""In the last one everything has gone."""

_ONLY_DUCKDB = ("list_transform", "AT TIME ZONE")
"""What the door does not take: functions of functions, and times without a zone, a type that we have not."""

Row = tuple[object, ...]
Stays = tuple[str, Row, int, int]
"""A row of a table, and the epochs in which it is there: from the first, up to and without the last."""

VALUES: dict[str, st.SearchStrategy[object]] = {
    "int": st.integers(-1, 3),
    "float": st.sampled_from([-1.5, 0.0, 0.25, 0.25, 2.0]),
    "string": st.sampled_from(["", "a", "a", "b", "it's"]),
    "bool": st.booleans(),
    **{kind: CONSTANTS[kind] for kind in ORDERED},
}


def _rows(name: str) -> st.SearchStrategy[Row]:
    columns = []
    for column in TABLES[name]:
        values = VALUES[column.type.kind]
        columns.append(st.one_of(st.none(), values, values) if column.type.nullable else values)
    return st.tuples(*columns)


def _stays(name: str) -> st.SearchStrategy[Stays]:
    when = st.tuples(st.integers(0, EPOCHS - 2), st.integers(1, EPOCHS - 1))
    return st.tuples(_rows(name), when).map(
        lambda found: (name, found[0], found[1][0], min(EPOCHS - 1, found[1][0] + found[1][1]))
    )


contents = st.lists(st.sampled_from(sorted(TABLES)).flatmap(_stays), max_size=14)


def _run(query: Query, names: list[str], stays: list[Stays], workers: int, seed: int) -> Cluster:
    def build(flow: Dataflow) -> None:
        tables = {name: dd.input(flow, name, schema) for name, schema in TABLES.items()}
        query.build(tables).output("result")
        if "by sql" in names:
            dd.sql(flow, query.in_order(), dialect="duckdb", clock=None, **tables).output("by sql")

    cluster = Cluster(build, workers, seed)
    for number, (name, row, first, last) in enumerate(stays):
        cluster.change(name, [(row, 1)], first, worker=(seed + number) % workers)
        cluster.change(name, [(row, -1)], last, worker=(seed // 3 + number) % workers)
    for epoch in range(EPOCHS):
        if seed >> epoch & 1 or epoch + 1 == EPOCHS:
            cluster.seal(epoch)
            cluster.run()
            compact_traces(cluster)
    return cluster


def check(judge: Judge, query: Query, stays: list[Stays], workers: int, seed: int) -> None:
    """Raise AssertionError unless DuckDB says the same at every epoch, and no row is kept in the end."""
    names = ["result", *([] if any(part in query.sql for part in _ONLY_DUCKDB) else ["by sql"])]
    cluster = _run(query, names, stays, workers, seed)
    results = {name: cluster.changes(name) for name in names}
    for epoch in range(EPOCHS):
        for name, schema in TABLES.items():
            there = [row for where, row, first, last in stays if where == name and first <= epoch < last]
            judge.tell(name, schema, there)
        wanted = judge.answer(query.in_order())
        for name, changes in results.items():
            here, there_only = differences(accumulated_at(changes, (epoch,)), wanted)
            assert not here and not there_only, (
                f"{name} in epoch {epoch}\n  here only {here}\n  DuckDB only {there_only}"
            )
    compact_traces(cluster)
    if not any(isinstance(node, OneRow) for node in beneath([query.shape.node])):  # which stays
        assert trace_rows(cluster) == 0, [traces(one) for one in cluster.instances]
