"""The runner of one vertex on a worker: it keeps the inbox, delivers what is ready, and sends for the vertex.

A runner checks what its vertex may do (`rights.py`), records count changes for progress tracking, and hands
batches to connectors. It never calls the tracker with changes: it appends to the instance's `CountChanges`,
which the worker applies once per step.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from operator import index
from threading import get_ident
from typing import Final, Protocol

import numpy as np

from progress.compiled.arrays import Int64s
from progress.errors import MisuseError
from progress.times.anchor import Rebase
from progress.times.lasting import LastingCode
from progress.times.open_times import OpenTimes
from progress.times.time_words import TimeCode
from progress.times.word_antichain import minimal_words

from ...dictionaries import Mark
from ...operators.lasting_words import LastingWords, has_times
from ...operators.vertex import Feeder, Vertex
from ...thresholds import FEW_WORDS_MAX
from ...wire.batch import Batch
from .connector import Connector
from .rights import Acting, Rights
from .surroundings import Source, Surroundings

__all__ = ["Ahead", "Follower", "Opened", "VertexRunner"]


_NO_TIMES: Final[Int64s] = np.empty(0, np.int64)


class Follower(Protocol):
    """A stage, or compiled loop, that looks how far inputs are."""

    is_ahead: bool
    """True if it has looked since one of them last went on: frontier news of the tracker tell it nothing
    new."""


class Opened(Protocol):
    """A stage that stands for an input."""

    followers: list[Follower]

    @property
    def opened(self) -> int | None:
        """The word, perhaps a wide one, of the epoch at which it may let rows in, as counted; None: it lets
        none in any more.
        """
        ...


class Ahead:
    """How far the inputs are that lead to each port of a stage, before progress tracking knows.

    On a worker that is alone, a stage to which only inputs lead sees by itself how far they are. What an
    input lets in is in the inboxes behind it before its epoch goes on. So with an empty inbox nothing is
    under way. Rows and the end of their epoch are one turn then, and progress tracking hears of both as one:
    it never hears of what was held in between, or was on its way.

    Law: what is seen here is never before what progress tracking says, nor after the truth. The stage may go
    on only as inputs do, and they count that in the same step.
    """

    __slots__ = ("_limit", "_sources", "_words", "are_open", "first")

    def __init__(self, sources: Sequence[Sequence[Opened]], limit: int) -> None:
        """`limit`: words from here on are wide."""
        self._sources = sources
        self._limit = limit
        self._words: list[Int64s] = [_NO_TIMES] * len(sources)
        self.are_open = False
        """True if rows may still come from every one of the inputs."""
        self.first: int | None = None
        """The first word at which rows may still come in at any port; None: none do."""

    def look(self) -> None:
        """See how far the inputs are. Requires: the stage has taken up all rows that they have let in."""
        self.are_open, self.first = True, None
        for port, sources in enumerate(self._sources):
            least: int | None = None
            for source in sources:
                word = source.opened
                if word is None:
                    self.are_open = False
                elif least is None or word < least:
                    least = word
            if least is None:
                self._words[port] = _NO_TIMES
                continue
            least = least if least < self._limit else self._limit
            self._words[port] = np.array([least], np.int64)
            if self.first is None or least < self.first:
                self.first = least

    def frontier(self, port: int) -> Int64s:
        """Return the frontier of a port, as of the last `look`."""
        return self._words[port]

    def or_later(self, port: int, tracked: Int64s) -> Int64s:
        """Return the later of this frontier and that of progress tracking: inputs have gone on since."""
        words = self._words[port]
        return words if not words.size or (tracked.size and tracked[0] < words[0]) else tracked

    def rebase(self, by: Rebase) -> None:
        """Count words from a later anchor. Callers `look` again before they read `first`."""
        self._words = [by.early(words) for words in self._words]


class VertexRunner(Rights):
    """One stage on one worker."""

    _surroundings: Surroundings[VertexRunner]

    __slots__ = (
        "_ahead", "_has_looked", "_has_times", "_is_begun", "_lasting", "_looks_for_times", "_waiting",
        "_waiting_in_order", "activations", "due", "followers", "has_frontier_news", "inbox", "is_ahead",
        "is_patient", "is_queued", "may_resume", "notifies", "opened", "outputs", "ports", "requested",
        "source", "vertex", "vertex_code", "wants_end", "wants_frontier", "wants_resume",
    )  # fmt: skip

    def __init__(
        self,
        surroundings: Surroundings[VertexRunner],
        stage: int,
        name: str,
        site: str,
        code: TimeCode,
        outputs: int,
        acting: Acting | None = None,
    ) -> None:
        """`acting`: the thread of its worker; by default the one that makes the runner."""
        super().__init__(surroundings, stage, name, site, code, Acting() if acting is None else acting)
        self.outputs: list[list[Connector]] = [[] for _ in range(outputs)]
        self.ports: list[int] = []
        self.inbox: list[tuple[int, int, int, Batch]] = []
        # Notifications that were requested and not delivered; each is due (ascending) or waiting.
        self.requested: set[int] = set()
        self.due: list[int] = []
        self._waiting: list[int] = []
        self._waiting_in_order: OpenTimes | None = None
        self.has_frontier_news = False
        self.is_queued = False
        self.vertex: Vertex | None = None
        self.source: Source | None = None
        self.wants_frontier = False
        self.wants_resume = False
        self.may_resume = False
        self.wants_end = False
        self.is_patient = False
        self.notifies = False
        self.activations = 0
        self.opened: int | None = None
        self.followers: list[Follower] = []
        self._ahead: Ahead | None = None
        self._has_looked = self._is_begun = False
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
        if word in self.requested:
            return
        if word not in self._received and word not in self._held:
            self._check_right(word, "asked for notification")
        self.events.append(("notify_at", word))
        self.requested.add(word)
        if self._waiting_in_order is not None:
            self._waiting_in_order.add(word)
        else:
            self._waiting.append(word)
        self._surroundings.count(self.stage, word, 1)
        self._surroundings.recheck.add(self.stage)

    def resume(self) -> None:
        """See `Vertex.resume`."""
        if get_ident() != self._acting.thread:
            self._acting.refuse(self.title(), "asked to be resumed")
        if not self.wants_resume:
            self.wants_resume = True
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
        before = self.code.pack_wide((old,)) if self.opened is None else self.opened
        self.opened = None if new is None else self.code.pack_wide((new,))
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
        code = self.code
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
            self.source.let_rows_in()
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
            self.may_resume = self.wants_resume = False
            self.vertex.on_resume()

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

    def compared(self) -> object:
        """Return all that decides what it will do: without the order in which waiting times are kept,
        and events.
        """
        return (
            self.stage,
            self.inbox,
            (sorted(self.requested), self.due, sorted(self.held_words().items())),
            (self.is_queued, self.has_frontier_news, self.wants_resume, self.may_resume),
            [(connector.transform, connector.routing) for listed in self.outputs for connector in listed],
            self.vertex,
        )

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

    def find_due(self) -> bool:
        """Move requests to `due` that are so now: no time of a frontier is ≤ them. Return True if any is.

        `due` stays in order: a later request may be for an earlier time than one that is due already.
        """
        waiting = self._waiting
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
        fronts = frontiers[0]
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
        if len(inbox) == 1 and not self.notifies:
            port, location, word, batch = inbox[0]
            received.add(word)
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
        due, self.due = self.due, []
        checker, count, received = self._surroundings.checker, self._surroundings.count, self._received
        for word in due:
            self.requested.discard(word)
            received.add(word)
            if checker is not None:
                checker.on_notify(self.stage, word)
            self.events.append(("on_notify", word))
            vertex.on_notify(self.code.unpack(word))
            received.discard(word)
            count(self.stage, word, -1)
