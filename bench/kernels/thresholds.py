"""What is the choice between two ways worth, for the thresholds of `differential/thresholds.py`?

    python -m bench.kernels.thresholds [NAME …] [--rounds 15]

For each threshold a *probe* does one thing with some number of rows, keys or times. Of two processes one has
the threshold at 0, the other one so high that nothing reaches it; for heads of traces, which need some room,
at 16 and 16,384. They take turns, and processor time counts, so that a machine that is not quiet slows down
both of them alike; the least time of each stands, since nothing makes code faster than it is. The last column
says how many times as long the way takes that is not chosen at this size.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from importlib.util import module_from_spec, spec_from_file_location
from itertools import cycle
from types import ModuleType
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from bench.machine import ROOT

if TYPE_CHECKING:
    from progress.compiled.arrays import Int64s
    from progress.times.time_words import TimeCode

__all__ = ["PROBES", "Probe", "main", "measured"]

_NEVER = 1 << 40
"""A threshold that nothing reaches."""

_SECONDS = 0.01
"""A probe is repeated until one measurement takes at least this long."""

Task = Callable[[], object]


class Probe(NamedTuple):
    """What is timed for a threshold.

    make     what to time, for a size; it may prepare as long as it likes
    sizes    around the threshold
    values   of the threshold, so that all sizes are beyond it, and none
    """

    make: Callable[[int], Task]
    sizes: tuple[int, ...]
    values: tuple[int, int] = (0, _NEVER)


def _in_loop() -> TimeCode:
    from progress.times.time_words import TimeCode, TimeLayout
    from progress.times.timestamp import TimeShape

    return TimeCode(TimeLayout.default(2), TimeShape.ROOT.loop())


def _guards() -> int:
    return _in_loop().guards


def _rows(count: int, keys: int, seed: int = 1) -> Int64s:
    """Rows of a key, a value, a time and a diff, sorted and all different."""
    random = np.random.default_rng(seed)
    words = np.zeros((4, count), np.int64)
    words[0], words[1], words[3] = random.integers(0, keys, count), np.arange(count), 1
    return np.ascontiguousarray(words[:, np.lexsort((words[1], words[0]))])


def _some_keys(count: int, keys: int, seed: int = 2) -> Int64s:
    """Rows of `count` different keys."""
    random = np.random.default_rng(seed)
    words = np.zeros((4, count), np.int64)
    words[0], words[3] = np.sort(random.choice(keys, count, replace=False)), 1
    return words


def _sorting(count: int) -> Task:
    from differential.kernels.rows.sort import sort_words

    words = _rows(count, 10 * count)
    words = np.ascontiguousarray(words[:, np.random.default_rng(3).permutation(count)])
    return lambda: sort_words(words)


def _sorting_many(count: int) -> Task:
    from differential.kernels.rows.sort import sort_consolidate

    words = _rows(count, 10 * count)
    words = np.ascontiguousarray(words[:, np.random.default_rng(3).permutation(count)])
    return lambda: sort_consolidate(words)


def _consolidating(count: int) -> Task:
    from differential.kernels.history.history import consolidate_rows

    rows = np.empty((3, count + 2), np.int64)
    random = np.random.default_rng(3)
    drawn = random.integers(0, count, (3, count))

    def task() -> None:
        rows[:, :count] = drawn
        consolidate_rows(rows, count)

    return task


def _looking_up(wanted: int, table_rows: int, runs: int = 1) -> Task:
    """Pairs of `wanted` different keys, other ones each time, with some runs of half as many keys as rows."""
    from differential.kernels.history.match import match
    from differential.trace.run import Run

    keys = max(table_rows // 2, wanted)
    guards = _guards()
    held = [Run.from_words(_rows(table_rows, keys, seed), guards) for seed in range(runs)]
    table = np.concatenate([run.line.reshape(1, -1) for run in held])
    deltas = cycle([_some_keys(wanted, keys, seed) for seed in range(max(2, min(200, 400_000 // wanted)))])
    projection = np.array([[0, 0, 1], [0, 1, 1]], np.int64)

    def task(held: object = held) -> object:  # which has the memory that the table names
        return match(next(deltas), 0, table, 1, projection, guards, 1 << 30)

    return task


def _building(count: int) -> Task:
    from differential.trace.run import Run

    words, guards = _rows(count, count), _guards()
    return lambda: Run.from_words(words, guards)


def _inserting(count: int) -> Task:
    """Insert so many rows one after another into a trace, after a lookup of all its keys."""
    from differential.kernels.history.match import match
    from differential.trace.trace import Trace

    guards = _guards()
    parts = [_rows(count, 50_000, seed) for seed in range(64)]
    projection = np.array([[0, 0, 1], [0, 1, 1]], np.int64)

    def task() -> None:
        trace = Trace(1, 1, guards)
        for part in parts:
            match(part, 0, trace.lines, 1, projection, guards, 1 << 30)
            trace.insert(part)

    return task


def _bounding(count: int) -> Task:
    from differential.kernels.history.ready import lower_bounds
    from progress.times.time_words import TimeCode, TimeLayout
    from progress.times.timestamp import TimeShape

    code = TimeCode(TimeLayout.default(2), TimeShape.ROOT.loop())
    order = np.random.default_rng(4).permutation(count).tolist()
    words = np.zeros((4, count), np.int64)
    words[2] = [code.pack((number, count - number)) for number in order]
    nothing = np.empty(0, np.int64)
    return lambda: lower_bounds(words, 2, nothing, code.guards)


def _least(count: int) -> Task:
    from differential.kernels.least.least import reduce_least
    from differential.trace.trace import Trace
    from progress.times.time_words import TimeCode, TimeLayout
    from progress.times.timestamp import TimeShape

    code = TimeCode(TimeLayout.default(2), TimeShape.ROOT.loop())
    held, answers = Trace(1, 1, code.guards), Trace(1, 1, code.guards)
    rows = _rows(100_000, 50_000)
    held.insert(rows)
    first = np.concatenate([[True], rows[0, 1:] != rows[0, :-1]])
    answers.insert(np.ascontiguousarray(rows[:, first]))
    ready = _some_keys(count, 50_000)
    ready[1], ready[2] = np.random.default_rng(5).integers(0, 100_000, count), code.pack((1, 0))
    frontier, shape = np.array([code.pack((1, 1))]), np.array([1, code.guards, 0, -1])
    pending = np.empty((2, 0), np.int64)
    return lambda: reduce_least(ready, pending, held.lines, answers.lines, frontier, shape)


def _dividing(count: int) -> Task:
    from differential.columns.routes import KeyRoute
    from differential.columns.update_batch import UpdateBatch
    from timely.wire.routing import Routing

    batch, routing = UpdateBatch(_rows(count, count)), Routing.default(2)
    route = KeyRoute(1, (), 2)
    return lambda: route.split(batch, 0, routing)


def _naming(count: int) -> Task:
    from differential.columns.symbols.table import _distinct

    words = np.random.default_rng(6).integers(0, 1_000, count)
    return lambda: _distinct(words)


def _encoding(count: int) -> Task:
    from differential.columns.symbols.table import SymbolTable
    from differential.operators.ordered.symbol_order import beginnings

    table = SymbolTable()
    words = np.asarray(table.intern([f"a value {number} of some" for number in range(max(1, count // 2))]))
    symbols = np.random.default_rng(7).choice(words, count).astype(np.int64)
    return lambda: beginnings(symbols, table)


def _inserting_values(gaps: int) -> Task:
    """Insert a value into each of so many gaps among 10,000; taking them out again counts, too."""
    from differential.operators.ordered.places import _Siblings

    siblings = _Siblings()
    siblings.add([f"{2 * number:08d}" for number in range(10_000)])
    values, places = siblings.values, siblings.places
    chosen = np.random.default_rng(8).choice(10_000, gaps, replace=False)
    new: list[str | bytes] = [*sorted(f"{2 * number + 1:08d}" for number in chosen.tolist())]

    def task() -> None:
        siblings.values, siblings.places = values.copy(), places.copy()
        siblings.add(new)

    return task


def _waiting(rows: int, parts: int = 1) -> Task:
    """Let rows of one time wait, in some parts, and take them."""
    from differential.operators.waiting.waiting_rows import WaitingRows

    some, code = [_rows(rows // parts, rows, seed) for seed in range(parts)], _in_loop()
    behind = np.array([code.pack((1, 0))])

    def task() -> None:
        waiting = WaitingRows(4, code.guards)
        for part in some:
            waiting.add(part)
        waiting.take_in_order(behind) if parts > 1 else waiting.take_ready(behind)
        assert waiting.rows == 0

    return task


def _by_priority(rows: int) -> Task:
    """Let rows come in at 18 times of a loop, and take each when it is ready."""
    from differential.operators.loops.priority import by_time
    from differential.operators.waiting.waiting_rows import WaitingRows

    words, code = _rows(rows, rows), _in_loop()
    priorities = np.random.default_rng(9).integers(0, min(rows, 1 << 17), rows)
    words[2] = [code.pack((0, 256 * number.bit_length())) for number in priorities.tolist()]
    frontiers = [np.array([code.pack((0, 256 * turn + 1))]) for turn in range(18)]

    def task() -> None:
        waiting = WaitingRows(4, code.guards)
        for part in by_time(words):
            waiting.add(part)
        for frontier in frontiers:
            waiting.take_ready(frontier)
        assert waiting.rows == 0

    return task


def _collecting(rows: int) -> Task:
    """Add changes of 64 epochs of so many rows to the collection of an output."""
    from differential.operators.edge.collected import Collected

    parts, code = [_rows(rows, 10 * rows, seed) for seed in range(64)], _in_loop()
    epochs = [np.array([code.pack((epoch, 0))]) for epoch in range(64)]

    def task() -> None:
        collected = Collected(2, code.guards)
        for epoch, part in zip(epochs, parts, strict=True):
            collected.add(part, epoch)
            collected.settle_many()

    return task


def _logging(rows: int) -> Task:
    """Complete 32 epochs of so many rows at an output, and read the last."""
    from differential.columns.schema import Schema
    from differential.columns.update_batch import UpdateBatch
    from differential.operators.table_io import TableLog
    from progress.times.time_words import TimeCode, TimeLayout
    from progress.times.timestamp import TimeShape

    code, batches = TimeCode(TimeLayout.default(2), TimeShape.ROOT), []
    for epoch in range(32):
        words = _rows(rows, 10 * rows, epoch)
        words[2] = code.pack((epoch,))
        batches.append(UpdateBatch(words))

    def task() -> None:
        log = TableLog(Schema.of("a: int, b: int"))
        log.start(code)
        for epoch, batch in enumerate(batches):
            log.add(epoch, batch)
            log.complete(epoch + 1)
        log.settle()

    return task


def _telling_times(rows: int) -> Task:
    from differential.operators.edge.kept_changes import by_time

    words = _rows(rows, rows)
    return lambda: list(by_time(words))


def _picking(rows: int) -> Task:
    """Pick every other row, with four of eight words."""
    from differential.expressions.projection import Projection

    words, keep = np.zeros((10, rows), np.int64), np.arange(0, rows, 2)
    picked = Projection.of((3, 2, 1, 0)).compile_picked(8)
    return lambda: picked(words, keep)


def _entering_texts(rows: int) -> Task:
    """Encode a column of texts, with seven different ones."""
    import pyarrow as pa

    from differential.columns.schema import Schema
    from differential.columns.symbols.table import SymbolTable

    schema, symbols = Schema.of("a: string"), SymbolTable()
    table = pa.table({"a": [f"text {row % 7}" for row in range(rows)]})
    return lambda: schema.encode(table, symbols)


def _looping(edges: int) -> Task:
    """Add so many edges to a graph of 100,000 and take them away again, while distances follow."""
    from bench.dataflow import bfs
    from bench.dataflow.job import table_of
    from bench.dataflow.measure import connected, load

    job = bfs.job(50_000, 100_000, 1)
    flow = connected(1).install(bfs.build)
    load(flow, job)
    random = np.random.default_rng(11)
    table = table_of(src=random.integers(0, 50_000, edges), dst=random.integers(0, 50_000, edges))

    def task() -> None:
        for change in (flow.input("edges").insert, flow.input("edges").remove):
            change(table)
            flow.seal(wait=True)

    return task


PROBES: Mapping[str, Probe] = {
    "INSERTED_ROWS_MAX": Probe(_sorting, (4, 8, 16, 24, 32, 48, 64)),
    "WIDE_DIGITS_ROWS_MIN": Probe(_sorting, (64, 128, 256, 512, 1_024, 4_096, 16_384)),
    "MANY_ROWS": Probe(_sorting_many, (8_192, 16_384, 32_768, 65_536, 131_072)),
    "PACKED_ROWS_MIN": Probe(_building, (2_048, 4_096, 8_192, 16_384, 32_768)),
    "DIRECTORY_ROWS_MIN": Probe(lambda rows: _looking_up(64, rows), (128, 256, 512, 2_048, 8_000)),
    "FEW_TEXTS_MAX": Probe(_entering_texts, (8, 64, 256, 1_024), (-1, _NEVER)),
    "FEW_ROWS_MAX": Probe(lambda rows: _looking_up(1_000, 25_000 * rows), (2, 4, 8)),
    "HEAD_ROWS_MAX": Probe(_inserting, (1, 4, 16, 64, 256), (16, 16_384)),
    "SORTED_TIMES_MIN": Probe(_bounding, (16, 64, 96, 128, 256, 1_024)),
    "SHORT_WAY_ROWS_MIN": Probe(_least, (4, 8, 16, 32, 64, 128)),
    "SENT_PACKED_ROWS_MIN": Probe(_dividing, (8_192, 32_768, 65_536, 131_072, 524_288)),
    "SET_WORDS_MAX": Probe(_naming, (256, 1_024, 4_096, 16_384)),
    "ENCODED_ROWS_MAX": Probe(_encoding, (8, 32, 64, 256)),
    "INSERTED_GAPS_MAX": Probe(_inserting_values, (1, 8, 32, 128, 512)),
    "ONLY_PART_ROWS_MAX": Probe(_waiting, (1, 16, 64, 256)),
    "PILE_LOOSE_ROWS_MAX": Probe(lambda rows: _waiting(rows, 8), (65_536, 131_072, 524_288)),
    "CUT_ROWS_MIN": Probe(_by_priority, (100, 1_000, 2_048, 4_096, 65_536)),
    "BESIDE_ROWS_MAX": Probe(_collecting, (1, 16, 63)),
    "UNREAD_BATCH_ROWS_MAX": Probe(_logging, (1, 16, 32, 64)),
    "SET_TIMES_MAX": Probe(_telling_times, (1, 16, 64, 256)),
    "PICKED_ROWS_MAX": Probe(_picking, (32, 512, 2_048, 4_096, 65_536)),
    "STEP_ROWS_MAX": Probe(_looping, (1, 16, 128, 512, 1_024), (0, 1 << 15)),
}


def _table() -> ModuleType:
    """The module of thresholds alone. Requires: nobody has imported `differential`, which takes them over."""
    name = "differential.thresholds"
    if name not in sys.modules:
        assert "differential" not in sys.modules
        spec = spec_from_file_location(name, ROOT / "differential" / "thresholds.py")
        assert spec is not None and spec.loader is not None
        sys.modules[name] = module_from_spec(spec)
        spec.loader.exec_module(sys.modules[name])
    return sys.modules[name]


def _timed(task: Task) -> float:
    """Seconds of processor time that a task takes, once: others that have the core meanwhile do not count."""
    times, took = 1, 0.0
    while True:
        began = time.process_time()
        for _ in range(times):
            task()
        took = time.process_time() - began
        if took >= _SECONDS:
            return took / times
        times = max(2 * times, int(times * _SECONDS / max(took, 1e-7)))


def _answer(name: str, value: int) -> None:
    """Set the threshold, then measure sizes as they are read, until there are no more."""
    setattr(_table(), name, value)
    tasks: dict[int, Task] = {}
    for line in sys.stdin:
        size = int(line)
        if size not in tasks:
            tasks[size] = PROBES[name].make(size)
            tasks[size]()
        print(_timed(tasks[size]), flush=True)


def measured(name: str, rounds: int, probe: Probe) -> dict[int, dict[int, float]]:
    """By size and by value of the threshold: the least seconds."""
    children = {
        value: subprocess.Popen(
            [sys.executable, "-m", "bench.kernels.thresholds", name, "--set", str(value)],
            cwd=ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for value in probe.values
    }
    found: dict[int, dict[int, float]] = {size: {} for size in probe.sizes}
    for _ in range(rounds):
        for size in probe.sizes:
            for value, child in children.items():
                assert child.stdin is not None and child.stdout is not None
                child.stdin.write(f"{size}\n")
                child.stdin.flush()
                took = float(child.stdout.readline())
                found[size][value] = min(took, found[size].get(value, took))
    for child in children.values():
        child.communicate()
    return found


def _row(name: str, size: int, low: float, high: float) -> str:
    """A line of the table: how long it takes where the size is beyond the threshold, and where it is not."""
    threshold = getattr(_table(), name)
    is_beyond = size > threshold or (size == threshold and not name.endswith("_MAX"))
    ratio = high / low if is_beyond else low / high
    return f"| {name} | {size:,} | {1e6 * low:.2f} | {1e6 * high:.2f} | {ratio:.2f} |"


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description="what choosing between two ways is worth")
    parser.add_argument("names", nargs="*", metavar="NAME", help=", ".join(PROBES))
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--set", type=int, help=argparse.SUPPRESS)
    options = parser.parse_args()
    unknown = set(options.names) - set(PROBES)
    if unknown:
        parser.error(f"no probe for {', '.join(sorted(unknown))}; there are {', '.join(PROBES)}")
    if options.set is not None:
        _answer(options.names[0], options.set)
        return
    print("| threshold | size | beyond, µs | not beyond, µs | other way / chosen |\n|---|---|---|---|---|")
    for name in options.names or PROBES:
        probe = PROBES[name]
        for size, took in measured(name, options.rounds, probe).items():
            print(_row(name, size, *(took[value] for value in probe.values)), flush=True)


if __name__ == "__main__":
    main()
