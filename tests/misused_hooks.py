"""Dataflows in which one hook does what none may do, for tests to install by name: `misused_hooks:misused`.

A *hook* is a method that a user may override, a function that a user hands in, or a value that a user sets
while building. `HOOKS` lists them, most of them read from the classes themselves, so a new method is tested
as soon as it is there. A *misuse* is what happens in place of what the hook should do; `MISUSES` lists them.
"""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import ClassVar, Final, NoReturn

import pyarrow as pa

import timely
from progress.compiled.arrays import Int64s
from progress.times.time_words import TimeCode
from progress.times.timestamp import Timestamp
from timely.building.builders import Builder
from timely.dictionaries import Mark
from timely.operators.capture import RecordLog, RecordsOut
from timely.operators.constant import ConstantCodec
from timely.operators.imported import Exported, ImportCodec, ImportSource, Taken
from timely.operators.inputs.codecs import (
    FoldingCodec,
    InputCodec,
    OrderedCodec,
    PlainCodec,
    RecordsIn,
)
from timely.operators.outputs.output_log import OutputCodec, OutputLog
from timely.wire.batch import Batch, Records, register

__all__ = ["HOOKS", "MISUSES", "misused", "neighbour", "well_behaved"]

HUGE: Final = 1 << 200


class Odd(BaseException):
    """None of those that programs usually catch."""


class CannotBeToldError(Exception):
    """An error that fails when it is asked what it says."""

    def __str__(self) -> str:
        raise RuntimeError("this error cannot be told")

    __repr__ = __str__


class Hostile:
    """An object that fails whatever it is asked."""

    def _fail(self, *_: object) -> NoReturn:
        raise ValueError("this object answers nothing")

    __str__ = __repr__ = __len__ = __bool__ = __iter__ = __int__ = __index__ = _fail
    __hash__ = __lt__ = __gt__ = __add__ = __sub__ = __getitem__ = __eq__ = _fail


def _generator() -> Iterator[int]:
    yield 1


def _raising(error: Callable[[], BaseException]) -> Callable[[], object]:
    def fail() -> NoReturn:
        raise error()

    return fail


MISUSES: Final[dict[str, Callable[[], object]]] = {
    "raises ValueError": _raising(lambda: ValueError("a mistake")),
    "raises an error that cannot be told": _raising(CannotBeToldError),
    "raises PeerError": _raising(lambda: timely.PeerError("another cluster is gone")),
    "raises SystemExit": _raising(lambda: SystemExit(3)),
    "raises KeyboardInterrupt": _raising(KeyboardInterrupt),
    "raises GeneratorExit": _raising(GeneratorExit),
    "raises BaseException": _raising(lambda: Odd("none of the usual")),
    "gives None": lambda: None,
    "gives a text": lambda: "nonsense",
    "gives a text that is no text": lambda: "\ud800",
    "gives a huge number": lambda: HUGE,
    "gives a negative number": lambda: -7,
    "gives an unhashable list": lambda: [[{}]],
    "gives a generator": _generator,
    "gives an object that fails": Hostile,
    "differs between workers": lambda: f"process {os.getpid()}",
}
"""By name, what a hook does in place of its work."""


class Passes(timely.Vertex):
    """Sends on what it gets, and uses each call that a vertex has."""

    wants_frontier: ClassVar[bool] = True

    def __init__(self) -> None:
        self.held: list[int] = []

    def on_recv(self, edge: int, message: list[object], time: Timestamp) -> None:
        self.send_by(0, message, time)
        self.notify_at(time)
        self.held.append(self.code.pack(time))
        self.hold_word(self.held[-1])
        self.resume()
        self.activate()

    def on_activate(self) -> None:
        self.activator()

    def on_resume(self) -> None:
        while self.held:
            self.release_word(self.held.pop())

    def on_notify(self, time: Timestamp) -> None:
        self.send_by(0, ["notified"], time)

    def on_idle(self) -> bool:
        return False

    def on_rest(self) -> None:
        pass

    def symbols(self, mark: Mark) -> None:
        pass

    def rebase(self, by: object) -> None:
        pass


