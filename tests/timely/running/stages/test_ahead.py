"""`Ahead`: a stage behind inputs knows how far these are before progress tracking is told.

turns_*   rows and the end of their epoch are one turn, and what was held in between is not told
truth_*   what is seen never comes too early, and never goes back; at the end it is all
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

import numpy as np
import pytest
from collection_flows import distances
from hypothesis import example, given
from hypothesis import strategies as st

import timely
from progress.times.anchor import Rebase
from progress.times.timestamp import Timestamp
from timely import Batch, Dataflow, Records, Vertex
from timely.running.core import Worker
from timely.running.instance import Instance
from timely.running.stages.ahead import Ahead, Follower
from timely.running.stages.vertex_runner import VertexRunner

FOREVER = 1 << 60


class Watches(Vertex):
    """Holds each time at which it got something until its input is past it, and sends there; notes all that
    it sees.
    """

    word_times: ClassVar[bool] = True
    wants_frontier: ClassVar[bool] = True

    def __init__(self) -> None:
        self.seen: dict[int, list[int]] = {}
        self.held: list[int] = []

    def recv_all(self, port: int, messages: Sequence[tuple[int, Batch]]) -> None:
        for word, _ in messages:
            epoch = self.code.epoch_of(word)
            assert epoch >= (self.seen.get(port) or [0])[-1], "what was said not to come any more came"
            if word not in self.held:
                self.hold_word(word)
                self.held.append(word)

    def on_frontier(self) -> None:
        first = FOREVER
        for port in range(len(self._runner.ports)):  # type: ignore[attr-defined]
            frontier = self.frontier_words(port)
            epoch = self.code.epoch_of(int(frontier[0])) if len(frontier) else FOREVER
            seen = self.seen.setdefault(port, [0])
            assert epoch >= seen[-1], "it goes back"
            seen.append(epoch)
            first = min(first, epoch)
        for word in [word for word in self.held if self.code.epoch_of(word) < first]:
            self.held.remove(word)
            self.send(0, Records([self.code.epoch_of(word)]), word)
            self.release_word(word)

    def rebase(self, by: Rebase) -> None:
        self.held = [by.word(word) for word in self.held]


def built(ports: int) -> tuple[Worker, Instance, Watches]:
    """Two inputs, at one port or at two."""
    vertex, dataflow = Watches(), Dataflow(level_bits=(3,))
    feeds = [dataflow.input(name).feed(number % ports) for number, name in enumerate("ab")]
    (out,) = dataflow.stage("watches", lambda: vertex, feeds)
    dataflow.output("out", out)
    worker = Worker()
    return worker, worker.install(dataflow.freeze()), vertex


# turns_


def test_turns_rows_and_the_end_of_their_epoch_are_one() -> None:
    worker, instance, vertex = built(2)
    worker.run_until_idle()  # it is told at which epoch the dataflow begins, as ever
    assert vertex.seen == {0: [0, 0], 1: [0, 0]}
    for epoch in range(3):
        before = instance.runners[2].activations
        instance.input("a").send([epoch])
        for name in "ab":
            instance.input(name).seal()
        worker.run_until_idle()
        assert instance.runners[2].activations == before + 1
        assert instance.output("out").complete_before == epoch + 1
    assert instance.output("out").log.changes(0, 9).column("epoch").to_pylist() == [0, 1, 2]


def test_turns_what_was_held_in_between_is_not_told() -> None:
    worker, instance, vertex = built(2)
    worker.run_until_idle()
    told: list[tuple[int, int, int]] = []
    apply = instance.tracker.apply
    instance.tracker.apply = lambda changes: (told.extend(changes), apply(changes))[1]  # type: ignore[method-assign]
    instance.input("a").send([1])
    for name in "ab":
        instance.input(name).seal()
    worker.run_until_idle()
    assert vertex.held == []
    assert {location for location, _, _ in told} == {0, 1}, "the epochs of the inputs, and nothing else"


def test_turns_one_that_is_behind_is_waited_for_and_one_that_has_closed_is_not() -> None:
    worker, instance, vertex = built(2)
    instance.input("a").send([1])
    instance.input("a").seal(4)
    worker.run_until_idle()
    assert (vertex.seen[0][-1], vertex.seen[1][-1]) == (5, 0) and vertex.held != []
    instance.input("b").close()
    worker.run_until_idle()
    assert (vertex.seen[0][-1], vertex.seen[1][-1]) == (5, FOREVER) and vertex.held == []
    instance.input("a").close()
    worker.run_until_idle()
    assert vertex.seen[0][-1] == FOREVER and instance.is_complete()


@pytest.mark.parametrize("closes", [False, True])
def test_turns_a_loop_follows_its_inputs_and_ends_with_them(closes: bool) -> None:
    with timely.connect(workers=1, embedded=True) as cluster:
        flow = cluster.install(distances)
        flow.input("roots").insert([(0,)])
        if closes:
            flow.input("roots").close()
        known: dict[tuple[int, int], int] = {}
        for first in range(4):
            flow.input("edges").insert([(first, first + 1)])
            flow.wait(flow.seal())
            for row in flow.output("distances").changes().to_pylist():
                key = row["node"], row["distance"]
                known[key] = known.get(key, 0) + row["diff"]
            assert {key for key, count in known.items() if count} == {(n, n) for n in range(first + 2)}
        flow.input("edges").close()
        flow.input("roots").close()
        assert flow.output("distances").snapshot().num_rows == 5


# truth_

steps = st.lists(
    st.one_of(
        st.tuples(st.just("send"), st.sampled_from("ab"), st.integers(0, 12)),
        st.tuples(st.just("seal"), st.sampled_from("ab"), st.integers(0, 9)),
        st.tuples(st.just("close"), st.sampled_from("ab"), st.just(0)),
        st.tuples(st.just("do"), st.just(""), st.integers(0, 30)),
        st.tuples(st.just("run"), st.just(""), st.just(0)),
    ),
    max_size=30,
)


@example(
    1,
    [
        ("send", "a", 0), ("seal", "a", 0), ("seal", "b", 0), ("run", "", 0),
        ("seal", "a", 0), ("do", "", 0), ("close", "a", 0), ("do", "", 0), ("do", "", 0), ("run", "", 0),
    ],
)  # fmt: skip
@given(st.sampled_from([1, 2]), steps)
def test_truth_nothing_is_said_too_early_whatever_comes_first(
    ports: int, steps: list[tuple[str, str, int]]
) -> None:
    worker, instance, vertex = built(ports)
    sent = set[int]()
    for what, name, number in [*steps, ("run", "", 0), ("close", "a", 0), ("close", "b", 0), ("run", "", 0)]:
        if what == "run":
            worker.run_until_idle()
        elif what == "do":
            actions = worker.enabled()
            if actions:
                worker.perform(actions[number % len(actions)])
        elif instance.input(name).is_closed:
            continue
        elif what == "send":
            handle = instance.input(name)
            handle.send([number], handle.epoch + number)
            sent.add(handle.epoch + number)
        elif what == "seal":
            instance.input(name).seal(instance.input(name).epoch + number)
        else:
            instance.input(name).close()
    assert vertex.held == [] and instance.is_complete()
    assert set(instance.output("out").log.changes(0, FOREVER).column("epoch").to_pylist()) == sent
    assert {seen[-1] for seen in vertex.seen.values()} == {FOREVER}


class Input:
    """As much of a stage as is looked at."""

    def __init__(self, opened: int | None) -> None:
        self.followers: list[Follower] = []
        self.opened = opened


def test_truth_what_progress_tracking_knows_better_counts() -> None:
    near, far = Input(8), Input(1 << 40)
    ahead = Ahead([[near, far], [far]], 1 << 20)
    ahead.look()
    assert [ahead.frontier(port).tolist() for port in (0, 1)] == [[8], [1 << 20]], "wide words are not said"
    assert (ahead.first, ahead.are_open) == (8, True)
    told = np.array([16])
    assert ahead.or_later(0, told) is told, "the input has gone on since this looked"
    assert ahead.or_later(0, np.array([0])).tolist() == [8], "and it is not forgotten before it has"
    assert ahead.or_later(0, np.empty(0, np.int64)).tolist() == []
    near.opened = None
    ahead.look()
    assert (ahead.frontier(0).tolist(), ahead.are_open) == ([1 << 20], False)
    far.opened = None
    ahead.look()
    assert (ahead.frontier(0).tolist(), ahead.first) == ([], None)
    assert ahead.or_later(0, told).tolist() == []


def test_truth_what_was_seen_counts_from_where_words_count_now() -> None:
    ahead = Ahead([[Input(5 << 3)], [Input(None)], [Input(2 << 3)]], 1 << 20)
    ahead.look()
    ahead.rebase(Rebase(3, 3))
    assert [ahead.frontier(port).tolist() for port in range(3)] == [[2 << 3], [], [0]]
    told = np.array([3 << 3])
    assert ahead.or_later(0, told) is told, "not what would have been later before"


def test_truth_who_asks_for_notifications_has_them_of_progress_tracking() -> None:
    """It looks at requests when that says so, and would not come back to what it has seen before."""

    class Asks(Vertex):
        def __init__(self) -> None:
            self.notified: list[Timestamp] = []

        def on_recv(self, edge: int, message: list[object], time: Timestamp) -> None:
            for later in range(40):
                self.notify_at((time[0] + later,))

        def on_notify(self, time: Timestamp) -> None:
            self.notified.append(time)

    vertex, dataflow = Asks(), Dataflow()
    dataflow.input("numbers").stage("asks", lambda: vertex)
    worker = Worker()
    instance = worker.install(dataflow.freeze())
    instance.input("numbers").send([1])
    for epoch in range(50):
        instance.input("numbers").seal(epoch)
        worker.run_until_idle()
        assert vertex.notified == [(done,) for done in range(min(epoch + 1, 40))]
    assert isinstance(instance.runners[1], VertexRunner)
