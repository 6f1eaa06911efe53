"""Epochs without an answer as clients read them: each reader gets the error there, and goes on behind them.

What is read when everything has an answer is in test_reading.
"""

from __future__ import annotations

import random
import re
from collections import Counter
from collections.abc import Iterator, Sequence

import pyarrow as pa
import pytest

import differential as dd
import timely
from differential import col
from differential.errors import RowError
from timely.client.embedded.workers import EmbeddedWorkers
from timely.errors import TimelyError

Rows = Counter[int]


@pytest.fixture(params=[1, 2, 3])
def cluster(request: pytest.FixtureRequest) -> Iterator[timely.Cluster]:
    with timely.Cluster(EmbeddedWorkers(request.param)) as made:
        yield made


def rows_of(table: pa.Table) -> Rows:
    found: Rows = Counter()
    for row in table.to_pylist():
        found[row["n"]] += row["diff"]
    return Counter({n: diff for n, diff in found.items() if diff})


def epochs_of(table: pa.Table) -> list[int]:
    return sorted(set(table.column("epoch").to_pylist()))


def fails_on_0(dataflow: timely.Dataflow) -> None:
    """The numbers, without an answer while there is a 0; and as they are."""
    rows = dd.input(dataflow, "numbers", "n: int")
    rows.select(n=col.n + 0 * (1 // col.n)).output("numbers")
    rows.output("all")
    dd.input(dataflow, "others", "n: int").output("others")


def change(flow: timely.Flow, come: Sequence[int] = (), go: Sequence[int] = ()) -> int:
    flow.input("numbers").insert([(n,) for n in come])
    flow.input("numbers").remove([(n,) for n in go])
    return flow.seal()


def told(pair: tuple[int, pa.Table | TimelyError]) -> tuple[int, object]:
    epoch, found = pair
    if isinstance(found, TimelyError):
        assert type(found) is RowError
        # Of epochs that are read together the first one that has no answer is named.
        named = re.match(r"output 'numbers' has no answer at epoch (\d+)", str(found))
        assert named is not None and int(named[1]) <= epoch
        return epoch, "error"
    assert set(epochs_of(found)) <= {epoch}
    return epoch, rows_of(found)


def test_failing_epochs_are_followed_by_all_that_changed_since_the_last_answer(
    cluster: timely.Cluster,
) -> None:
    flow = cluster.install(fails_on_0)
    tail = cluster.flow(flow.index).output("numbers").follow(timeout=60)
    for come, go in (([1, 2], []), ([0, 3], []), ([4], [1]), ([], []), ([], [0]), ([5], [])):
        change(flow, come, go)
    assert [told(next(tail)) for _ in range(6)] == [
        (0, {1: 1, 2: 1}), (1, "error"), (2, "error"), (3, "error"), (4, {1: -1, 3: 1, 4: 1}), (5, {5: 1})
    ]  # fmt: skip


def test_failing_epochs_are_told_once_where_the_same_goes_on(cluster: timely.Cluster) -> None:
    flow = cluster.install(fails_on_0)
    tail = cluster.flow(flow.index).output("numbers").follow(empty=False, timeout=60)
    change(flow, [0])
    assert told(next(tail)) == (0, "error")
    for _ in range(3):
        change(flow, [7])
    change(flow, [8], [0])
    assert told(next(tail)) == (4, {7: 3, 8: 1})
    change(flow)
    change(flow, [0])
    flow.seal(through=10**9)
    change(flow, [], [0])
    assert [told(next(tail)) for _ in range(1)] == [(6, "error")]
    change(flow, [0])
    change(flow, [1])
    assert told(next(tail)) == (10**9 + 2, "error")
    late = cluster.flow(flow.index).output("numbers").follow(start=10**9 + 3, empty=False)
    assert told(next(late)) == (10**9 + 3, "error"), "who begins there has not heard of it"


@pytest.mark.parametrize("empty", [True, False])
def test_failing_epochs_come_before_a_snapshot_until_there_is_one(
    cluster: timely.Cluster, empty: bool
) -> None:
    flow = cluster.install(fails_on_0)
    change(flow, [1])
    change(flow, [0, 2])
    reader = cluster.flow(flow.index).output("numbers")
    tail = reader.follow(snapshot=True, empty=empty, timeout=60)
    assert told(next(tail)) == (1, "error")
    change(flow, [3])
    if empty:
        assert told(next(tail)) == (2, "error")
    change(flow, [4], [0])
    assert told(next(tail)) == (3, {1: 1, 2: 1, 3: 1, 4: 1})
    change(flow, [5])
    assert told(next(tail)) == (4, {5: 1})


def test_failing_epochs_still_fail_where_what_was_before_is_forgotten(cluster: timely.Cluster) -> None:
    flow = cluster.install(fails_on_0)
    output = flow.output("numbers")
    change(flow, [0])
    tail = output.follow(timeout=60, forget=True)
    assert told(next(tail)) == (0, "error")
    with pytest.raises(timely.WaitTimeoutError):
        next(output.follow(timeout=0.05, forget=True))
    output.forget(1)
    with pytest.raises(RowError, match="no answer at epoch 0"):
        output.snapshot()
    assert told(next(output.follow(snapshot=True))) == (0, "error")
    change(flow, [2])
    output.forget(2)
    with pytest.raises(RowError, match="no answer at epoch 1 since epoch 0"):
        output.snapshot()
    change(flow, [], [0])
    assert output.changes().to_pylist() == [{"n": 2, "epoch": 2, "diff": 1}]


@pytest.mark.parametrize("empty", [True, False])
def test_failing_is_told_of_the_last_epoch_of_an_input_that_is_closed(
    cluster: timely.Cluster, empty: bool
) -> None:
    flow = cluster.install(fails_on_0)
    change(flow, [1])
    tails = [
        cluster.flow(flow.index).output("numbers").follow(empty=empty, snapshot=snapshot)
        for snapshot in (False, True)
    ]
    flow.input("numbers").insert([(0,)])
    flow.input("numbers").close()  # the other input is not sealed
    for tail in tails:
        assert [told(pair) for pair in tail] == [(0, {1: 1}), (1, "error")]
    with pytest.raises(RowError, match="no answer from epoch 1 on: "):
        cluster.flow(flow.index).output("numbers").changes_nowait()


def test_failing_calls_can_be_made_again_and_other_outputs_go_on(cluster: timely.Cluster) -> None:
    flow = cluster.install(fails_on_0)
    output, others = flow.output("numbers"), flow.output("all")
    change(flow, [1])
    assert rows_of(output.changes()) == {1: 1}
    change(flow, [0, 2])
    flow.wait()
    for call in (output.changes, output.changes_nowait, output.snapshot, lambda: output.changes(0)):
        for _ in range(2):
            with pytest.raises(
                RowError, match=r"1 // col.n .*test_unanswered.py:\d+\) divides by zero .* n=0"
            ) as caught:
                call()
            assert "epoch 1" in str(caught.value)
    assert rows_of(output.changes(0, 1)) == {1: 1}, "an answer stays one"
    assert rows_of(others.changes()) == {0: 1, 1: 1, 2: 1}
    change(flow, [], [0])
    assert output.changes().to_pylist() == [{"n": 2, "epoch": 2, "diff": 1}]
    assert output.snapshot().column("n").to_pylist() == [1, 2]
    assert output.changes(0).to_pylist() == [{"n": 1, "epoch": 0, "diff": 1}, {"n": 2, "epoch": 2, "diff": 1}]


@pytest.mark.parametrize("seed", range(5))
def test_failing_now_and_then_followers_have_the_collection_at_every_answer(
    cluster: timely.Cluster, seed: int
) -> None:
    """While others seal, read and forget; some begin with a snapshot, some drop what they read."""
    rng = random.Random(seed)
    flow = cluster.install(fails_on_0)
    history: list[Rows] = []
    now: Rows = Counter()
    followers: list[tuple[Iterator[tuple[int, pa.Table | TimelyError]], Rows, list[int], float]] = []
    errors, has_begun = 0, [False] * 4
    for turn in range(40):
        come = [rng.randrange(1 if rng.random() < 0.5 else 0, 5) for _ in range(rng.randrange(4))]
        go = [n for n in now.elements() if rng.random() < 0.3]
        now.update(come)
        now.subtract(go)
        change(flow, come, go)
        history.append(Counter({n: count for n, count in now.items() if count}))
        if rng.random() < 0.3:
            flow.output("numbers").forget(rng.randrange(len(history) + 1))
        if turn % 10 == 3:
            output = cluster.flow(flow.index).output("numbers")
            tail = output.follow(snapshot=True, forget=rng.random() < 0.5, timeout=60)
            followers.append((tail, Counter(), [], 0.2 + 0.8 * rng.random()))
        for number, (tail, rows, seen, speed) in enumerate(followers):
            while (not seen or seen[-1] + 1 < len(history)) and rng.random() < speed:
                epoch, found = next(tail)
                # Until there is a snapshot the error is that of the last epoch.
                assert not seen or epoch == seen[-1] + 1 or (not has_begun[number] and epoch > seen[-1])
                seen.append(epoch)
                if history[epoch][0]:
                    assert told((epoch, found)) == (epoch, "error")
                    errors += 1
                    continue
                has_begun[number] = True
                rows.update(rows_of(found))
                assert Counter({n: count for n, count in rows.items() if count}) == history[epoch]
    assert errors and sum(len(seen) for _, _, seen, _ in followers) > 20
