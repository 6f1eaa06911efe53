"""Rounds whose kernel goes on within the call of another worker: what is left to the call itself."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from differential.compiled_loops import rounds as rounds_module
from differential.compiled_loops.rounds import Rounds
from differential.kernels.compiled_loops.layout import NO_ROOM
from differential.kernels.compiled_loops.round_layout import ENDS, R_VOTE, ROUND, V_NUMBER, WAITS
from progress.compiled.arrays import Int64s


class Played:
    """Rounds whose kernel plays runs: (the votes it sends, why it ends, or its error)."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, *runs: tuple[int, int | OverflowError]) -> None:
        self.runs = list(runs)
        self.rounds = Rounds.__new__(Rounds)
        self.rounds._round = np.zeros(ROUND, np.int64)
        self.rounds._tables = np.zeros((1, 3), np.int64)
        self.rounds._why, self.rounds._error = WAITS, None
        monkeypatch.setattr(rounds_module, "run_rounds", self.run)

    def run(self, tables: object, state: Int64s) -> int:
        votes, why = self.runs.pop(0)
        state[R_VOTE + V_NUMBER] += votes
        if isinstance(why, OverflowError):
            raise why
        return why


class Others:
    """The others let the rounds go on so many times in each call, and say whether they have voted."""

    def __init__(self, times: int, have_gone_on: bool = True) -> None:
        self.times = times
        self.have_gone_on = have_gone_on
        self.voted: list[bool] = []

    def go_on(self, goes_on: Callable[[], bool]) -> bool:
        self.voted += [goes_on() for _ in range(self.times)]
        return self.have_gone_on


@pytest.mark.parametrize("why", [ENDS, NO_ROOM])
def test_what_is_over_or_needs_python_does_not_go_on_for_others(
    why: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    played, others = Played(monkeypatch, (0, WAITS), (1, why)), Others(3)
    assert played.rounds.go_on(0, others) == why and not played.runs
    assert others.voted == [True, False, False], "others hear of one vote"


def test_an_error_of_a_run_for_others_is_raised_by_the_call_and_once(monkeypatch: pytest.MonkeyPatch) -> None:
    error = OverflowError("a sum")
    played, others = Played(monkeypatch, (0, WAITS), (1, error)), Others(2, have_gone_on=False)
    with pytest.raises(OverflowError) as caught:
        played.rounds.go_on(0, others)
    assert caught.value is error and others.voted == [True, False], "it does not run behind its error"
    played.runs = [(0, WAITS), (1, ENDS)]
    assert played.rounds.go_on(0, others) == ENDS, "the step was done again, and the rounds go on"


def test_rounds_wait_on_if_others_have_not_voted_and_else_look_again(monkeypatch: pytest.MonkeyPatch) -> None:
    played, others = Played(monkeypatch, (0, WAITS)), Others(0, have_gone_on=False)
    assert played.rounds.go_on(0, others) == WAITS and not played.runs
    played, others = Played(monkeypatch, (0, WAITS), (1, WAITS), (0, ENDS)), Others(0)
    assert played.rounds.go_on(0, others) == ENDS
