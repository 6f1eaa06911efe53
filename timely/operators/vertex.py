"""A vertex: the instance of a stage on one worker.

    on_recv(edge, message, time)     a message came in           (OnRecv)
    on_notify(time)                  no message at or before `time` can come in any more   (OnNotify)
    send_by(edge, message, time)     send                        (SendBy)
    notify_at(time)                  ask for on_notify           (NotifyAt)

A callback at `t` may send and ask only at times ≥ t. `on_notify(t)` comes after every `on_recv` at times ≤ t.
Callbacks are queued, never re-entered: a message that a vertex sends to itself arrives in a later activation.
All of them run in the thread of the worker. A vertex sends and asks in that thread only; in another one each
of these calls raises `MisuseError` and does nothing.

Times are tuples here. A vertex class with `word_times = True` gets *time words* instead
(`progress.times.time_words`) and whole activations: `recv_all` once for all messages waiting at a port,
`on_frontier` after an input frontier has changed. Operators of `differential` are written so; so can yours
be. Source: Naiad, section 2.2; the capability calls `hold` and `release` are those of timely dataflow.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import ClassVar, Final, NamedTuple, NoReturn, Protocol

from progress.compiled.arrays import Int64s
from progress.errors import MisuseError, TimeOverflowError
from progress.times.anchor import Rebase
from progress.times.time_words import TimeCode
from progress.times.timestamp import Timestamp

from ..counted import counted
from ..dictionaries import Mark
from ..user_code.offered import offered
from ..wire.batch import Batch, Records, Transform
from ..wire.nesting import is_one_record
from ..wire.routing import Routing


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

    def hold(self, word: int) -> None:
        """See `Vertex.hold`."""
        ...

    def release(self, word: int) -> None:
        """See `Vertex.release`."""
        ...

    def resume(self) -> None:
        """See `Vertex.resume`."""
        ...

    def frontier(self, port: int) -> Int64s:
        """See `Vertex.frontier`."""
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
    {
        "bind",
        "catch_up",
        "check_arrived",
        "code",
        "compared",
        "connectors",
        "feeding",
        "first_asked",
        "is_patient",
        "rebase",
        "rebind",
        "wants_end",
    }
)
"""Names of a vertex that the runtime and our own operators use, which tab completion leaves out."""


class Vertex:
    """Base class of all vertices; subclass it and override the callbacks that you need."""

    word_times: ClassVar[bool] = False
    wants_frontier: ClassVar[bool] = False
    wants_end: ClassVar[bool] = False
    is_patient: ClassVar[bool] = False
    """True if rows from a loop may wait until other vertices have nothing to do: they come together then."""

    _bound: Runner | None = None
    _runner: Runner = _NoRunner()  # type: ignore[assignment]  # `bind` puts the runner over it

    # What a vertex overrides.

    def on_start(self) -> None:
        """Called once, when the vertex is in place and before any message arrives; `self.code` is usable from
        here on.
        """

    def on_recv(self, edge: int, message: list[object], time: Timestamp) -> None:
        """Called when `message`, a list of records, has come in at input `edge` (0 for the first) at `time`.

        The list is the vertex's own. Other vertices may hold its records as well, so do not change these.
        """
        del message
        raise MisuseError(
            f"{self!r} got a message at input {edge} at {time}, but its class defines no on_recv"
        )

    def on_notify(self, time: Timestamp) -> None:
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
        for word, batch in self._runner.one_by_one(messages):
            if not isinstance(batch, Records):
                raise MisuseError(
                    f"{self!r} takes Python records, but input {port} got {type(batch).__name__}; override "
                    "recv_all for other batches"
                )
            # Make a new list: the same batch may be at other vertices, too.
            self.on_recv(port, list(batch.records), code.unpack(word))

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

    def counters(self) -> dict[str, int]:
        """Return numbers about this vertex that `cluster.stats()` shows, by name: its memory, for example."""
        return {}

    def compared(self) -> object:
        """Return all that decides what it will do, for a checker that compares states of workers
        (`running/checking/comparable.py`).

        By default these are its attributes. A vertex may leave out what only people read, or sort what it
        keeps in an order that it never looks at: a checker then has fewer states to go through.
        """
        return {name: part for name, part in vars(self).items() if name not in ("_bound", "_runner")}

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
        """Send `message`, a list of records, by output `edge` (0 for the first) at `time`.

        Raises MisuseError for a single record in its place: text, a dict, a tuple of plain values.
        """
        if is_one_record(message) or not isinstance(message, Iterable):
            raise MisuseError(
                f"{self!r} sends {message!r:.80}: a message is a list of records, write [{message!r:.80}]"
            )
        records = list(message)
        if records:
            self._runner.send(edge, Records(records), self._word_of(time, "send_by(edge, message, time)"))

    def notify_at(self, time: Timestamp) -> None:
        """Ask for `on_notify(time)`; asking twice for one time gives one call."""
        self._runner.request(self._word_of(time, "notify_at(time)"))

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

    def hold(self, word: int) -> None:
        """Keep the right to send at times ≥ `word` after this activation; holds of one word are counted.

        The word of a time is `self.code.pack(time)`. An epoch at which a time is held is not complete until
        `release(word)`.
        """
        try:
            self._runner.hold(word)
        except TypeError:
            self._check_word("hold", word)
            raise

    def release(self, word: int) -> None:
        """Give up one hold of `word`."""
        try:
            self._runner.release(word)
        except TypeError:
            self._check_word("release", word)
            raise

    def resume(self) -> None:
        """Ask for one call of `on_resume` in a later activation; asking twice before it gives one call.

        For work that is too much for one activation: do a piece, hold the times of what is left, resume.
        """
        self._runner.resume()

    def frontier(self, port: int) -> Int64s:
        """Return the minimal time words that may still come in at `port`, sorted; empty when nothing ever
        will.

        It is a worker's view: it may be behind the truth, never ahead.
        """
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

    def _check_word(self, call: str, word: object) -> None:
        """Raise `MisuseError` for a time where a word belongs."""
        if isinstance(word, (tuple, list)):
            raise MisuseError(
                f"{self!r} calls {call}(word) with the time {word!r:.80}: a word is a whole number that "
                f"stands for a time. Write {call}(self.code.pack(time))"
            ) from None

    def _word_of(self, time: Timestamp, call: str) -> int:
        try:
            return self._runner.code.pack(time)
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
