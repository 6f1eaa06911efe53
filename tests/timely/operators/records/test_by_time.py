"""Operators of streams that wait until a time is complete."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import pytest
from stream_runs import run

import timely
from timely.building.stream import Stream


@pytest.fixture(params=[1, 2], ids=["one worker", "two threads"], scope="module")
def cluster(request: pytest.FixtureRequest) -> Iterator[timely.Cluster]:
    with timely.connect(workers=request.param, embedded=True, threads=request.param > 1) as cluster:
        yield cluster


def test_over_each_time_records_are_counted(cluster: timely.Cluster) -> None:
    assert run(cluster, lambda s: s.count(), [1, 2, 2], [], [5]) == [Counter([(0, 3), (2, 1)])]


def test_over_each_time_values_are_folded(cluster: timely.Cluster) -> None:
    pairs: list[list[object]] = [[("a", 1), ("b", 2), ("a", 3)], [("a", 5)]]
    (sums,) = run(cluster, lambda s: s.aggregate(lambda total, n: total + n, 0), *pairs)
    assert sums == Counter([(0, ("a", 4)), (0, ("b", 2)), (1, ("a", 5))])

    def added(some: list[int], n: int) -> list[int]:
        return sorted([*some, n])

    (lists,) = run(cluster, lambda s: s.aggregate(added, list, lambda key, some: f"{key}: {some}"), *pairs)
    assert lists == Counter([(0, "a: [1, 3]"), (0, "b: [2]"), (1, "a: [5]")])


def test_over_all_times_a_state_is_kept_for_each_key(cluster: timely.Cluster) -> None:
    def step(key: str, value: int, total: int) -> tuple[int | None, list[object]]:
        if value < 0:
            return None, [(key, "forgotten at", total)]
        return total + value, [(key, total + value)] if value else []

    epochs: list[list[object]] = [[("a", 1), ("b", 2)], [("a", 5), ("b", 0)], [("a", -1)], [("a", 7)]]
    (found,) = run(cluster, lambda s: s.state_machine(step, 0), *epochs)
    assert found == Counter(
        [(0, ("a", 1)), (0, ("b", 2)), (1, ("a", 6)), (2, ("a", "forgotten at", 6)), (3, ("a", 7))]
    )


@timely.builder
def words(dataflow: timely.Dataflow) -> None:
    pairs = dataflow.input("lines").flat_map(str.split).map(lambda word: (word, 1))
    dataflow.output("counts", pairs.aggregate(lambda total, n: total + n, 0))
    dataflow.output("number", pairs.count())


def test_over_two_processes(two_workers: timely.Cluster) -> None:
    flow = two_workers.install(words)
    flow.input("lines").insert(["a b a", "c a"])
    flow.seal()
    assert Counter(flow.output("counts").changes()) == Counter([(0, ("a", 3)), (0, ("b", 1)), (0, ("c", 1))])
    assert [*flow.output("number").changes()] == [(0, 5)]
    flow.uninstall()


def test_over_keys_that_meet_there_is_one_state(cluster: timely.Cluster) -> None:
    """A list is the tuple as which it arrives on another worker, and all NaNs are one key."""

    def sums(*keys: object) -> list[tuple[object, int]]:
        pairs: list[object] = [(key, 1 << n) for n, key in enumerate(keys)]

        def build(stream: Stream) -> Stream:
            return stream.map(lambda pair: (_changeable(pair[0]), pair[1])).aggregate(int.__add__, 0)

        (found,) = run(cluster, build, pairs)
        return [record for _, record in found.elements()]  # type: ignore[misc]

    assert sums(("list", 1, 2), ("list", 1, 2), (1, 2)) == [((1, 2), 7)]
    assert sums(("list", ("list", 1), 2), ((1,), 2)) == [(((1,), 2), 3)]
    assert sums(b"a", ("bytes", b"a")) == [(b"a", 3)]
    assert [n for _, n in sums("nan", "nan", float("nan"))] == [7]
    assert [n for _, n in sums((1, "nan"), (1, "nan"))] == [3]


def _changeable(key: object) -> object:
    """The key that a text or tuple stands for, which cannot be inserted: inputs take what can be sent."""
    if isinstance(key, tuple) and key and key[0] == "list":
        return [_changeable(entry) for entry in key[1:]]
    if isinstance(key, tuple) and key and key[0] == "bytes":
        return bytearray(key[1])
    if isinstance(key, tuple):
        return tuple(map(_changeable, key))
    return float("nan") if key == "nan" else key


def test_over_keys_none_shares_a_start_that_changes(cluster: timely.Cluster) -> None:
    def add(state: dict[str, list[int]], value: int) -> dict[str, list[int]]:
        state["values"].append(value)
        return state

    def step(key: str, value: int, state: list[int]) -> tuple[list[int], list[object]]:
        state.append(value)
        return state, [(key, sum(state))]

    start: dict[str, list[int]] = {"values": []}
    pairs: list[list[object]] = [[("a", 1), ("b", 2)], [("a", 3)]]
    (found,) = run(
        cluster, lambda s: s.aggregate(add, start, lambda key, state: (key, *state["values"])), *pairs
    )
    assert found == Counter([(0, ("a", 1)), (0, ("b", 2)), (1, ("a", 3))]) and start == {"values": []}
    (found,) = run(cluster, lambda s: s.state_machine(step, []), *pairs)
    assert found == Counter([(0, ("a", 1)), (0, ("b", 2)), (1, ("a", 4))])


@pytest.mark.parametrize("operator", ["aggregate", "state_machine"])
def test_over_keys_that_cannot_be_looked_up_the_record_is_named(operator: str) -> None:
    def build(stream: Stream) -> Stream:
        keyed = stream.map(lambda n: ({"n": n}, n))
        return keyed.aggregate(max, 0) if operator == "aggregate" else keyed.state_machine(lambda *_: (0, []))

    told = (
        rf"'{operator}' .*: the key of \({{'n': 1}}, 1\) cannot be looked up: unhashable type: 'dict'. A key"
    )
    with timely.connect(workers=1, embedded=True) as cluster, pytest.raises(timely.MisuseError, match=told):
        run(cluster, build, [1])


def test_over_a_state_that_fold_changes_it_is_returned_all_the_same() -> None:
    def build(dataflow: timely.Dataflow) -> None:
        pairs = dataflow.input("in")
        dataflow.output("out", pairs.aggregate(lambda state, value: state.append(value), list))  # type: ignore[attr-defined]

    with timely.connect(embedded=True) as cluster:
        flow = cluster.install(build)
        flow.input("in").insert([("a", 1)])
        flow.seal()
        with pytest.raises(timely.MisuseError, match="changed its list, and returned None for the value 1"):
            flow.wait()


def test_over_a_state_none_is_one_like_others() -> None:
    def build(dataflow: timely.Dataflow) -> None:
        dataflow.output("out", dataflow.input("in").aggregate(lambda state, value: None, None))

    with timely.connect(embedded=True) as cluster:
        flow = cluster.install(build)
        flow.input("in").insert([("a", 1)])
        flow.seal()
        assert flow.output("out").changes() == [(0, ("a", None))]
