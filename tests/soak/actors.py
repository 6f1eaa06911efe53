"""The clients of the soak: each does one random thing at a time, and writes down what it was told.

    Writer     inserts, removes, repeats, seals; asks for what must be refused
    Reader     reads answers in every way that there is, forgets, leaves
    Witness    reads what the inputs were, the truth from which everything else is judged

An error that nobody has caused is a defect: `expects` says which may come, and when.
"""

from __future__ import annotations

import itertools
import random
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pyarrow as pa

import timely
from timely.client.session import Flow
from timely.client.tables import accumulated
from timely.errors import (
    ForgottenError,
    InputClosedError,
    MisuseError,
    PeerError,
    TimelyError,
    WaitTimeoutError,
)
from timely.limits import SPREAD_ROWS_MIN
from timely.wire.requests import Read

from .model import Model, Operation, WrongAnswer
from .queries import Rows, rows_of

__all__ = ["Actor", "Cast", "Finished", "Reader", "Witness", "Writer", "finish", "stacks"]

CALL_SECONDS_MAX = 60.0


class Finished(Exception):
    """The part of this actor is over, as it may be: its dataflow or its cluster has ended."""


class Cast:
    """What all actors of a round share."""

    def __init__(self, seed: int, models: list[Model], is_embedded: bool) -> None:
        self.seed = seed
        self.models = models
        self.is_embedded = is_embedded
        self.tags = itertools.count()
        self.is_killed = False
        self.ends_soon = False
        self.calls: dict[str, tuple[str, float]] = {}
        self.done: Counter[str] = Counter()

    def late(self) -> list[str]:
        """Calls that take longer than any may."""
        now = time.monotonic()
        return [
            f"{who}: {what} since {now - since:.0f} s"
            for who, (what, since) in list(self.calls.items())
            if now - since > CALL_SECONDS_MAX
        ]


class Actor:
    """One client: a cluster of its own, and flows by model."""

    def __init__(self, cast: Cast, name: str, cluster: timely.Cluster) -> None:
        self.cast = cast
        self.name = name
        self.cluster = cluster
        self.choose = random.Random(f"{cast.seed} {name}")
        self.flows: dict[int, Flow] = {}
        self.live = list(cast.models)
        self.asked: list[str] = []

    def step(self) -> None:
        """Do one thing; raises `Finished` when there is nothing left to do."""
        if not self.live:
            raise Finished
        model = self.choose.choice(self.live)
        try:
            if model.index not in self.flows:
                with self.call(model, "describe"):
                    self.flows[model.index] = self.cluster.flow(model.index)
            self.act(model, self.flows[model.index])
        except WaitTimeoutError:
            self.cast.done["time-outs"] += 1
        except TimelyError as error:
            if self.goes_on_after(error):
                self.cast.done[type(error).__name__] += 1
                return
            self.expects(model, error)
            self.live = [other for other in self.live if other is not model]

    def act(self, model: Model, flow: Flow) -> None:
        """One thing with one dataflow."""
        raise NotImplementedError

    def goes_on_after(self, error: TimelyError) -> bool:
        """Return True if the dataflow goes on after this error, which may come at present."""
        return False

    def complete_before(self, model: Model, flow: Flow, output: str) -> int:
        """Return the first epoch that is not complete. It never goes back."""
        shown = model.shown.get(output, 0)
        with self.call(model, "frontier"):
            complete = flow.output(output).complete_before()
        model.saw_frontier(output, shown, complete, self.name)
        return complete

    def expects(self, model: Model, error: TimelyError) -> None:
        """Raise unless something that was done on purpose explains the error."""
        if isinstance(error, PeerError) and (self.cast.is_killed or self.cast.ends_soon):
            raise Finished from error
        if model.is_poisoned and "has ended with this error" in str(error):
            first = str(error).partition("\n")[0]
            model.end = model.end or first
            if model.end == first:
                return
            raise WrongAnswer(
                f"{self.name}: {model.query.name} ended with {first!r} and with {model.end!r}"
            ) from error
        if model.is_closed and isinstance(error, InputClosedError):
            return
        raise error

    @contextmanager
    def call(self, model: Model, what: str) -> Iterator[None]:
        """A call that the watchman looks at."""
        text = f"{what} of {model.query.name}"
        self.asked = [*self.asked[-7:], text]
        self.cast.calls[self.name] = (text, time.monotonic())
        try:
            yield
            self.cast.done[what] += 1
        finally:
            self.cast.calls.pop(self.name, None)


