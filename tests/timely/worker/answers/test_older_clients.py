"""Clients that know an older version, whose inputs have other columns.

taken_*     rows that can be read without a guess
refused_*   one error, which says where to ask
after_*     a restart
"""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

import differential as dd
import timely
from timely.client.session import Flow


@timely.builder
def first(flow: timely.Dataflow) -> None:
    """Two columns."""
    rows = dd.input(flow, "rows", "a: int, text: string")
    rows.export("rows")
    rows.output("rows")
    values = dd.input(flow, "values", "text: string, k: int", key="k", mode="upsert")
    values.export("values", by="k")
    values.output("values")


@timely.builder
def second(flow: timely.Dataflow, more: bool = True) -> None:
    """As many columns of the same types, and another meaning; one that may lack in tables."""
    rows = dd.input(flow, "rows", "text: string?, n: int?, a: int", defaults={"n": None} if more else None)
    rows.export("rows")
    rows.output("rows")
    values = dd.input(flow, "values", "k: int, text: string", key="k", mode="upsert")
    values.export("values", by="k")
    values.output("values")


@timely.builder
def third(flow: timely.Dataflow) -> None:
    """A column of the first version is gone."""
    rows = dd.input(flow, "rows", "a: int, n: int?")
    rows.export("rows")
    rows.output("rows")


def rows_of(flow: Flow, name: str = "rows") -> list[tuple[object, ...]]:
    flow.seal(wait=True)
    return [tuple(row.values()) for row in flow.output(name).snapshot().to_pylist()]


@pytest.mark.parametrize("workers", [1, 2])
def test_taken_by_name_widened_and_filled(workers: int) -> None:
    with timely.connect(workers=workers, embedded=True) as cluster:
        old = cluster.install(first)
        old.input("rows").insert([(1, "x")])
        new = cluster.replace(old, second)
        old.input("rows").insert([(2, "y")])
        old.input("rows").insert(pa.table({"text": ["z"], "a": pa.array([3], pa.int8())}))
        old.input("rows").remove([(1, "x")])
        old.input("values").upsert([("u", 1), ("v", 2), ("w", 3)])
        old.input("values").delete([2])
        old.input("values").delete([(3,)])
        assert rows_of(new) == [("y", None, 2), ("z", None, 3)]
        assert rows_of(new, "values") == [(1, "u")]
        newest = cluster.replace(new, second, more=False)
        with pytest.raises(timely.ReplacedError, match="missing 'n'"):
            old.input("rows").insert([(2, "y")])
        old.input("values").upsert([("x", 1)])
        assert rows_of(newest, "values") == [(1, "x")]


def test_refused_with_one_error_and_nothing_is_lost() -> None:
    with timely.connect(workers=1, embedded=True) as cluster:
        old = cluster.install(first)
        old.input("rows").insert([(1, "x")])
        new = cluster.replace(cluster.replace(old, second), third)
        with pytest.raises(timely.ReplacedError) as caught:
            old.input("rows").insert([(2, "y")])
        assert "dataflow 0 was replaced by dataflow 2, whose input 'rows' has other columns" in str(
            caught.value
        )
        assert "not declared 'text'" in str(caught.value) and "cluster.flow(2)" in str(caught.value)
        with pytest.raises(timely.ReplacedError, match="'values' is gone"):
            old.input("values").upsert([("x", 1)])
        cluster.flow(2).input("rows").insert([(5, 6)])
        assert rows_of(new) == [(1, None), (5, 6)]


def test_refused_for_another_reason_than_columns() -> None:
    with timely.connect(workers=1, embedded=True) as cluster:
        old = cluster.install(first)
        new = cluster.replace(old, second)
        ahead = pa.table({"a": [1], "text": ["x"], "diff": [1]})
        assert old.input("rows").append(ahead, epoch=1, writer="w", sequence=0)
        assert not old.input("rows").append(ahead, epoch=1, writer="w", sequence=0)
        new.seal(through=1, wait=True)
        with pytest.raises(timely.InputClosedError, match="epoch 1 is sealed"):
            old.input("rows").append(ahead, epoch=1, writer="w", sequence=1)
        new.uninstall()
        with pytest.raises(timely.UninstalledError):
            old.input("rows").insert([(1, "x")])


def test_refused_versions_leave_the_old_one_as_it_is() -> None:
    def narrower(flow: timely.Dataflow) -> None:
        dd.input(flow, "rows", "a: int, text: int, other: int").output("rows")

    def by_key(flow: timely.Dataflow) -> None:
        dd.input(flow, "rows", "a: int, text: string", key="a", mode="upsert").output("rows")

    with timely.connect(workers=2, embedded=True) as cluster:
        old = cluster.install(first)
        old.input("rows").insert([(1, "x")])
        with pytest.raises(timely.GraphError, match="'text' was string, and is int.*'other' is new"):
            cluster.replace(old, narrower)
        with pytest.raises(timely.GraphError, match="keeps the last value by key, and one of rows"):
            cluster.replace(old, by_key)
        assert rows_of(old) == [(1, "x")]


def test_after_a_restart_older_clients_are_known(tmp_path: Path) -> None:
    with timely.connect(workers=2, embedded=True, durable=tmp_path / "s", sync="system") as cluster:
        old = cluster.install(first)
        old.input("rows").insert([(1, "x")])
        form = old.input("rows").form
        cluster.replace(old, second)
        old.input("rows").insert([(2, "y")])
    with timely.connect(workers=1, embedded=True, durable=tmp_path / "s", sync="system") as cluster:
        new = cluster.install(second)
        old = cluster.flow(new.index)
        old.index = 0
        old.input("rows").form = form
        old.input("rows").insert([(3, "z")])
        assert rows_of(new) == [("x", None, 1), ("y", None, 2), ("z", None, 3)]
