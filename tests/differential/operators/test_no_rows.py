"""No rows at all are given like any others, in each form and by each call, and change nothing."""

from __future__ import annotations

import pyarrow as pa
import pytest
from upsert_flows import values

import differential as dd
import timely


@pytest.mark.parametrize("threads", [False, True])
def test_no_values_by_key_change_none(threads: bool) -> None:
    schema = pa.schema({"name": pa.string(), "part": pa.int64(), "amount": pa.int64(), "note": pa.string()})
    with timely.connect(workers=2, threads=threads, embedded=True) as cluster:
        flow = cluster.install(values)
        input_ = flow.input("values")
        for nothing in ([], schema.empty_table()):
            input_.upsert(nothing)
            input_.delete(nothing)
        input_.upsert([("ada", 1, 5, None)])
        input_.upsert([], writer="me", sequence=1)
        input_.upsert(pa.table([["ada"], [1], [7], ["x"]], schema=schema))
        for nothing in ([], schema.empty_table()):
            input_.upsert(nothing)
            input_.delete(nothing)
        flow.wait(flow.seal())
        assert flow.output("current").changes().to_pylist() == [
            {"name": "ada", "part": 1, "amount": 7, "note": "x", "epoch": 0, "diff": 1}
        ]


def test_no_rows_are_a_named_insertion_which_is_taken_once() -> None:
    def build(dataflow: timely.Dataflow) -> None:
        dd.input(dataflow, "rows", "at: timestamp, name: string").output("rows")

    with timely.connect(workers=1, embedded=True) as cluster:
        flow = cluster.install(build)
        rows = flow.input("rows")
        far = pa.table({"at": pa.array([1 << 61], pa.timestamp("us", tz="UTC")), "name": ["a"]})
        rows.insert([])
        rows.insert(far.slice(0, 0))
        rows.insert([], writer="me", sequence=1)
        with pytest.raises(timely.MisuseError, match="which another insert"):
            rows.insert(far, writer="me", sequence=1)
        cluster.flow(flow.index).input("rows").insert(far, writer="me", sequence=1)  # who does not know it
        flow.wait(flow.seal())
        assert flow.output("rows").changes().num_rows == 0
        rows.insert(far, writer="me", sequence=2)
        flow.wait(flow.seal())
        assert flow.output("rows").changes().num_rows == 1, "of a year that Python does not have"
