"""Inputs that keep the last value of each key, on every kind of cluster.

order_*      within an epoch and between epochs, of one client and of several, in parts
repeated_*   a call that is made again counts once, where it came first
refused_*    calls that are not for this input, values that do not fit: nothing has changed
checked_*    removals of what is not there
"""

from __future__ import annotations

import random
from collections.abc import Callable

import pyarrow as pa
import pytest

import timely
from timely.limits import SPREAD_ROWS_MIN

SPEC = "upsert_flows:values"
Value = tuple[str, int, int, str | None]


def current(flow: timely.Flow) -> list[dict[str, object]]:
    flow.wait()
    found: list[dict[str, object]] = flow.output("current").snapshot().to_pylist()
    return found


def as_dicts(values: dict[tuple[int, str], Value]) -> list[dict[str, object]]:
    names = ("name", "part", "amount", "note")
    rows = [dict(zip(names, value, strict=True)) for value in values.values()]
    return sorted(rows, key=lambda row: (str(row["name"]), int(str(row["part"]))))


def test_order_of_calls_decides_within_an_epoch(cluster: timely.Cluster) -> None:
    flow = cluster.install(SPEC)
    values = flow.input("values")
    values.upsert([("ada", 1, 5, None), ("bob", 1, 6, "first"), ("ada", 1, 7, "last")])
    values.upsert([("bob", 1, 8, "second"), ("eve", 2, 1, "gone")])
    values.delete([(2, "eve"), (9, "nobody")])
    flow.seal()
    assert current(flow) == as_dicts({(1, "ada"): ("ada", 1, 7, "last"), (1, "bob"): ("bob", 1, 8, "second")})
    values.upsert([("ada", 1, 7, "last")])  # as it is already
    values.upsert({"name": ["bob"], "part": [1], "amount": [None], "note": [None]})  # null deletes
    flow.seal()
    flow.wait()
    changes = flow.output("current").changes(start=1, stop=2).to_pylist()
    assert [(row["name"], row["diff"]) for row in changes] == [("bob", -1)]
    assert flow.output("counts").snapshot().to_pylist() == [{"part": 1, "n": 1}]


def test_order_of_several_clients_is_that_in_which_calls_return(cluster: timely.Cluster) -> None:
    """Random calls of three clients, small ones and some in parts, against a dict."""
    rng = random.Random(7)
    flow = cluster.install(SPEC)
    clients = [cluster.flow(flow.index) for _ in range(3)]
    plain: dict[tuple[int, str], Value] = {}
    for step in range(60):
        values = rng.choice(clients).input("values")
        if rng.random() < 0.3:
            keys = [(rng.randrange(3), f"n{rng.randrange(3)}") for _ in range(2)]
            values.delete(keys)
            for key in keys:
                plain.pop(key, None)
        else:
            rows: list[Value] = [(f"n{rng.randrange(3)}", rng.randrange(3), step, None) for _ in range(3)]
            if step % 20 == 7:  # so many that they go to all workers
                rows = [("n0", 0, number, "many") for number in range(SPREAD_ROWS_MIN)] + rows
            columns = [list(column) for column in zip(*rows, strict=True)]
            values.upsert(pa.table(columns, schema=_ARROW))
            plain.update({(part, name): (name, part, amount, note) for name, part, amount, note in rows})
        if step % 6 == 5:
            rng.choice(clients).seal()
            for client in clients:
                client.refresh()
            assert current(clients[0]) == as_dicts(plain), step


_ARROW = pa.schema(
    [("name", pa.string()), ("part", pa.int64()), ("amount", pa.int64()), ("note", pa.string())]
)


def test_repeated_calls_count_once_where_they_came_first(cluster: timely.Cluster) -> None:
    flow = cluster.install(SPEC)
    values = flow.input("values")
    first: list[Value] = [("ada", 1, 1, None)]
    many = [("bob", 1, number, None) for number in range(SPREAD_ROWS_MIN)]
    for _ in range(2):
        values.upsert(first, writer="job", sequence=0)
        values.upsert(many, writer="job", sequence=1)
        values.upsert([("bob", 1, -5, "later")], writer="job", sequence=2)
        values.upsert([("ada", 1, 2, "later")], writer="job", sequence=3)
        values.upsert(first, writer="job", sequence=0)
        values.upsert(many, writer="job", sequence=1)
    flow.seal()
    values.upsert(first, writer="job", sequence=0)
    values.delete([(1, "ada")], writer="other", sequence=0)
    values.upsert([("ada", 1, 3, "last")])
    values.delete([(1, "ada")], writer="other", sequence=0)
    flow.seal()
    assert current(flow) == as_dicts({(1, "ada"): ("ada", 1, 3, "last"), (1, "bob"): ("bob", 1, -5, "later")})


