"""Random programs against a durable cluster that fails, by a seed.

    Program   the main client: it installs dataflows, changes them, seals, and reads; after a failure it
              starts the next incarnation, perhaps of another number of workers, and goes on
    Stranger  another client, which begins with each incarnation and ends with it

A call that a failure interrupts is in doubt. If it has a name, the program repeats it until it returns; if it
has none, nobody does, and the call may count or not.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial

import pyarrow as pa

import timely
from timely.client.cluster import Cluster
from timely.errors import InputClosedError, PeerError, RestartedError, StoreError, TimelyError
from timely.wire.requests import Progress, Read

from .batches import columns_of, table_of, write_batch
from .judging import Call, History, WrongAnswer
from .kinds import KINDS, InputRows, Kind, Row, split
from .machine import Machine
from .stranger import Stranger

__all__ = ["Program"]

READER = "a reader with a place"


@dataclass(eq=False)
class Running:
    """A dataflow as the program knows it."""

    kind: Kind
    history: History
    flow: timely.Flow
    as_of: int
    sequence: int = 0
    """The number of the next insertion with a name."""
    batches: Counter[str] = field(default_factory=Counter)
    """How many batches of a query were committed, by input."""
    posted: list[Call] = field(default_factory=list)
    """Calls that were posted, and whose answers have not come."""
    closed: set[str] = field(default_factory=set)
    apart: dict[str, int] = field(default_factory=dict)
    """The last epoch of inputs that were sealed by themselves."""
    place: int = 0
    """The epoch at which the reader with a place is."""
    routes: bool = False
    version: int = 0
    next_version: int = 0
    """Another one than `version` while it is to take the place of that."""

    @property
    def takes_only_rows(self) -> bool:
        """True if no input takes values, whose calls only the program itself may put into epochs."""
        return all(rows.takes != "values" for rows in self.kind.inputs.values())

    def first_open(self, input: str) -> int:
        """Return the first epoch that an insertion may enter now."""
        return max(self.flow.epoch, self.apart.get(input, -1) + 1)

    def sealed(self, output: str) -> int:
        """Return the last epoch that is certain to be complete at an output."""
        inputs = {"same left": ["left"], "of left": ["left"], "same right": ["right"]}.get(output)
        apart = [self.apart.get(name, -1) for name in inputs or self.apart]
        return max(self.history.sealed, min(apart) if len(apart) >= len(inputs or self.kind.inputs) else -1)


class Program:
    """One program: see the module."""

    def __init__(self, machine: Machine, kinds: Sequence[str], seed: int, strangers: bool = True) -> None:
        self.machine = machine
        self.random = random.Random(seed)
        self.kinds = kinds
        self.running: dict[str, Running] = {}
        self.over: list[Running] = []
        """Dataflows that were uninstalled."""
        self.tag = 0
        self.restarts = 0
        self.acknowledged = 0
        self.crashes_with_loss = True
        self._has_strangers = strangers
        self.strangers: list[Stranger] = []
        self.on_restart: Callable[[], None] = lambda: None

    # The course of a program.

    def run(self, actions: int) -> None:
        """Do so many things, and then complete all."""
        self._start()
        for name in self.kinds:
            self._until_done(partial(self._install, name))
        for _ in range(actions):
            self._act()
        self.finish()

    def finish(self) -> None:
        """Complete everything, and hold it against the law, in this incarnation and in another one."""
        self.machine.before = lambda worker, what, path: None
        self._settle_all()
        for cluster in self.machine.clusters:
            self.machine.stop(cluster, False)
        for stranger in self.strangers:
            stranger.end()
        self.machine.baton.wait_until(lambda: all(one.turn.is_over for one in self.strangers), 100.0)
        for cluster in self.machine.clusters[:-1]:
            self.machine.end(cluster)
        for each in self.running.values():
            self._until_done(partial(self._look_at_inputs, each))
        opened = [each.first_open(name) for each in self.running.values() for name in each.kind.inputs]
        stop = max(opened) + 3
        for each in self.running.values():
            self._until_done(partial(self._complete, each, stop))
        self._has_strangers = False
        for _ in range(2):
            for each in [*self.running.values()]:
                self._until_done(partial(self._read_all, each, stop))
                each.history.check(stop, each.as_of)
            self.restart()

    def _act(self) -> None:
        each = self.random.choice([*self.running.values()])
        what = self.random.choices(
            [
                self._insert, self._insert_named, self._insert_in_parts, self._append, self._batch,
                self._seal, self._seal_through, self._read, self._read_by_place, self._close, self._uninstall,
                self._take_over, self._replace, self._seal_one,
            ],
            [
                6, 6, 2, 3, 2, 6, 1, 4, 2, 0.3, 0.4, 0.8, 3 if each.kind.has_versions else 0,
                8 if each.kind.seals_apart else 0,
            ],
        )[0]  # fmt: skip
        try:
            what(each)
            self.machine.baton.pause()
        except (PeerError, StoreError) as error:
            self._failed(error)

    def _until_done(self, do: Callable[[], object]) -> None:
        for _ in range(40):
            try:
                do()
                return
            except (PeerError, StoreError) as error:
                self._failed(error)
        raise WrongAnswer("40 failures one after another")

    def _failed(self, error: TimelyError) -> None:
        if isinstance(error, StoreError) and not self.machine.cluster.is_lost:
            self._wait_for_the_disk()
            return
        self.restart()

    def _wait_for_the_disk(self) -> None:
        """Wait until what is in the memory of workers is written. Which posts have failed is not known."""
        self.machine.baton.wait_until(None, 2.0)
        for each in self.running.values():
            each.posted.clear()

    # Incarnations.

    def _start(self) -> None:
        for _ in range(40):
            cluster = self.machine.start(self.random.choice([1, 1, 2, 2, 3]))
            self.restarts += 1
            self.on_restart()
            if cluster.is_ready and not cluster.is_lost and not self.machine.is_crashing:
                try:
                    self._cluster = Cluster(self.machine.connect())
                    if self._has_strangers:
                        self._begin_stranger()
                    return
                except PeerError:
                    pass
            self._end()
        reports = [worker.reports for worker in self.machine.cluster.workers]
        raise WrongAnswer(f"no incarnation begins: {reports}")

    def _end(self) -> None:
        """End what is left of the newest incarnation, as a supervisor does; or the machine has failed."""
        if self.machine.is_crashing or self.random.random() < 0.3:
            self.machine.crash(loses=self.crashes_with_loss and self.random.random() < 0.7)
        elif (fate := self.random.random()) < 0.3:
            # A supervisor cannot reach that host. The incarnation goes on until it sees the fence.
            if fate < 0.15:
                self.machine.stop(self.machine.cluster)
        else:
            self.machine.end(self.machine.cluster)
        for cluster in self.machine.clusters:
            if self.random.random() < 0.3:
                self.machine.stop(cluster, False)

    def _begin_stranger(self) -> None:
        seed = self.random.randrange(1 << 30)
        self.strangers.append(Stranger(self.machine, lambda: [*self.running.values()], seed, self._new_tag))

    def _new_tag(self) -> int:
        self.tag += 1
        return self.tag

    def restart(self, is_alive: bool = False) -> None:
        """Go on in another incarnation; `is_alive`: the present one goes on until it sees the fence."""
        if not is_alive or self.restarts > 6:
            self._end()
        elif self.random.random() < 0.4:
            self.machine.stop(self.machine.cluster)
        for each in self.running.values():
            for call in each.posted:
                call.is_over = True
            each.posted.clear()
        self._start()
        try:
            for each in self.running.values():
                self._find(each)
        except (PeerError, StoreError):
            self.restart()

    def _find(self, each: Running) -> None:
        flow = self._installed(each)
        if flow.index != each.flow.index and each.version == each.next_version:
            raise WrongAnswer(f"{each.kind.name} was dataflow {each.flow.index}, and is {flow.index}")
        if flow.epoch <= each.history.sealed and each.closed != set(each.kind.inputs):
            raise WrongAnswer(f"{each.kind.name}: {each.history.sealed} was sealed, and {flow.epoch} is open")
        each.flow = flow
        for name, sealed in each.apart.items():
            with suppress(InputClosedError):  # it was, or it is in doubt
                if (opened := flow.input(name).advance_to(0)) <= sealed:
                    raise WrongAnswer(f"input {name!r} was sealed up to {sealed}, and {opened} is open")
        for call in each.history.calls:
            if not call.is_there:
                call.first = min(call.first, flow.epoch)  # what was sealed early may not be sealed

    def _installed(self, each: Running) -> timely.Flow:
        """The dataflow of the version that the program knows, or of that which is about to take its place."""
        try:
            return each.kind.install(self._cluster, each.version)
        except timely.MisuseError:
            if each.version == each.next_version:
                raise
        return each.kind.install(self._cluster, each.next_version)

    # What a program does.

    def _replace(self, each: Running) -> None:
        """Let a new version take the place of a dataflow."""
        if each.closed:
            return
        each.next_version = each.version + 1

        def replace() -> None:
            each.flow = self._cluster.replace(each.flow, each.kind.spec, version=each.next_version)

        self._until_done(replace)
        each.version = each.next_version

    def _install(self, name: str) -> None:
        kind = KINDS[name]
        if name in self.running:
            return
        if kind.reads:
            self._install(kind.reads)
        history = History(kind, self.running[kind.reads].history if kind.reads else None)
        flow = kind.install(self._cluster)
        self.running[name] = Running(kind, history, flow, flow.epoch, place=flow.epoch)

    def _take_over(self, each: Running) -> None:
        """Start another incarnation although the present one is well: a supervisor may be wrong."""
        self.restart(is_alive=True)

    def _uninstall(self, each: Running) -> None:
        if each.kind.reads or any(other.kind.reads == each.kind.name for other in self.running.values()):
            return
        if len(self.running) < 2:
            return
        stop = each.flow.epoch
        self._settle(each)
        del self.running[each.kind.name]

        def uninstall() -> None:
            if each.flow.index in self._cluster.flows():
                self._cluster.flow(each.flow.index).uninstall()

        self._until_done(uninstall)
        if each.flow.index in self._flows():
            raise WrongAnswer(f"dataflow {each.flow.index} was uninstalled, and is there")
        self.over.append(each)
        del stop
        self._until_done(lambda: self._install(each.kind.name))
        if self.running[each.kind.name].flow.index == each.flow.index:
            raise WrongAnswer(f"dataflow {each.flow.index} has ended, and is there again")

    def _flows(self) -> dict[int, str]:
        found: dict[int, str] = {}
        self._until_done(lambda: found.update(self._cluster.flows()))
        return found

    def _input(self, each: Running, takes: Sequence[str] = ("rows", "values", "records")) -> str:
        names = [n for n, rows in each.kind.inputs.items() if rows.takes in takes and n not in each.closed]
        return self.random.choice(names) if names else ""

    def _rows(self, rows: InputRows, count: int) -> list[Row]:
        made = []
        for _ in range(count):
            made.append(rows.row(self.random, self._new_tag()))
        return made

    def _change(self, each: Running, name: str, count: int) -> Call:
        """Begin a call that changes an input."""
        rows = each.kind.inputs[name]
        history, first = each.history, each.first_open(name)
        if rows.takes == "records":
            return history.begin(name, "records", [(row, 1) for row in self._rows(rows, count)], first)
        if rows.takes == "values":
            made = self._rows(rows, count)
            by_key = {row[0]: row for row in made}
            if self.random.random() < 0.25:
                return history.begin(name, "delete", [(row, -1) for row in by_key.values()], first)
            return history.begin(name, "upsert", [(row, 1) for row in made], first)
        if self.random.random() < 0.25:
            removed = {row for call in history.calls for row, n in call.rows if n < 0}
            there = [
                row
                for call in history.calls
                if call.input == name and call.is_there and (call.last or first) < first and not call.epochs
                for row, n in call.rows
                if n > 0 and key_is_free(row, removed)
            ]
            if there:
                taken = self.random.sample(there, min(count, len(there)))
                return history.begin(name, "rows", [(row, -1) for row in taken], first)
        if rows.checked and self.random.random() < 0.2:
            return history.begin(name, "rows", [(row, -1) for row in self._rows(rows, count)], first)
        return history.begin(name, "rows", [(row, 1) for row in self._rows(rows, count)], first)

    def _call(self, each: Running, call: Call, flow: timely.Flow | None = None, **name: object) -> int:
        """Carry out a call; return the epoch that it returns."""
        into = (flow or each.flow).input(call.input)
        rows: list[object] = [row for row, _ in call.rows]
        if call.how == "delete":
            return into.delete([row[0] for row, _ in call.rows], **name)  # type: ignore[arg-type]
        if call.how == "upsert":
            return into.upsert(rows, **name)  # type: ignore[arg-type]
        if call.rows[0][1] < 0:
            return into.remove(rows, **name)  # type: ignore[arg-type]
        return into.insert(rows, **name)  # type: ignore[arg-type]

    def _insert(self, each: Running) -> None:
        """Post few rows."""
        if name := self._input(each):
            call = self._change(each, name, self.random.choice([1, 1, 2, 5]))
            if self.random.random() < 0.1:
                self._settle(each)
            each.posted.append(call)
            self._call(each, call)

    def _insert_named(self, each: Running) -> None:
        if name := self._input(each):
            call = self._change(each, name, self.random.choice([1, 2, 5]))
            each.sequence += 1
            self._named(each, call, each.sequence)
            if self.random.random() < 0.2:  # the client has perhaps not heard the answer
                self._named(each, call, each.sequence)

    def _named(self, each: Running, call: Call, sequence: int) -> None:
        def insert() -> None:
            epoch = self._call(each, call, writer="w", sequence=sequence)
            if not call.is_there:
                call.acknowledge(epoch)
            self._note_posted(each)

        def repeat(cluster: Cluster) -> None:
            """Repeat the call, perhaps before the first one is durable."""
            flow = cluster.flow(each.flow.index)
            epoch = self._call(each, call, flow, writer="w", sequence=sequence)
            if not call.is_there:
                call.acknowledge(epoch)

        if self.strangers and self.random.random() < 0.4:
            self.strangers[-1].echoes.append(repeat)
        self._until_done(insert)
        self.acknowledged += 1

    def _insert_in_parts(self, each: Running) -> None:
        """Many rows, which are cut into parts if there are several workers."""
        if name := self._input(each, ["rows", "values"]):
            call = self._change(each, name, 40)
            if len({n for _, n in call.rows}) != 1 or call.how == "delete":
                self._named(each, call, self._next(each))
                return
            sequence = self._next(each)

            def insert() -> None:
                into = each.flow.input(name)
                table = table_of(each.flow, name, [row for row, _ in call.rows])
                act = (
                    into.upsert
                    if call.how == "upsert"
                    else into.insert
                    if call.rows[0][1] > 0
                    else into.remove
                )
                epoch = act(table, writer="w", sequence=sequence)
                if not call.is_there:
                    call.acknowledge(epoch)

            if each.kind.name == "anything":
                self._named(each, call, sequence)
            else:
                self._until_done(insert)
            self.acknowledged += 1

    def _next(self, each: Running) -> int:
        each.sequence += 1
        return each.sequence

    def _append(self, each: Running) -> None:
        """Rows with their epochs, some of them later ones."""
        if each.kind.name == "anything" or not (name := self._input(each, ["rows"])):
            return
        rows = self._rows(each.kind.inputs[name], self.random.choice([1, 3]))
        first = each.first_open(name)
        by_column = self.random.random() < 0.6
        epochs = [first + (self.random.randrange(3) if by_column else 0) for _ in rows]
        call = each.history.begin(name, "rows", [(row, 1) for row in rows], first, epochs)
        columns = columns_of(each.flow, name, rows)
        if by_column:
            columns["epoch"] = epochs
        columns["diff"] = [1] * len(rows)
        table, sequence = pa.table(columns), self._next(each)

        def append() -> None:
            try:
                each.flow.input(name).append(
                    table, epoch="epoch" if by_column else first, writer="appends", sequence=sequence
                )
            except InputClosedError:
                # A stranger has sealed the epoch; or it was the first try that came.
                call.is_over = True
                return
            call.acknowledge(max(epochs))

        self._until_done(append)

    def _batch(self, each: Running) -> None:
        """A batch of a query of Spark, with an attempt that failed."""
        if each.kind.name == "anything" or not (name := self._input(each, ["rows"])):
            return
        batch = each.batches[name]
        each.batches[name] += 1
        call = each.history.begin(
            name, "rows", [(row, 1) for row in self._rows(each.kind.inputs[name], 4)], each.first_open(name)
        )
        for number in range(40):
            try:
                sealed, epoch = write_batch(self.random, each.flow, call, batch, f"try {number}")
                if not call.is_there:
                    call.acknowledge(epoch)
                self._note_posted(each)
                each.history.sealed = max(each.history.sealed, sealed)
                self.acknowledged += 1
                return
            except (PeerError, StoreError) as error:
                self._failed(error)
            except RestartedError:
                pass  # what was staged is gone

    def _seal(self, each: Running) -> None:
        if each.closed == set(each.kind.inputs):
            return
        if self.random.random() < 0.2:
            each.flow.seal(wait=False)  # and a failure may still undo it, and all since the last other call
            return
        epoch = (
            each.flow.seal(wait=True)
            if self.random.random() < 0.5 and not each.kind.reads
            else each.flow.seal()
        )
        self._note_posted(each)
        each.history.sealed = max(each.history.sealed, epoch)

    def _seal_through(self, each: Running) -> None:
        if each.closed == set(each.kind.inputs):
            return
        epoch = each.flow.seal(through=each.flow.epoch + self.random.randrange(4))
        self._note_posted(each)
        each.history.sealed = max(each.history.sealed, epoch)

    def _seal_one(self, each: Running) -> None:
        """Seal epochs of one input."""
        if name := self._input(each):
            into = each.flow.input(name)
            if self.random.random() < 0.7:
                each.apart[name] = max(into.seal(), each.apart.get(name, -1))
            else:
                opened = into.advance_to(into.epoch + self.random.randrange(3))
                each.apart[name] = max(opened - 1, each.apart.get(name, -1))
            self._note_posted(each)

    def _look_at_inputs(self, each: Running) -> None:
        """Note where inputs are that were sealed by themselves: calls in doubt may have done so, too."""
        for name in each.kind.inputs if each.kind.seals_apart else ():
            with suppress(InputClosedError):
                each.apart[name] = each.flow.input(name).advance_to(0) - 1

    def _settle(self, each: Running) -> None:
        each.flow.settle()
        self._note_posted(each)

    def _settle_all(self) -> None:
        for each in [*self.running.values()]:
            try:
                self._settle(each)
            except (PeerError, StoreError) as error:
                self._failed(error)

    def _note_posted(self, each: Running) -> None:
        """The answers to all posts have come."""
        posted, each.posted = each.posted, []
        for call in posted:
            call.acknowledge(max(call.first, each.flow.epoch))
            self.acknowledged += 1

    def _read(self, each: Running) -> None:
        """Read what is sealed of some output."""
        output = self.random.choice(each.flow.outputs)
        stop = each.sealed(output) + 1
        if stop <= each.as_of or each.kind.reads:
            return
        start = self.random.randrange(each.as_of, stop)
        rows = each.flow.output(output).changes(start, stop)
        each.history.note(output, start, stop, rows)
        self._note_posted(each)

    def _read_by_place(self, each: Running) -> None:
        """Read on from a place that the cluster knows; others forget what is before it."""
        flow, output = each.flow, f"same {next(iter(each.kind.inputs))}"
        stop = each.history.sealed + 1
        if stop <= each.place or each.kind.reads or "records" in {r.takes for r in each.kind.inputs.values()}:
            return
        read = Read(flow.index, output, each.place, stop, -1.0, reader=READER)
        for reply in flow.ask_all(read):
            reply.columns()
        move = Progress(flow.index, output, reader=READER, keep_from=stop)
        flow.ask_all(move)
        each.place = stop

    def _close(self, each: Running) -> None:
        if not (name := self._input(each)) or each.kind.name in {"owner", "importer", "routed"}:
            return
        self._settle(each)

        def close() -> None:
            each.flow.input(name).close()

        self._until_done(close)
        each.closed.add(name)
        each.history.closed.append(name)

    def _announce(self, each: Running) -> None:
        if each.routes or "routes" not in each.flow.inputs:
            return
        each.routes = True
        call = each.history.begin("routes", "rows", [(row, 1) for row in split(1)], each.flow.epoch)
        self._named(each, call, self._next(each))

    def _complete(self, each: Running, stop: int) -> None:
        self._settle(each)
        if each.closed != set(each.kind.inputs) and each.flow.epoch < stop:
            each.flow.seal(through=stop - 1)
        each.history.sealed = max(each.history.sealed, stop - 1)

    def _read_all(self, each: Running, stop: int) -> None:
        for output in each.flow.outputs:
            rows = each.flow.output(output).changes(each.as_of, stop)
            each.history.note(output, each.as_of, stop, rows)


def key_is_free(row: Row, removed: set[Row]) -> bool:
    """Return True if nobody has removed a row, so that it is there once."""
    try:
        return row not in removed
    except TypeError:
        return False  # a list or a dict is no key
