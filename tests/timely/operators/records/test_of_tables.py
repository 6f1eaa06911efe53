"""records/of_tables.py: what vertices of tables keep; what they do is tested in `building/tables/`."""

from __future__ import annotations

import pyarrow as pa

from timely.operators.records.of_tables import (
    BranchTableVertex,
    ColumnAggregateVertex,
    FilterTableVertex,
    MapTableVertex,
    PartitionTableVertex,
    PutOffTableVertex,
    ShowTableVertex,
)


def test_all_but_one_promise_that_they_keep_nothing() -> None:
    for kind in (BranchTableVertex, FilterTableVertex, MapTableVertex, PartitionTableVertex, ShowTableVertex):
        assert kind.keeps == "nothing"
    assert ColumnAggregateVertex.keeps == "nothing"
    assert PutOffTableVertex.keeps == "", "rows of an epoch belong to a later one then"


def test_an_aggregate_of_several_tables_is_that_of_their_rows() -> None:
    sent: list[pa.Table] = []
    vertex = ColumnAggregateVertex(
        ["k"], {"k_sum": ("v", "sum"), "n": (None, "count_all"), "again": ("v", "sum")}
    )
    vertex.notify_at = lambda time: None  # type: ignore[method-assign, assignment]
    vertex.send_by = lambda edge, message, time: sent.append(message)  # type: ignore[method-assign, assignment]
    for values in ([1, 2], [3]):
        table = pa.table({"v": values, "k": ["x"] * len(values), "other": [None] * len(values)})
        vertex.on_recv(0, table, (0,))
    vertex.on_notify((0,))
    assert [table.to_pylist() for table in sent] == [[{"k": "x", "k_sum": 6, "n": 3, "again": 6}]]