class Writer(Actor):
    """Changes inputs."""

    def __init__(self, cast: Cast, name: str, cluster: timely.Cluster) -> None:
        super().__init__(cast, name, cluster)
        self._mine: list[tuple[Model, Operation]] = []
        self._named: Counter[str] = Counter()

    def act(self, model: Model, flow: Flow) -> None:
        """Insert most of the time."""
        what = self.choose.random()
        if what < 0.50:
            self._insert(model, flow, rows_of(tag := next(self.cast.tags)), tag)
        elif what < 0.52 and model.query.takes_many:
            tag = next(self.cast.tags)
            self._insert(model, flow, [(tag % 12, 1 + tag % 97, tag)] * (SPREAD_ROWS_MIN + 5), tag)
        elif what < 0.65:
            self._remove(model, flow)
        elif what < 0.70:
            self._ask_for_nonsense(model, flow)
        elif what < 0.90:
            with self.call(model, "seal"):
                self._seal(model, flow)
        else:
            self._seal_and_wait(model, flow)

    def _seal(self, model: Model, flow: Flow) -> None:
        flow.seal()

    def _seal_and_wait(self, model: Model, flow: Flow) -> None:
        """Behind it the epoch is complete on all workers."""
        with self.call(model, "seal and wait"):
            epoch = flow.seal(wait=True, timeout=CALL_SECONDS_MAX / 4)
        for name in flow.outputs:
            if (complete := self.complete_before(model, flow, name)) <= epoch:
                raise WrongAnswer(f"{self.name}: {name} is complete before {complete} only, not {epoch}")

    def _insert(self, model: Model, flow: Flow, rows: list[tuple[int, int, int]], tag: int) -> None:
        name = self.choose.choice(model.query.inputs)
        operation = model.begin(name, tag, rows, 1)
        handle = flow.input(name)
        if self.choose.random() < 0.7:
            self._note(model, flow, operation, lambda: handle.insert(rows), "insert")
        else:
            # Small and large ones are remembered in different places, each in a line of its own.
            writer = f"{self.name} {len(rows) > SPREAD_ROWS_MIN} {name} {model.index}"
            number = self._named[writer]
            self._named[writer] += 1
            self._insert_by_name(model, flow, operation, writer, number)
        if not model.query.is_records:
            self._mine.append((model, operation))

    def _insert_by_name(
        self, model: Model, flow: Flow, operation: Operation, writer: str, number: int
    ) -> None:
        handle = flow.input(operation.input)
        with self.call(model, "named insert"):
            epoch = handle.insert(operation.rows, writer=writer, sequence=number)
        model.took(operation, epoch, epoch)
        for _ in range(self.choose.randrange(3)):
            with self.call(model, "repeated insert"):
                handle.insert(operation.rows, writer=writer, sequence=number)

    def _remove(self, model: Model, flow: Flow) -> None:
        mine = [pair for pair in self._mine if pair[0] is model]
        if not mine:
            return
        pair = self.choose.choice(mine)
        self._mine.remove(pair)
        inserted = pair[1]
        operation = model.begin(inserted.input, inserted.tag, inserted.rows, -1)
        handle = flow.input(inserted.input)
        self._note(model, flow, operation, lambda: handle.remove(inserted.rows), "remove")

    def _note(
        self, model: Model, flow: Flow, operation: Operation, call: Callable[[], int], name: str
    ) -> None:
        """In which epoch it is, or, if nobody has waited for the answer, between which."""
        with self.call(model, name):
            first = call()
            # A single worker gets no parts: there many rows, too, may be so few bytes that they are posted.
            in_parts = flow.workers > 1 and len(operation.rows) > SPREAD_ROWS_MIN
            waited = flow.is_embedded or in_parts
            last = first if waited else flow.refresh()
            model.took(operation, first, last)

    def _ask_for_nonsense(self, model: Model, flow: Flow) -> None:
        """What must be refused, and changes nothing."""
        handle = flow.input(self.choose.choice(model.query.inputs))
        wrong: list[Callable[[], object]] = [
            lambda: handle.append(pa.table({"nothing": [1], "diff": [1]})),
            lambda: handle.append(pa.table({"record": [b"\xc1"], "diff": [1]})),
            lambda: handle.append(pa.table({"record": [b"\x01"], "diff": pa.array([2**63], pa.uint64())})),
            lambda: handle.append(pa.table({"key": ["a"], "value": [1], "tag": [1], "diff": [1]})),
            lambda: flow.input("no such input"),
            lambda: flow.output("answer").changes(2**62, 2**62 + 5, timeout=0.0),
            lambda: self.cluster.flow(10_000),
            lambda: handle.insert([object()]),
        ]
        what = self.choose.randrange(len(wrong))
        with self.call(model, f"nonsense {what}"):
            try:
                wrong[what]()
            except (MisuseError, WaitTimeoutError) as error:
                if "has ended" in str(error) or isinstance(error, InputClosedError):
                    raise
                return
        if what != 5:
            raise WrongAnswer(f"nonsense {what} of {model.query.name} was taken")


