"""How do tests run a whole dataflow, step by step, and at whatever times they like?

    Cluster         some workers in this process; messages between them may be late by a seed
    timed_source    a collection inside loops, whose updates and frontier a test decides
    timed_capture   records what arrives inside loops: (row, time, diff)
    check_at_times  one operator, random order of updates, random frontiers, against its plain definition

An operator's inputs come from inputs and from loops, so at the root only epochs are reached. A timed source
stands in (nested) loops and holds capabilities as an operator would. Its updates are sent in any order that
they allow, in messages whose envelope is some time that they allow; the capabilities move on in any way that
leaves what is still to come possible. So an operator behind it sees partially ordered times, and frontiers
with several elements, as they occur in the middle of an iteration. Now and then all traces of a worker are
compacted as far as they may be.

A capture asserts what holds of every message: its envelope is at or before the times of its rows, and no
worker has been told, at that moment, that these times are complete.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import ClassVar, cast

import numpy as np
import pyarrow as pa
from built_flows import built_before
from reference.collection import (
    Collection as Rows,
)
from reference.collection import (
    History,
    Row,
    Time,
    accumulated_at,
    closure,
    collection,
    history,
    product_less_equal,
)
from ring_network import RingNetwork

from differential.collections.collection import Collection
from differential.collections.sources import from_stream
from differential.columns.column_types import Int64s
from differential.columns.rows import decode_rows, encode_rows
from differential.columns.schema import Schema
from differential.columns.symbols.table import SymbolTable
from differential.columns.update_batch import UpdateBatch, words_of
from differential.columns.worker_symbols import SYMBOLS
from differential.operators.edge.table_in import TableIn
from differential.operators.join import JoinMachine
from differential.operators.vertices import MachineVertex, OperatorVertex
from differential.trace.trace import Trace
from progress.times.anchor import Rebase
from timely.building.dataflow import Dataflow
from timely.building.freeze import FrozenDataflow
from timely.building.loop import Loop
from timely.dictionaries import Mark
from timely.errors import TimelyError
from timely.operators.vertex import Vertex
from timely.running.checking.monitor import Monitor
from timely.running.core import Worker
from timely.running.instance import Instance
from timely.wire.batch import Batch
from timely.wire.transport.memory import MemoryNetwork

__all__ = [
    "Build",
    "Change",
    "Cluster",
    "PlainBuild",
    "TimedCaptureVertex",
    "TimedSourceVertex",
    "check_at_times",
    "compact_traces",
    "nested_loops",
    "run_at_times",
    "timed_capture",
    "timed_source",
    "trace_rows",
    "traces",
]

Change = tuple[Row, Time, int]
"""A row, when, and how many more of it."""

PlainBuild = Callable[..., Rows]  # type: ignore[explicit-any]  # as below
"""What it means: multisets in, a multiset out."""

Build = Callable[..., Collection]  # type: ignore[explicit-any]  # as many collections as there are inputs
"""What is tested: collections in, a collection out."""

FOREVER = 2**62


class Cluster:
    """`workers` workers in this process that run what `build` builds.

    Args:
        seed: of the delays of messages between workers; None: they arrive at the next step.
        own_symbols: each worker has a symbol table to itself, as it has in a process of its own.
        network: between them, in the place of messages in lists.
        forgets: these forget whenever they may; None: as `forgets_always` says, which a test may change.
        monitored: every predicate of progress tracking is evaluated after every activation.
        built: what `build` has made for the workers of earlier clusters; what is missing is added.
    """

    forgets_always: ClassVar[bool] = False

    def __init__(
        self,
        build: Callable[[Dataflow], object],
        workers: int = 1,
        seed: int | None = None,
        own_symbols: bool = False,
        monitored: bool = False,
        forgets: bool | None = None,
        network: MemoryNetwork | RingNetwork | None = None,
        built: list[FrozenDataflow] | None = None,
    ) -> None:
        self.forgets = self.forgets_always if forgets is None else forgets
        self.forgotten = 0
        self.watch: Callable[[], None] = lambda: None
        """Is called whenever a worker has acted."""
        own_symbols = own_symbols or self.forgets
        self.network = MemoryNetwork(workers, seed) if network is None else network
        self._symbols = [vars(SymbolTable()) for _ in range(workers)] if own_symbols else None
        self._left = [0] * workers
        # A monitor wants to know of each message, and a region tells of none.
        self.workers = [
            Worker(index, workers, self.network.transport(index), compiled_loops=not monitored)
            for index in range(workers)
        ]
        if monitored:
            assert isinstance(self.network, MemoryNetwork)
            Monitor(self.workers, self.network)
        self.instances: list[Instance] = []
        # Constants are words of the symbol table of the worker for which they were built.
        frozen = [] if built is None or own_symbols else built
        for index, worker in enumerate(self.workers):
            with self.turn_of(index):
                if index == len(frozen):
                    build(flow := Dataflow("tested"))
                    frozen.append(flow.freeze())
                self.instances.append(worker.install(frozen[index]))
        assert len({instance.frozen.fingerprint for instance in self.instances}) == 1

    def change(
        self, name: str, changes: Iterable[tuple[Row, int]], epoch: int | None = None, worker: int = 0
    ) -> None:
        """Append (row, diff) pairs to an epoch of an input (by default the open one) at one worker."""
        by_diff: dict[int, list[Row]] = {}
        for row, diff in changes:
            by_diff.setdefault(diff, []).append(row)
        with self.turn_of(worker):
            handle = self.instances[worker].input(name)
            codec = handle.codec
            assert isinstance(codec, TableIn)
            at = handle.epoch if epoch is None else epoch
            for diff, rows in by_diff.items():
                handle.append(at, codec.encode(_table(codec.schema, rows), diff, handle.epoch_word(at)))

    def seal(self, epoch: int | None = None) -> None:
        """Seal all inputs on all workers up to `epoch` (by default the open one); nothing runs yet."""
        for index, instance in enumerate(self.instances):
            with self.turn_of(index):
                for handle in instance.inputs.values():
                    handle.seal(epoch)

    def close(self) -> None:
        """Close all inputs on all workers."""
        for index, instance in enumerate(self.instances):
            with self.turn_of(index):
                for handle in instance.inputs.values():
                    handle.close()

    def step(self, index: int) -> bool:
        """One step of one worker; returns whether anything happened."""
        with self.turn_of(index):
            happened = self.workers[index].step()
            self._forget(index, len(SYMBOLS) > self._left[index])
        self.watch()
        return happened

    def act(self, index: int, rng: random.Random) -> None:
        """One action of one worker, or a whole step: `rng` decides."""
        worker = self.workers[index]
        with self.turn_of(index):
            actions = worker.enabled()
            if actions and rng.random() < 0.7:
                worker.perform(rng.choice(actions))
            else:
                worker.step()
            self._forget(index, rng.random() < 0.5)
        self.watch()

    def compact(self, index: int) -> None:
        """Merge all traces of one worker into one run each, with times as late as its frontiers allow just
        now, whatever is under way.
        """
        with self.turn_of(index):
            for held in traces(self.instances[index]).values():
                for trace in held:
                    trace.compact()

    def harry(self, rng: random.Random, moves: int) -> None:
        """So many moves in any order: actions of any worker, and, between two of them, compaction."""
        for _ in range(moves):
            index = rng.randrange(len(self.workers))
            if rng.random() < 0.25:
                self.compact(index)
            else:
                self.act(index, rng)

    def run(self) -> None:
        """Until nothing moves any more."""
        while sum(self.step(index) for index in range(len(self.workers))) or self.network.in_flight():
            pass

    def changes(self, name: str) -> History:
        """What an output has put out in complete epochs, on all workers: times are (epoch,)."""
        found: list[Change] = []
        for index, instance in enumerate(self.instances):
            with self.turn_of(index):
                table = instance.output(name).log.changes(0, FOREVER)
            columns = [column.to_pylist() for column in table.columns]
            found += [(tuple(row), (epoch,), diff) for *row, epoch, diff in zip(*columns, strict=True)]
        return history(found)

    def snapshot(self, name: str) -> Rows:
        """The accumulated rows of an output, on all workers, as of the last epoch that is complete on all."""
        total: Rows = Rows()
        outputs = [instance.output(name) for instance in self.instances]
        epoch = min(*(output.complete_before for output in outputs), FOREVER) - 1
        for index, output in enumerate(outputs):
            with self.turn_of(index):
                table = output.snapshot(epoch)
            for *row, diff in zip(*[column.to_pylist() for column in table.columns], strict=True):
                total[tuple(row)] += diff
        return collection(total)

    def error(self, name: str, epoch: int | None = None) -> TimelyError:
        """Why an output has no answer at a complete epoch, by default the last: all workers say the same."""
        found: list[TimelyError | None] = []
        for index, instance in enumerate(self.instances):
            output = instance.output(name)
            at = min(output.complete_before, FOREVER) - 1 if epoch is None else epoch
            assert at < output.complete_before
            with self.turn_of(index):
                found.append(None if output.failures is None else output.failures.error_at(at))
        first = found[0]
        assert first is not None, f"{name} has an answer"
        assert len({(type(each), str(each)) for each in found}) == 1, found
        return first

    def has_answer(self, name: str, epoch: int) -> bool:
        """Whether an output has an answer at a complete epoch: all workers say the same."""
        outputs = [instance.output(name) for instance in self.instances]
        assert epoch < min(output.complete_before for output in outputs)
        answers: set[bool] = set()
        for index, output in enumerate(outputs):
            with self.turn_of(index):
                answers.add(output.failures is None or output.failures.error_at(epoch) is None)
        (answer,) = answers
        return answer

    def vertices(self, name: str) -> list[Vertex]:
        """The vertices of the stage called `name`, one per worker."""
        found = [runner.vertex for one in self.instances for runner in one.runners if runner.name == name]
        assert len(found) == len(self.workers), f"no stage {name!r}"
        return cast(list[Vertex], found)

    def _forget(self, index: int, begins: bool) -> None:
        """Take the next step of forgetting, if there is one."""
        worker = self.workers[index]
        if not self.forgets:
            return
        if not worker.forgetting.is_under_way and begins:
            worker.begin_forgetting()
        if worker.forgetting.is_ready:
            self.before_forgetting(worker)
            self.forgotten += worker.forget()
            assert not worker.forgetting.not_known, worker.forgetting.not_known
            self._left[index] = len(SYMBOLS)

    def before_forgetting(self, worker: Worker) -> None:
        """For tests that look at what is held."""

    @contextmanager
    def turn_of(self, index: int) -> Iterator[None]:
        """Let worker `index` act, with its own symbols if it has some."""
        if self._symbols is None:
            yield
            return
        shared = dict(vars(SYMBOLS))
        vars(SYMBOLS).update(self._symbols[index])
        try:
            yield
        finally:
            self._symbols[index] = dict(vars(SYMBOLS))
            vars(SYMBOLS).update(shared)


def _table(schema: Schema, rows: Sequence[Row]) -> pa.Table:
    fields = schema.to_arrow()
    columns = [pa.array([row[place] for row in rows], field.type) for place, field in enumerate(fields)]
    return pa.Table.from_arrays(columns, schema=fields)


def traces(instance: Instance) -> dict[str, list[Trace]]:
    """The traces of all operators of an instance, by name of the stage, without those dropped for good."""
    found: dict[str, list[Trace]] = {}
    for runner in instance.runners:
        if isinstance(runner.vertex, OperatorVertex):
            found.setdefault(runner.name, []).extend(runner.vertex.traces())
    return {name: held for name, held in found.items() if held}


def trace_rows(cluster: Cluster) -> int:
    """Rows held in the traces of all operators on all workers."""
    return sum(trace.rows for one in cluster.instances for held in traces(one).values() for trace in held)


def compact_traces(cluster: Cluster) -> None:
    """What idle time would do: let every operator take over its frontiers as they are, then merge."""
    for instance in cluster.instances:
        for runner in instance.runners:
            machine: object = getattr(runner.vertex, "machine", None)
            if isinstance(machine, JoinMachine):
                machine.set_frontiers(*[runner.frontier(port) for port in range(len(machine.inputs))])
            elif isinstance(runner.vertex, MachineVertex):
                runner.vertex.machine.set_since(runner.frontier(0))
        for held in traces(instance).values():
            for trace in held:
                trace.compact()


# Times of any depth


def nested_loops(flow: Dataflow, depth: int) -> tuple[Loop, ...]:
    """Loops one in the other, outermost first, in the innermost of which times have `depth` coordinates."""
    loops: list[Loop] = []
    for level in range(1, depth):
        parent = loops[-1].scope if loops else flow.root
        loops.append(Loop.inside(flow, parent, f"loop {level}"))
    return tuple(loops)


class TimedSourceVertex(Vertex):
    """Sends what a test says, when it says so. Begins with a capability at the first time of its scope."""

    word_times: ClassVar[bool] = True

    def __init__(self, schema: Schema) -> None:
        self.schema = schema
        self.held: list[Time] = []

    def recv_all(self, port: int, messages: Sequence[tuple[int, Batch]]) -> None:
        """The one message that it gets brings the first capability."""
        for word, _ in messages:
            self.hold_word(word)
            self.held.append(self.code.unpack(word))

    def symbols(self, mark: Mark) -> None:
        """None: it keeps values."""

    def rebase(self, by: Rebase) -> None:
        """It keeps times as tuples."""

    def emit(self, changes: Sequence[Change], envelope: Time) -> None:
        """Send updates in one message."""
        words = encode_rows(self.schema, [row for row, _, _ in changes], SYMBOLS, "timed source")
        times = [self.code.pack(time) for _, time, _ in changes]
        diffs = [diff for _, _, diff in changes]
        batch = UpdateBatch(_with_times(words, times, diffs))
        self.send(0, batch, self.code.pack(envelope))

    def move_to(self, times: Sequence[Time]) -> None:
        """Hold these capabilities, and no longer those before."""
        for time in times:
            self.hold_word(self.code.pack_wide(time))
        for time in self.held:
            self.release_word(self.code.pack_wide(time))
        self.held = list(times)


def _with_times(words: Int64s, times: Sequence[int], diffs: Sequence[int]) -> Int64s:
    full = np.empty((words.shape[0] + 2, words.shape[1]), dtype=np.int64)
    full[:-2], full[-2], full[-1] = words, times, diffs
    return full


class TimedCaptureVertex(Vertex):
    """Records the updates that come in, and asserts that they may."""

    word_times: ClassVar[bool] = True
    wants_frontier: ClassVar[bool] = True

    def __init__(self, schema: Schema) -> None:
        self.schema = schema
        self.changes: list[Change] = []
        self.everywhere: list[TimedCaptureVertex] = [self]

    def is_complete(self, time: Time) -> bool:
        """Whether this worker has been told that nothing at or before `time` can come in on any worker."""
        before, unpack = self.code.shape.less_equal, self.code.unpack
        return not any(before(unpack(int(front)), time) for front in self.frontier_words(0))

    def recv_all(self, port: int, messages: Sequence[tuple[int, Batch]]) -> None:
        """Rows on this worker."""
        for word, batch in messages:
            words = words_of(batch)
            envelope = self.code.unpack(word)
            rows = decode_rows(self.schema, words, SYMBOLS)
            for row, time_word, diff in zip(rows, words[-2].tolist(), words[-1].tolist(), strict=True):
                time = self.code.unpack(time_word)
                assert product_less_equal(envelope, time), f"{row} at {time} in a message at {envelope}"
                for capture in self.everywhere:
                    assert not capture.is_complete(time), f"{capture!r} thought {time} complete: {row} came"
                self.changes.append((row, time, diff))

    def symbols(self, mark: Mark) -> None:
        """None: it keeps values."""

    def rebase(self, by: Rebase) -> None:
        """It keeps times as tuples."""


def timed_source(flow: Dataflow, name: str, schema: str, loops: tuple[Loop, ...]) -> Collection:
    """A collection inside `loops`, fed by `TimedSourceVertex` called `name`."""
    declared = Schema.of(schema)
    stream = flow.input(f"start of {name}")
    for loop in loops:
        stream = loop.enter(stream)
    source = stream.stage(name, lambda: TimedSourceVertex(declared))
    return from_stream(flow, source, declared, loops)


def timed_capture(captured: Collection, name: str = "capture") -> None:
    """Record a collection, in whatever scope it is."""
    schema = captured.schema
    captured.dataflow.stage(name, lambda: TimedCaptureVertex(schema), captured.feeds(0, None), outputs=0)


class _Driver:
    """Moves sources and workers by the choices of `rng` until everything has been sent."""

    def __init__(self, cluster: Cluster, histories: Sequence[Sequence[Change]], rng: random.Random) -> None:
        self.cluster = cluster
        self.rng = rng
        self.captures = cast(list[TimedCaptureVertex], cluster.vertices("capture"))
        for capture in self.captures:
            capture.everywhere = self.captures
        for instance in cluster.instances:
            for handle in instance.inputs.values():
                handle.send([0])
                handle.close()
        cluster.run()
        self.sources: list[tuple[TimedSourceVertex, list[Change]]] = []
        for number, changes in enumerate(histories):
            vertices = cast(list[TimedSourceVertex], cluster.vertices(f"source {number}"))
            parts: list[list[Change]] = [[] for _ in vertices]
            for change in rng.sample(list(changes), len(changes)):
                rng.choice(parts).append(change)
            self.sources += list(zip(vertices, parts, strict=True))

    def captured(self) -> list[Change]:
        return [change for capture in self.captures for change in capture.changes]

    def is_complete(self, time: Time) -> bool:
        return any(capture.is_complete(time) for capture in self.captures)

    def act(self) -> bool:
        """One action; False when all sources are done."""
        open_sources = [source for source in self.sources if source[1] or source[0].held]
        if not open_sources:
            return False
        rng = self.rng
        vertex, pending = rng.choice(open_sources)
        choice = rng.random()
        worker = rng.randrange(len(self.cluster.workers))
        if pending and choice < 0.4:
            self._emit(vertex, pending)
        elif choice < 0.65:
            self._advance(vertex, pending)
        elif choice < 0.9:
            self.cluster.act(worker, rng)
        else:
            self.cluster.compact(worker)
        return True

    def _emit(self, vertex: TimedSourceVertex, pending: list[Change]) -> None:
        capability = self.rng.choice(vertex.held)
        allowed = [change for change in pending if product_less_equal(capability, change[1])]
        chosen = allowed[: self.rng.randint(1, 4)]
        if not chosen:
            return
        for change in chosen:
            pending.remove(change)
        earliest = tuple(map(min, zip(*[time for _, time, _ in chosen], strict=True)))
        with self.cluster.turn_of(vertex.worker):
            vertex.emit(chosen, self.rng.choice([capability, earliest]))

    def _advance(self, vertex: TimedSourceVertex, pending: list[Change]) -> None:
        """To the remaining times, or to some times before them and not before what is held."""
        rng = self.rng
        wanted: list[Time] = []
        for _, time, _ in pending:
            before = [held for held in vertex.held if product_less_equal(held, time)]
            start = rng.choice(before)
            loose = tuple(rng.randint(low, high) for low, high in zip(start, time, strict=True))
            wanted.append(rng.choice([time, loose]))
        vertex.move_to(
            [
                time
                for time in set(wanted)
                if not any(product_less_equal(o, time) for o in set(wanted) - {time})
            ]
        )


def run_at_times(
    build: Build,
    histories: Sequence[Sequence[Change]],
    *,
    depth: int,
    workers: int = 1,
    seed: int = 0,
    schemas: Sequence[str] | str = "k: int, v: int",
    check: Callable[[Callable[[Time], bool], History], None] | None = None,
    monitored: bool = False,
) -> History:
    """What `build(collection, …)` puts out for the given histories of its inputs, all at times of `depth`.

    `check(is_complete, so_far)` is called now and then while it runs.
    """
    each = [schemas] * len(histories) if isinstance(schemas, str) else list(schemas)

    def build_all(flow: Dataflow) -> None:
        loops = nested_loops(flow, depth)
        inputs = [timed_source(flow, f"source {n}", schema, loops) for n, schema in enumerate(each)]
        timed_capture(build(*inputs))

    built = built_before(build, depth, *each)
    cluster = Cluster(build_all, workers, seed, monitored=monitored, built=built)
    driver = _Driver(cluster, histories, random.Random(seed))
    while driver.act():
        if check is not None and driver.rng.random() < 0.1:
            check(driver.is_complete, history(driver.captured()))
    cluster.run()
    assert all(instance.is_complete() for instance in cluster.instances), "something is outstanding for ever"
    return history(driver.captured())


def check_at_times(
    build: Build,
    plain: PlainBuild,
    histories: Sequence[Sequence[Change]],
    *,
    depth: int,
    workers: int = 1,
    seed: int = 0,
    schemas: Sequence[str] | str = "k: int, v: int",
) -> None:
    """Fail unless what `build` makes means `plain` at every time, as soon as that time is complete.

    At the end also: no time occurs in the output that is not a least upper bound of times of the inputs.
    """
    inputs = [history(changes) for changes in histories]
    # What is there of nothing is there from the beginning on.
    times = closure({time for one in inputs for time in one} | {(0,) * depth})
    wanted = {time: plain(*(accumulated_at(one, time) for one in inputs)) for time in times}

    def check(is_complete: Callable[[Time], bool], so_far: History) -> None:
        for time in times:
            if is_complete(time):
                have = accumulated_at(so_far, time)
                assert have == wanted[time], f"at {time}: {dict(have)} instead of {dict(wanted[time])}"

    actual = run_at_times(
        build, histories, depth=depth, workers=workers, seed=seed, schemas=schemas, check=check
    )
    check(lambda time: True, actual)
    assert actual.keys() <= set(times), f"{sorted(actual.keys() - set(times))} are no times of the closure"
