"""A cluster from a seed: the same seed gives the same run, and wrong vertices are found by some seed.

same_*     the seed decides everything
found_*    mistakes, also those that only a crash shows
awaits_*   coroutines and alarms take part, and nobody sleeps
"""

from __future__ import annotations

import asyncio
import time as clock
from dataclasses import replace
from typing import ClassVar

import pytest
from wrong_vertices import ACTS, EXPECTED, RIGHT, WRONG, SumVertex, Wrong, summed

from progress.checking.counterexample import Counterexample
from progress.times.timestamp import Timestamp
from timely import Capability, Dataflow, TimelyError, Vertex
from timely.testing import Scenario, call, seal, send, simulate

SEEDS = 12


def test_same_seeds_give_the_same_run_and_others_other_ones() -> None:
    runs = [RIGHT.simulate(seed) for seed in range(SEEDS)]
    assert [RIGHT.simulate(seed) for seed in range(SEEDS)] == runs
    assert len({run.digest for run in runs}) > SEEDS // 2
    assert all(run.outputs == {"sums": [(0, ("a", 3))]} for run in runs)


def test_same_outputs_on_any_number_of_workers_with_crashes_too() -> None:
    crashes = 0
    for workers in (2, 3):
        for seed in range(SEEDS // 2):
            crashes += RIGHT.simulate(seed, workers=workers, crash=True).crashes
    assert crashes


@pytest.mark.parametrize(
    "wrong", [each for each in WRONG if each.is_found_by_seeds], ids=lambda each: each.name
)
def test_found_is_each_mistake_by_some_seed(wrong: Wrong) -> None:
    for seed in range(200):
        try:
            wrong.scenario.simulate(seed)
        except Counterexample as error:
            assert wrong.says in error.what, error
            ends = (f"seed {seed} gives the same run again", "so it is without any delays", "not again in")
            assert any(end in str(error) for end in ends), error
            return
    raise AssertionError("no seed finds it")


class Numbered(SumVertex):
    """Numbers the epochs of all vertices that were ever made: another number after a crash."""

    made: ClassVar[list[int]] = []

    def __init__(self) -> None:
        super().__init__()
        self.made.append(1)
        self.number = len(self.made)

    def on_notify(self, time: Timestamp) -> None:
        del self.waiting[time]
        self.send_by(0, [("made", self.number > 8)], time)


def test_found_is_an_answer_that_is_another_one_after_a_crash() -> None:
    acts = [send([("a", 1)], worker=0), seal(), send([("a", 2)], worker=0), seal()]
    scenario = Scenario(summed(Numbered), acts)
    with pytest.raises(Counterexample, match="output 'sums'|not again in a second run"):
        for seed in range(100):
            scenario.simulate(seed, crash=True)


class Ends(SumVertex):
    """Notes why it has ended."""

    reasons: ClassVar[list[str]] = []

    def on_end(self, reason: TimelyError | None) -> None:
        self.reasons.append(str(reason))


def test_found_is_what_on_end_does_when_another_worker_crashes() -> None:
    Ends.reasons.clear()
    for seed in range(100):
        if simulate(summed(Ends), ACTS, seed, crash=True, expected=EXPECTED).crashes:
            break
    assert any("has crashed" in reason for reason in Ends.reasons)


class Asks(Vertex):
    """Looks records up, which takes its time: a day for each."""

    async def on_recv(self, edge: int, message: list[object], time: Timestamp) -> None:
        await asyncio.sleep(86_400 * len(message))
        self.send_by(0, message, time)


def asks(dataflow: Dataflow) -> None:
    dataflow.output("out", dataflow.input("in").stage("asks", Asks))


def test_awaits_of_days_take_no_time() -> None:
    began = clock.monotonic()
    for seed in range(4):
        run = simulate(
            asks, [send([1, 2]), send([3]), seal()], seed, expected={"out": [(0, 1), (0, 2), (0, 3)]}
        )
        assert run == simulate(asks, [send([1, 2]), send([3]), seal()], seed) or run.actions
    assert clock.monotonic() - began < 86_400


class Lines(Vertex):
    """A source that a thread rings for."""

    def on_start(self) -> None:
        self.lines: list[str] = []
        self.bell = self.activator()

    def on_open(self, capability: Capability) -> None:
        self.held = capability
        self.activate(after=3_600)

    def on_activate(self) -> None:
        if not self.held.is_held:
            return
        for line in self.lines:
            self.send_by(0, [line], self.held.time)
        if "end" in self.lines:
            self.held.drop()
        self.lines.clear()


def lines(dataflow: Dataflow) -> None:
    dataflow.output("lines", dataflow.source("lines", Lines, workers=[0]))


def bring_one(vertex: Vertex) -> None:
    assert isinstance(vertex, Lines)
    vertex.lines.append("one")
    vertex.bell.activate()


def bring_end(vertex: Vertex) -> None:
    assert isinstance(vertex, Lines)
    vertex.lines.append("end")
    vertex.bell.activate()


def test_awaits_of_threads_and_alarms_come_at_any_moment() -> None:
    acts = [call("lines", bring_one), call("lines", bring_end)]
    scenario = Scenario(lines, acts, expected={"lines": [(0, "one"), (0, "end")]})
    for seed in range(SEEDS):
        scenario.simulate(seed)
    assert replace(scenario, workers=1).explore().ends
