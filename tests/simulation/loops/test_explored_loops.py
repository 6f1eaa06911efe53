"""All orders in which compiled loops of several workers can run: `tests/reference/loops/loop_explorer.py`.

explored_*   every state that is visited is as it must be, and every end is the right one
mutants_*    compiled loops are broken on purpose, each way by name; what the explorer says of it

With the thorough profile scenarios are larger.
"""

from __future__ import annotations

from collections import Counter

import pytest
from reference.loops.loop_explorer import LoopExplorer
from simulation.kinds.scenarios import COUNTDOWN, LABELS, looping

from differential.compiled_loops.loop import KernelLoop
from progress.checking.counterexample import Counterexample
from timely.operators.capture import FOREVER
from timely.operators.compiled_loop import Vote
from timely.running.checking.reached import Explorable
from timely.running.instance import Instance
from timely.running.stages.compiled_loop import CompiledLoopRunner
from timely.wire.batch import Batch


class Seen(Counter[str]):
    """How often compiled loops did what only some orders lead to."""

    def watch(self, monkeypatch: pytest.MonkeyPatch) -> None:
        take_up, close = CompiledLoopRunner._take_up, CompiledLoopRunner._close

        def watched_take_up(runner: CompiledLoopRunner, own: Vote, messages: list[Batch]) -> None:
            votes = [own, *map(runner.loop.vote_in, messages)]
            self["bounds differ"] += len({vote.bound for vote in votes}) > 1
            self["rows come with votes"] += any(message.rows for message in messages)
            self["an input has ended"] += any(1 in vote.ended for vote in votes)
            self["a barrier waits elsewhere"] += own.barrier < 0 and any(vote.barrier >= 0 for vote in votes)
            take_up(runner, own, messages)

        def watched_close(runner: CompiledLoopRunner, bound: int) -> bool:
            self["the anchor has moved"] += runner._dataflow.anchor.epoch > 0
            return close(runner, bound)

        monkeypatch.setattr(CompiledLoopRunner, "_take_up", watched_take_up)
        monkeypatch.setattr(CompiledLoopRunner, "_close", watched_close)


@pytest.fixture
def seen(monkeypatch: pytest.MonkeyPatch) -> Seen:
    watching = Seen()
    watching.watch(monkeypatch)
    return watching


# explored_


def test_explored_a_compiled_loop_of_two_workers_stopped_anywhere(effort: int, seen: Seen) -> None:
    """386 states; in every order also of what a worker does by itself, and once round, 8,731."""
    explored = LoopExplorer(looping(COUNTDOWN, [[(0, int(effort > 1))]], [[]]), orderly=effort == 1).run()
    assert explored.states > 350 and explored.ends >= 1, explored
    assert seen["an input has ended"] and seen["a barrier waits elsewhere"], seen


def test_explored_numbers_that_go_from_worker_to_worker(seen: Seen) -> None:
    """186 states; 117 of them are enough."""
    scenario = looping(COUNTDOWN, [[(0, 1)]], [[]])
    explored = LoopExplorer(scenario, whole=True).run()
    reduced = LoopExplorer(scenario, whole=True, reduced=True).run()
    assert explored.states > 150 and explored.states > reduced.states, (explored, reduced)
    assert explored.worker_states == reduced.worker_states and explored.ends == reduced.ends
    assert seen["rows come with votes"], seen


LONG = {
    "two epochs": (looping(COUNTDOWN, [[(0, 1)], []], [[], []]), 2_000),
    "least labels": (looping(LABELS, [[(0, 1)]], [[(1, 2)]]), 2_500),
    "both change in both epochs": (looping(COUNTDOWN, [[(0, 1)], [(0, 2)]], [[(3, 1)], []]), 20_000),
    "three workers": (looping(COUNTDOWN, [[(0, 1)]], [[]], [[]]), 50_000),
}


@pytest.mark.timeout(900)
@pytest.mark.parametrize("name", LONG)
def test_explored_at_length(name: str, effort: int, seen: Seen) -> None:
    scenario, least = LONG[name]
    if effort == 1:
        pytest.skip("only with the thorough profile: minutes")
    explored = LoopExplorer(scenario, whole=True, reduced=True).run()
    assert explored.states > least and explored.ends >= 1, explored
    assert seen["rows come with votes"], seen
    assert len(scenario.clients[0]) == 1 or seen["bounds differ"], seen


# mutants_


def found_by(scenario: Explorable) -> str:
    with pytest.raises(Counterexample) as caught:
        LoopExplorer(scenario, whole=True, reduced=True).run()
    return caught.value.what


def test_mutants_a_loop_closes_an_epoch_in_which_another_worker_may_still_send(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The first epoch counts as closed where the own input has passed it."""

    def closed_here(self: CompiledLoopRunner) -> int:
        dataflow = self._dataflow
        assert isinstance(dataflow, Instance)
        handle = dataflow.input("edges")
        return FOREVER if handle.held_epoch is None else handle.held_epoch

    monkeypatch.setattr(CompiledLoopRunner, "_closed_before", closed_here)
    assert found_by(looping(COUNTDOWN, [[(0, 1)]], [[(1, 1)]])).startswith("L2 at worker")


def test_mutants_a_loop_lets_go_of_an_epoch_while_it_has_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    hold_epoch = CompiledLoopRunner._hold_epoch

    def hold_later(self: CompiledLoopRunner, epoch: int, ended: set[int] | None = None) -> None:
        hold_epoch(self, epoch + (epoch < 1), ended)

    monkeypatch.setattr(CompiledLoopRunner, "_hold_epoch", hold_later)
    assert "L1 does not hold at worker 0 of 2" in found_by(looping(COUNTDOWN, [[(0, 1)]], [[]]))


def test_mutants_a_worker_ends_a_span_when_it_has_nothing_to_do_itself(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    follow = KernelLoop.follow
    monkeypatch.setattr(
        KernelLoop, "follow", lambda self, votes: self.waiting()[0] >= 0 and follow(self, votes)
    )
    found = found_by(looping(COUNTDOWN, [[(0, 1)]], [[]]))
    assert found.startswith("nothing can happen, and worker 0 waits: "), found


def test_mutants_a_worker_with_rows_at_a_barrier_does_not_wait_for_votes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    advance = CompiledLoopRunner._advance_in_round

    def go_ahead(self: CompiledLoopRunner) -> bool:
        vote = self._vote
        if vote is None or vote.barrier < 0:
            return advance(self)
        self._take_up(vote, self._heard.pop(vote.number, []))
        return True

    monkeypatch.setattr(CompiledLoopRunner, "_advance_in_round", go_ahead)
    assert found_by(looping(COUNTDOWN, [[(0, 1)]], [[]])).startswith("L3 in ")


def test_mutants_a_worker_does_not_tell_that_rows_have_left(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its own barrier is behind it then, and it takes the rows of the others for the last ones."""
    hear = KernelLoop.hear
    monkeypatch.setattr(
        KernelLoop,
        "hear",
        lambda self, message: None if message.vote.number == 1 else hear(self, message),
    )
    assert found_by(looping(COUNTDOWN, [[(0, 1)]], [[]])).startswith("the result is")