def test_repeated_after_a_lost_answer_a_call_counts_once(
    cluster: timely.Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The call arrives and its answer does not; in between somebody else has said something newer."""
    flow = cluster.install(SPEC)
    other = cluster.flow(flow.index)
    values = flow.input("values")
    workers = flow._workers
    ask = workers.ask

    def lost(*arguments: object, **named: object) -> object:
        ask(*arguments, **named)  # type: ignore[arg-type]  # whatever it is
        raise timely.WaitTimeoutError("no answer")

    def repeat(call: Callable[[], int]) -> None:
        with monkeypatch.context() as patched, pytest.raises(timely.WaitTimeoutError):
            patched.setattr(workers, "ask", lost)
            call()

    def say() -> int:
        return values.upsert([("ada", 1, 1, "old")], writer="job", sequence=0)

    def forget() -> int:
        return values.delete([(2, "bob")], writer="job", sequence=1)

    repeat(say)
    repeat(forget)
    other.input("values").upsert([("ada", 1, 2, "new"), ("bob", 2, 2, "new")])
    say()
    forget()
    flow.seal()
    assert current(flow) == as_dicts({(1, "ada"): ("ada", 1, 2, "new"), (2, "bob"): ("bob", 2, 2, "new")})


def test_order_of_appends_is_that_of_their_writers_wherever_they_arrive(cluster: timely.Cluster) -> None:
    """As a job of Spark sends them: by epoch, writer and number; before what is said without an epoch."""
    flow = cluster.install(SPEC)
    values = flow.input("values")
    values.upsert([("bob", 1, 9, "said")])
    tables = {
        (writer, sequence): pa.table(
            {
                "name": ["ada", "bob"],
                "part": [1, 1],
                "amount": [sequence, 1],
                "note": [writer] * 2,
                "diff": [1, 1],
            },
        )
        for writer in ("one", "two")
        for sequence in range(4)
    }
    expected = list(tables)
    random.Random(3).shuffle(expected)
    for place, (writer, sequence) in enumerate(expected + expected[:3]):
        is_new = values.append(tables[writer, sequence], epoch=0, writer=writer, sequence=sequence)
        assert is_new == (place < len(expected))
    flow.seal()
    found = current(flow)
    assert found[1] == {"name": "bob", "part": 1, "amount": 9, "note": "said"}
    assert found[0]["amount"] == 3 and found[0]["note"] in ("one", "two")


def test_refused_calls_change_nothing(cluster: timely.Cluster) -> None:
    flow = cluster.install(SPEC)
    values, rows = flow.input("values"), flow.input("rows")
    values.upsert([("ada", 1, 1, None)])
    for call, said in (
        (lambda: values.insert([("eve", 1, 1, None)]), "upsert"),
        (lambda: values.remove([("ada", 1, 1, None)]), "delete"),
        (lambda: rows.upsert([("ada",)]), "insert"),
        (lambda: rows.delete(["ada"]), "mode='upsert'"),
        (lambda: values.upsert([("ada", 1, None, "half")]), "'amount'"),
        (lambda: values.upsert([("ada", None, 2, "half")]), "'part'"),
        (lambda: values.delete([("ada", 1)]), "'part'"),
    ):
        with pytest.raises(timely.TimelyError, match=said):
            call()
            flow.seal()  # processes say here what they think of few rows
    flow.seal()
    assert current(flow) == as_dicts({(1, "ada"): ("ada", 1, 1, None)})


def test_checked_rows_are_refused_when_they_are_not_there(cluster: timely.Cluster) -> None:
    flow = cluster.install(SPEC)
    rows = flow.input("rows")
    rows.remove([("ada",), ("bob",)])
    rows.insert([("bob",), ("eve",)])
    flow.seal()
    rows.remove([("eve",), ("eve",), ("ada",)])
    flow.seal()
    flow.wait()
    assert flow.output("rows").changes().to_pylist() == [
        {"name": "eve", "epoch": 0, "diff": 1},
        {"name": "eve", "epoch": 1, "diff": -1},
    ]
    assert flow.output("refused").snapshot().column("name").to_pylist() == ["ada", "ada", "eve"]
