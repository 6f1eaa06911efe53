"""Regions of several workers, which go in step: one loop, one region on each worker, rows in between.

Rows that belong to another worker leave in the middle of an iteration, and progress tracking does not hear of
it. In its place regions tell one another, in *beats*: each worker says beat n to every other one, with all
rows that it has for it, and goes on once it has heard beat n of all. Then all of them know the same:

    bounds differ      they say the next beat with the largest of them, which is known to be closed
    rows have left     that no gate waits for: each passes them on, as far as that goes without a gate
    a gate waits       each opens the gate that comes first with any of them, if something waits for it there
    none does          the epochs before the bound are done, with all workers: a *stretch* has ended

A stretch begins where a worker's view says that more epochs are closed than are done, or where another one's
first beat says so. A view is never ahead of the truth, so what any knows to be closed is closed for all.

Between two stretches each worker holds the first epoch that is not done, by what stands for a message on each
connector that leaves. In a stretch it holds the first epoch that was outstanding with any worker at the last
beat: no row is earlier, with whomever it is, and none will be. It holds from the beginning on, when all views
are the same, and never begins to: a right that is made of nothing might come too late.

Why an iteration is over when its beat is heard: rows travel with the beat, so who has heard all beats has
all rows that were sent before them; and what a gate waits for is sent by gates that come before it, with
whichever worker, and by rows that are passed on until none is on its way. The argument is in decision 0029.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, cast

from progress.errors import PeerError
from progress.times.anchor import Rebase
from progress.times.time_words import TimeLayout
from progress.tracking.count_changes import Change

from ...dictionaries import Mark
from ...operators.capture import FOREVER
from ...operators.region import Going, JointRegion, Said, Stop
from ...wire.batch import Batch
from ...wire.transport import Lent
from ..progress_messages import DataHeader, write_data_header
from .connector import Connector
from .regions import Place, RegionRunner
from .vertex_runner import VertexRunner

__all__ = ["HOLD", "JointRegionRunner"]

HOLD: Final = 1 << 32
"""What a hold counts as much as: more messages than are ever under way.

