"""A vertex: the instance of a stage on one worker.

    on_open(capability)              a source begins, and may act at the time of the capability or later
    on_recv(edge, message, time)     a message came in           (OnRecv)
    on_notify(time)                  no message at or before `time` can come in any more   (OnNotify)
    send_by(edge, message, time)     send                        (SendBy)
    notify_at(time)                  ask for on_notify           (NotifyAt)
    hold(time)                       keep the right to act at `time`: a capability

A callback at `t` may send and ask only at times ≥ t. `on_notify(t)` comes after every `on_recv` at times ≤ t.
Callbacks are queued, never re-entered: a message that a vertex sends to itself arrives in a later activation.
All of them run in the thread of the worker. A vertex sends and asks in that thread only; in another one each
of these calls raises `MisuseError` and does nothing.

Times are tuples here. A vertex class with `word_times = True` gets *time words* instead
(`progress.times.time_words`) and whole activations: `recv_all` once for all messages waiting at a port,
`on_frontier` after an input frontier has changed. Operators of `differential` are written so; so can yours
be; they hold words by `hold_word` and `release_word`. Source: Naiad, section 2.2, and the capabilities of
timely dataflow.
"""

from __future__ import annotations

from collections.abc import Awaitable, Iterable, Iterator, Sequence
from operator import index
from time import monotonic
from typing import ClassVar, Final, NamedTuple, NoReturn, Protocol

import pyarrow as pa

from progress.compiled.arrays import Int64s
from progress.errors import MisuseError, TimeOverflowError
from progress.times.anchor import Rebase
from progress.times.time_words import TimeCode
from progress.times.timestamp import Timestamp

from ..counted import counted
from ..dictionaries import Mark
from ..errors import TimelyError
from ..user_code.call_site import CallSite
from ..user_code.offered import offered
from ..user_code.vertex_calls import check_result
from ..user_code.vertex_spellings import AnswersOfVertices
from ..wire.batch import Batch, Records, Transform
from ..wire.frames.table_batch import TableBatch
from ..wire.nesting import is_one_record
from ..wire.routing import Routing
from .activator import Activator, seconds_of_clock
from .capability import Capability


class Outlet(Protocol):
    """A connector of an output, with the attributes that the vertex may change."""

    transform: Transform | None
    routing: Routing


class Feeder(NamedTuple):
    """A vertex of this worker that sends to another one, and the effect of its connector.

    A time `t` arrives as `(t & keep) + add`; `is_plain`: batches arrive unchanged, on the same worker.
    """

    vertex: Vertex | None
    name: str
    code: TimeCode
    keep: int
    add: int
    is_plain: bool


class Runner(Protocol):
    """The runner of a vertex, as the vertex sees it; `running/stages/vertex_runner.py` implements it."""

    wants_frontier: bool
    """True if the vertex has a turn when a frontier moves."""
    has_frontier_news: bool
    """True if a frontier has moved, and the vertex has not heard of it."""

    @property
    def sends_far(self) -> bool:
        """True if it takes batches of epochs that no word holds yet, and sends them later."""
        ...

    @property
    def is_calm(self) -> bool:
        """True if no vertex of this dataflow waits for a turn on this worker, and none has failed."""
        ...

    def wake(self) -> None:
        """Ask for a turn."""
        ...

    @property
    def code(self) -> TimeCode:
        """How words pack times here."""
        ...

    @property
    def vertex_code(self) -> TimeCode:
        """The code of words that the vertex keeps: if it has no `rebase`, they never change."""
        ...

    @property
    def worker(self) -> int:
        """Index of the worker."""
        ...

    @property
    def workers(self) -> int:
        """The number of all workers."""
        ...

    @property
    def name(self) -> str:
        """Name of the stage."""
        ...

    def leads(self, output: int) -> Sequence[Outlet]:
        """See `Vertex.connectors`."""
        ...

    def feeding(self, port: int) -> list[Feeder]:
        """Return the vertices that send to input `port` on this worker."""
        ...

    def title(self) -> str:
        """Return the name of the vertex, as errors say it."""
        ...

    def one_by_one(self, messages: Sequence[tuple[int, Batch]]) -> Iterator[tuple[int, Batch]]:
        """Yield the messages in turn. While one is handled, its time alone gives the right to send and
        to ask.
        """
        ...

    def send(self, output: int, batch: Batch, word: int) -> None:
        """See `Vertex.send`."""
        ...

    def request(self, word: int) -> None:
        """See `Vertex.notify_at`."""
        ...

    def request_at(self, word: int, at: int) -> None:
        """Ask for a notification of `word`, which gives the right to act at `at`: see `Vertex.notify_at`."""
        ...

    def lose(self, time: Timestamp, site: CallSite) -> None:
        """Take note that a capability is gone and was not dropped: the vertex fails. Any thread may call
        this.
        """
        ...

    def hold(self, word: int) -> None:
        """See `Vertex.hold_word`."""
        ...

    def release(self, word: int) -> None:
        """See `Vertex.release_word`."""
        ...

    def resume(self) -> None:
        """See `Vertex.resume`."""
        ...

    def activate_at(self, moment: float | None) -> None:
        """Ask for `on_activate` at a moment of the monotonic clock; None: at once."""
        ...

    def activator(self) -> Activator:
        """See `Vertex.activator`."""
        ...

    def frontier(self, port: int) -> Int64s:
        """See `Vertex.frontier_words`."""
        ...

    def first(self, port: int) -> int | None:
        """Return the first word of `frontier`, None if that is empty."""
        ...