def by_epoch(changes: object) -> dict[int, Rows]:
    """Changes as a client gets them, as rows by epoch."""
    found: dict[int, Rows] = {}
    if isinstance(changes, list):
        for epoch, record in changes:
            found.setdefault(epoch, Counter())[tuple(record)] += 1
        return found
    assert isinstance(changes, pa.Table)
    names = [name for name in changes.column_names if name not in ("epoch", "diff")]
    columns = [changes.column(name).to_pylist() for name in names]
    for epoch, times, *row in zip(
        changes.column("epoch").to_pylist(), changes.column("diff").to_pylist(), *columns, strict=True
    ):
        rows = found.setdefault(epoch, Counter())
        if tuple(row) in rows:
            raise WrongAnswer(f"the row {row} comes twice in epoch {epoch}")
        rows[tuple(row)] = times
    return found


class Reader(Actor):
    """Reads answers."""

    def __init__(self, cast: Cast, name: str, cluster: timely.Cluster) -> None:
        super().__init__(cast, name, cluster)
        self._places: dict[tuple[int, str], int] = {}
        self._forgets = self.choose.random() < 0.5

    def act(self, model: Model, flow: Flow) -> None:
        """Read in one way or another."""
        output = self.choose.choice(list(model.query.answers))
        what = self.choose.random()
        try:
            if what < 0.35:
                self._read_on(model, flow, output)
            elif what < 0.48 and not model.query.is_records:
                self._snapshot(model, flow, output)
            elif what < 0.55 and not model.query.is_records:
                self._snapshot_of_before(model, flow, output)
            elif what < 0.65:
                self._read_again(model, flow, output)
            elif what < 0.85 and not self.cast.is_embedded:
                self._follow(model, flow, output)
            elif what < 0.9 and self._forgets:
                self._forget(model, flow, output)
            else:
                self.complete_before(model, flow, output)
        except ForgottenError:
            if not model.forgotten.get(output):
                raise
            # Whoever has no place yet may come too late for the beginning; from here on nothing is lost.
            key = (model.index, output)
            if key in self._places:
                raise
            self._places[key] = -1

    def _read_on(self, model: Model, flow: Flow, output: str) -> None:
        """Where this client has stopped: nothing is left out, nothing comes twice."""
        key = (model.index, output)
        handle = flow.output(output)
        if self._places.get(key) == -1:
            return
        with self.call(model, "changes_nowait"):
            changes = handle.changes_nowait()
        self._places[key] = self._note(model, output, self._places.get(key, 0), handle._position, changes)

    def _note(self, model: Model, output: str, start: int, stop: int, changes: object) -> int:
        if stop < start:
            raise WrongAnswer(f"{self.name}: the place in {output} went from {start} back to {stop}")
        model.saw(output, start, stop, by_epoch(changes), self.name)
        return stop

    def _read_again(self, model: Model, flow: Flow, output: str) -> None:
        handle = flow.output(output)
        complete = min(self.complete_before(model, flow, output), handle.complete_before_capped())
        start = max(0, self.choose.randint(complete - 6, complete))
        with self.call(model, "changes"):
            try:
                changes = handle.changes(start, complete, timeout=5.0)
            except ForgottenError:
                if start >= model.forgotten.get(output, 0):
                    raise
                return
        model.saw(output, start, complete, by_epoch(changes), self.name)

    def _snapshot(self, model: Model, flow: Flow, output: str) -> None:
        handle = flow.output(output)
        with self.call(model, "snapshot"):
            table = handle.snapshot(timeout=5.0)
        columns = [table.column(name).to_pylist() for name in table.column_names]
        rows: Rows = Counter(zip(*columns, strict=True))
        model.saw_snapshot(output, handle.epoch_of(table), rows)

    def _snapshot_of_before(self, model: Model, flow: Flow, output: str) -> None:
        """The collection as it was some epochs ago: what came later is taken back."""
        handle = flow.output(output)
        with self.call(model, "frontier"):
            epoch = self.choose.randint(-4, -1) + handle.complete_before_capped()
        if epoch < 0:
            return
        with self.call(model, "snapshot of before"):
            try:
                replies = flow.ask_all(Read(flow.index, output, -1, epoch + 1, 5.0), 5.0)
            except ForgottenError:
                if epoch + 1 >= model.forgotten.get(output, 0):
                    raise
                return
        whole = accumulated([reply.columns() for reply in replies], epoch)
        model.saw_snapshot(output, epoch, by_epoch(whole).get(epoch, Counter()))

    def _follow(self, model: Model, flow: Flow, output: str) -> None:
        """A tail for a while, from a snapshot or from this client's place on."""
        with self.call(model, "describe"):
            own = self.cluster.flow(model.index)
        handle = own.output(output)
        is_snapshot = not model.query.is_records and self.choose.random() < 0.6
        start = None if is_snapshot else model.forgotten.get(output, 0)
        expected = start
        with self.call(model, f"follow {'a snapshot' if is_snapshot else 'changes'}"):
            try:
                for epoch, changes in handle.follow(start=start, snapshot=is_snapshot, timeout=0.3):
                    if isinstance(changes, TimelyError):
                        raise changes
                    if expected is not None and epoch != expected:
                        raise WrongAnswer(
                            f"{self.name}: epoch {epoch} of {output} came where {expected} was next"
                        )
                    if expected is None:
                        whole = by_epoch(changes).get(epoch, Counter())
                        model.saw_snapshot(output, epoch, whole)
                    else:
                        rows = [(epoch, one) for one in changes] if model.query.is_records else changes
                        model.saw(output, epoch, epoch + 1, by_epoch(rows), self.name)
                    expected = epoch + 1
                    if self.choose.random() < 0.05:
                        break
            except ForgottenError:
                if start is None or start >= model.forgotten.get(output, 0):
                    raise
            except WaitTimeoutError:
                pass
            finally:
                if not self.cast.is_killed and not model.is_poisoned:
                    handle.leave()

    def _forget(self, model: Model, flow: Flow, output: str) -> None:
        handle = flow.output(output)
        # Written down before it is so: others may find it done before this client has its answer.
        model.forgets(output, handle._position)
        with self.call(model, "forget"):
            handle.forget()