class TakesWords(timely.Vertex):
    """The same for a vertex that takes time words."""

    word_times: ClassVar[bool] = True
    wants_end: ClassVar[bool] = True

    def recv_all(self, port: int, messages: Sequence[tuple[int, Batch]]) -> None:
        for word, batch in messages:
            self.send(0, batch, word)

    def symbols(self, mark: Mark) -> None:
        pass

    def rebase(self, by: object) -> None:
        pass


class ByLength:
    """A route that knows what arrives by it."""

    def split(self, batch: Batch, word: int, routing: timely.Routing) -> list[Batch | None]:
        records = list(batch.records)  # type: ignore[attr-defined]
        parts = [records[index :: routing.workers] for index in range(routing.workers)]
        return [type(batch)(part) if part else None for part in parts]  # type: ignore[call-arg]

    def describe(self) -> str:
        return "by length"

    def check(self, batch: Batch, peer: int) -> None:
        pass


class Takes(RecordsIn):
    """The codec of an input."""


class Ordered(RecordsIn):
    """A codec for which the order of calls counts."""

    def ordered(self, batch: Batch, order: int, place: int) -> Batch:
        return batch


class Plain(RecordsIn):
    """A codec that takes plain rows."""

    def checked_rows(self, rows: object, diff: int) -> list[object]:
        assert isinstance(rows, list)
        return list(rows)

    def encode_rows(self, rows: list[object], diffs: list[int], epoch_word: int) -> Batch:
        return Records(list(rows))


class Folds(RecordsIn):
    """A codec that folds tables."""

    def encode_folded(self, table: pa.Table, diff: int | Int64s) -> list[Batch]:
        return [self.encode(table, 1, 0)]


class Log(RecordLog):
    """The log of an output."""


class Gives(RecordsOut):
    """The codec of an output."""

    log: Callable[[], OutputLog] = Log

    def new_log(self) -> OutputLog:
        return type(self).log()


class Source:
    """An import that brings nothing."""

    since = 0
    upper = None

    def begin(self, code: TimeCode, epoch: int, news: Callable[[], None]) -> None:
        pass

    def take(self, before: int) -> Taken:
        return Taken([], None, True)

    def close(self) -> None:
        pass

    def symbols(self, mark: Mark) -> None:
        pass


class Reads:
    """The codec of an import."""

    source: Callable[[], ImportSource] = Source

    def describe(self) -> str:
        return "nothing"

    def open(self, exported: Exported, reader: str) -> ImportSource:
        return type(self).source()


class Fixed:
    """Rows that never change."""

    def batch(self, word: int) -> Batch:
        return Records(["fixed"])

    def describe(self) -> str:
        return "one row"


@register
class Rows(Records):
    """A batch of a class that a user has written."""

    KIND: ClassVar[int] = 901


class Changed(Rows):
    """`Rows`, one method of which is misused: only what is sent within this process is of this class."""


class ToRows(TakesWords):
    """Makes `Rows` of records."""

    rows: type[Rows] = Rows

    def recv_all(self, port: int, messages: Sequence[tuple[int, Batch]]) -> None:
        for word, batch in messages:
            self.send(0, self.rows(list(batch.records)), word)  # type: ignore[attr-defined]


class ToRecords(TakesWords):
    """The way back."""

    def recv_all(self, port: int, messages: Sequence[tuple[int, Batch]]) -> None:
        for word, batch in messages:
            self.send(0, Records(list(batch.records)), word)  # type: ignore[attr-defined]


def _methods(of: type) -> list[str]:
    """The public methods and properties that a class declares, and what it sets for all its objects."""
    return [
        name
        for name, value in vars(of).items()
        if not name.startswith("_") and (callable(value) or isinstance(value, property | classmethod | bool))
    ]


_PARTS: Final[Mapping[str, tuple[type, type]]] = {
    "vertex": (timely.Vertex, Passes),
    "words": (timely.Vertex, TakesWords),
    "route": (timely.Route, ByLength),
    "taking": (InputCodec, Takes),
    "ordered": (OrderedCodec, Ordered),
    "plain": (PlainCodec, Plain),
    "folding": (FoldingCodec, Folds),
    "giving": (OutputCodec, Gives),
    "log": (OutputLog, Log),
    "reading": (ImportCodec, Reads),
    "source": (ImportSource, Source),
    "constant": (ConstantCodec, Fixed),
    "batch": (Batch, Rows),
}
"""By a short name: the class that declares the hooks, and one that keeps to it."""

