"""A region on a worker: the one stage that progress tracking sees in place of all stages of a loop.

The region holds the first epoch in which anything of it is outstanding by what stands for a message on each
connector that leaves it. Nothing is counted within it, so the frontiers of its ports, as the tracker has
them, are those of what is outside: as soon as they are past an epoch, the region may finish it.

What a vertex of it sees as frontier is the earlier of that and of what the region holds.

Where one worker runs the dataflow alone; with several: `joint_regions.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final, Protocol

import numpy as np

from progress.compiled.arrays import Int64s
from progress.errors import InternalError
from progress.times.anchor import Anchor, Rebase
from progress.times.time_words import TimeLayout
from progress.tracking.far import FarPointstamps
from progress.tracking.tracker import Tracker

from ...dictionaries import Mark
from ...operators.region import Region
from ...operators.vertex import Feeder
from ...wire.batch import Batch
from ...wire.routing import Routing
from ...wire.transport import Lent
from .ahead import Ahead
from .connector import Connector
from .surroundings import Checker, Counts
from .vertex_runner import VertexRunner

__all__ = ["Lender", "Place", "RegionRunner"]

_NO_TIMES: Final[Int64s] = np.empty(0, np.int64)


class Lender(Protocol):
    """The worker, as a region asks it for shared memory."""

    def lend(self) -> Lent | None:
        """Memory that it has with all others, to be used until `take_back`; None: there is none now."""
        ...

    def take_back(self) -> None:
        """See `lend`."""
        ...


class Place(Counts, Protocol):
    """The dataflow that a region is in. In use is `instance.py`."""

    @property
    def index(self) -> int:
        """Which dataflow it is."""
        ...

    @property
    def lender(self) -> Lender:
        """Who has shared memory with other workers."""
        ...

    @property
    def tracker(self) -> Tracker:
        """Knows the frontiers of all ports."""
        ...

    @property
    def checker(self) -> Checker | None:
        """Who is told what happens, if anybody is."""
        ...

    def feeding(self, stage: int, port: int) -> list[Feeder]:
        """Who sends to input `port` of a stage on this worker."""
        ...

    @property
    def routing(self) -> Routing:
        """Which worker has which keys."""
        ...

    @property
    def anchor(self) -> Anchor:
        """The epoch from which words count."""
        ...

    @property
    def far(self) -> FarPointstamps:
        """What is later than words can say."""
        ...

    def send_data(self, peer: int, connector: int, word: int, batch: Batch) -> None:
        """A message leaves for another worker."""
        ...

    def wake(self, runner: RegionRunner) -> None:
        """Let it have its turn."""
        ...

    def resume_later(self, runner: RegionRunner) -> None:
        """Let it have one turn once others have had theirs."""
        ...

    def await_epoch(self, stage: int) -> None:
        """Let a stage have a turn when words count from a later epoch."""
        ...


class RegionRunner:
    """Runs a region; to its vertices it is what the dataflow is to others."""

    requested: Final[frozenset[int]] = frozenset()
    wants_frontier = True
    wants_end = True
    is_patient = False

    def __init__(
        self,
        place: Place,
        number: int,
        name: str,
        layout: TimeLayout,
        members: Sequence[VertexRunner],
        first_connector: int,
        ports: dict[int, tuple[int, int]],
        leaving: Sequence[Connector],
    ) -> None:
        """`ports`: for each connector that leads into it, its stage and port. `number`: its place among those
        that have turns.
        """
        self._place = place
        self._name = name
        self._layout = layout
        self._members = {runner.stage: runner for runner in members}
        self._first_connector = first_connector
        self._ports = ports
        self._leaving = leaving
        self._watched = [port for runner in members for port in runner.ports]
        by_stage = {runner.stage: runner.ports for runner in members}
        self._entries = sorted({by_stage[stage][port] for stage, port in ports.values()})
        self._entries_closed = 0
        """Ports at which nothing comes in any more, when the bound was found."""
        self._entries_ended = -1
        self._held: int | None = None
        self._closed: int | None = None
        """The bound that was found last, in words of now."""
        self._ahead: Ahead | None = None
        self.is_ahead = False
        self._since = 0
        self._ended: set[int] = set()
        self.region: Region | None = None
        self.stage = number
        self.inbox: list[tuple[int, int, int, Batch]] = []
        self.is_queued = False
        self.has_frontier_news = False
        self.wants_resume = False
        self.may_resume = False
        self.tracker = self  # of its vertices: it answers `frontier`
        self.recheck: set[int] = set()

    @property
    def stages(self) -> Sequence[int]:
        """Those that are in it."""
        return list(self._members)

    def title(self) -> str:
        """Who it is, as errors say it."""
        at = None if self.region is None else self.region.at
        if at is not None:
            return self._members[at].title()
        return f"the loop {self._name!r} (worker {self._place.worker} of {self._place.workers})"

    @property
    def site(self) -> str:
        """Where it was built, as errors say it."""
        at = None if self.region is None else self.region.at
        return self._members[self.stages[0] if at is None else at].site

    def follow(self, sources: Sequence[VertexRunner]) -> None:
        """Rows come only from these stages, which stand for inputs, unless there are none."""
        if sources:
            self._ahead = Ahead([sources], self._layout.limit)
            for source in sources:
                source.followers.append(self)

    def check_arrived(self, location: int, port: int, batch: Batch, peer: int) -> None:
        """As of the vertex that has it in the end."""
        stage, port = self._ports[location - self._first_connector]
        self._members[stage].check_arrived(location, port, batch, peer)

    def activate(self) -> None:
        """Take in what has come, and finish what can be."""
        region = self.region
        assert region is not None
        has_news = self.has_frontier_news or self.may_resume
        is_under_way = self.wants_resume
        self.has_frontier_news = self.may_resume = self.wants_resume = False
        inbox, self.inbox = self.inbox, []
        for _, location, _, batch in inbox:
            stage, port = self._ports[location - self._first_connector]
            region.take(stage, port, batch)
        closed, ended = self._closed, self._entries_closed
        bound = self._bound(has_news)
        is_news = bound != closed or ended != self._entries_closed
        if is_news or is_under_way or not region.rests():
            self._go_on(region, bound, has_news or is_news)
        elif inbox:
            # What has only come in closes nothing: it waits, and no row is earlier than its message.
            self._hold_from(min([word for _, _, word, _ in inbox]))
        count = self._place.count
        for _, location, word, _ in inbox:
            count(location, word, -1)

    def _go_on(self, region: Region, bound: int, has_news: bool) -> None:
        """Finish what can be."""
        self._closed = bound
        is_done = region.run(bound)
        first = region.first()
        if has_news:
            self._look_outside(bound, first)
        self._hold(first)
        for stage, turns in region.turns().items():
            self._members[stage].activations += turns
        if not is_done:
            self.wants_resume = True
            self._place.resume_later(self)

    def _hold_from(self, word: int) -> None:
        """Hold the epoch of a word, perhaps a wide one, if none before it is held."""
        shift = self._layout.shifts[0]
        first = word >> shift << shift
        if self._held is None or first < self._held:
            self._hold(first)

    def _look_outside(self, bound: int, first: int | None) -> None:
        """Note what may still come, and let the region know of it."""
        assert self.region is not None
        since = bound if first is None else min(bound, first)
        tracker = self._place.tracker
        ended, entries_ended = self._ended, self._entries_closed
        if first is None and entries_ended != self._entries_ended:
            self._entries_ended = entries_ended
            ended = {port for port in self._watched if not tracker.frontier(port).shape[0]}
        has_ended = ended != self._ended
        if since != self._since or has_ended:
            self._since, self._ended = since, ended
            self.region.on_since(since, has_ended)

    def _bound(self, has_news: bool) -> int:
        """The first epoch in which something may still come in, as a word.

        By what inputs that lead here have counted, which progress tracking is told only after this: what an
        input has let in is here before its epoch goes on, as long as one worker is all there is. So rows and
        the end of their epoch are one turn. Else by what progress tracking knows, if that is news.
        """
        closed, here = self._closed or 0, 0
        if self._ahead is not None:
            if not self.is_ahead:
                self._ahead.look()
                self.is_ahead = self._ahead.are_open  # else it is to hear which ports have ended
            if self.is_ahead:
                self._entries_closed = 0
            here = self._ahead.first or 0
        if not self.is_ahead and (has_news or self._closed is None):
            here = max(here, self._bound_told())
        return max(closed, here)

    def _bound_told(self) -> int:
        """The same as progress tracking has it."""
        least = self._layout.limit
        shift = self._layout.shifts[0]
        self._entries_closed = 0
        tracker = self._place.tracker
        for port in self._entries:
            first = tracker.first(port)
            if first is None:
                self._entries_closed += 1
            else:
                least = min(least, first >> shift << shift)
        return least

    def _hold(self, first: int | None) -> None:
        """Hold an epoch in the place of the last one."""
        if first == self._held:
            return
        count = self._place.count
        for connector in self._leaving:
            if first is not None:
                count(connector.location, (first & connector.keep) + connector.add, 1)
            if self._held is not None:
                count(connector.location, (self._held & connector.keep) + connector.add, -1)
        self._held = first

    # What its vertices see.

    @property
    def worker(self) -> int:
        """Index of this worker."""
        return self._place.worker

    @property
    def workers(self) -> int:
        """How many workers there are in all."""
        return self._place.workers

    @property
    def checker(self) -> Checker | None:
        """Who is told what happens, if anybody is."""
        return self._place.checker

    def frontier(self, port: int) -> Int64s:
        """At the first epoch of which anything is outstanding, inside or outside."""
        return _NO_TIMES if port in self._ended else np.array([self._since], np.int64)

    def first(self, port: int) -> int | None:
        """The first word of `frontier`; None if that is empty."""
        return None if port in self._ended else self._since

    def feeding(self, stage: int, port: int) -> list[Feeder]:
        """Who sends to input `port` of a stage on this worker."""
        return self._place.feeding(stage, port)

    @property
    def count(self) -> Callable[[int, int, int], None]:
        """Not for a vertex: the region counts for all."""
        raise self._alone()

    @property
    def is_calm(self) -> bool:
        """Not for a vertex: none of a region is an output."""
        raise self._alone()

    def wake(self, runner: VertexRunner, /) -> None:
        """Not for a vertex: the region has turns."""
        raise self._alone()

    def resume_later(self, runner: VertexRunner, /) -> None:
        """See `wake`."""
        raise self._alone()

    def await_epoch(self, stage: int) -> None:
        """See `wake`."""
        raise self._alone()

    def _alone(self) -> InternalError:
        return InternalError(f"a vertex of {self.title()} acts by itself")

    # Called by the instance.

    def tell(self) -> None:
        """See `Region`."""
        if self.region is not None:
            self.region.tell()

    def rebase(self, by: Rebase) -> None:
        """Words count from a later anchor."""
        self.inbox = [
            (port, location, by.word(word), batch.rebased(-by.step))
            for port, location, word, batch in self.inbox
        ]
        if self._held is not None:
            self._held = by.word(self._held)
        self._closed = None
        self.is_ahead = False
        self._since = by.early_word(self._since)
        assert self.region is not None
        self.region.rebase(by)

    def symbols(self, mark: Mark) -> None:
        """What waits here, and what the region keeps beside its vertices."""
        for _, _, _, batch in self.inbox:
            mark.holder(batch, f"a batch of {type(batch).__name__} that waits for {self.title()}")
        assert self.region is not None
        self.region.symbols(mark)

    def compared(self) -> object:
        """All that decides what it will do, beside its vertices."""
        return (
            self.inbox,
            self._held,
            (self.is_queued, self.has_frontier_news, self.wants_resume),
            self.region,
        )
