"""Inputs that are sealed one by one; in one process, in threads, and in processes.

same_*      at every epoch an output is the plain definition of what has come in, whichever input is ahead
rows_*      which epoch rows enter
refused_*   what inputs with epochs of their own cannot have
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies_collections import examples

import differential as dd
import timely
from timely.client.session import Flow
from timely.errors import InputClosedError, MisuseError

SIDES = ("left", "right")


def joined(dataflow: timely.Dataflow) -> None:
    left = dd.input(dataflow, "left", "k: int, v: int")
    right = dd.input(dataflow, "right", "k: int, w: int")
    left.join(right, on="k").output("pairs")
    left.output("left")
    right.output("right")
    left.export("left")
    right.export("right")


def changes_of(flow: Flow, output: str, start: int, stop: int) -> dict[tuple[int, ...], int]:
    found: Counter[tuple[int, ...]] = Counter()
    for *row, epoch, diff in map(tuple, flow.output(output).changes(start, stop).to_pandas().to_numpy()):
        found[int(epoch), *map(int, row)] += int(diff)
    return {row: diff for row, diff in found.items() if diff}


@pytest.fixture(scope="module", params=["embedded", "threads", "processes"])
def cluster(request: pytest.FixtureRequest) -> Iterator[timely.Cluster]:
    kinds = {"embedded": {"embedded": True}, "threads": {"embedded": True, "threads": True}, "processes": {}}
    with timely.connect(workers=2, **kinds[request.param]) as cluster:
        yield cluster


Act = tuple[int, int, int]
"""An input, a key (-1: seal, -2: seal all of the dataflow, -3: move on by the value), and a value."""

ACTS = st.lists(st.tuples(st.integers(0, 1), st.integers(-3, 2), st.integers(0, 3)), max_size=24)


def test_same_as_the_plain_definition_whichever_input_is_ahead(cluster: timely.Cluster) -> None:
    @examples(0.5)
    @given(ACTS)
    def holds(acts: Sequence[Act]) -> None:
        flow = cluster.install(joined)
        inputs, opened = [flow.input(side) for side in SIDES], [0, 0]
        rows: list[dict[int, list[tuple[int, int]]]] = [defaultdict(list), defaultdict(list)]
        for which, key, value in [*acts, (0, -3, 30), (1, -3, 30)]:
            one = inputs[which]
            if key >= 0:
                one.insert([(key, value)])
                rows[which][opened[which]].append((key, value))
            elif key == -1:
                assert one.seal() == opened[which]
                opened[which] += 1
            elif key == -2:
                behind = flow.seal()
                opened = [max(epoch, behind + 1) for epoch in opened]
            else:
                opened[which] = max(opened[which], value)
                assert one.advance_to(value) == opened[which]
        last = min(opened) - 1
        flow.wait(last)
        meant: Counter[tuple[int, ...]] = Counter()
        for first, lefts in rows[0].items():
            for second, rights in rows[1].items():
                at = max(first, second)
                meant.update((at, k, v, w) for k, v in lefts for j, w in rights if j == k)
        assert changes_of(flow, "pairs", 0, last + 1) == dict(meant)
        flow.uninstall()

    holds()


def test_rows_of_an_input_enter_its_own_open_epoch(cluster: timely.Cluster) -> None:
    flow = cluster.install(joined)
    left, right = flow.input("left"), flow.input("right")
    assert [left.seal() for _ in range(3)] == [0, 1, 2]
    assert (left.epoch, right.epoch, flow.epoch, flow.refresh()) == (3, 0, 0, 0)
    left.insert([(1, 30)])
    right.insert([(1, 7)])
    assert right.seal() == 0
    assert flow.wait(0) == 0, "rows of the right input were in its epoch 0"
    assert changes_of(flow, "pairs", 0, 1) == {}
    assert flow.output("left").changes(0, 1).num_rows == 0
    assert right.advance_to(2) == 2 and right.advance_to(1) == 2
    assert left.seal() == 3 and right.advance_to(4) == 4
    assert flow.wait(3) == 3
    assert changes_of(flow, "pairs", 0, 4) == {(3, 1, 30, 7): 1}
    other = cluster.flow(flow.index)
    assert other.input("left").seal() == 4, "another client asks where the input is"
    assert left.seal() == 5
    assert flow.seal(through=5, wait=True) == 5
    right.insert([(1, 8)])
    assert right.seal() == 6 and left.seal() == 6 and flow.wait(6) == 6
    assert changes_of(flow, "pairs", 6, 7) == {(6, 1, 30, 8): 1}
    left.close()
    with pytest.raises(InputClosedError, match="'left' is closed"):
        left.seal()
    flow.finish()


def test_rows_of_an_input_that_others_have_advanced_leave_those_of_other_inputs_where_they_are(
    cluster: timely.Cluster,
) -> None:
    flow = cluster.install(joined)
    flow.input("left").advance_to(5)
    for small in (True, False):
        other = cluster.flow(flow.index)
        left, right = other.input("left"), other.input("right")
        rows = [(1, number) for number in range(1 if small else 40_000)]
        assert left.insert(rows, **({} if small else {"writer": "w", "sequence": 1})) == 5
        assert left.insert([(1, 9)], writer="x", sequence=int(small)) == 5
        assert (other.epoch, left.epoch, right.epoch) == (0, 5, 0)
        assert right.insert([(1, 7)], writer="x", sequence=int(small)) == 0
        right.insert([(1, 8)])
    assert right.seal() == 0
    assert flow.input("right").epoch == 0 and flow.wait(0) == 0
    assert flow.output("right").changes(0, 1).num_rows == 2
    flow.input("left").seal()
    flow.uninstall()


def test_rows_of_a_later_client_enter_the_epoch_that_it_sees_open(cluster: timely.Cluster) -> None:
    flow = cluster.install(joined)
    flow.input("left").advance_to(5)
    flow.input("right").seal()
    for _ in range(2):
        other = cluster.flow(flow.index)
        left, right = other.input("left"), other.input("right")
        assert (left.epoch, right.epoch, other.epoch) == (5, 1, 1)
        assert (left.insert([(1, 9)]), right.insert([(1, 7)])) == (5, 1)
    left.close()
    assert (right.seal(), cluster.flow(flow.index).input("right").epoch) == (1, 2)
    flow.seal(through=5)
    assert changes_of(flow, "left", 0, 6) == {(5, 1, 9): 2}
    assert changes_of(flow, "right", 0, 6) == {(1, 1, 7): 2}
    flow.uninstall()


def test_rows_behind_a_seal_of_all_inputs_are_behind_it_at_an_input_with_epochs_of_its_own(
    cluster: timely.Cluster,
) -> None:
    flow = cluster.install(joined)
    right = flow.input("right")
    assert right.seal() == 0
    assert (flow.seal(), flow.seal(wait=True), right.epoch) == (0, 1, 2)
    right.append(pa.table({"k": [1], "w": [2], "diff": [1]}))
    assert flow.seal(through=6) == 6 and right.epoch == 7
    right.append(pa.table({"k": [1], "w": [3], "diff": [1]}))
    flow.input("left").insert([(1, 0)])
    flow.seal(wait=True)
    assert changes_of(flow, "pairs", 0, 8) == {(7, 1, 0, 2): 1, (7, 1, 0, 3): 1}
    assert right.seal() == 8 and flow.epoch == 8
    flow.uninstall()


def test_refused_where_epochs_are_none(cluster: timely.Cluster) -> None:
    flow = cluster.install(joined)
    left = flow.input("left")
    with pytest.raises(MisuseError, match=r"advance_to\(epoch\)"):
        left.advance_to("5")  # type: ignore[arg-type]  # users may write anything
    with pytest.raises(MisuseError, match="epoch"):
        left.advance_to(1 << 62)
    left.advance_to(5)
    with pytest.raises(
        MisuseError, match=r"'left' is at epoch 5, and another one at 0. Seal all .*through=4"
    ):
        cluster.replace(flow, joined)
    assert left.seal() == 5, "nothing has changed"
    flow.seal(through=5)
    assert cluster.replace(flow, joined).epoch == 6


def test_rows_of_a_durable_cluster_are_in_the_epochs_of_their_input_after_a_restart(tmp_path: Path) -> None:
    with timely.connect(embedded=True, durable=tmp_path) as cluster:
        flow = cluster.install(joined)
        for number in range(3):
            flow.input("left").insert([(1, number)])
            assert flow.input("left").seal() == number
        flow.input("right").insert([(1, 7)])
        flow.input("left").insert([(1, 3)])
        shown = changes_of(flow, "left", 0, 3)
        assert shown == {(number, 1, number): 1 for number in range(3)}
    with timely.connect(workers=2, embedded=True, durable=tmp_path) as cluster:
        flow = cluster.install(joined)
        left, right = flow.input("left"), flow.input("right")
        assert (left.epoch, right.epoch) == (3, 0)
        assert changes_of(flow, "left", 0, 3) == shown
        assert (left.advance_to(0), right.epoch) == (3, 0)
        left.insert([(1, 4)])
        assert right.advance_to(4) == 4 and left.seal() == 3
        pairs = {(number, 1, number, 7): 1 for number in range(3)}
        assert changes_of(flow, "pairs", 0, 4) == {**pairs, (3, 1, 3, 7): 1, (3, 1, 4, 7): 1}
