"""python_rows.py: rows of tables as Python has them."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal

import pyarrow as pa
import pytest

import differential as dd
import timely
from timely.building.dataflow import Dataflow

DAY = dt.date(2024, 2, 29)


def build(flow: Dataflow) -> None:
    """Rows as they came, and the values of each key."""
    rows = dd.input(flow, "rows", "k: int, a: any?, b: bytes, day: date, price: decimal(5, 2)?")
    rows.output("rows")
    rows.group_by("k").agg(days=dd.collect("day"), b=dd.collect_set("b")).output("collected")


@pytest.mark.parametrize("workers", [1, 2])
def test_any_values_are_what_they_were_and_bytes_stay_bytes(workers: int) -> None:
    given = [
        {"k": 1, "a": (1, ("x", None)), "b": b"\x93\x01\x02\x03", "day": DAY, "price": Decimal("1.50")},
        {"k": 1, "a": {"m": 2.5}, "b": b"", "day": DAY, "price": None},
        {"k": 2, "a": None, "b": b"z", "day": DAY, "price": None},
    ]
    with timely.connect(workers=workers, embedded=True) as cluster:
        flow = cluster.install(build)
        flow.input("rows").insert(given)
        flow.wait(flow.seal())
        snapshot = dd.to_pylist(flow.output("rows").snapshot())
        changes = dd.to_pylist(flow.output("rows").changes())
        collected = dd.to_pylist(flow.output("collected").snapshot())
    assert sorted(snapshot, key=str) == sorted(given, key=str)
    assert sorted(changes, key=str) == sorted(({"epoch": 0, **row, "diff": 1} for row in given), key=str)
    assert {row["k"]: row["days"] for row in collected} == {1: (DAY, DAY), 2: (DAY,)}
    assert {row["k"]: row["b"] for row in collected} == {1: (b"", b"\x93\x01\x02\x03"), 2: (b"z",)}


def test_a_table_of_others_is_read_as_it_is() -> None:
    table = pa.table({"a": [1, None], "b": [b"\x01", b"\x02"]})
    assert dd.to_pylist(table) == [{"a": 1, "b": b"\x01"}, {"a": None, "b": b"\x02"}]
    assert dd.to_pylist(table.slice(0, 0)) == []