_FUNCTIONS: Final = (
    "builder", "factory", "exchange", "transform", "rounds", "codec of input", "codec of output",
    "name of dataflow", "name of stage", "name of input", "name of output", "name of export", "name of probe",
    "name of loop", "level_bits", "outputs", "port", "detail", "lead", "times", "exchange as it is",
)  # fmt: skip
"""What is handed in, and is no method."""

_CALLS: Final = (
    "send_by",
    "send_by at",
    "notify_at",
    "send",
    "send at",
    "hold",
    "release",
    "frontier",
    "edge",
)
"""What a vertex hands over when it calls something."""

HOOKS: Final = (
    *(f"{part}.{name}" for part, (declares, _) in _PARTS.items() for name in _methods(declares)),
    "route.check",
    *(f"call.{name}" for name in _CALLS),
    *_FUNCTIONS,
)
"""All hooks, as `misused` takes them."""


def _calling(name: str, act: Callable[[], object]) -> type[Passes]:
    """A vertex that calls something with what `act` gives."""

    class Calls(Passes):
        def on_recv(self, edge: int, message: list[object], time: Timestamp) -> None:
            super().on_recv(edge, message, time)
            given, word = act(), self.code.pack(time)
            calls: dict[str, Callable[[], object]] = {
                "send_by": lambda: self.send_by(0, given, time),  # type: ignore[arg-type]
                "send_by at": lambda: self.send_by(0, message, given),  # type: ignore[arg-type]
                "notify_at": lambda: self.notify_at(given),  # type: ignore[arg-type]
                "send": lambda: self.send(0, given, word),  # type: ignore[arg-type]
                "send at": lambda: self.send(0, Records(message), given),  # type: ignore[arg-type]
                "hold": lambda: self.hold_word(given),  # type: ignore[arg-type]
                "release": lambda: self.release_word(given),  # type: ignore[arg-type]
                "frontier": lambda: self.frontier_words(given),  # type: ignore[arg-type]
                "edge": lambda: self.send_by(given, message, time),  # type: ignore[arg-type]
            }
            calls[name]()

    return Calls


def _misused_class(part: str, name: str, act: Callable[[], object]) -> type:
    declares, keeps = _PARTS[part]
    declared = inspect.getattr_static(declares, name, None)
    changed: object
    if isinstance(declared, property):
        changed = property(lambda self: act())
    elif isinstance(declared, classmethod):
        changed = classmethod(lambda cls, *args, **named: act())
    elif isinstance(declared, bool):
        try:
            changed = act()
        except BaseException:
            changed = Hostile()
    else:
        changed = lambda self, *args, **named: act()  # noqa: E731
    return type("Misused", (keeps,), {name: changed})


