"""Which dataflows does a call of embedded workers concern, and have these done all that there is to do?

Embedded workers work in the calls that need it. A call waits for its own dataflow only, and for those that
this one reads: another one may have very much to do, or go round a loop for ever. Workers run all dataflows
in turn, each for a step, so one dataflow delays a call about another by one step at most.

*Is nothing left to do in some dataflows?* No worker has work in them, as many of their messages were taken as
were sent, and no new version can come nearer to taking the place of an old one. A call checks that while no
worker works. Messages between workers apart from data, such as that an epoch is sealed, count for all
dataflows.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Iterable, Sequence
from typing import Final, TypeAlias

from ...failure import is_interrupt
from ...limits import SOURCE_SECONDS_MAX
from ...running.core import Worker
from ...wire.requests import Request
from ...worker.replacing import Replacements

__all__ = [
    "About",
    "Pieces",
    "Scopes",
    "are_late",
    "concerned",
    "exporting",
    "have_done",
    "have_open_sources",
    "named_by",
]

About: TypeAlias = frozenset[int] | None
"""The dataflows that a call is about; None: all."""

_FIRST_SECONDS: Final = 1e-3
_LAST_SECONDS: Final = 0.05


class Pieces:
    """How long threads work before the calling thread checks whether its dataflows have done all. The times
    double, since to stop and begin again has a cost.

    With a source that never rests there is always something left to do. So if a source of the dataflows is
    open, a call works in pieces, and for `SOURCE_SECONDS_MAX` in all, or `factor` times that.
    """

    def __init__(
        self, workers: Sequence[Worker], about: About, until: float, factor: float, has_sources: bool
    ) -> None:
        """`has_sources`: whether any dataflow has, or has had, a source."""
        self.about = about
        self.has_sources = has_sources and about is not None and have_open_sources(workers, about)
        self.until = until
        if self.has_sources:
            self.until = min(until, time.monotonic() + factor * SOURCE_SECONDS_MAX)
        self._seconds = _FIRST_SECONDS

    def next_until(self) -> float:
        """Return the end of the next piece, on the monotonic clock: of a call about all dataflows, that of
        the call.
        """
        if self.about is None:
            return self.until
        seconds, self._seconds = self._seconds, min(2 * self._seconds, _LAST_SECONDS)
        return min(self.until, time.monotonic() + seconds)


class Scopes:
    """Which dataflows the calls of embedded workers are about. The last answer is kept, since a program
    mostly goes on with the same dataflow.
    """

    def __init__(self, workers: Sequence[Worker], replacements: Replacements) -> None:
        self._workers = workers
        self._instances = workers[0].instances
        self._replacements = replacements
        self._has_sources = False
        """True if a dataflow has, or has had, a source."""
        self._asked: tuple[list[int], list[int]] | None = None
        """The dataflows of the last question, and all dataflows at that time."""
        self._answer: About = None

    def note(self, has_source: bool) -> None:
        """Note that a dataflow is about to be installed."""
        self._has_sources = self._has_sources or has_source
        self._asked = None

    def about(self, dataflows: Collection[int] | None) -> About:
        """Return what a call that names these dataflows is about; None: all."""
        instances, is_all = self._instances, not self._has_sources
        if is_all and (dataflows is None or (len(instances) == 1 and next(iter(instances)) in dataflows)):
            return None  # Fast path.
        if dataflows is None or self._replacements.were_any:
            return concerned(self._workers[0], self._replacements, dataflows, is_all)
        asked = [*dataflows], [*instances]
        if asked != self._asked:
            self._answer = concerned(self._workers[0], self._replacements, dataflows, is_all)
            self._asked = asked
        return self._answer

    def pieces(self, dataflows: Collection[int] | None, until: float, factor: float) -> Pieces:
        """Return how long threads work at a time for such a call."""
        return Pieces(self._workers, self.about(dataflows), until, factor, self._has_sources)


def named_by(requests: Sequence[tuple[int, Request, object]]) -> list[int] | None:
    """Return the dataflows that requests name; None if a request names none."""
    dataflows = [getattr(request, "dataflow", None) for _, request, _ in requests]
    return None if None in dataflows else [one for one in dataflows if one is not None]


def concerned(
    worker: Worker, replacements: Replacements, dataflows: Collection[int] | None, or_none: bool = True
) -> About:
    """Return the given dataflows (None: all), their new versions, and all that these read. If these are all,
    return None, unless not `or_none`.
    """
    instances = worker.instances
    closure: set[int] = set()
    ahead = list(instances if dataflows is None else dataflows)
    while ahead:
        one = ahead.pop()
        if one in closure:
            continue
        closure.add(one)
        ahead += [replacements.inputs_of(one), replacements.outputs_of(one), *replacements.beside(one)]
        if one in instances:
            ahead += instances[one].reads
    return None if or_none and closure.issuperset(instances) else frozenset(closure)


def are_late(late: Collection[int], about: About) -> bool:
    """Return True if an earlier call about some of these dataflows has hit its time limit: calls that need no
    work do none, then.
    """
    return bool(late) if about is None else not about.isdisjoint(late)


def exporting(worker: Worker) -> list[int]:
    """Return the dataflows that export something: what is installed next may read them."""
    return [number for number, instance in worker.instances.items() if instance.frozen.exports]


def have_open_sources(workers: Sequence[Worker], about: frozenset[int]) -> bool:
    """Return True if a source of these dataflows may still bring records by itself, or records go to later
    epochs by a way back of the root: then there may always be something left to do.
    """
    return any(
        source.is_open
        for worker in workers
        for number, instance in worker.instances.items()
        if number in about
        for source in instance.sources
    ) or any(
        worker.instances[one].frozen.goes_on for worker in workers for one in about & set(worker.instances)
    )


def have_done(workers: Sequence[Worker], dataflows: Iterable[int]) -> bool:
    """Return True if nothing is left to do in any of these dataflows. Requires: no thread is at work."""
    # The last piece of work may be what the next step of a replacement waits for.
    if any(worker.on_step is not None and worker.on_step() for worker in workers):
        return False
    if sum(worker.controls_sent for worker in workers) != sum(worker.controls_recv for worker in workers):
        return False
    for number in dataflows:
        under_way = 0
        for worker in workers:
            instance = worker.instances.get(number)
            if instance is None:
                continue
            try:
                if not instance.is_at_rest():
                    return False
            except BaseException as error:  # of a vertex; the next step ends its dataflow
                if is_interrupt(error):
                    raise
                return False
            under_way += instance.messages_sent - instance.messages_recv
        if under_way:
            return False
    return True