class _NoRunner:
    """The runner of a vertex that has none yet."""

    def __get__(self, vertex: Vertex | None, owner: type[Vertex]) -> NoReturn:
        if vertex is None:
            raise AttributeError("only a vertex has a runner, not its class")
        raise MisuseError(
            f"{owner.__name__} is not part of a running dataflow yet: its worker, name, code and frontiers "
            "are there from on_start on, and it sends and asks in callbacks, not in __init__"
        )


_FOR_THE_RUNTIME: Final = frozenset(
    ("bind", "catch_up", "check_arrived", "code", "compared", "connectors", "feeding", "first_asked")
    + ("is_patient", "lose", "rebase", "rebind", "takes_only_records", "wants_end", "word_at")
)
"""Names of a vertex that the runtime and our own operators use, which tab completion leaves out."""


_NEVER: Final = (None, 0)


class Vertex(AnswersOfVertices):
    """Base class of all vertices; subclass it and override the callbacks that you need."""

    word_times: ClassVar[bool] = False
    wants_frontier: ClassVar[bool] = False
    wants_end: ClassVar[bool] = False
    keeps: ClassVar[str] = ""
    """"nothing" if what it does in an epoch depends on the rows of that epoch alone. Then a durable cluster
    need not keep rows of old epochs for it. Any other text: it may need all of them."""
    takes_only_records: ClassVar[bool] = False
    """True if `on_recv` does not take a table in place of a list of records."""
    is_patient: ClassVar[bool] = False
    """True if rows from a loop may wait until other vertices have nothing to do: they come together then."""

    _now: tuple[Timestamp | None, int] = _NEVER
    """While `on_recv` runs, the time that it got, and its word: mostly it sends and asks at that time."""
    _bound: Runner | None = None
    _runner: Runner = _NoRunner()  # type: ignore[assignment]  # `bind` puts the runner over it

    # What a vertex overrides. on_open, on_recv, on_notify and on_activate may be coroutine functions.

    def on_start(self) -> None:
        """Called once, when the vertex is in place and before any message arrives; `self.code` is usable from
        here on.
        """

    def on_open(self, capability: Capability) -> Awaitable[None] | None:
        """Called once at a vertex of a source (`Dataflow.source`), before its other callbacks, with the right
        to act at the first epoch.

        Keep the capability, and downgrade it where an epoch is over. Drop it where no record comes any more.
        """
        raise MisuseError(f"{self!r} is a source, but its class defines no on_open(capability): {capability}")

    def on_recv(self, edge: int, message: list[object], time: Timestamp) -> Awaitable[None] | None:
        """Called when `message`, a list of records, has come in at input `edge` (0 for the first) at `time`;
        or an Arrow table, if a table was sent.

        The list is the vertex's own. Other vertices may hold its records as well, so do not change these.
        """
        del message
        raise MisuseError(
            f"{self!r} got a message at input {edge} at {time}, but its class defines no on_recv"
        )

    def on_notify(self, time: Timestamp) -> Awaitable[None] | None:
        """Called for each time passed to `notify_at`, when no message at or before `time` can come in
        any more.
        """
        raise MisuseError(f"{self!r} asked for notification at {time}, but its class defines no on_notify")

    def recv_all(self, port: int, messages: Sequence[tuple[int, Batch]]) -> None:
        """Called with all messages waiting at input `port`, as (envelope time word, batch), in order of
        arrival.

        The default hands each to `on_recv` with its time as a tuple.
        """
        code = self.code
        try:
            for word, batch in self._runner.one_by_one(messages):
                time = code.unpack(word)
                self._now = time, word
                if isinstance(batch, Records):
                    # Make a new list: the same batch may be at other vertices, too.
                    check_result(self, "on_recv", self.on_recv(port, list(batch.records), time))
                elif isinstance(batch, TableBatch):
                    if self.takes_only_records:
                        raise MisuseError(
                            f"{self!r} takes Python records, and got a table of "
                            f"{counted(batch.rows, 'row')}. Write timely.tables(stream) before the "
                            "operator: then its function gets tables"
                        )
                    check_result(self, "on_recv", self.on_recv(port, batch.table, time))
                else:
                    raise MisuseError(
                        f"{self!r} takes Python records, but input {port} got {type(batch).__name__}; "
                        "override recv_all for other batches"
                    )
        finally:  # words may count from another epoch later
            self._now = _NEVER

    def check_arrived(self, port: int, batch: Batch, peer: int) -> None:
        """Called when a batch of worker `peer` has come in, before `recv_all` gets it: check words here that
        will be used as indexes into memory.

        An error that it raises ends the dataflow. A `PeerError` of one of our own classes ends this worker,
        as other messages do that no worker may send.
        """

    def on_frontier(self) -> None:
        """Called when the frontier of an input has changed, if the class has `wants_frontier = True`; or when
        nothing will ever come in at an input any more, if it has `wants_end = True`.
        """

    def on_idle(self) -> bool:
        """Called while the worker has nothing else to do, for work that may wait (merging, for example).
        Return True if more of it is left.

        It should take well under a millisecond. It may not send.
        """
        return False

    def on_rest(self) -> None:
        """Called when the worker has had nothing to do for a while (`REST_SECONDS_MIN`), before `on_idle`:
        the time for work that does not pay earlier.
        """

    def on_resume(self) -> None:
        """Called once after `resume`, when others have had their turn; it may send at times that are held."""
        raise MisuseError(f"{self!r} asked to be resumed, but its class defines no on_resume")

    def on_activate(self) -> Awaitable[None] | None:
        """Called once after `activate`, or after an `Activator` of this vertex was used; it may send at times
        that are held.
        """
        raise MisuseError(f"{self!r} asked to be activated, but its class defines no on_activate")

    def on_end(self, reason: TimelyError | None) -> None:
        """Called once when nothing will be delivered any more: with the error that clients get from now on,
        if its dataflow has failed, was uninstalled or is refused, a worker was lost, or an interrupt came;
        with None if the cluster is closed in good order. Not called if it has not started.

        The place to close files and connections. It may not send, hold or ask; dropping a capability does
        nothing. What it raises is logged, and harms nobody. A process that is killed does not call it.
        """

    def counters(self) -> dict[str, int]:
        """Return numbers about this vertex that `cluster.stats()` shows, by name: its memory, for example."""
        return {}

    def compared(self) -> object:
        """Return all that decides what it will do, for a checker that compares states of workers
        (`running/checking/comparable.py`).

        By default these are its attributes. A vertex may leave out what only people read, or sort what it
        keeps in an order that it never looks at: a checker then has fewer states to go through.
        """
        return {name: part for name, part in vars(self).items() if name not in ("_bound", "_now", "_runner")}

    def symbols(self, mark: Mark) -> None:
        """Show `mark` all arrays and batches that it keeps from one activation to the next and that may
        have words in them that stand for values. Words that no vertex shows are forgotten. Showing too many
        does no harm.

        Each class has its own method: an inherited one shows nothing that the class has added. While a vertex
        runs that takes more than records, and whose class has no such method, nothing is forgotten, and
        `cluster.stats()` names the vertex. A class that keeps no words has `def symbols(self, mark): pass`.
        """
        mark.unknown(repr(self))

    def rebase(self, by: Rebase) -> None:
        """Count time words from a later epoch: each word kept here becomes `by.word(word)`, rows become
        `by.rows(rows)`. Nothing that is still to be done is earlier than that epoch. Words kept of the
        past, if any, count as of that epoch: `by.early`.

        Called between activations, when epochs have gone on for as long as words last: a hundred thousand of
        them, or more than there are, depending on how deeply loops nest. Do not send here; calling `resume`
        is allowed. Times as tuples do not change.

        A class that does not override this keeps its words as they are, for ever: what it holds and asks for
        is translated (`lasting_words.py`), and words of late epochs are Python integers of more than 63 bits.
        That is the simplest for records. A vertex that takes batches whose rows have times of their own must
        override it; if it does not, the move is an error, which ends its dataflow.
        """

    def catch_up(self) -> None:
        """Called before `rebase`, while words count from the old epoch: the last moment for work that was put
        off, and needs to know the epochs of words. It may not send.
        """

    def first_asked(self) -> int | None:
        """Return the first epoch that a reader outside of this dataflow may still ask about here; None if
        there is no such reader.
        """
        return None

    def report(self) -> dict[str, object]:
        """Return what `cluster.stats()` shows of this vertex beside its counters: plain values, by name."""
        return {}

    # What a vertex calls.

    def send_by(self, edge: int, message: Sequence[object], time: Timestamp) -> None:
        """Send `message`, a list of records, by output `edge` (0 for the first) at `time`; or an Arrow table,
        or a record batch, which arrives as a table.

        Raises MisuseError for a single record in its place: text, a dict, a tuple of plain values.
        """
        if type(message) is list:  # fast path: looking for other kinds takes half a microsecond
            records = message.copy()
        elif isinstance(message, (pa.Table, pa.RecordBatch)):
            self.send(edge, TableBatch.of(message), self.word_at(time, "send_by(edge, message, time)"))
            return
        elif is_one_record(message) or not isinstance(message, Iterable):
            raise MisuseError(
                f"{self!r} sends {message!r:.80}: a message is a list of records, write [{message!r:.80}]"
            )
        else:
            records = list(message)
        if records:
            runner, call = self._runner, "send_by(edge, message, time)"
            runner.send(edge, Records(records), self.word_at(time, call, may_be_far=runner.sends_far))

    def notify_at(self, time: Timestamp, *, at: Timestamp | None = None) -> None:
        """Ask for `on_notify(time)`; asking twice for one time gives one call.

        The time counts as open until `on_notify` has returned, which may act at `time` or later. With `at`,
        the same time or a later one, it may act at `at` or later only, and times before `at` do not wait for
        it: for work that puts nothing out, or only later.
        """
        word = self.word_at(time, "notify_at(time)")
        if at is None:
            self._runner.request(word)
            return
        later = self.word_at(at, "notify_at(time, at=later)")
        if not self._runner.code.shape.less_equal(tuple(time), tuple(at)):
            raise MisuseError(
                f"{self!r} calls notify_at({time!r:.80}, at={at!r:.80}): `at` is the same time or a later one"
            )
        self._runner.request_at(word, later)

    def send(self, output: int, batch: Batch, word: int) -> None:
        """Send a batch at the time `word`, which must be at or after a time that the vertex received now or
        holds.
        """
        try:
            rows = batch.rows
        except AttributeError:
            if isinstance(batch, (list, tuple, str, bytes, dict, set)):
                raise MisuseError(
                    f"{self!r} calls send(output, batch, word) with a {type(batch).__name__}, which is no "
                    "batch: records go by send_by(output, records, time)"
                ) from None
            raise
        if rows:
            self._runner.send(output, batch, word)

    def hold(self, time: Timestamp) -> Capability:
        """Keep the right to send, hold and ask at `time` or later after this callback: as long as the
        capability that this returns is not dropped, an epoch at which it holds a time is not complete.

        Keep a reference to it until then: a capability that nothing refers to any more ends the dataflow,
        with its line. Times may be any number of epochs ahead.
        """
        return Capability(self, time)

    def hold_word(self, word: int) -> None:
        """Keep the right to send at times ≥ `word` after this activation; holds of one word are counted.

        The word of a time is `self.code.pack(time)`. An epoch at which a time is held is not complete until
        `release_word(word)`.
        """
        try:
            self._runner.hold(word)
        except TypeError:
            self._check_word("hold_word", "hold(time)", word)
            raise

    def release_word(self, word: int) -> None:
        """Give up one hold of `word`."""
        try:
            self._runner.release(word)
        except TypeError:
            self._check_word("release_word", "drop() of what hold(time) has returned", word)
            raise

    def resume(self) -> None:
        """Ask for one call of `on_resume` in a later activation; asking twice before it gives one call.

        For work that is too much for one activation: do a piece, hold the times of what is left, resume.
        """
        self._runner.resume()

    def activate(self, after: float = 0.0, *, at: float | None = None) -> None:
        """Ask for one call of `on_activate` in `after` seconds, or at the moment `at` of `time.monotonic()`;
        at once by default: after others have had their turn.

        Several calls ask for several turns; those that are due together become one. Hold the times that shall
        not be complete before.
        """
        moment = seconds_of_clock("activate(at=…)", at) if at is not None else None
        delay = seconds_of_clock("activate(after=…)", after)
        self._runner.activate_at(moment if moment is not None or delay <= 0 else monotonic() + delay)

    def activator(self) -> Activator:
        """Return an object by which any thread may ask for `on_activate`: `activator.activate()`."""
        return self._runner.activator()

    def frontier(self, port: int) -> list[Timestamp]:
        """Return the minimal times at or after which records may still come in at `port`; empty when nothing
        ever will.

        It is a worker's view: it may be behind the truth, never ahead.
        """
        unpack = self.code.unpack
        return [unpack(int(word)) for word in self._runner.frontier(port)]

    def frontier_words(self, port: int) -> Int64s:
        """Return the words of `frontier`, sorted."""
        return self._runner.frontier(port)

    def connectors(self, output: int) -> Sequence[Outlet]:
        """Return the connectors of `output`; a vertex may take over a connector's transform before it
        sends.
        """
        return self._runner.leads(output)

    def feeding(self, port: int) -> list[Feeder]:
        """Return the vertices that send to input `port` on this worker, for vertices that share state with
        those that feed them. Not all of these have started when `on_start` is called.
        """
        return self._runner.feeding(port)

    @property
    def code(self) -> TimeCode:
        """How words pack times of this vertex's scope."""
        return self._runner.vertex_code

    @property
    def worker(self) -> int:
        """Index of the worker that the vertex lives on."""
        return self._runner.worker

    @property
    def workers(self) -> int:
        """The number of all workers."""
        return self._runner.workers

    @property
    def name(self) -> str:
        """Name of its stage."""
        return self._runner.name

    def bind(self, runner: Runner) -> None:
        """Put the vertex in its place; called once by the worker."""
        if self._bound is not None:
            raise MisuseError(
                f"{self!r} is used for two stages: give `stage` the class or a function that makes a new "
                "vertex each time"
            )
        self._bound = self._runner = runner
        self.on_start()

    def _check_word(self, call: str, instead: str, word: object) -> None:
        """Raise `MisuseError` for a time where a word belongs."""
        if isinstance(word, (tuple, list)):
            raise MisuseError(
                f"{self!r} calls {call}(word) with the time {word!r:.80}: a word is a whole number that "
                f"stands for a time. Write {instead}"
            ) from None

    def word_at(self, time: Timestamp, call: str, *, may_be_far: bool = False) -> int:
        """Return the word of a time, perhaps a wide one if it `may_be_far`; raise `MisuseError`, which names
        the call, if it is no time of this scope.
        """
        now, word = self._now
        if time is now:
            return word
        code = self._runner.code
        try:
            for number in time:
                if type(number) is not int:  # one of NumPy would overflow where a word is made of it
                    time = tuple(index(each) for each in time)
                    break
            return code.pack_wide(time) if may_be_far and time else code.pack(time)
        except TimeOverflowError:
            if any(coordinate < 0 for coordinate in time):
                raise MisuseError(
                    f"{self!r} calls {call} with the time {time!r:.80}: no number of a time is below 0"
                ) from None
            raise
        except (TypeError, MisuseError):
            raise MisuseError(
                f"{self!r} calls {call} with the time {time!r:.80}: a time is a tuple of whole numbers, as "
                "on_recv and on_notify get it, here of "
                f"{counted(self.code.shape.coordinates, 'number')}: {(0,) * self.code.shape.coordinates}"
            ) from None

    def lose(self, time: Timestamp, site: CallSite) -> None:
        """Take note that a capability at `time`, made at `site`, is gone and was not dropped."""
        self._runner.lose(time, site)

    def rebind(self, runner: Runner) -> None:
        """Let `runner` stand between the vertex and its present runner, which calls this."""
        self._bound = self._runner = runner

    def __dir__(self) -> list[str]:
        """Return what a vertex of a user overrides and calls. What the runtime calls is left out."""
        return offered(self, _FOR_THE_RUNTIME)

    def __repr__(self) -> str:
        if self._bound is None:
            return f"{type(self).__name__} (not running)"
        return self._bound.title()
