"""What is around a vertex: who runs one asks no more of it than is promised, and who is there keeps that."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import pytest

from progress.compiled.arrays import Int64s
from progress.times.time_words import TimeCode, TimeLayout
from progress.times.timestamp import TimeShape
from timely import Batch, Records, Vertex
from timely.operators.alarms import Alarms
from timely.operators.vertex import Feeder
from timely.running.checking.checker import ProgressChecker
from timely.running.instance import Instance
from timely.running.stages.compiled_loop import CompiledLoopRunner
from timely.running.stages.surroundings import Checker, Counts, Frontiers, Source, Surroundings
from timely.running.stages.vertex_runner import VertexRunner


def promised(kind: type) -> set[str]:
    """The members of a protocol, those that it inherits included."""
    return {name for base in kind.__mro__ for name in vars(base) if not name.startswith("_")}


class Alone:
    """What `Surroundings` promises and nothing else; notes what it is asked for."""

    worker, workers = 0, 1
    checker: Checker | None = None
    is_calm = True

    def __init__(self) -> None:
        self.recheck: set[int] = set()
        self.counted: list[tuple[int, int, int]] = []
        self.turns: list[str] = []
        self.front: Int64s = np.zeros(1, np.int64)
        self.alarms = Alarms()

    @property
    def tracker(self) -> Alone:
        return self

    @property
    def count(self) -> Callable[[int, int, int], None]:
        return lambda location, word, delta: self.counted.append((location, word, delta))

    def frontier(self, port: int) -> Int64s:
        return self.front

    def first(self, port: int) -> int | None:
        return next(iter(self.front.tolist()), None)

    def feeding(self, stage: int, port: int) -> list[Feeder]:
        return []

    def wake(self, runner: VertexRunner, /) -> None:
        self.turns.append("wake")

    def resume_later(self, runner: VertexRunner, /) -> None:
        self.turns.append("resume")

    def await_epoch(self, stage: int) -> None:
        self.turns.append("await")


class Asks(Vertex):
    """Asks for a notification and a hold with all that comes."""

    word_times = True

    def __init__(self) -> None:
        self.notified: list[tuple[int, ...]] = []

    def recv_all(self, port: int, messages: Sequence[tuple[int, Batch]]) -> None:
        for word, _ in messages:
            self.hold_word(word)
            self.notify_at(self.code.unpack(word))
            self.release_word(word)

    def on_notify(self, time: tuple[int, ...]) -> None:
        self.notified.append(time)


def test_a_runner_needs_no_more_than_what_is_promised() -> None:
    around, vertex = Alone(), Asks()
    code = TimeCode(TimeLayout((20, 8)), TimeShape.ROOT)
    runner = VertexRunner(around, 4, "asks", "here", code, 0)
    runner.vertex, runner.ports = vertex, [0]
    vertex.bind(runner)
    word = code.pack((0,))
    runner.inbox.append((0, 9, word, Records(["x"])))
    runner.activate()
    assert around.counted == [(4, word, 1), (4, word, 1), (4, word, -1), (9, word, -1)]
    assert around.recheck == {4} and not runner.find_due()
    around.front = np.array([code.pack((1,))], np.int64)
    assert runner.find_due()
    runner.activate()
    assert vertex.notified == [(0,)] and around.counted[4:] == [(4, word, -1)]
    runner.resume()
    runner.activator().activate()
    assert around.alarms.take() == [4]
    runner.wake()
    assert runner.frontier(0).tolist() == [runner.first(0)] and runner.feeding(0) == []
    assert runner.may_enter(3) and not runner.may_enter(1 << 40)
    assert around.turns == ["resume", "wake", "await"]


@pytest.mark.parametrize("kind", [Surroundings, Counts, Frontiers, Source, Checker])
def test_all_that_is_promised_is_said(kind: type) -> None:
    assert promised(kind) and all(getattr(kind, name).__doc__ for name in promised(kind))


def test_who_is_around_a_vertex_in_a_loop_answers_all_of_it_too() -> None:
    assert promised(Surroundings) <= {*dir(CompiledLoopRunner), "tracker", "recheck"}
    assert promised(Checker) <= set(dir(ProgressChecker))
    assert {"checker", "is_calm"} & promised(Surroundings) <= {*dir(Instance), "checker"}
