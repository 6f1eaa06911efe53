"""Collecting: a worker process looks for garbage between steps, and no program's collector is touched."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Iterator

import pytest

import timely
from progress.times.timestamp import Timestamp
from timely import Vertex, VertexError
from timely.running import collecting
from timely.running.collecting import Collecting, collect_dropped
from timely.running.core import Worker

pytestmark = pytest.mark.few_objects


class Ring:
    """Refers to itself."""

    def __init__(self) -> None:
        self.itself = self


class Fails(Vertex):
    """Refers to itself, and fails."""

    def __init__(self) -> None:
        self.itself = self

    def on_recv(self, edge: int, message: list[object], time: Timestamp) -> None:
        raise ValueError("one is refused")


class Looks:
    """A collector whose looks take a microsecond each."""

    def __init__(self) -> None:
        self.now = 0
        self.taken: list[int] = []
        self.collecting = Collecting(self.taken.append, self.clock)

    def clock(self) -> int:
        self.now += 1_000
        return self.now


@pytest.fixture
def looks(monkeypatch: pytest.MonkeyPatch) -> Iterator[Looks]:
    monkeypatch.setattr(collecting, "COLLECT_YOUNG_COUNT_MAX", 1_000)
    monkeypatch.setattr(collecting, "COLLECT_ALL_COUNT_MAX", 5_000)
    gc.collect()
    before = gc.get_threshold()
    looks = Looks()
    with looks.collecting:
        yield looks
    assert gc.isenabled() and gc.get_freeze_count() == 0 and gc.get_threshold() == before


def make_rings(count: int) -> list[weakref.ref[Ring]]:
    return [weakref.ref(Ring()) for _ in range(count)]


def test_it_looks_when_many_objects_were_made_and_not_before(looks: Looks) -> None:
    few = make_rings(300)
    looks.collecting.look()
    assert looks.taken == [] and all(ring() is not None for ring in few)
    make_rings(1_000)
    assert few[0]() is not None, "Python does not look by itself"
    looks.collecting.look()
    assert looks.taken == [1_000] and all(ring() is None for ring in few)


def test_a_callback_that_makes_very_many_leaves_only_so_many_behind(monkeypatch: pytest.MonkeyPatch) -> None:
    """The worker itself looks only after its step, which may take minutes. So do threads of the user."""
    monkeypatch.setattr(collecting, "COLLECT_IN_STEP_COUNT_MAX", 3_000)
    gc.collect()
    looks = Looks()
    with looks.collecting:
        rings = make_rings(30_000)
        left = sum(ring() is not None for ring in rings)
        assert 0 < left < 6_000 and not looks.taken
        looks.collecting.rest()
        assert len(looks.taken) == 1, "objects were made, although few of them are counted any more"
        looks.collecting.rest()
        assert len(looks.taken) == 1


def test_all_objects_have_their_turn_between_steps_if_it_never_rests(looks: Looks) -> None:
    old = Ring()
    gc.collect()
    gone = weakref.ref(old)
    del old
    for _ in range(10):
        kept = make_rings(1_000)
        looks.collecting.look()
    assert gone() is None and len(kept) == 1_000 and len(looks.taken) >= 3


def test_each_tenth_look_is_at_survivors_too_and_one_at_all_is_followed_by_many_at_young_ones(
    looks: Looks, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(collecting, "COLLECT_ALL_COUNT_MAX", 80_000)
    generations: list[int] = []

    def heard(phase: str, info: dict[str, int]) -> None:
        if phase == "start":
            generations.append(info["generation"])

    gc.callbacks.append(heard)
    try:
        while generations.count(2) < 2 and len(generations) < 200:
            make_rings(2_000)
            looks.collecting.look()
    finally:
        gc.callbacks.remove(heard)
    first, second = (at for at, generation in enumerate(generations) if generation == 2)
    assert first > 10 and second > first + 10, generations
    assert generations[:10] == [0] * 9 + [1] == generations[first + 1 : first + 11]


def test_at_rest_it_looks_once_and_freezes_what_a_new_dataflow_has_made(looks: Looks) -> None:
    ring = Ring()
    looks.collecting.rest((0,))
    assert gc.get_freeze_count() > 0 and len(looks.taken) == 1
    looks.collecting.rest((0,))
    assert len(looks.taken) == 1, "nothing was made since"
    gone = weakref.ref(ring)
    del ring
    gc.collect()
    assert gone() is not None, "it is frozen"
    collect_dropped()
    assert gone() is not None, "other dataflows do not stand still for it"
    looks.collecting.rest()
    assert gone() is None and gc.get_freeze_count() == 0


def test_a_worker_that_never_rests_frees_what_a_dataflow_has_left_at_its_next_look(looks: Looks) -> None:
    ring = Ring()
    looks.collecting.rest((0,))
    gone = weakref.ref(ring)
    del ring
    collect_dropped()
    while not looks.taken[1:]:
        make_rings(2_000)
        looks.collecting.look()
    assert gone() is None


def test_a_program_with_embedded_workers_frees_it_at_once() -> None:
    ring = Ring()
    gone = weakref.ref(ring)
    del ring
    collect_dropped()
    assert gone() is None


def test_a_dataflow_that_fails_gives_its_memory_back_at_the_next_rest(looks: Looks) -> None:
    """Its vertices were frozen; the last dataflow may be the one that fails."""
    worker = Worker()
    dataflow = timely.Dataflow()
    dataflow.output("out", dataflow.input("rows").stage("fails", Fails))
    instance = worker.install(dataflow.freeze())
    gone = weakref.ref(next(runner.vertex for runner in instance.runners if type(runner.vertex) is Fails))
    looks.collecting.rest((0,))
    assert gc.get_freeze_count() > 0
    instance.input("rows").send([1])
    instance.input("rows").seal()
    with pytest.raises(ValueError, match="refused"):
        worker.run_until_idle()
    worker.end(0, VertexError("one is refused"))
    del instance
    looks.collecting.rest()
    assert gone() is None
    assert gc.get_freeze_count() == 0, "no dataflow has begun since"


def test_of_several_in_one_process_the_last_one_leaves_the_collector_as_the_first_found_it() -> None:
    before = gc.get_threshold()
    first, second = Collecting(), Collecting()
    first.__enter__()
    second.__enter__()
    gc.freeze()
    first.__exit__()
    assert gc.get_threshold() != before and gc.get_freeze_count() > 0
    second.__exit__()
    assert gc.get_threshold() == before and gc.get_freeze_count() == 0


def test_embedded_workers_leave_the_collector_of_the_program_alone() -> None:
    before = gc.isenabled(), gc.get_threshold(), gc.get_freeze_count(), list(gc.callbacks)
    with timely.connect(embedded=True) as cluster:
        flow = cluster.install(_passes)
        flow.input("rows").insert([1])
        flow.seal(wait=True)
        assert (gc.isenabled(), gc.get_threshold(), gc.get_freeze_count(), list(gc.callbacks)) == before
        flow.uninstall()
    assert (gc.isenabled(), gc.get_threshold(), gc.get_freeze_count(), list(gc.callbacks)) == before


@timely.builder
def _passes(dataflow: timely.Dataflow) -> None:
    dataflow.output("out", dataflow.input("rows"))