def misused_dataflow(
    dataflow: timely.Dataflow, hook: str, act: Callable[[], object], reads: int | str = "neighbour"
) -> None:
    """Add to `dataflow` what uses all hooks, one of which does what `act` does."""
    kept: dict[str, type] = {part: keeps for part, (_, keeps) in _PARTS.items()}
    part, _, name = hook.partition(".")
    if part == "call":
        kept["vertex"] = _calling(name, act)
    elif name:
        kept[part] = _misused_class(part, name, act)

    def value(which: str, well: object) -> object:
        return act() if hook == which else well

    def function(which: str, well: Builder) -> Builder:
        return (lambda *args, **named: act()) if hook == which else well

    if hook == "builder":
        act()
    if hook == "name of dataflow":
        dataflow.name = act()  # type: ignore[assignment]
    dataflow.level_bits = value("level_bits", (3, 10))  # type: ignore[assignment]
    kept["giving"] = type("GivesLog", (kept["giving"],), {"log": kept["log"]})
    kept["reading"] = type("ReadsSource", (kept["reading"],), {"source": kept["source"]})
    codec = value("codec of input", kept["taking"]())
    records: timely.Stream = dataflow.input(value("name of input", "records"), codec)  # type: ignore[call-overload]
    for other in ("ordered", "plain", "folding"):
        dataflow.output(f"all {other}", dataflow.input(other, kept[other]()))
    exchange = function("exchange", lambda record: len(str(record)))
    made = function("factory", kept["vertex"])
    (passed,) = dataflow.stage(
        value("name of stage", "passes"),  # type: ignore[arg-type]
        made,  # type: ignore[arg-type]
        [
            records.feed(
                value("port", 0),  # type: ignore[arg-type]
                route=kept["route"](),
                transform=function("transform", lambda batch: batch),  # type: ignore[arg-type]
                detail=value("detail", ""),  # type: ignore[arg-type]
            )
        ],
        outputs=value("outputs", 1),  # type: ignore[arg-type]
    )[:1]
    passed = passed.stage("by length", kept["words"], exchange=exchange)  # type: ignore[arg-type]
    if hook == "exchange as it is":
        passed = passed.stage("as it is", Passes, exchange=act())  # type: ignore[arg-type]
    wrapped = type("Wraps", (ToRows,), {"rows": kept["batch"]})
    rows = passed.stage("to rows", wrapped)
    (back,) = dataflow.stage("to records", ToRecords, [rows.feed(route=ByLength())])
    constant = dataflow.constant("fixed", kept["constant"]())
    imported = dataflow.imported(reads, "kept", kept["reading"]())
    _go_round(dataflow, hook, act, back)
    dataflow.probe(value("name of probe", "probe"), back)  # type: ignore[arg-type]
    dataflow.export(value("name of export", "passed"), passed)  # type: ignore[arg-type]
    (all_,) = dataflow.stage("all", TakesWords, [each.feed() for each in (back, constant, imported)])
    written = value("codec of output", kept["giving"]())
    dataflow.output(value("name of output", "rows"), all_, written)  # type: ignore[arg-type]
    if hook == "lead":
        dataflow.routing(lead=act())  # type: ignore[arg-type]


def _go_round(dataflow: timely.Dataflow, hook: str, act: Callable[[], object], back: timely.Stream) -> None:
    """A loop that stops, and, to be told of its last rounds, one that does not."""
    name = act() if hook == "name of loop" else "loop"
    times = act() if hook == "times" else 3
    with dataflow.loop(name, times=times) as loop:  # type: ignore[arg-type]
        entered = loop.enter(back)
        again = loop.feedback()
        (round_,) = dataflow.stage("round", TakesWords, [entered.feed(), again.stream.feed()])
        again.connect(round_, round_.feed())
    if hook == "rounds":
        with dataflow.loop("for ever") as loop:
            entered = loop.enter(back)
            again = loop.feedback()
            (round_,) = dataflow.stage("round", TakesWords, [entered.feed(), again.stream.feed()])
            feed = timely.Feed(round_, 0, describe=lambda last: act())  # type: ignore[arg-type, return-value]
            again.connect(round_, feed)


def _is_second(path: str) -> bool:
    try:
        os.close(os.open(path, os.O_CREAT | os.O_EXCL))
    except FileExistsError:
        return True
    return False


@timely.builder
def misused(dataflow: timely.Dataflow, hook: str, misuse: str, path: str = "") -> None:
    """One hook does what it may not; with a `path` only on the worker that builds last."""
    well = bool(path) and not _is_second(path)
    misused_dataflow(dataflow, "" if well else hook, MISUSES[misuse])


@timely.builder
def well_behaved(dataflow: timely.Dataflow) -> None:
    """All hooks do what they should."""
    misused_dataflow(dataflow, "", lambda: None)


@timely.builder
def neighbour(dataflow: timely.Dataflow) -> None:
    """A dataflow of somebody else: doubles numbers, and lets others read what it keeps."""
    dataflow.rename("neighbour")
    doubled = dataflow.input("numbers").stage("doubles", Doubles, exchange=_as_number)
    dataflow.export("kept", doubled)
    dataflow.output("doubled", doubled)


def _as_number(record: object) -> int:
    assert isinstance(record, int)
    return record


class Doubles(timely.Vertex):
    def on_recv(self, edge: int, message: list[object], time: Timestamp) -> None:
        self.send_by(0, [2 * _as_number(record) for record in message], time)
