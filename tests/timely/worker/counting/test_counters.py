"""Counters are plain values that a client can read, and only grow; each is said to users, and no other."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from counted_flows import counted, reading
from dataflows import word_count
from house import ROOT

import timely
from timely.durable.following.status import StatusFile
from timely.limits import TOLD_READERS_COUNT_MAX
from timely.operators.outputs.places import reader_id


def test_every_worker_reports_and_messages_between_them_are_counted() -> None:
    with timely.connect(workers=2, embedded=True) as cluster:
        flow = cluster.install(word_count)
        before = cluster.stats()
        flow.input("lines").insert(["a b c d e f g"])
        flow.seal()
        after = cluster.stats()
    assert [stats["worker"] for stats in after] == [0, 1]
    for name in ("steps", "messages_sent", "messages_recv"):
        assert all(
            int(str(new[name])) > int(str(old[name])) for old, new in zip(before, after, strict=True)
        ), name
    assert sum(int(str(stats["messages_sent"])) for stats in after) == sum(
        int(str(stats["messages_recv"])) for stats in after
    )


def names_of(told: object, way: str = "") -> Iterator[str]:
    """The ways to all values in it, without numbers of dataflows and places in lists."""
    if isinstance(told, dict) and told and all(isinstance(key, int) for key in told):
        told = list(told.values())
    if isinstance(told, dict):
        for name, value in told.items():
            yield from names_of(value, f"{way}.{name}".lstrip("."))
    elif isinstance(told, list) and told and all(isinstance(value, dict) for value in told):
        for value in told:
            yield from names_of(value, way)
    else:
        yield way


@pytest.mark.parametrize("kind", [{"workers": 1, "embedded": True}, {"workers": 2}], ids=str)
def test_all_that_is_counted_is_said_to_users_and_nothing_else(kind: dict[str, int], tmp_path: Path) -> None:
    with timely.connect(**kind) as cluster:  # type: ignore[arg-type]
        flow, other = cluster.install(counted), cluster.install(reading)
        flow.input("edges").insert([(n, n + 1, str(n)) for n in range(5)])
        flow.input("numbers").insert([1, 2])
        other.wait(flow.seal())
        reads = flow.output("counts").follow()
        next(reads)  # its client has a place there from now on
        found = {name for worker in cluster.stats() for name in names_of(worker)}
    with timely.connect(workers=2, embedded=True, durable=tmp_path) as cluster:
        follower = StatusFile(str(tmp_path), 0)
        follower.write(True, {})
        found |= {name for worker in cluster.stats() for name in names_of(worker)}
        follower.remove()
    # A list that is empty in one place has entries in another.
    told = {name for name in found if not any(other.startswith(f"{name}.") for other in found)}
    table = (
        (ROOT / "docs" / "workers.md")
        .read_text()
        .partition("## What `stats()` says")[2]
        .partition("\n### ")[0]
    )
    assert set(re.findall(r"^\| `([\w.]+)` \| [^|]+ \| [^|]+ \|$", table, re.MULTILINE)) == told
    listed = re.findall(r"`([a-z_.]+)`", str(timely.Cluster.stats.__doc__))
    assert set(listed) - {"counters", "report"} == told
    assert len(listed) == len(set(listed))


def test_bytes_on_the_way_and_positions_of_writers_are_told() -> None:
    with timely.connect(workers=2, embedded=True) as cluster:
        flow = cluster.install(word_count)
        for sequence in range(3):
            flow.input("lines").insert(["a b"], writer="feeder", sequence=sequence)
        flow.seal(wait=True)
        stats = cluster.stats()
        assert [[peer["worker"] for peer in told["peers"]] for told in stats] == [[1], [0]]  # type: ignore[index,union-attr,call-overload]
        sizes = [peer["unreceived_bytes"] for told in stats for peer in told["peers"]]  # type: ignore[index,union-attr,call-overload]
        assert all(isinstance(size, int) and size >= 0 for size in sizes)
        assert {peer["ring_bytes"] for told in stats for peer in told["peers"]} == {0}  # type: ignore[index,union-attr,call-overload]
        sent, received = (
            [peer[name] for told in stats for peer in told["peers"]]  # type: ignore[index,union-attr,call-overload]
            for name in ("rows_sent", "rows_recv")
        )
        assert sent == received[::-1] and sum(sent) > 0, "nothing is on the way"
        (lines,) = stats[0]["dataflows"][flow.index]["inputs"]  # type: ignore[index,call-overload,misc]
        assert lines["writers"] == [["feeder", 2]]
        for n in range(40):
            flow.input("lines").insert(["c"], writer=f"other {n}", sequence=n)
        told = cluster.stats()[0]["dataflows"][flow.index]["inputs"]  # type: ignore[index,call-overload]
        assert told[0]["writers"] == [[f"other {n}", n] for n in range(39, 23, -1)]  # type: ignore[index,call-overload]


def test_of_very_many_readers_those_are_told_that_are_furthest_behind() -> None:
    with timely.connect(workers=1, embedded=True) as cluster:
        flow = cluster.install(word_count)
        worker = cluster._workers._workers[0]  # type: ignore[attr-defined]
        (instance,) = worker.instances.values()
        places = instance.captures[0].places
        for number in range(200):
            places.come(reader_id(f"{number:08}", "a process", "line"), 300 - number)
        (told,) = cluster.stats()
        (output,) = told["dataflows"][flow.index]["outputs"]  # type: ignore[index,call-overload,misc]
    assert [reader["epoch"] for reader in output["readers"]] == list(range(101, 101 + TOLD_READERS_COUNT_MAX))
