"""The runner of one vertex on a worker: it keeps the inbox, delivers what is ready, and sends for the vertex.

A runner checks what its vertex may do (`rights.py`), records count changes for progress tracking, and hands
batches to connectors. It never calls the tracker with changes: it appends to the instance's `CountChanges`,
which the worker applies once per step.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from contextlib import suppress
from heapq import heappop
from operator import index
from threading import get_ident
from typing import ClassVar, NoReturn

import numpy as np

from progress.compiled.arrays import Int64s
from progress.errors import MisuseError
from progress.times.anchor import EPOCH_MAX, Rebase
from progress.times.lasting import LastingCode
from progress.times.open_times import OpenTimes
from progress.times.time_words import TimeCode
from progress.times.timestamp import Timestamp
from progress.times.word_antichain import minimal_words

from ...dictionaries import HidesWords, Mark
from ...operators.activator import Activator
from ...operators.awaiting.in_order import CallsInOrder, async_callbacks
from ...operators.lasting_words import LastingWords, has_times
from ...operators.outputs.moves import EpochMoves
from ...operators.vertex import Feeder, Vertex
from ...thresholds import FEW_WORDS_MAX
from ...user_code.call_site import CallSite
from ...user_code.vertex_calls import check_result
from ...wire.batch import Batch
from .ahead import Ahead, Follower
from .connector import Connector
from .rights import Acting, Rights
from .surroundings import Source, Surroundings, WithAlarms

__all__ = ["VertexRunner"]


class VertexRunner(Rights):
    """One stage on one worker."""

    _surroundings: Surroundings[VertexRunner]
    sends_far: ClassVar[bool] = False

    __slots__ = (
        "_acts_at", "_ahead", "_alarms", "_has_asked", "_has_looked", "_has_times", "_is_begun", "_lasting",
        "_looks_for_times", "_lost", "_waiting", "_waiting_in_order", "activations", "calls", "due",
        "followers", "has_frontier_news", "inbox", "is_ahead", "is_patient", "is_queued", "may_resume",
        "moves", "notifies", "opened", "outputs", "ports", "requested", "source", "vertex", "vertex_code",
        "wants_activation", "wants_end", "wants_frontier", "wants_resume",
    )  # fmt: skip

    def __init__(
        self,
        surroundings: WithAlarms[VertexRunner],
        stage: int,
        name: str,
        site: str,
        code: TimeCode,
        outputs: int,
        acting: Acting | None = None,
    ) -> None:
        """`acting`: the thread of its worker; by default the one that makes the runner."""
        super().__init__(surroundings, stage, name, site, code, Acting() if acting is None else acting)
        self._alarms = surroundings.alarms
        self.outputs: list[list[Connector]] = [[] for _ in range(outputs)]
        self.ports: list[int] = []
        self.inbox: list[tuple[int, int, int, Batch]] = []
        # Notifications that were requested and not delivered; each is due (ascending) or waiting.
        self.requested: set[int] = set()
        self._acts_at: dict[int, set[int]] = {}
        """By requested word, the words at which its notification may act; its own word, if it is not here."""
        self.due: list[int] = []
        self._waiting: list[int] = []
        self._waiting_in_order: OpenTimes | None = None
        self.has_frontier_news = False
        self.is_queued = False
        self.vertex: Vertex | None = None
        self.source: Source | None = None
        self.calls: CallsInOrder | None = None
        self.wants_frontier = False
        self.wants_resume = False
        self.may_resume = self.wants_activation = False
        self.wants_end = False
        self.is_patient = False
        self.notifies = False
        self.activations = 0
        self.opened: int | None = None
        self.moves: EpochMoves | None = None
        """When the input for which it stands has opened its last epochs."""
        self.followers: list[Follower] = []
        self._ahead: Ahead | None = None
        self._lost: tuple[Timestamp, CallSite] | None = None
        """A capability that is gone, and was not dropped."""
        self._has_looked = self._is_begun = self._has_asked = False
        self.is_ahead = False
        self.vertex_code = code
        self._lasting: LastingWords | None = None
        """Stands between the vertex and this runner, if the words of the vertex stay when the anchor
        moves."""
        self._looks_for_times = self._has_times = False

    def bind(self) -> None:
        """Bind the vertex, if there is one, to this runner. Called once."""
        vertex = self.vertex
        if vertex is None:
            return
        if type(vertex).rebase is Vertex.rebase:
            self.vertex_code = LastingCode.of(self.code)
            self._looks_for_times = vertex.word_times
        vertex.bind(self)
        if not vertex.word_times and (names := async_callbacks(vertex)):
            self.calls = CallsInOrder(vertex, names, self._acting, self.received_times)

    def open_input(self, epoch: int) -> int:
        """Note that the input for which this stage stands is open at an epoch, which is its first; return the
        word of that.
        """
        word = self.opened = self.code.pack((epoch,))
        self.moves = EpochMoves(epoch, time.monotonic())
        return word

    def begin(self) -> None:
        """Begin, at the epoch from which words count now."""
        if isinstance(self.vertex_code, LastingCode):
            self.vertex_code.begin()

    def follow(self, sources: Sequence[Sequence[VertexRunner]]) -> None:
        """Look how far these stages are, which stand for inputs: rows come to each port only from them."""
        self._ahead = Ahead(sources, self._limit)
        for runner in {runner.stage: runner for listed in sources for runner in listed}.values():
            runner.followers.append(self)

    def check_arrived(self, location: int, port: int, batch: Batch, peer: int) -> None:
        """See `Vertex.check_arrived`."""
        if self.vertex is not None:
            self.vertex.check_arrived(port, batch, peer)

    def move_into(self, surroundings: Surroundings[VertexRunner]) -> None:
        """Take these surroundings from now on."""
        self._surroundings = surroundings

    # Called by the vertex, beside the methods of `Rights`.

    def send(self, output: int, batch: Batch, word: int) -> None:
        """Send `batch` at `word` by every connector of `output`."""
        if get_ident() != self._acting.thread:
            self._acting.refuse(self.title(), "sent")
        if word not in self._received and word not in self._held:
            self._check_right(word, "sent")
        if type(output) is not int or not 0 <= output < len(self.outputs):
            output = self._port(output, "sends by output", "outputs", len(self.outputs))
        for connector in self.outputs[output]:
            connector.send(batch, word)

    def request(self, word: int) -> None:
        """Ask for a notification at `word`."""
        if get_ident() != self._acting.thread:
            self._acting.refuse(self.title(), "asked for notification")
        if word in self.requested and word not in self._acts_at:
            return
        if word not in self._received and word not in self._held:
            self._check_right(word, "asked for notification")
        self._wait_for(word)
        self._surroundings.count(self.stage, word, 1)
        for at in self._acts_at.pop(word, ()):
            self._surroundings.count(self.stage, at, -1)

    def request_at(self, word: int, at: int) -> None:
        """Ask for a notification at `word` that may act at `at`; requires word ≤ at."""
        if get_ident() != self._acting.thread:
            self._acting.refuse(self.title(), "asked for notification")
        self._check_right(word, "asked for notification")
        if word == at or (word in self.requested and word not in self._acts_at):
            self.request(word)
            return
        self._wait_for(word)
        acts_at = self._acts_at.setdefault(word, set())
        if at not in acts_at:
            acts_at.add(at)
            self._surroundings.count(self.stage, at, 1)

    def asked_words(self) -> list[int]:
        """Return the words that requested notifications hold, each as often as it is counted."""
        return [at for word in self.requested for at in self._acts_at.get(word, (word,))]

    def _wait_for(self, word: int) -> None:
        """Put a word among those that are requested, unless it is there."""
        self.events.append(("notify_at", word))
        if word not in self.requested:
            self._has_asked = True
            self.requested.add(word)
            if self._waiting_in_order is not None:
                self._waiting_in_order.add(word)
            else:
                self._waiting.append(word)
            self._surroundings.recheck.add(self.stage)

    def resume(self) -> None:
        """See `Vertex.resume`."""
        if get_ident() != self._acting.thread:
            self._acting.refuse(self.title(), "asked to be resumed")
        if not self.wants_resume:
            self.wants_resume = True
            self._surroundings.resume_later(self)

    def activate_at(self, moment: float | None) -> None:
        """See `Runner`."""
        if get_ident() != self._acting.thread:
            self._acting.refuse(self.title(), "asked to be activated")
        if not self._has_ended:
            self._acting.has_alarms = True
            self._alarms.set(self.stage, moment)

    def activator(self) -> Activator:
        """See `Vertex.activator`."""
        self._alarms.activators += 1
        return Activator(self._alarms.rung, self.stage, self._acting)

    def lose(self, time: Timestamp, site: CallSite) -> None:
        """See `Runner`. The vertex fails in its next turn, since this may be called at any moment."""
        if not self._has_ended:
            self._lost = time, site
            self._surroundings.resume_later(self)

    def frontier(self, port: int) -> Int64s:
        """Return the frontier of input `port` in this worker's view."""
        if type(port) is not int or not 0 <= port < len(self.ports):
            port = self._port(port, "asks for the frontier of input", "inputs", len(self.ports))
        ahead = self._ahead
        if ahead is not None and self.is_ahead:
            return ahead.frontier(port)
        tracked = self._surroundings.tracker.frontier(self.ports[port])
        return tracked if ahead is None or not self._has_looked else ahead.or_later(port, tracked)

    def first(self, port: int) -> int | None:
        """Return the first word of `frontier`, None if that is empty, without making an array of it."""
        if self._ahead is None:
            return self._surroundings.tracker.first(self.ports[port])
        return next(iter(self.frontier(port).tolist()), None)

    def feeding(self, port: int) -> list[Feeder]:
        """Return the vertices that send to input `port` on this worker."""
        port = self._port(port, "asks who feeds input", "inputs", len(self.ports))
        return self._surroundings.feeding(self.stage, port)

    def leads(self, output: int) -> list[Connector]:
        """Return the connectors of `output`."""
        return self.outputs[self._port(output, "asks where output leads:", "outputs", len(self.outputs))]

    def _port(self, port: object, what: str, kind: str, count: int) -> int:
        """Return `port` as an integer; raise MisuseError, which names the ports that there are, if it is
        none.
        """
        number = -1
        if not isinstance(port, bool):
            with suppress(TypeError):
                number = index(port)  # type: ignore[arg-type]  # an integer of numpy is one, too
        if 0 <= number < count:
            return number
        there = f"the {kind} {', '.join(map(str, range(count)))}" if count else f"no {kind}"
        raise MisuseError(f"{self.title()} {what} {port!r:.80}, but it has {there} ({self.site})")

    # Called by an input, for which this stage stands.

    @property
    def is_calm(self) -> bool:
        """See `Runner`."""
        return self._surroundings.is_calm

    def wake(self) -> None:
        """Ask for an activation."""
        self._surroundings.wake(self)

    def let_in(self, batch: Batch, word: int) -> None:
        """Let rows of an epoch that is being sealed enter."""
        for connector in self.outputs[0]:
            connector.send(batch, word)

    def advance(self, old: int, new: int | None) -> None:
        """Move the open epoch of the input on; `None`: the input is closed."""
        count = self._surroundings.count
        before = self.code.word_of_epoch(old) if self.opened is None else self.opened
        self.opened = None if new is None else self.code.word_of_epoch(new)
        assert self.moves is not None, "the input has an open epoch"
        numbers = self.moves.numbers
        numbers += (EPOCH_MAX if new is None else new, time.monotonic())  # a call less than `extend`
        if self.opened is not None:
            count(self.stage, self.opened, 1)
        count(self.stage, before, -1)
        for follower in self.followers:
            follower.is_ahead = False

    @property
    def room(self) -> int:
        """The first epoch whose rows cannot enter yet."""
        return self.code.anchor.epoch + self.code.layout.window

    def may_enter(self, epoch: int) -> bool:
        """Return True if rows of an epoch may enter; if not, the stage has a turn when they may be able
        to.
        """
        code, gate = self.code, self._acting.gate
        if not gate.is_open:
            gate.wait(self)
            return False
        if epoch < code.anchor.epoch + code.layout.window:  # `room`, without a call
            return True
        self._surroundings.await_epoch(self.stage)
        return False

    # Called by the instance.

    def activate(self) -> None:
        """Let the vertex consume everything that is ready: messages, then notifications, then frontier
        news.
        """
        self.activations += 1
        if self.source is not None:
            self.may_resume = self.wants_resume = False
            if self._acting.gate.is_open:
                self.source.let_rows_in()
            else:
                self._acting.gate.wait(self)
            return
        assert self.vertex is not None
        if self.inbox:
            self._deliver()
        # Not before the vertex has heard at which epoch the dataflow begins, nor while notifications are
        # requested: these come before frontiers that are past them.
        if self._ahead is not None and not (self.is_ahead or self.requested) and self._is_begun:
            self._ahead.look()
            self.is_ahead = self._has_looked = self.has_frontier_news = True
        if self.due:
            self._notify()
        if self.has_frontier_news:
            self._is_begun = True
            if self.wants_frontier or self.wants_end:
                self.has_frontier_news = False
                self.vertex.on_frontier()
        if self.may_resume:
            self.may_resume = False
            if self._lost is not None:
                self._refuse_lost(*self._lost)
            self.wants_resume = False
            self.vertex.on_resume()
        if self.wants_activation:
            self.wants_activation = False
            self.vertex.on_activate()

    def _refuse_lost(self, time: Timestamp, site: CallSite) -> NoReturn:
        raise MisuseError(
            f"{self.title()} has lost its capability at {time}, made at {site}: nothing refers to it any "
            "more, and it was not dropped, so that this time would never be over. Keep it in an attribute "
            "until drop(), or write `with self.hold(time):`"
        )

    def wants_idle(self) -> bool:
        """Return True if the vertex has a use for idle moments."""
        if self.vertex is None:
            return False
        kind = type(self.vertex)
        return kind.on_idle is not Vertex.on_idle or kind.on_rest is not Vertex.on_rest

    def symbols(self, mark: Mark) -> None:
        """Show the words that may be symbols: those that wait here, that its connectors keep, and that the
        vertex keeps, if it shows them.
        """
        for _, _, _, batch in self.inbox:
            mark.holder(batch, f"a batch of {type(batch).__name__} that waits for {self.title()}")
        for listed in self.outputs:
            for connector in listed:
                connector.symbols(mark)
        if self.vertex is None:
            return
        if not self.says_symbols():
            mark.unknown(self.title())
        elif type(self.vertex).symbols is not Vertex.symbols:
            self.vertex.symbols(mark)

    def says_symbols(self) -> bool:
        """Return True if the vertex shows all symbols that it keeps: its own class has `symbols`, or it takes
        only records, which hold values.
        """
        if self.vertex is None:
            return True
        kind = type(self.vertex)
        takes_records = kind.recv_all is Vertex.recv_all and kind.symbols is Vertex.symbols
        return takes_records or "symbols" in vars(kind)

    def hides_words(self) -> bool:
        """Return True while the vertex, or a batch that waits for it, has symbols that nobody can show."""
        vertex: object = self.vertex
        return isinstance(vertex, HidesWords) and vertex.hides_words(bool(self.inbox))

    def compared(self) -> object:
        """Return all that decides what it will do: without the order in which waiting times are kept,
        and events.
        """
        return (
            self.stage,
            self.inbox,
            (sorted(self.requested), self.due, sorted(self.held_words().items()), self._acts_at, self._lost),
            (
                self.is_queued,
                self.has_frontier_news,
                self.wants_resume,
                self.may_resume,
                self.wants_activation,
            ),
            [(connector.transform, connector.routing) for listed in self.outputs for connector in listed],
            self.vertex,
        )

    def first_asked(self) -> int | None:
        """Return the first epoch that is to have a word although nothing may count there: a reader asks about
        it, or a notification at it is requested that holds a later time. None if there is none.
        """
        asked = None if self.vertex is None else self.vertex.first_asked()
        if self._acts_at:
            first = self.code.epoch_of(min(self._acts_at))
            return first if asked is None else min(asked, first)
        return asked

    def catch_up(self) -> None:
        """Let the vertex do what it has put off; one without outputs may not have looked at its frontier
        yet.
        """
        if self.vertex is None:
            return
        if self.has_frontier_news and self.wants_frontier and not self.outputs:
            self.vertex.on_frontier()
        self.vertex.catch_up()

    def rebase(self, by: Rebase) -> None:
        """Count words from a later anchor. Called between activations."""
        shift = by.step
        self.inbox = [
            (port, location, by.word(word), batch.rebased(-shift))
            for port, location, word, batch in self.inbox
        ]
        self.requested = {by.word(word) for word in self.requested}
        self.due = [by.word(word) for word in self.due]
        self._acts_at = {
            by.word(word): {by.word(at) for at in acts_at} for word, acts_at in self._acts_at.items()
        }
        self._waiting = [by.word(word) for word in self._waiting]
        if self.opened is not None:
            self.opened = by.word(self.opened)
        self.is_ahead = False
        if self._ahead is not None:
            self._ahead.rebase(by)
        self.rebase_rights(by)
        if self._waiting_in_order is not None:
            self._waiting_in_order = OpenTimes(self.code.guards, self.requested.difference(self.due))
        for listed in self.outputs:
            for connector in listed:
                connector.rebase(by)
        vertex = self.vertex
        if vertex is None:
            return
        if not isinstance(self.vertex_code, LastingCode):
            vertex.rebase(by)
            return
        if self._has_times:
            raise MisuseError(
                f"{self.title()} takes rows that have times of their own, and does not say what becomes of "
                "those that it keeps now that epochs go on beyond "
                f"{self.code.epoch_of(self._limit - 1 - shift)}: give {type(vertex).__name__} a "
                "method `rebase`; `def rebase(self, by): pass` if it keeps none"
            )
        if self._lasting is None:
            self._lasting = LastingWords(self, self.vertex_code)
            vertex.rebind(self._lasting)

    def end(self) -> bool:
        """Take all rights, for nothing is delivered any more; return False if that was so before."""
        has_ended, self._has_ended = self._has_ended, True
        self._received.clear()
        self._held.clear()
        self._held_far.clear()
        return not has_ended

    def find_due(self) -> bool:
        """Move requests to `due` that are so now: no time of a frontier is ≤ them. Return True if any is.

        `due` stays in order: a later request may be for an earlier time than one that is due already.
        """
        waiting = self._waiting
        self._has_asked = False
        if self._waiting_in_order is None and len(waiting) <= FEW_WORDS_MAX:
            guards = self.code.guards
            frontier = self._surroundings.tracker.frontier
            fronts: list[int] = []
            for port in self.ports:
                fronts += frontier(port).tolist()
            newly_due: list[int] = []
            for word in waiting:
                for front in fronts:
                    if ((word | guards) - front) & guards == guards:
                        break
                else:
                    newly_due.append(word)
            if newly_due:
                is_all = len(newly_due) == len(waiting)
                self._waiting = [] if is_all else [word for word in waiting if word not in newly_due]
        else:
            newly_due = self._find_due_among_many()
        if not newly_due:
            return False
        self.due += newly_due
        if len(self.due) > 1:
            self.due.sort()
        return True

    def _find_due_among_many(self) -> list[int]:
        """Return the requests that are due, kept in order: this costs no look at all of them."""
        if self._waiting_in_order is None:
            self._waiting_in_order = OpenTimes(self.code.guards, self._waiting)
            self._waiting = []
        tracker = self._surroundings.tracker
        frontiers = [tracker.frontier(port) for port in self.ports]
        fronts = frontiers[0] if frontiers else np.empty(0, np.int64)  # nothing comes in at a source
        if len(frontiers) > 1:
            fronts = minimal_words(np.sort(np.concatenate(frontiers)), self.code.guards)
        due = self._waiting_in_order.take_complete(fronts)
        if not len(self._waiting_in_order):
            self._waiting_in_order = None
        return due

    def _deliver(self) -> None:
        vertex = self.vertex
        assert vertex is not None
        inbox, self.inbox = self.inbox, []
        if self._looks_for_times and any(has_times(batch) for *_, batch in inbox):
            self._looks_for_times, self._has_times = False, True
            if self._lasting is not None:
                raise MisuseError(
                    f"{self.title()} takes rows that have times of their own: give {type(vertex).__name__} a "
                    "method `rebase`, which moves those that it keeps; `def rebase(self, by): pass` if none"
                )
        received, lasting = self._received, self._lasting
        if len(inbox) == 1:
            port, location, word, batch = inbox[0]
            received.add(word)
            if self.notifies:
                self.events.append(("on_recv", word))
            alone = [(word, batch)]
            vertex.recv_all(port, alone if lasting is None else lasting.outward(alone))
            received.clear()
            self._received_minimal = None
            self._surroundings.count(location, word, -1)
            return
        by_port: dict[int, list[tuple[int, Batch]]] = {}
        for port, _, word, batch in inbox:
            received.add(word)
            waiting = by_port.get(port)
            if waiting is None:
                by_port[port] = [(word, batch)]
            else:
                waiting.append((word, batch))
        for port, messages in by_port.items():
            if self.notifies:
                self.events.extend(("on_recv", word) for word, _ in messages)
            vertex.recv_all(port, messages if lasting is None else lasting.outward(messages))
        received.clear()
        self._received_minimal = None
        count = self._surroundings.count
        for _, location, word, _ in inbox:
            count(location, word, -1)

    def _notify(self) -> None:
        vertex = self.vertex
        assert vertex is not None
        checker, count, received = self._surroundings.checker, self._surroundings.count, self._received
        while self.due:
            word = heappop(self.due)
            self.requested.discard(word)
            acts_at = self._acts_at.pop(word, None) or {word}
            received |= acts_at
            if checker is not None:
                checker.on_notify(self.stage, word)
            self.events.append(("on_notify", word))
            check_result(vertex, "on_notify", vertex.on_notify(self.code.unpack(word)))
            received -= acts_at
            self._received_minimal = None
            for at in acts_at:
                count(self.stage, at, -1)
            if self.due and self._has_asked:
                # What it has asked for may come before others that are due. Frontiers are those of before
                # this callback, whose time still counts there, so nothing that it sends is overlooked.
                self.find_due()
