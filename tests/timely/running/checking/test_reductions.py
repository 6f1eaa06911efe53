"""What an explorer leaves out, compared with what there is.

alike_*      workers that are alike: of states that differ in their names alone one is visited
unlike_*     workers that are not are found out
"""

from __future__ import annotations

from collections import Counter

import pytest
import served_flows
from simulation.kinds.scenarios import records_in

from progress.checking.counterexample import Counterexample
from progress.errors import MisuseError
from progress.tracking.tracker import Tracker
from timely.running.checking.explorer import Explorer
from timely.running.checking.reached import Client, Explorable


def summing(*clients: tuple[int, ...]) -> Explorable:
    """Each client sends numbers of one epoch; their sums are told by the worker of each remainder."""
    expected: Counter[tuple[object, ...]] = Counter()
    for worker in range(len(clients)):
        mine = [number for numbers in clients for number in numbers if number % len(clients) == worker]
        expected.update([("sums", 0, sum(mine))] if mine else [])
    acts = [[Client(numbers, is_last=True)] for numbers in clients]
    return Explorable(served_flows.sums, acts, records_in("sums"), expected)


def orbits(explorer: Explorer) -> Counter[int]:
    """How many visited states have how many images, themselves included."""
    assert explorer._symmetry is not None
    return Counter(len(set(images)) for images in explorer._symmetry._images.values())


@pytest.mark.parametrize("way", [{"whole": True}, {"orderly": True}], ids=["whole", "orderly"])
def test_alike_workers_all_states_are_images_of_visited_ones(way: dict[str, bool]) -> None:
    every = Explorer(summing((0, 1), (0, 1)), **way).run()
    explorer = Explorer(summing((0, 1), (0, 1)), alike=(0, 1), **way)
    visited = explorer.run()
    found = orbits(explorer)
    assert sum(size * count for size, count in found.items()) == every.states == visited.images
    assert visited.states == sum(found.values()) <= every.states // 2 + found[1]
    assert visited.worker_states == every.worker_states and visited.ends == every.ends == 1
    reduced = Explorer(summing((0, 1), (0, 1)), alike=(0, 1), reduced=True, **way).run()
    assert reduced.states < visited.states and reduced.worker_states == every.worker_states


def test_alike_workers_may_be_some_of_them() -> None:
    """Three workers, two of which are alike: the third one sends nothing."""
    scenario = summing((0,), (1, 2), (1, 2))
    every = Explorer(scenario, whole=True, reduced=True).run()
    explorer = Explorer(scenario, whole=True, reduced=True, alike=(1, 2))
    visited = explorer.run()
    assert visited.states < 0.6 * every.states
    assert visited.worker_states == every.worker_states and visited.ends == every.ends == 1


@pytest.mark.parametrize(
    "clients",
    [
        ((0, 1), ()),  # one sends nothing
        ((0, 1), (0, 0)),  # both send to the other one, and only one keeps something
    ],
)
def test_unlike_workers_are_found_out(clients: tuple[tuple[int, ...], ...]) -> None:
    with pytest.raises(MisuseError, match=r"workers are not alike: .*\[1, 0\], one (has|may do) "):
        Explorer(summing(*clients), whole=True, alike=(0, 1)).run()


def test_alike_workers_a_fault_is_found_as_without_symmetry(monkeypatch: pytest.MonkeyPatch) -> None:
    """The tracker of a worker drops one change in what it hears."""
    apply = Tracker.apply
    monkeypatch.setattr(Tracker, "apply", lambda tracker, changes: apply(tracker, [*changes][1:] or changes))
    said = []
    for alike in ((), (0, 1)):
        with pytest.raises(Counterexample) as caught:
            Explorer(summing((0, 1), (0, 1)), whole=True, alike=alike).run()
        said.append(caught.value.what)
        assert caught.value.steps
    assert said[0] == said[1]
