"""A compiled loop on a worker: the one stage that progress tracking sees in place of all stages of a loop.

The runner holds the first epoch in which anything of the loop is outstanding: it counts a hold, like a
message, on each connector that leaves the loop. Nothing is counted within the loop. So the frontiers of its
ports, as the tracker has them, are about rows outside only: as soon as they are past an epoch, the loop may
finish it. A vertex of the loop sees as its frontier the earlier of that and of the epoch that the runner
holds.

Closed epochs are done in spans. A lone worker closes the epochs to which its inputs can add no more rows, and
the loop does all of them; `Ahead` lets rows and the end of their epoch be one turn.

Several workers go in step. Rows for another worker leave in the middle of an iteration, and progress
tracking does not hear of them. In its place workers send one another *round messages*: each sends its vote
of round n to every other one, with all rows that it has for it, and goes on once it has heard round n from
all. Then all of them know the same:

    bounds differ     they vote again with the largest bound, which is known to be closed
    rows have left    that no barrier waits for: each passes them on, as far as that goes without a barrier
    a barrier waits   each opens the first barrier of all votes, if rows wait for it there
    none does         the epochs before the bound are done, with all workers: the span has ended

A span begins when a worker's view says that more epochs are closed than are done, or when the first vote of
another worker says so. A view is never ahead of the truth, so an epoch that any worker knows to be closed is
closed for all.

Between two spans each worker holds the first epoch that is not done. In a span it holds the first epoch
that was outstanding with any worker in the last round: no row of any worker is earlier, and none will be.
It holds from the beginning on, when all views are the same, and never begins to hold later: a right that is
made of nothing might come too late. A lone worker holds an epoch only while something of it is outstanding
in the loop: no other view can come too late, and most changes then come and go without a hold.

An iteration is over when its round is heard: rows travel with the vote, so a worker that has heard all votes
has all rows that were sent before them. Rows for which a barrier waits are sent by earlier barriers, of any
worker, and by rows that are passed on until none is on its way. The argument is in decision 0029.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final, NamedTuple

import numpy as np

from progress.compiled.arrays import Int64s
from progress.errors import InternalError, PeerError
from progress.times.anchor import Rebase
from progress.times.time_words import TimeLayout
from progress.tracking.count_changes import Change

from ...dictionaries import Mark
from ...operators.capture import FOREVER
from ...operators.compiled_loop import CompiledLoop, RoundInput, Stop, Vote, are_alike
from ...operators.vertex import Feeder
from ...wire.batch import Batch
from ...wire.transport import Lent
from ..progress_messages import DataHeader, write_data_header
from .ahead import Ahead
from .connector import Connector
from .surroundings import Checker, LoopSurroundings
from .vertex_runner import VertexRunner

__all__ = ["HOLD", "CompiledLoopRunner", "LoopScope"]

HOLD: Final = 1 << 32
"""Occurrence count of one hold if there are peers. Larger than the number of messages that can be in
flight, so no receipt can cancel it.

