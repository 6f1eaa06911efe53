"""The explorer for users: right vertices pass, and each kind of wrong one is found."""

from __future__ import annotations

import re
import threading
from dataclasses import replace

import pytest
from wrong_vertices import ACTS, RIGHT, WRONG, SumVertex, Wrong, summed

from progress.checking.counterexample import Counterexample
from progress.times.timestamp import Timestamp
from timely.errors import MisuseError
from timely.testing import Scenario, explore, send


def test_a_right_vertex_is_right_in_all_orders() -> None:
    explored = RIGHT.explore()
    assert explored.states > 100 and explored.ends >= 1, explored


@pytest.mark.parametrize("wrong", WRONG, ids=lambda wrong: wrong.name)
def test_a_wrong_vertex_is_found(wrong: Wrong) -> None:
    with pytest.raises(Counterexample) as caught:
        wrong.scenario.explore()
    assert wrong.says in caught.value.what, caught.value
    assert caught.value.steps, caught.value
    if wrong.name == "depends on the order":
        assert caught.value.what.startswith("two orders end differently")
        assert "the other order:\n    worker" in str(caught.value)


def test_the_steps_say_which_records_go_where_at_which_time() -> None:
    wrong = next(each for each in WRONG if each.name == "has no exchange")
    with pytest.raises(Counterexample) as caught:
        wrong.scenario.explore()
    steps = "\n".join(caught.value.steps)
    assert "worker 0: send [('a', 1)]" in steps
    assert re.search(r"worker 0: 'sum' gets \[\('a', 1\)\] at \(0,\)", steps), steps
    assert "worker 1: 'sum' is notified of (0,) and sends [('a', 2)] at (0,) to 'output sums'" in steps, steps


def test_rows_without_a_worker_are_tried_on_each() -> None:
    by_worker = next(each for each in WRONG if each.name == "differs between workers")
    with pytest.raises(Counterexample) as caught:
        by_worker.scenario.explore()
    assert {"worker 0: send [('a', 1)]", "worker 1: send [('a', 1)]"} <= {
        line.lstrip(" 0123456789") for line in str(caught.value).splitlines()
    }


class Locked(SumVertex):
    def __init__(self) -> None:
        super().__init__()
        self.lock = threading.Lock()


class Awaits(SumVertex):
    async def on_recv(self, edge: int, message: list[object], time: Timestamp) -> None:
        super().on_recv(edge, message, time)


def test_what_cannot_be_copied_is_refused_and_named() -> None:
    with pytest.raises(MisuseError, match="a lock cannot be compared"):
        explore(summed(Locked), ACTS)
    with pytest.raises(MisuseError, match="plain functions"):
        explore(summed(Awaits), ACTS)


def test_too_many_states_are_refused() -> None:
    with pytest.raises(MisuseError, match="more than 50 states"):
        RIGHT.explore(states_max=50)


def test_wrong_arguments_are_refused() -> None:
    with pytest.raises(MisuseError, match="worker 7, and there are 2"):
        explore(summed(SumVertex), [send([1], worker=7)])
    with pytest.raises(MisuseError, match="no stage is called 'som'"):
        explore(summed(SumVertex), ACTS, forgets=["som"])
    with pytest.raises(MisuseError, match="no output 'som'"):
        explore(summed(SumVertex), [], workers=1, expected={"som": []})
    with pytest.raises(MisuseError, match="write 'all' or 'steps'"):
        Scenario(summed(SumVertex), orders="some")
    with pytest.raises(MisuseError, match="1,024 ways"):
        replace(RIGHT, acts=[send([("a", n)]) for n in range(10)]).explore()
