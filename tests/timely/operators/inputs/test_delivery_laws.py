"""What counts of the deliveries to one input, in whatever order they come: against the plain rule.

laws_*   random histories through the door of a worker, beside a twin that forgets nothing and looks through
         everything for each question. Insertions, appends by epoch, insertions in parts and attempts of
         tasks share their names on purpose: these are four lines of numbers, and none knows of another.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

import msgpack
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

import timely
from timely.client.tables import records_of
from timely.errors import TimelyError
from timely.limits import ATTEMPT_SECONDS_MAX, STAGED_SECONDS_MAX
from timely.operators.capture import FOREVER
from timely.operators.inputs.deliveries import COMMIT_SECONDS_MAX
from timely.running.core import Worker
from timely.wire.requests import (
    BY_COLUMN,
    IN_EPOCH,
    IN_OPEN,
    WHEN_NAMED,
    Decide,
    Deliver,
    Drop,
    Missing,
    Reply,
    Request,
    Value,
)
from timely.worker.server import Server

Outcome = tuple[object, ...] | str
"""What a call returns, or the class of the error that it raises."""


class Door:
    """One worker with one input of records, asked as clients ask it."""

    def __init__(self) -> None:
        self.now = 0.0
        self._worker = Worker()
        self._server = Server(self._worker)
        dataflow = timely.Dataflow("passing")
        dataflow.output("out", dataflow.input("in"))
        self._instance = self._worker.install(dataflow.freeze())
        self._input = self._instance.input("in")
        self._input.deliveries._clock = lambda: self.now

    def _ask(self, request: Request, rows: pa.Table | None, *values: str) -> Outcome:
        try:
            reply = self._server.handle(request, rows)
        except TimelyError as error:
            return type(error).__name__
        assert isinstance(reply, Reply)
        told = dict(reply.values)
        match told.get("entered"):
            case [[is_new, epoch]]:
                told |= {"is_new": is_new, "epoch": epoch}
        match told.get("queries"):
            case [[last, rows_in, opened, seconds]]:
                told |= {"last": last, "last_rows": rows_in, "open": opened, "seconds": seconds}
        return tuple(told[value] for value in values)

    def insert(self, writer: str, number: int, row: int) -> Outcome:
        return self._ask(Deliver(0, "in", writer, number, IN_OPEN, 0, 1), table([row]), "is_new", "epoch")

    def append(self, epoch: int, writer: str, number: int, row: int) -> Outcome:
        return self._ask(Deliver(0, "in", writer, number, IN_EPOCH, epoch, 1), table([row]), "is_new")

    def append_epochs(self, epochs: Sequence[int], writer: str, number: int, row: int) -> Outcome:
        rows = table([row] * len(epochs)).append_column("at", pa.array(epochs))
        return self._ask(Deliver(0, "in", writer, number, BY_COLUMN, 0, 1, column="at"), rows, "is_new")

    def missing(self, epoch: int, names: Iterable[tuple[str, int]]) -> Outcome:
        expected: list[Value] = [["in", *name] for name in names]
        return self._ask(Missing(0, epoch, expected), None, "missing")

    def stage(self, writer: str, number: int, part: int, row: int) -> Outcome:
        return self._ask(
            Deliver(0, "in", writer, number, WHEN_NAMED, 0, 1, part=part), table([row]), "is_new"
        )

    def enter(self, writer: str, number: int, parts: int | None) -> Outcome:
        entry: list[Value] = ["in", writer, number] if parts is None else ["in", writer, number, parts]
        return self._ask(Decide(0, 0, enter=[entry]), None, "is_new", "epoch")

    def attempt(self, query: str, batch: int, attempt: str, part: int, row: int) -> Outcome:
        request = Deliver(0, "in", query, batch, WHEN_NAMED, 0, 1, part=part, attempt=attempt)
        return self._ask(request, table([row]), "is_new")

    def check(self, query: str, batch: int, attempts: Sequence[tuple[str, int]]) -> Outcome:
        names: list[Value] = [["in", query, batch, *one] for one in attempts]
        request = Missing(0, -1, names, [["in", query]])
        return self._ask(request, None, "missing", "last", "last_rows", "open", "seconds")

    def commit(
        self, query: str, batch: int, attempts: Sequence[str], stream: str, may_skip: bool, looked: int
    ) -> Outcome:
        request = Decide(
            0, -1, batch == 1, enter=[["in", query, batch, list(attempts), stream, may_skip, looked]]
        )
        return self._ask(request, None, "is_new", "epoch", "open")

    def drop(self, query: str, batch: int, attempts: Sequence[str]) -> None:
        names: list[Value] = [["in", query, batch, attempt] for attempt in attempts]
        self._ask(Drop(0, names or [["in", query, batch]]), None)

    def seal(self, epoch: int) -> Outcome:
        return self._ask(Decide(0, epoch, True), None, "open")

    def seal_behind(self, epoch: int, names: Iterable[tuple[str, int]]) -> Outcome:
        after: list[Value] = [["in", *name] for name in names]
        return self._ask(Decide(0, epoch, True, after), None, "sealed", "open")

    def close(self) -> None:
        self._ask(Decide(0, -1, close=["in"]), None)

    def wait(self, seconds: float) -> None:
        self.now += seconds
        self._input.tidy()

    @property
    def staged_batches(self) -> int:
        """How many batches wait for a decision."""
        return len(self._input.deliveries.batches())

    @property
    def staged_bytes(self) -> int:
        """How much memory they take."""
        return self._input.deliveries.staged_bytes

    def entered(self) -> Counter[tuple[int, object]]:
        """The rows that came out, by epoch."""
        self._worker.run_until_idle()
        return Counter(records_of(self._instance.output("out").log.changes(0, FOREVER)))


def table(rows: Sequence[int]) -> pa.Table:
    """Records as an input takes them."""
    return pa.table({"record": [msgpack.packb(row) for row in rows]})


@dataclass
class Part:
    """Rows that were staged, when, and whether a commit check has found them."""

    row: int
    at: float


@dataclass
class Plainly:
    """The twin: lists of all that ever came."""

    now: float = 0.0
    open: int = 0
    is_closed: bool = False
    inserted: list[tuple[str, int]] = field(default_factory=list)
    appended: list[tuple[int, str, int]] = field(default_factory=list)
    spread: dict[tuple[str, int], int] = field(default_factory=dict)
    staged: dict[tuple[str, int], dict[int, Part]] = field(default_factory=dict)
    attempts: dict[tuple[str, int, str], dict[int, Part]] = field(default_factory=dict)
    heard: dict[tuple[str, int, str], float] = field(default_factory=dict)
    checked: set[tuple[str, int, str]] = field(default_factory=set)
    last_epoch: dict[str, int] = field(default_factory=dict)
    """Of each writer of insertions: the last epoch that one has entered."""
    committed: list[tuple[str, int, int]] = field(default_factory=list)
    streams: dict[str, str] = field(default_factory=dict)
    rows: Counter[tuple[int, object]] = field(default_factory=Counter)

    def insert(self, writer: str, number: int, row: int) -> Outcome:
        if (writer, number) in self.inserted:
            return False, self.open
        if self.is_closed:
            return "InputClosedError"
        self.inserted.append((writer, number))
        self.last_epoch[writer] = self.open
        self.rows[self.open, row] += 1
        return True, self.open

    def _is_remembered(self, epoch: int) -> bool:
        """Appends to the epoch that was sealed last are known until the next one is."""
        return epoch >= self.open - 1

    def append(self, epoch: int, writer: str, number: int, row: int) -> Outcome:
        if self._is_remembered(epoch) and (epoch, writer, number) in self.appended:
            return (False,)
        if self.is_closed or epoch < self.open:
            return "InputClosedError"
        self.appended.append((epoch, writer, number))
        self.rows[epoch, row] += 1
        return (True,)

    def append_epochs(self, epochs: Sequence[int], writer: str, number: int, row: int) -> Outcome:
        known = [epoch for epoch in epochs if self._is_remembered(epoch)]
        came = [epoch for epoch in known if (epoch, writer, number) in self.appended]
        if 0 < len(came) < len(known):
            return "MisuseError"
        if came:
            return (False,)
        if self.is_closed or epochs[0] < self.open:
            return "InputClosedError"
        for epoch in epochs:
            self.appended.append((epoch, writer, number))
            self.rows[epoch, row] += 1
        if len(epochs) > 1:
            self.spread[writer, number] = max(epochs[-1], self.spread.get((writer, number), 0))
        return (True,)

    def missing(self, epoch: int, names: Iterable[tuple[str, int]]) -> Outcome:
        found = []
        for writer, number in names:
            is_here = self._is_remembered(epoch) and (epoch, writer, number) in self.appended
            is_spread = self._is_remembered(self.spread.get((writer, number), -2))
            if not (is_here or is_spread):
                found.append(["in", writer, number])
        return (found,)

    def stage(self, writer: str, number: int, part: int, row: int) -> Outcome:
        if (writer, number) in self.inserted:
            return (False,)
        if self.is_closed:
            return "InputClosedError"
        self.staged.setdefault((writer, number), {})[part] = Part(row, self.now)
        return (True,)

    def enter(self, writer: str, number: int, count: int | None) -> Outcome:
        parts = self.staged.get((writer, number), {})
        if (writer, number) in self.inserted:
            self.staged.pop((writer, number), None)
            return False, self.open
        if self.is_closed:
            return "InputClosedError"
        if not parts or self.now - max(part.at for part in parts.values()) > STAGED_SECONDS_MAX:
            return "MisuseError"
        del self.staged[writer, number]
        self.inserted.append((writer, number))
        self.last_epoch[writer] = self.open
        for place, part in parts.items():
            if count is None or place < count:
                self.rows[self.open, part.row] += 1
        return True, self.open

    def last(self, query: str) -> int:
        return max([batch for name, batch, _ in self.committed if name == query], default=-1)

    def attempt(self, query: str, batch: int, attempt: str, part: int, row: int) -> Outcome:
        if batch <= self.last(query):
            return (False,)
        if self.is_closed:
            return "InputClosedError"
        self.attempts.setdefault((query, batch, attempt), {})[part] = Part(row, self.now)
        self.heard[query, batch, attempt] = self.now
        return (True,)

    def check(self, query: str, batch: int, attempts: Sequence[tuple[str, int]]) -> Outcome:
        for name, _ in attempts:
            if (query, batch, name) in self.attempts:
                self.heard[query, batch, name] = self.now
                self.checked.add((query, batch, name))
        missing = [
            ["in", query, batch, name, parts]
            for name, parts in attempts
            if len(self.attempts.get((query, batch, name), ())) != parts
        ]
        last = self.last(query)
        rows = sum(rows for name, number, rows in self.committed if (name, number) == (query, last))
        return missing, last, rows, self.open, int(self.now)

    def commit(
        self, query: str, batch: int, attempts: Sequence[str], stream: str, may_skip: bool, looked: int
    ) -> Outcome:
        last = self.last(query)
        if batch < last or (not may_skip and self.streams.get(query, stream) != stream):
            return "MisuseError"
        if batch == last:
            return False, self.open, self.open
        if self.is_closed:
            return "InputClosedError"
        if not may_skip and batch > last + 1:
            return "MisuseError"
        if attempts and int(self.now) - looked > COMMIT_SECONDS_MAX:
            return "MisuseError"
        parts = [part for name in attempts for part in self.attempts.get((query, batch, name), {}).values()]
        for part in parts:
            self.rows[self.open, part.row] += 1
        self.committed.append((query, batch, len(parts)))
        self.streams[query] = stream
        self._keep(lambda key: key[0] != query or key[1] > batch)
        entered = self.open
        if batch == 1:
            self.open += 1
        return True, entered, self.open

    def drop(self, query: str, batch: int, attempts: Sequence[str]) -> None:
        self._keep(
            lambda key: (
                key[:2] != (query, batch) or (key[2] not in attempts if attempts else key in self.checked)
            )
        )

    def _keep(self, is_kept: Callable[[tuple[str, int, str]], bool]) -> None:
        self.attempts = {key: parts for key, parts in self.attempts.items() if is_kept(key)}
        self.checked &= self.attempts.keys()

    def seal(self, epoch: int) -> Outcome:
        if self.is_closed:
            return "InputClosedError"
        self.open = max(self.open, epoch + 1)
        return (self.open,)

    def seal_behind(self, epoch: int, names: Sequence[tuple[str, int]]) -> Outcome:
        """What was posted is in epochs that are complete by that, or nothing is sealed."""
        if not all(name in self.inserted for name in names):
            return -1, -1
        sealed = max([epoch, *(self.last_epoch[writer] for writer, _ in names)])
        opened = self.seal(sealed)
        return opened if isinstance(opened, str) else (sealed, *opened)

    def close(self) -> None:
        self.is_closed = True
        self.open = max(self.open, *(epoch for epoch, _ in self.rows), 0) + 1 if self.rows else self.open + 1
        self.staged.clear()
        self._keep(lambda key: False)

    def wait(self, seconds: float) -> None:
        self.now += seconds
        self.staged = {
            name: parts
            for name, parts in self.staged.items()
            if self.now - max(part.at for part in parts.values()) <= 2 * STAGED_SECONDS_MAX
        }
        self._keep(lambda key: self.now - self.heard[key] <= ATTEMPT_SECONDS_MAX)

    @property
    def staged_batches(self) -> int:
        return sum(map(len, self.staged.values())) + sum(map(len, self.attempts.values()))


WRITERS = st.sampled_from("pq")
NUMBERS = st.integers(0, 2)
TRIES = st.sampled_from("ab")
ASIDE = st.integers(-2, 2)
"""How far an epoch is from the open one."""

STEPS = st.one_of(
    st.tuples(st.just("insert"), WRITERS, NUMBERS),
    st.tuples(st.just("append"), ASIDE, WRITERS, NUMBERS),
    st.tuples(st.just("append_epochs"), st.sets(ASIDE, min_size=1, max_size=3), WRITERS, NUMBERS),
    st.tuples(st.just("missing"), ASIDE),
    st.tuples(st.just("stage"), WRITERS, NUMBERS, st.integers(0, 1)),
    st.tuples(st.just("enter"), WRITERS, NUMBERS, st.sampled_from([None, 1, 2])),
    st.tuples(st.just("attempt"), WRITERS, NUMBERS, TRIES, st.integers(0, 1)),
    st.tuples(
        st.just("check"),
        WRITERS,
        NUMBERS,
        st.lists(st.tuples(TRIES, st.integers(0, 2)), max_size=2, unique_by=lambda one: one[0]),
    ),
    st.tuples(
        st.just("commit"),
        WRITERS,
        NUMBERS,
        st.lists(TRIES, unique=True, max_size=2),
        st.sampled_from(["", "", "", "other"]),
        st.sampled_from([False, False, True]),
        st.sampled_from([0.0, 0.0, COMMIT_SECONDS_MAX, COMMIT_SECONDS_MAX + 1]),
    ),
    st.tuples(st.just("drop"), WRITERS, NUMBERS, st.lists(TRIES, unique=True, max_size=2)),
    st.tuples(st.just("seal"), st.integers(-1, 1)),
    st.tuples(
        st.just("seal_behind"),
        st.integers(-1, 1),
        st.lists(st.tuples(WRITERS, NUMBERS), min_size=1, max_size=2),
    ),
    st.tuples(st.just("wait"), st.sampled_from([1.0, STAGED_SECONDS_MAX, ATTEMPT_SECONDS_MAX / 2])),
)


def play(one: Door | Plainly, step: Sequence[object], row: int, opened: int) -> Outcome | None:
    """Do a step of a history, as epoch `opened` is open; return what comes of it."""
    match step:
        case ["insert", str(writer), int(number)]:
            return one.insert(writer, number, row)
        case ["append", int(aside), str(writer), int(number)]:
            return one.append(max(0, opened + aside), writer, number, row)
        case ["append_epochs", set(aside), str(writer), int(number)]:
            epochs = sorted({max(0, opened + each) for each in aside})
            return one.append_epochs(epochs, writer, number, row)
        case ["missing", int(aside)]:
            names = [(writer, number) for writer in "pq" for number in range(3)]
            return one.missing(max(0, opened + aside), names)
        case ["stage", str(writer), int(number), int(part)]:
            return one.stage(writer, number, part, row)
        case ["enter", str(writer), int(number), int() | None as parts]:
            return one.enter(writer, number, parts)
        case ["attempt", str(query), int(batch), str(attempt), int(part)]:
            return one.attempt(query, batch, attempt, part, row)
        case ["check", str(query), int(batch), list(attempts)]:
            return one.check(query, batch, attempts)
        case ["commit", str(query), int(batch), list(attempts), str(stream), bool(may_skip), float(ago)]:
            return one.commit(query, batch, attempts, stream, may_skip, int(one.now - ago))
        case ["drop", str(query), int(batch), list(attempts)]:
            one.drop(query, batch, attempts)
        case ["seal", int(aside)]:
            return one.seal(opened + aside)
        case ["seal_behind", int(aside), list(names)]:
            return one.seal_behind(max(0, opened + aside), names)
        case ["wait", float(seconds)]:
            one.wait(seconds)
        case ["close"]:
            one.close()
        case _:
            raise AssertionError(step)
    return None


@given(st.lists(STEPS, max_size=40), st.lists(STEPS, max_size=8))
def test_laws_of_what_counts_and_when_are_the_plain_ones(
    steps: list[tuple[object, ...]], behind: list[tuple[object, ...]]
) -> None:
    door, plain = Door(), Plainly()
    history = [*steps, ("close",), *behind]
    for row, step in enumerate(history):
        opened = plain.open
        assert play(door, step, row, opened) == play(plain, step, row, opened), (row, step)
        assert door.staged_batches == plain.staged_batches, (row, step)
        assert bool(door.staged_bytes) == bool(plain.staged_batches), (row, step)
    assert door.entered() == plain.rows