With 1 a receiver that takes up a message before it hears that it was sent would take the hold of the sender
away in its own view, and go on past an epoch in which more may come.
"""

_CALLS_MAX: Final = 16
"""How often the region goes on by itself before others have their turn."""

_BEAT: Final = -1
"""In the place of a location, of messages that are counted nowhere."""


class JointRegionRunner(RegionRunner):
    """Runs one worker's share of a region. Epochs are absolute here; words are the region's."""

    location: Final = _BEAT
    port: Final = 0

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
        super().__init__(place, number, name, layout, members, first_connector, ports, leaving)
        self.upstream: frozenset[int] = frozenset()
        """Locations from which something may come in."""
        self.way = -1
        """The number by which beats come to it."""
        self._done = 0
        """All epochs before it are done, with all workers."""
        self._saying: Said | None = None
        """What was said last, as long as not all have answered."""
        self._number = 0
        self._heard: dict[int, list[Batch]] = {}
        """By number, beats of others that are not taken up yet."""
        self._calls_left = 0
        self._seen_ended: set[int] = set()
        """The ports at which nothing came in any more when the last beat was said."""
        self._closed_known: int | None = None
        self._ended_known: set[int] | None = None
        """What follows from frontiers, as long as they are as they were."""

    @property
    def target(self) -> JointRegionRunner:
        """Who has the beats."""
        return self

    def check(self, batch: Batch, peer: int) -> None:
        """Beats come so, and nothing else; their rows are looked at when they are taken up."""
        if self._joint.beat_kind != batch.KIND:
            raise PeerError(f"worker {peer} sent a {type(batch).__name__} in the place of a beat of a loop")

    def confirm(self, batch: Batch, peer: int) -> None:
        """Nothing: by a beat no function routes records."""

    def begin(self, epoch: int) -> list[Change]:
        """The dataflow begins at an epoch: what all workers hold from then on, for each of them."""
        self._done = epoch
        self._held = self._word(epoch)
        workers = self._place.workers
        return [
            (connector.location, self._held + connector.add, workers * HOLD) for connector in self._leaving
        ]

    def activate(self) -> None:
        """Take in what has come, and go on as far as all others have."""
        region = self._joint
        if self.has_frontier_news:
            self._closed_known = self._ended_known = None
        self.has_frontier_news = self.may_resume = self.wants_resume = False
        self._calls_left = _CALLS_MAX
        inbox, self.inbox = self.inbox, []
        for _, location, _, batch in inbox:
            if location == _BEAT:
                self._heard.setdefault(region.said(batch).number, []).append(batch)
            else:
                stage, port = self._ports[location - self._first_connector]
                region.take(stage, port, batch)
        if not region.rests():
            region.pass_on()
        while self._goes_on():
            pass
        count = self._place.count
        for _, location, word, _ in inbox:
            if location != _BEAT:
                count(location, word, -1)
        for stage, turns in region.turns().items():
            self._members[stage].activations += turns

    @property
    def _joint(self) -> JointRegion:
        return cast(JointRegion, self.region)

    def _goes_on(self) -> bool:
        """Begin a stretch, or take up a beat of all; False if there is nothing to do but wait."""
        if self._saying is None:
            bound = self._closed_before()
            for beat in self._heard.get(self._number, ()):
                bound = max(bound, self._joint.said(beat).bound)
            if bound <= self._done:
                return False
            self._close(bound)
            # A beat that is here already has left the memory in which the region itself would hear it.
            went_on = None if self._heard else self._goes_by_itself(self._before(bound), begins=True)
            if went_on is None:
                self._joint.pass_on()
                self._say(bound)
            return went_on is not False
        if len(self._heard.get(self._saying.number, [])) < self._place.workers - 1:
            return not self._heard and bool(self._goes_by_itself(self._saying))
        self._take_up(self._saying, self._heard.pop(self._saying.number))
        return True

    def _take_up(self, own: Said, beats: list[Batch]) -> None:
        """All have said the same beat: do what follows."""
        region = self._joint
        every = [own, *(region.said(beat) for beat in beats)]
        for beat in sorted(beats, key=lambda beat: region.said(beat).worker):
            region.hear(beat)
        bound = max(said.bound for said in every)
        waiting = {(said.gate, said.counters) for said in every if said.gate >= 0}
        first = min(said.first for said in every)
        if any(said.bound < bound for said in every):
            self._close(bound)
            region.pass_on()
        elif any(said.passes for said in every):
            region.pass_on()
        elif waiting:
            # Most often all name the same one.
            gate = waiting.pop() if len(waiting) == 1 else min(waiting, key=lambda each: region.order(*each))
            region.open(*gate)
        else:
            self._end(bound, _are_alike(every))
            return
        self._hold_epoch(first)
        self._say(bound)

    def _before(self, bound: int) -> Said:
        """What stands before the first beat of a stretch: nobody has said it, and nobody answers it."""
        return Said(self._place.worker, self._number - 1, bound, bound, -1, 0, False, False, b"")

    def _goes_by_itself(self, said: Said, begins: bool = False) -> bool | None:
        """Let the region go on from beat to beat, or begin with the first; False: there is nothing to do but
        wait. None: it cannot.
        """
        lender = self._place.lender
        lent = lender.lend() if self._calls_left else None
        if lent is None:
            return None
        self._calls_left -= 1
        ended = self._ended_outside()
        try:
            went = self._joint.go_on(self._going(lent, said, ended, begins))
        finally:
            lender.take_back()
        self._saying, self._number = went.said, went.said.number + 1
        if went.said.number != said.number and went.said.is_empty:
            self._seen_ended = ended
        if went.stop is Stop.ENDS:
            self._end(went.said.bound, went.is_alike)
        else:
            if went.beats:
                self._hold_epoch(went.first)
            if went.stop is Stop.SAYS:
                self._say(went.said.bound)
        return went.stop is not Stop.WAITS

    def _going(self, lent: Lent, said: Said, ended: set[int], begins: bool = False) -> Going:
        """What the region needs for that."""
        assert self._held is not None
        # What words cannot say nobody has rows of.
        word, anchor = min(self._held, self._layout.limit), self._place.anchor.epoch
        header = DataHeader(self._place.index, self.way, word, self._joint.beat_kind, anchor)
        return Going(lent, said, write_data_header(header), word, anchor, self._bytes_of(ended), begins)

    def _ended_outside(self) -> set[int]:
        """The ports at which nothing comes in any more, in this worker's view."""
        if self._ended_known is None:
            tracker = self._place.tracker
            self._ended_known = {port for port in self._watched if tracker.first(port) is None}
        return self._ended_known

    def _bytes_of(self, ended: set[int]) -> bytes:
        return bytes(port in ended for port in self._watched)

    def _close(self, bound: int) -> None:
        """Epochs before it are closed."""
        limit = self._layout.limit
        self._joint.close(min(self._word(self._done), limit), min(self._word(bound), limit))

    def _say(self, bound: int) -> None:
        """Say the next beat, with the rows that go by it."""
        region, place = self._joint, self._place
        gate, counters = region.next_gate() or (-1, 0)
        first = region.first()
        first_epoch = bound if first is None else min(bound, place.anchor.epoch + (first >> self._shift))
        is_empty, ended = first is None, b""
        if is_empty:
            self._seen_ended = self._ended_outside()
            ended = self._bytes_of(self._seen_ended)
        passes = region.passes()
        said = Said(place.worker, self._number, bound, first_epoch, gate, counters, passes, is_empty, ended)
        self._number += 1
        self._saying = said
        for peer in range(place.workers):
            if peer != place.worker:
                beat = region.beat(said, peer)
                assert self._held is not None
                place.send_data(peer, self.way, self._held if beat.rows else 0, beat)

    def _end(self, bound: int, is_alike: bool) -> None:
        """Of a stretch: its epochs are done with all workers, and what leaves is sent. `is_alike`: nobody
        keeps anything, and all have said the same of what has ended.
        """
        region = self._joint
        region.send()
        self._saying = None
        self._done = bound
        # Where rows still wait with anybody nothing has ended for them: they may go on to there.
        ended = self._ended
        if bound >= FOREVER:
            ended = set(self._watched)
        elif is_alike:
            ended = self._seen_ended
        self._hold_epoch(bound, ended)

    def _hold_epoch(self, epoch: int, ended: set[int] | None = None) -> None:
        """Nothing is outstanding before an epoch, with any worker; nothing comes in at ports in `ended`."""
        word, held = self._word(epoch), self._held
        assert held is not None, "its epochs are done for ever"
        assert word >= held, f"held was {held:#x}, and nobody begins to hold {word:#x} before it"
        if word != held:
            count = self._place.count
            for connector in self._leaving:
                if epoch < FOREVER:
                    count(connector.location, word + connector.add, HOLD)
                count(connector.location, held + connector.add, -HOLD)
            self._held = None if epoch >= FOREVER else word
        since = min(word, self._layout.limit)
        has_ended = ended is not None and ended != self._ended
        if since != self._since or has_ended:
            self._since = since
            self._ended = self._ended if ended is None else ended
            self._joint.on_since(since, has_ended)

    @property
    def _shift(self) -> int:
        return self._layout.shifts[0]

    def _word(self, epoch: int) -> int:
        """The first word of an epoch, perhaps a wide one."""
        return max(0, epoch - self._place.anchor.epoch) << self._shift

    def _closed_before(self) -> int:
        """The first epoch in which something may still come in, in this worker's view."""
        if self._closed_known is None:
            self._closed_known = self._find_closed()
        return self._closed_known

    def _find_closed(self) -> int:
        tracker, far = self._place.tracker, self._place.far
        words = [word for port in self._entries if (word := tracker.first(port)) is not None]
        if not words:
            return FOREVER
        near = min(words)
        ahead = near >> self._shift if near < far.stand_in else far.first_epoch_among(self.upstream)
        assert ahead is not None, "what stands for something far does so for one upstream"
        return self._place.anchor.epoch + ahead

    def rebase(self, by: Rebase) -> None:
        """Words count from a later anchor."""
        beats = [batch for _, location, _, batch in self.inbox if location == _BEAT]
        self.inbox = [message for message in self.inbox if message[1] != _BEAT]
        super().rebase(by)
        self._closed_known = self._ended_known = None
        self.inbox += [(0, _BEAT, 0, beat.rebased(-by.step)) for beat in beats]
        for heard in self._heard.values():
            heard[:] = [beat.rebased(-by.step) for beat in heard]
        if self._saying is not None:
            # Words say more epochs now that are closed, if the bound was behind all that they could say.
            self._close(self._saying.bound)

    def symbols(self, mark: Mark) -> None:
        """What waits here, and what the region keeps beside its vertices."""
        super().symbols(mark)
        for heard in self._heard.values():
            for beat in heard:
                mark.holder(beat)

    def compared(self) -> object:
        """All that decides what it will do, beside its vertices."""
        return (super().compared(), self._done, self._saying, self._number, self._heard)


def _are_alike(every: Sequence[Said]) -> bool:
    """Whether nobody keeps anything, and all have said the same of what has ended."""
    return len({said.ended for said in every}) == 1 and all(said.is_empty for said in every)
