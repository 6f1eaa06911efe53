"""Random dataflows of record vertices, loops included, on workers whose messages are delayed at random.

Checked against one worker without delays, and at every step:

  never_early   after on_notify(t) no message at a time ≤ t comes to that vertex
  never_misled  records that are routed by a key come to the worker of that key
  never_lost    every notification that was asked for comes, every record arrives, all becomes idle
  predicates    every predicate of progress tracking holds after every activation (`Monitor`, out of `run`)

One seed decides the dataflow, the input, and the schedule; a failure names it.
"""

from __future__ import annotations

from math import inf

import pytest
from low_limits import everything_is_much
from random_dataflows import Watch, Watched, run

from progress.times.timestamp import TimeShape
from timely import Dataflow
from timely.running import core
from timely.running.core import Worker

SCHEDULES = 24


@pytest.mark.parametrize("workers", [1, 2, 3])
def test_notifications_are_never_early_and_nothing_is_lost(workers: int, seed: int, effort: int) -> None:
    for number in range(SCHEDULES * effort // workers):
        case = seed + number
        expected, _ = run(case, 1, None, monitored=False)
        outputs, watch = run(case, workers, case)
        assert not watch.early, f"seed {case}, {workers} workers: {watch.early[0]}"
        assert not watch.misled, f"seed {case}, {workers} workers: {watch.misled[0]}"
        assert not +watch.asked, f"seed {case}, {workers} workers: never notified: {+watch.asked}"
        assert not -watch.asked, f"seed {case}, {workers} workers: notified unasked: {-watch.asked}"
        assert outputs == expected, f"seed {case}, {workers} workers"


@pytest.mark.parametrize("workers", [1, 3])
def test_notifications_are_the_same_when_everything_is_kept_as_if_there_were_very_much(
    workers: int, seed: int, effort: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    # What is of one step, and so before the next rows come, must not depend on how long it takes.
    monkeypatch.setattr(core, "ALONE_SECONDS_MAX", inf)
    for number in range(8 * effort):
        case = seed + number
        # That the predicates hold in this very run is tested above.
        expected, watch_of_few = run(case, workers, case, monitored=False)
        with monkeypatch.context() as limits:
            everything_is_much(limits)
            outputs, watch = run(case, workers, case)
        assert not watch.early, f"seed {case}, {workers} workers: {watch.early[0]}"
        assert watch.notified == watch_of_few.notified, f"seed {case}, {workers} workers"
        assert outputs == expected, f"seed {case}, {workers} workers"


def test_a_patient_stage_is_not_listed_behind_its_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    """Seed 61035: a stage had its turn out of order, and then waited among the patient ones. It had one from
    the old list, and stayed listed as patient: a worker with nothing to do was not complete.
    """
    monkeypatch.setattr(core, "ALONE_SECONDS_MAX", inf)
    outputs, watch = run(61035, 1, None, monitored=False)
    assert outputs and not watch.early


def test_the_watch_itself_would_see_an_early_notification() -> None:
    watch = Watch()
    dataflow = Dataflow()
    dataflow.stage(
        "stage", lambda: Watched(watch, False, False, False, 1, 1), [dataflow.input("numbers").feed()]
    )
    instance = Worker().install(dataflow.freeze())
    vertex = instance.runners[1].vertex
    assert isinstance(vertex, Watched) and vertex.code.shape == TimeShape.ROOT
    watch.saw_notification(vertex, (3,))
    watch.saw_message(vertex, (4,))
    assert watch.early == []
    watch.saw_message(vertex, (2,))
    assert len(watch.early) == 1


def test_workers_may_be_notified_of_the_same_times_in_different_order() -> None:
    """A known freedom, not a fault: two times that the order does not relate come as they become complete."""
    orders = set()
    for case in range(40):
        _, watch = run(4, 2, case, monitored=False)
        orders.add(tuple(tuple(times) for _, times in sorted(watch.notified.items())))
        if len(orders) > 1:
            return
    raise AssertionError(orders)
