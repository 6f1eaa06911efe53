"""A worker checks itself: the predicates of progress tracking that it can judge without knowing the others.

`--check-progress`, `timely.connect(check_progress=True)` or NAIAD_CHECK_PROGRESS=1 switch it on. Then each
dataflow of the worker has a `ProgressChecker`, which hears of each event and evaluates, by the labels of
`progress/checking/predicates.py`:

    A2, B4   the changes that the worker is about to send are upright, and justified by what it owns
    B2       the worker's share of it: what it owns, by looking, is what it has counted, plus messages that
             came from others, minus messages that went to them
    B9       changes from a peer come at or after something that this worker believes outstanding
    B6, S3   of its view: no negative count without a positive one before it, and nothing comes back
    E1, C4   its tracker counts the changes that it got, and `Tracker.check_invariants`
    E2       its consequence: a message arrives only at times that its port's frontier has not passed
    due      a notification is delivered only when its time is complete at all inputs
    L1, L2   of a compiled loop: its rows are not before what it holds, and none comes into a closed epoch

A compiled loop counts nothing inside, so these two say what it has to keep so that what it holds is right.
That its rounds are right needs all workers: `tests/reference/loops/loop_explorer.py`.

Checking costs O(outstanding²) in Python after each step: it is for suspicions, and for tests. `monitor.py`
checks predicates that need all workers.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Sequence

from progress.checking.predicates import (
    Counts,
    merely_negative,
    not_upright,
    retained_rights,
    total,
    unaccounted,
    unforeseen,
    unheralded,
    unjustified,
    violation,
)
from progress.compiled.arrays import Int64s
from progress.errors import InternalError
from progress.graph.pointstamp_order import Pointstamp, PointstampOrder
from progress.tracking.count_changes import Change

from ..instance import Instance
from ..stages.compiled_loop import CompiledLoopRunner
from ..stages.vertex_runner import VertexRunner
from .loops import comes_in_closed, count_of_hold, sight_of
from .snapshot import first_owned, owned, view

__all__ = ["SWITCH", "ProgressChecker", "is_switched_on"]

SWITCH = "NAIAD_CHECK_PROGRESS"
"""The environment variable that switches checking on if it is 1."""

_RECENT_EVENTS = 8


def is_switched_on() -> bool:
    """Return True if the environment asks every worker to check itself."""
    return os.environ.get(SWITCH) == "1"


class ProgressChecker:
    """Checks one dataflow on one worker, which begins at `epoch`; make it before the first event.

    Every method raises `InternalError`, which names predicate, worker, pointstamps and the last events.
    """

    def __init__(self, instance: Instance, epoch: int = 0) -> None:
        self._instance = instance
        self._order = PointstampOrder(instance.frozen.graph)
        self._owned: dict[Pointstamp, int] = dict(first_owned(instance, epoch))
        self._view: Counts = view(instance)
        self._events: deque[tuple[str, Sequence[Pointstamp]]] = deque(maxlen=_RECENT_EVENTS)

    def on_step_done(self, changes: Sequence[Change]) -> None:
        """Check changes that the worker has applied and is about to send."""
        sent = self._by_point(changes)
        self._note("told", sent)
        instance, order = self._instance, self._order
        caps = owned(instance)
        retained = retained_rights(caps, sent, len(instance.runners), count_of_hold(instance))
        self._require("A2", not_upright(sent, order, retained))
        self._require("B4", unjustified(caps, sent, order))
        self._owned = total(self._owned, sent)
        self._require("B2, own share", unaccounted(caps, self._owned, {}))
        self._check_view(sent)
        for loop in instance.loops:
            sight = sight_of(loop)
            if sight.is_late:
                detail = f", {loop.title()}: it holds {sight.held} and keeps rows of {sight.first}"
                raise self._violation("L1", [], detail)

    def on_progress(self, peer: int, changes: Sequence[Change]) -> None:
        """Check changes from a peer that the worker has applied."""
        heard = self._by_point(changes)
        self._note(f"worker {peer} told", heard)
        self._require("B9", unheralded(heard, self._view, self._order))
        self._check_view(heard)

    def on_data(self, connector: int, word: int) -> None:
        """Check a message that has arrived from another worker; `word` counts from epoch 0, as all words
        here.
        """
        if connector >= len(self._instance.connectors):
            return  # a round message of a compiled loop is counted nowhere
        arrived = self._instance.connectors[connector]
        point = (arrived.location, word)
        self._note("a message came in at", [point])
        self._owned = total(self._owned, {point: 1})
        spec = self._instance.frozen.connectors[connector]
        runner = self._instance.runners[spec.target]
        if not self._is_open(runner, self._instance.tracker.frontier(runner.ports[spec.port]), word):
            self._require("E2", [point])
        if isinstance(arrived.target, CompiledLoopRunner):
            time = self._instance.frozen.codes[spec.target].unpack_wide(word)
            if comes_in_closed(arrived.target, time):
                self._require("L2", [point])

    def on_sent(self, connector: int, word: int) -> None:
        """Note a message that has left for another worker."""
        if connector >= len(self._instance.connectors):
            return
        point = (self._instance.connectors[connector].location, word)
        self._note("a message went out at", [point])
        self._owned = total(self._owned, {point: -1})

    def on_notify(self, stage: int, word: int) -> None:
        """Check a notification that is about to be delivered."""
        runner = self._instance.runners[stage]
        point = stage, word + self._base
        self._note("on_notify", [point])
        frontiers = map(runner.frontier, range(len(runner.ports)))
        if any(self._is_open(runner, frontier, point[1]) for frontier in frontiers):
            self._require("due", [point])

    def _check_view(self, changes: Counts) -> None:
        before, after = self._view, view(self._instance)
        self._require("E1", unaccounted(total(before, changes), after, {}))
        self._require("B6", merely_negative(after, self._order))
        self._require("S3", unforeseen(after, before, self._order))
        try:
            self._instance.tracker.check_invariants()
        except AssertionError as error:
            raise self._violation("C4", [], f": {error}") from error
        self._view = after

    def _is_open(self, runner: VertexRunner, frontier: Int64s, word: int) -> bool:
        """Return True if the frontier of a port has not passed a time."""
        shape, unpack = runner.code.shape, runner.code.unpack
        time = self._instance.frozen.codes[runner.stage].unpack_wide(word)
        return any(shape.less_equal(unpack(int(front)), time) for front in frontier)

    @property
    def _base(self) -> int:
        """The difference between words that count from epoch 0 and those of now."""
        return self._instance.anchor.epoch << self._instance.frozen.layout.shifts[0]

    def _by_point(self, changes: Sequence[Change]) -> dict[Pointstamp, int]:
        base = self._base
        return total(*({(location, word + base): delta} for location, word, delta in changes))

    def _note(self, what: str, points: Sequence[Pointstamp] | Counts) -> None:
        self._events.append((what, list(points)))

    def _require(self, label: str, points: list[Pointstamp]) -> None:
        if points:
            raise self._violation(label, points)

    def _violation(self, label: str, points: list[Pointstamp], detail: str = "") -> InternalError:
        instance, name = self._instance, self._order.name
        where = f"at worker {instance.worker} of {instance.workers}, dataflow {instance.index}{detail}"
        events = (f"{what} {' and '.join(map(name, points[:2]))}" for what, points in self._events)
        return violation(label, where, points, self._order, events)