With 1 a receiver that takes up a message before it hears that it was sent would cancel the hold of the sender
in its own view, and go on past an epoch in which more rows may come."""

_CALLS_MAX: Final = 16
"""How often the loop goes on by itself before other stages have their turn."""

_ROUND: Final = -1
"""Stands for the location of round messages, which are counted nowhere."""

_NO_TIMES: Final[Int64s] = np.empty(0, np.int64)


class LoopScope(NamedTuple):
    """The name of a loop, and the layout of its times."""

    name: str
    layout: TimeLayout


class CompiledLoopRunner:
    """Runs one worker's share of a compiled loop; its vertices see it in the place of the dataflow.

    Epochs are absolute here; words are those of the loop.
    """

    requested: Final[frozenset[int]] = frozenset()
    wants_frontier = True
    wants_end = True
    is_patient = False
    location: Final = _ROUND
    port: Final = 0

    def __init__(
        self,
        dataflow: LoopSurroundings[CompiledLoopRunner],
        number: int,
        scope: LoopScope,
        loop: CompiledLoop,
        members: Sequence[VertexRunner],
        ports: dict[int, tuple[int, int]],
        leaving: Sequence[Connector],
    ) -> None:
        """Run `loop`. `number`: its index among the actors of `Turns`. `ports`: for each location by which
        rows come in, its stage and port.
        """
        self._dataflow = dataflow
        self.work_told: dict[int, int] = {}  # rows and turns of each stage at the last report
        self.name, layout = scope
        self._limit = layout.limit
        self._shift = layout.shifts[0]
        self.loop = loop
        self._members = {runner.stage: runner for runner in members}
        self.ports = ports
        self.leaving = leaving
        self._is_alone = dataflow.workers == 1
        self._watched = [port for runner in members for port in runner.ports]
        by_stage = {runner.stage: runner.ports for runner in members}
        self._entries = sorted({by_stage[stage][port] for stage, port in ports.values()})
        self._entries_ended = 0  # how many entries had ended when `_closed` was computed
        self.held: int | None = None
        self._done = 0
        """All epochs before this one are done, with all workers."""
        self._span: int | None = None  # the bound of the span that is under way
        self._closed: int | None = None
        """The first epoch that the tracker does not know to be closed; None: not computed yet."""
        self._ended_outside: set[int] | None = None
        """The ports at which no rows come in any more, as far as the tracker knows; None: not computed
        yet."""
        self._upstream: frozenset[int] = frozenset()
        self._ahead: Ahead | None = None
        self.is_ahead = False
        self._since = 0
        self._ended: set[int] = set()
        self.way = -1
        """The number by which round messages come to it."""
        self._round = 0  # the number of its next vote
        self._vote: Vote | None = None  # its last one in the span that is under way
        self._heard: dict[int, list[Batch]] = {}
        """Messages of others that are not taken up yet, by number of their round."""
        self._calls_left = 0
        self._voted_ended: set[int] = set()  # ports at which no rows came in any more at its last vote
        self.stage = number
        self.inbox: list[tuple[int, int, int, Batch]] = []
        self.is_queued = False
        self.has_frontier_news = False
        self.wants_resume = False
        self.may_resume = False
        self.tracker = self  # for its vertices, which call its method `frontier`
        self.recheck: set[int] = set()

    @property
    def stages(self) -> Sequence[int]:
        """The stages of the loop."""
        return list(self._members)

    def title(self) -> str:
        """Return its name, or the name of the stage that it is working on, as errors say it."""
        at = self.loop.at
        if at is not None:
            return self._members[at].title()
        return f"the loop {self.name!r} (worker {self._dataflow.worker} of {self._dataflow.workers})"

    @property
    def site(self) -> str:
        """The place in the program where it was built, as errors say it."""
        at = self.loop.at
        return self._members[self.stages[0] if at is None else at].site

    def follow(self, upstream: frozenset[int], sources: Sequence[VertexRunner]) -> None:
        """Note that rows may come in from `upstream` locations. If they come only from `sources`, which
        stand for inputs, a lone worker looks how far these are.
        """
        self._upstream = upstream
        if sources and self._is_alone:
            self._ahead = Ahead([sources], self._limit)
            for source in sources:
                source.followers.append(self)

    def begin(self, epoch: int) -> list[Change]:
        """Begin at an epoch; return the changes that count the holds of all workers from then on."""
        self._done = epoch
        if self._is_alone:
            return []
        self.held = self._word(epoch)
        workers = self._dataflow.workers
        return [(connector.location, self.held + connector.add, workers * HOLD) for connector in self.leaving]

    def check_arrived(self, location: int, port: int, batch: Batch, peer: int) -> None:
        """Check a batch as the vertex does that will get it."""
        stage, port = self.ports[location]
        self._members[stage].check_arrived(location, port, batch, peer)

    @property
    def target(self) -> CompiledLoopRunner:
        """The receiver of round messages."""
        return self

    def check(self, batch: Batch, peer: int) -> None:
        """Raise `PeerError` if a batch is no round message; `hear` checks its rows."""
        if self.loop.message_kind != batch.KIND:
            raise PeerError(
                f"worker {peer} sent a {type(batch).__name__} in the place of a round message of a loop"
            )

    def confirm(self, batch: Batch, peer: int) -> None:
        """Do nothing: no function routes the records of a round message."""

    def activate(self) -> None:
        """Take in batches that have come, and finish the epochs that can be finished."""
        if self.has_frontier_news:
            self._closed = None
        self.has_frontier_news = self.may_resume = self.wants_resume = False
        inbox, self.inbox = self.inbox, []
        take = self.loop.take
        for _, location, _, batch in inbox:
            if location == _ROUND:
                self._heard.setdefault(self.loop.vote_in(batch).number, []).append(batch)
            else:
                stage, port = self.ports[location]
                take(stage, port, batch)
        if self._is_alone:
            self._advance_alone(inbox)
        else:
            self._calls_left = _CALLS_MAX
            if not self.loop.rests():
                self.loop.pass_on()
            while self._advance_in_round():
                pass
        count = self._dataflow.count
        for _, location, word, _ in inbox:
            if location != _ROUND:
                count(location, word, -1)

    # Epochs that are closed or held, and ports that have ended.

    def _closed_before(self) -> int:
        """Return the first epoch in which rows may still come in, in this worker's view.

        A lone worker reads it from the inputs that lead here, before progress tracking hears of it: rows
        that an input has let in are here before its epoch goes on. So rows and the end of their epoch are
        one turn.
        """
        ahead = self._ahead
        if ahead is not None and not self.is_ahead:
            ahead.look()
            self.is_ahead = ahead.are_open  # else it has to hear which ports have ended
        if not self.is_ahead:
            closed = self._closed_as_tracked()
            if ahead is None or ahead.first is None:
                return closed
            return max(closed, self._dataflow.anchor.epoch + (ahead.first >> self._shift))
        assert ahead is not None and ahead.first is not None
        return self._dataflow.anchor.epoch + (ahead.first >> self._shift)

    def _closed_as_tracked(self) -> int:
        """Return the first epoch in which rows may still come in, as progress tracking knows it."""
        if self._closed is None:
            tracker, far = self._dataflow.tracker, self._dataflow.far
            words = [word for port in self._entries if (word := tracker.first(port)) is not None]
            ended = len(self._entries) - len(words)
            if ended != self._entries_ended:
                self._entries_ended, self._ended_outside = ended, None
            if not words:
                self._closed = FOREVER
                return FOREVER
            near = min(words)
            ahead = near >> self._shift if near < far.stand_in else far.first_epoch_among(self._upstream)
            assert ahead is not None, "a stand-in for something far stands for something upstream"
            self._closed = self._dataflow.anchor.epoch + ahead
        return self._closed

    def _ports_ended(self) -> set[int]:
        """Return the ports at which no rows come in any more, in this worker's view."""
        if not self.is_ahead:
            self._closed_as_tracked()  # it resets them if more entries have ended
        if self._ended_outside is None:
            tracker = self._dataflow.tracker
            self._ended_outside = {port for port in self._watched if tracker.first(port) is None}
        return self._ended_outside

    def _word(self, epoch: int) -> int:
        """Return the first word of an epoch, perhaps a wide one."""
        return max(0, epoch - self._dataflow.anchor.epoch) << self._shift

    def _close(self, bound: int) -> bool:
        """Close the epochs before the bound, for the span that is under way or begins. Return True if there
        may be anything to do in it.
        """
        self._span = bound
        anchor, shift, limit = self._dataflow.anchor.epoch, self._shift, self._limit
        start = (self._done - anchor) << shift if self._done > anchor else 0
        end = (bound - anchor) << shift if bound > anchor else 0
        return self.loop.close(start if start < limit else limit, end if end < limit else limit)

    def _hold(self, word: int | None) -> None:
        """Hold the epoch of a word, perhaps a wide one, instead of the last one; None: hold none."""
        held = self.held
        if word == held:
            return
        count, times = self._dataflow.count, 1 if self._is_alone else HOLD
        for connector in self.leaving:
            if word is not None:
                count(connector.location, word + connector.add, times)
            if held is not None:
                count(connector.location, held + connector.add, -times)
        self.held = word

    def _look(self, since: int, ended: set[int]) -> None:
        """Show vertices the frontier `since` from now on, and an empty one at ports in `ended`."""
        self._since = since
        has_ended = ended != self._ended
        self._ended = ended
        if has_ended:
            self.loop.on_ended()

    # A lone worker.

    def _advance_alone(self, inbox: Sequence[tuple[int, int, int, Batch]]) -> None:
        """Do all closed epochs, or go on with a span."""
        loop, bound = self.loop, self._closed_before()
        if self._span is None and bound <= self._done:
            if inbox and not loop.rests():
                loop.pass_on()
                loop.send()
            elif self.is_ahead or self._ended_outside is not None:
                if inbox:
                    # Rows that have come close no epoch: they wait. No row is earlier than its message.
                    shift = self._shift
                    earliest = min([word for _, _, word, _ in inbox]) >> shift << shift
                    if self.held is None or earliest < self.held:
                        self._hold(earliest)
                return
        while self._span is not None or bound > self._done:
            if (self._span is not None or self._close(bound)) and not loop.run():
                self.wants_resume = True
                self._dataflow.resume_later(self)
                break
            assert self._span is not None
            self._done, self._span = self._span, None
        first = loop.first()
        done, anchor = self._done if self._span is None else self._span, self._dataflow.anchor.epoch
        since = (done - anchor) << self._shift if done > anchor else 0
        if since > self._limit:
            since = self._limit
        if first is not None:
            # Rows that are still here may go on to ports at which no rows come in from outside.
            self._since = first if first < since else since
        elif self._ended_outside is not self._ended:
            self._look(since, self._ports_ended())
        else:
            self._since = since  # Fast path.
        if first != self.held:
            self._hold(first)

    # Workers with peers.

    def _advance_in_round(self) -> bool:
        """Begin a span, or take up a round of all workers; return False if there is nothing to do but
        wait.
        """
        loop = self.loop
        if self._vote is None:
            bound = self._closed_before()
            for message in self._heard.get(self._round, ()):
                bound = max(bound, loop.vote_in(message).bound)
            if bound <= self._done:
                return False
            self._close(bound)
            # If a message is here already, it has left the memory where the loop itself would hear it.
            went_on = None if self._heard else self._go_by_itself(self._before(bound), begins=True)
            if went_on is None:
                loop.pass_on()
                self._send_vote(bound)
            return went_on is not False
        if len(self._heard.get(self._vote.number, [])) < self._dataflow.workers - 1:
            return not self._heard and bool(self._go_by_itself(self._vote))
        self._take_up(self._vote, self._heard.pop(self._vote.number))
        return True

    def take_up_votes(self) -> bool:
        """Go on with the votes that are in shared memory, for another worker of the same thread, which waits
        for this one; return True if this one has voted.
        """
        before, self._calls_left = self._round, _CALLS_MAX
        if self._vote is not None and not (self._heard or self.inbox):
            while self._advance_in_round():
                pass
        return self._round != before

    def _take_up(self, own: Vote, messages: list[Batch]) -> None:
        """Do what follows from a round in which all have voted."""
        loop = self.loop
        every = [own, *(loop.vote_in(message) for message in messages)]
        for message in sorted(messages, key=lambda message: loop.vote_in(message).worker):
            loop.hear(message)
        bound = max(vote.bound for vote in every)
        first = min(vote.first for vote in every)
        if any(vote.bound < bound for vote in every):
            self._close(bound)
            loop.pass_on()
        elif not loop.follow(every):
            self._end_span(bound, are_alike(every))
            return
        self._hold_epoch(first)
        self._send_vote(bound)

    def _before(self, bound: int) -> Vote:
        """Return a vote to stand before the first one of a span: nobody has sent it, and nobody answers
        it.
        """
        return Vote(self._dataflow.worker, self._round - 1, bound, bound, -1, 0, False, False, b"")

    def _go_by_itself(self, vote: Vote, begins: bool = False) -> bool | None:
        """Let the loop go on from round to round by itself, or begin with the first. Return False if there is
        nothing to do but wait, and None if it cannot go on by itself.
        """
        lender = self._dataflow.lender
        lent = lender.lend(self.stage) if self._calls_left else None
        if lent is None:
            return None
        self._calls_left -= 1
        ended = self._ports_ended()
        try:
            result = self.loop.go_on(self._round_input(lent, vote, ended, begins))
        finally:
            lender.take_back()
        self._vote, self._round = result.vote, result.vote.number + 1
        if result.vote.number != vote.number and result.vote.is_empty:
            self._voted_ended = ended
        if result.stop is Stop.ENDS:
            self._end_span(result.vote.bound, result.is_alike)
        else:
            if result.rounds:
                self._hold_epoch(result.first)
            if result.stop is Stop.VOTES:
                self._send_vote(result.vote.bound)
        return result.stop is not Stop.WAITS

    def _round_input(self, lent: Lent, vote: Vote, ended: set[int], begins: bool = False) -> RoundInput:
        """Return the input with which the loop goes on by itself."""
        assert self.held is not None
        # No worker has rows of epochs that words cannot hold.
        word, anchor = min(self.held, self._limit), self._dataflow.anchor.epoch
        header = DataHeader(self._dataflow.index, self.way, word, self.loop.message_kind, anchor)
        return RoundInput(lent, vote, write_data_header(header), word, anchor, self._bytes_of(ended), begins)

    def _bytes_of(self, ended: set[int]) -> bytes:
        return bytes(port in ended for port in self._watched)

    def _send_vote(self, bound: int) -> None:
        """Send the next vote to all others, each with the rows for that worker."""
        loop, dataflow = self.loop, self._dataflow
        barrier, counters, passes = loop.waiting()
        first = loop.first()
        first_epoch = bound if first is None else min(bound, dataflow.anchor.epoch + (first >> self._shift))
        is_empty, ended = first is None, b""
        if is_empty:
            self._voted_ended = self._ports_ended()
            ended = self._bytes_of(self._voted_ended)
        vote = Vote(
            dataflow.worker, self._round, bound, first_epoch, barrier, counters, passes, is_empty, ended
        )
        self._round += 1
        self._vote = vote
        for peer in range(dataflow.workers):
            if peer != dataflow.worker:
                message = loop.message(vote, peer)
                assert self.held is not None
                dataflow.send_data(peer, self.way, self.held if message.rows else 0, message)

    def _end_span(self, bound: int, is_alike: bool) -> None:
        """End the span: its epochs are done with all workers, so send the rows that leave. `is_alike`: no
        worker keeps anything, and all votes have the same `ended`.
        """
        self.loop.send()
        self._vote = self._span = None
        self._done = bound
        # While rows still wait with any worker no port has ended: they may go on to it.
        ended = self._ended
        if bound >= FOREVER:
            ended = set(self._watched)
        elif is_alike:
            ended = self._voted_ended
        self._hold_epoch(bound, ended)

    def _hold_epoch(self, epoch: int, ended: set[int] | None = None) -> None:
        """Hold an epoch: no worker has anything outstanding before it, and no rows come in at ports in
        `ended`.
        """
        word, held = self._word(epoch), self.held
        assert held is not None, "all its epochs are done"
        assert word >= held, f"it held {held:#x}, and may not begin to hold {word:#x} before that"
        self._hold(word if epoch < FOREVER else None)
        self._look(min(word, self._limit), self._ended if ended is None else ended)

    # Called by its vertices.

    @property
    def worker(self) -> int:
        """Index of this worker."""
        return self._dataflow.worker

    @property
    def workers(self) -> int:
        """The number of all workers."""
        return self._dataflow.workers

    @property
    def checker(self) -> Checker | None:
        """Hears of each event; None: nothing is checked."""
        return self._dataflow.checker

    def frontier(self, port: int) -> Int64s:
        """Return the first epoch in which anything is outstanding, inside or outside."""
        return _NO_TIMES if port in self._ended else np.array([self._since], np.int64)

    def first(self, port: int) -> int | None:
        """Return the first word of `frontier`; None if that is empty."""
        return None if port in self._ended else self._since

    def feeding(self, stage: int, port: int) -> list[Feeder]:
        """Return the vertices that send to input `port` of a stage on this worker."""
        return self._dataflow.feeding(stage, port)

    @property
    def count(self) -> Callable[[int, int, int], None]:
        """Raise InternalError: the runner counts for all its vertices."""
        raise self._alone()

    @property
    def is_calm(self) -> bool:
        """Raise InternalError: no vertex of a loop is an output."""
        raise self._alone()

    def wake(self, runner: VertexRunner, /) -> None:
        """Raise InternalError: the loop has turns, not its vertices."""
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

    def report(self) -> None:
        """Bring counters of connectors and vertices up to date."""
        for stage, turns in self.loop.report().items():
            self._members[stage].activations += turns

    def rebase(self, by: Rebase) -> None:
        """Count words from a later anchor."""
        self.inbox = [
            (port, location, 0 if location == _ROUND else by.word(word), batch.rebased(-by.step))
            for port, location, word, batch in self.inbox
        ]
        for heard in self._heard.values():
            heard[:] = [message.rebased(-by.step) for message in heard]
        if self.held is not None:
            self.held = by.word(self.held)
        self._closed = self._ended_outside = None
        self.is_ahead = False
        self._since = by.early_word(self._since)
        self.loop.rebase(by)
        if self._span is not None:
            # If the bound was behind the last epoch with words, words hold more of the closed epochs now.
            self._close(self._span)

    def symbols(self, mark: Mark) -> None:
        """Show the words of batches that wait here, and those that the loop keeps beside its vertices."""
        for _, _, _, batch in self.inbox:
            mark.holder(batch, f"a batch of {type(batch).__name__} that waits for {self.title()}")
        self.loop.symbols(mark)
        for heard in self._heard.values():
            for message in heard:
                mark.holder(message)

    def compared(self) -> object:
        """Return all that decides what it will do, beside its vertices."""
        return (
            (self.inbox, self._heard),
            (self.held, self._done, self._span, self._vote, self._round, self._voted_ended),
            (self._since, self._ended, self.is_ahead),
            (self._closed, self._ended_outside, self._entries_ended),
            (self.is_queued, self.has_frontier_news, self.wants_resume),
            self.loop,
        )