class Witness(Actor):
    """Reads what the inputs were, without leaving anything out."""

    def act(self, model: Model, flow: Flow) -> None:
        """Read on in one input."""
        for name in model.query.inputs:
            handle = flow.output(f"same {name}")
            start = model.complete.get(name, 0)
            with self.call(model, "witness"):
                changes = handle.changes_nowait()
            model.saw_truth(name, start, handle._position, by_epoch(changes))
        if not self.cast.is_embedded:
            time.sleep(self.choose.random() * 0.01)


def finish(cluster: timely.Cluster, cast: Cast) -> None:
    """Seal, and read everything once more."""
    for model in cast.models:
        if model.is_poisoned:
            continue
        flow = cluster.flow(model.index)
        if not model.is_closed:
            for _ in range(2):
                flow.seal()
        flow.wait(timeout=50)
        for name in model.query.inputs:
            # A place of his own: whoever comes last finds all that was, for nobody has forgotten that.
            output = flow.output(f"same {name}")
            start = model.complete.get(name, 0)
            changes = output.changes(start, flow.epoch, timeout=50.0)
            model.saw_truth(name, start, flow.epoch, by_epoch(changes))
        reader = Reader(cast, "last reader", cluster)
        for output_name in model.query.answers:
            handle = flow.output(output_name)
            start = model.forgotten.get(output_name, 0)
            model.saw(
                output_name,
                start,
                flow.epoch,
                by_epoch(handle.changes(start, flow.epoch, timeout=50.0)),
                reader.name,
            )
            if not model.query.is_records:
                reader._snapshot(model, flow, output_name)


def stacks() -> str:
    """Where every thread stands, for the report of a hang."""
    import sys
    import traceback

    names = {thread.ident: thread.name for thread in threading.enumerate()}
    return "\n".join(
        f"--- {names.get(ident, ident)}\n{''.join(traceback.format_stack(frame)[-8:])}"
        for ident, frame in sys._current_frames().items()
    )
