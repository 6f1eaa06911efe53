"""Symbols that nothing refers to are forgotten, and no others: whole dataflows over texts that come and go,
on workers that forget at every opportunity.

same_*      what they put out is what workers put out that never forget
shown_*     what vertices show is what a walk through all that they refer to finds (`tests/words_held.py`)
mutants_*   somebody shows nothing of what he holds, each by name: it is found
complete_*  every vertex says which words it keeps, and nobody who does has more than he says
soak_*      what comes and goes leaves nothing behind
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator

import pytest
from holds_no_words import HOLDS_NO_WORDS, RECORDS, attributes
from house import report
from reference.collection import History, Row, history
from reference.dataflow import Change, Cluster, compact_traces, run_at_times
from words_held import Note, held, shown

import differential as dd
import timely
from differential import Collection, col
from differential.columns.symbols.table import SymbolTable
from differential.columns.update_batch import UpdateBatch
from differential.columns.worker_symbols import SYMBOLS
from differential.errors import UnknownSymbolError
from differential.operators.edge.collected import Collected
from differential.operators.join import JoinMachine
from differential.operators.table_io import TableLog
from differential.operators.vertices import OperatorVertex, PassingVertex
from differential.operators.waiting.waiting_rows import WaitingRows
from differential.trace.shared import SharedTrace
from differential.trace.trace import Trace
from timely import Dataflow
from timely.dictionaries import Mark
from timely.operators.inputs.handle import InputHandle
from timely.operators.outputs.pieces import PieceRequest
from timely.operators.vertex import Vertex
from timely.running.core import Worker
from timely.running.stages.vertex_runner import VertexRunner

Build = Callable[[Dataflow], None]
EPOCHS = 4
TEXTS = [f"t{number}" for number in range(12)] + [
    f"https://example.org/pages/of/{n}/and-more" for n in range(6)
]


def _two(flow: Dataflow) -> tuple[Collection, Collection]:
    return dd.input(flow, "first", "k: string, v: string?"), dd.input(flow, "second", "k: string, w: string")


def joins(flow: Dataflow) -> None:
    """Joins of every kind, and sets."""
    first, second = _two(flow)
    for how in ("inner", "left", "outer", "semi", "anti"):
        first.join(second, on="k", how=how).output(how)
    first.cogroup(second, on="k", function=_both, schema="all: any").output("cogroup")
    keys = first.select("k").distinct()
    keys.intersect(second.select("k")).output("both")
    first.select("k").subtract(second.select("k")).output("rest")
    dd.join_all([first, second, second.rename({"k": "w", "w": "x"})], ["k", "w"]).output("three")


def _both(key: Row, one: list[tuple[Row, int]], other: list[tuple[Row, int]]) -> list[Row]:
    values = sorted(str(row) for row, count in [*one, *other] if count > 0)
    return [(values,)]


def groups(flow: Dataflow) -> None:
    """Groups by texts, and of texts."""
    first, second = _two(flow)
    first.group_by("k").agg(least=dd.min("v"), most=dd.max("v"), n=dd.count_distinct("v")).output("ends")
    first.group_by("k").top_k(2, by="v").output("top")
    first.group_by("k").reduce(_joined, "all: string").output("joined")
    first.group_by("v").agg(all=dd.collect("k")).output("collected")
    first.order_by("v", "k").limit(3).output("limited")
    second.map(lambda row: (row[0] + "!" + row[1],), "made: string").distinct().output("made")
    second.select(x=dd.concat(col.k, "-const"), y=dd.concat(dd.lit("a"), "b")).distinct().output("constants")
    second.filter(col.k < "t5").output("small")


def _joined(key: Row, group: list[tuple[Row, int]]) -> list[Row]:
    return [("+".join(sorted(str(row[0]) for row, count in group if count > 0)),)]


def loops(flow: Dataflow) -> None:
    """Who reaches whom, and the least name of all that are joined, in a loop in a loop."""
    edges = dd.input(flow, "first", "k: string, v: string?").drop_nulls("v").distinct()
    more = dd.input(flow, "second", "k: string, w: string").select(k=col.k, v=col.w).distinct()

    def step(reached: Collection) -> Collection:
        onward = reached.join(edges.rename({"k": "v", "v": "to"}), on="v").select(k=col.k, v=col.to)
        return onward.concat(edges).distinct()

    edges.iterate(step).output("reached")

    def outer(names: Collection) -> Collection:
        def inner(within: Collection) -> Collection:
            moved = within.join(more.rename({"k": "k", "v": "to"}), on="k").select(k=col.to, v=col.v)
            return moved.concat(names).group_by("k").agg(v=dd.min("v"))

        return names.iterate(inner).concat(names).group_by("k").agg(v=dd.min("v"))

    more.select(k=col.k, v=col.k).distinct().iterate(outer).output("names")


def fails(flow: Dataflow) -> None:
    """Rows, groups and claims that fail, in loops and outside: what is said of them is text."""
    first, second = _two(flow)
    first.select("k", n=col.v.cast("int")).output("casts")
    second.group_by("k").reduce(_refuses, "all: string").output("groups")
    second.filter(col.k < "t5").assert_empty("nothing is small").output("claimed")
    edges = second.select("k", v=col.w)

    def step(reached: Collection) -> Collection:
        onward = reached.join(edges.rename({"k": "v", "v": "to"}), on="v").select(k=col.k, v=col.to)
        return onward.map(_reached).concat(edges).distinct()

    edges.iterate(step).output("reached")
    large = edges.select(k=col.k, n=dd.lit(2**62)).concat(edges.select(k=col.v, n=dd.lit(2**62)))
    large.group_by("k").agg(n=dd.sum("n")).output("large")


def _refuses(key: Row, rows: list[tuple[Row, int]]) -> list[str]:
    if len(rows) > 1:
        raise ValueError(f"several at {key[0]}")
    return [str(rows[0][0][0])]


def _reached(row: tuple[str, str]) -> tuple[str, str]:
    if row[0] == row[1]:
        raise ValueError(f"round and round at {row[0]}")
    return row[0], row[1]


BUILDS: list[Build] = [joins, groups, loops, fails]


def some_changes(rng: random.Random) -> Iterator[tuple[str, Row, int]]:
    """Changes of one epoch: mostly of texts that the epoch before did not have."""
    few = rng.sample(TEXTS, 5)
    for _ in range(rng.randint(2, 6)):
        yield "first", (rng.choice(few), rng.choice([*few, None])), 1
        yield "second", (rng.choice(few), rng.choice(few)), 1


class Looks(Cluster):
    """Before forgetting, one time in four, what is shown is held against what is held."""

    times = 0

    def before_forgetting(self, worker: Worker) -> None:
        """All that is held, and is a symbol, was shown."""
        self.times += 1
        if self.times % 4:
            return
        seen = shown(worker)  # first: traces sum up what cancels before they show the rest
        missing = (held(worker) & SYMBOLS._values.keys()) - seen
        assert not missing, f"not shown: {SYMBOLS.lookup_one(missing.pop())!r}"

    def compact(self, index: int) -> None:
        """Outputs, too: what is removed stays until it is merged with its removal."""
        super().compact(index)
        with self.turn_of(index):
            for name in self.instances[index].frozen.outputs:
                log = self.instances[index].output(name).log
                assert isinstance(log, TableLog) and log._rows is not None
                log._rows.compact()

    def left(self) -> list[set[object]]:
        """What each worker knows after all has been compacted, apart from constants, and from what outputs
        have: a row may have come to one on this worker, and its removal on that.
        """
        for _ in range(2):
            compact_traces(self)
            for index, worker in enumerate(self.workers):
                self.compact(index)
                with self.turn_of(index):
                    worker.begin_forgetting()
            self.run()
        found: list[set[object]] = []
        for index in range(len(self.workers)):
            with self.turn_of(index):
                SYMBOLS.check_invariants()
                known = SYMBOLS._values.keys() - SYMBOLS._pinned - self._put_out(index)
                found.append({SYMBOLS.lookup_one(word) for word in known})
        return found

    def _put_out(self, index: int) -> set[int]:
        note = Note()
        for name in self.instances[index].frozen.outputs:
            self.instances[index].output(name).symbols(Mark([note]))
        return note.words


class Reads:
    """Reads all outputs as a client does, who lets go of what he has read."""

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster
        self.found: dict[str, list[Change]] = {name: [] for name in cluster.instances[0].frozen.outputs}
        self._read = dict.fromkeys(self.found, 0)
        self.errors: dict[str, dict[tuple[int, int], str]] = {}
        """By output, worker and epoch, why there is no answer."""

    def go_on(self) -> None:
        """What is complete everywhere."""
        for name, changes in self.found.items():
            outputs = [instance.output(name) for instance in self.cluster.instances]
            stop = min(output.complete_before for output in outputs)
            for index, output in enumerate(outputs):
                with self.cluster.turn_of(index):
                    table = output.log.changes(self._read[name], stop)
                    if output.failures is not None:
                        without = output.failures.without(self._read[name], stop)
                        self.errors.setdefault(name, {}).update(
                            {
                                (index, epoch): str(each.error)
                                for each in without
                                for epoch in range(each.start, each.stop)
                            }
                        )
                    if stop > 0:  # what is laid out for that stays for a while
                        output.log.piece(PieceRequest(-1, stop, 0, 0, 1, tuple(table.column_names)))
                    output.forget(stop)
                columns = [column.to_pylist() for column in table.columns]
                changes += [(tuple(row), (epoch,), diff) for *row, epoch, diff in zip(*columns, strict=True)]
            self._read[name] = stop


def run(
    build: Build, kind: type[Cluster], workers: int, seed: int, forgets: bool
) -> tuple[Cluster, dict[str, History]]:
    """Epochs in which rows come, and leave again, in any order of what workers do; all outputs."""
    rng = random.Random(seed)
    moves = random.Random(seed + 1)
    cluster = kind(build, workers, seed, own_symbols=True, forgets=forgets)
    reads = Reads(cluster)
    there: list[tuple[str, Row, int]] = []
    for epoch in range(EPOCHS):
        rng.shuffle(there)
        stays = 0 if epoch == EPOCHS - 1 else len(there) // 4
        there, leaving = there[:stays], there[stays:]
        coming = [] if epoch == EPOCHS - 1 else list(some_changes(rng))
        there += coming
        for name, row, diff in [*coming, *((name, row, -diff) for name, row, diff in leaving)]:
            # A row leaves where it came, or an output would keep it here, and its removal there.
            cluster.change(name, [(row, diff)], epoch, worker=TEXTS.index(str(row[0])) % workers)
            cluster.harry(moves, 1)
        cluster.seal(epoch)
        cluster.harry(moves, 20 * workers)
        reads.go_on()
    cluster.run()
    reads.go_on()
    failed = {name for name, said in reads.errors.items() if said}
    assert failed == ({"casts", "groups", "claimed", "reached", "large"} if build is fails else set())
    return cluster, {name: history(changes) for name, changes in reads.found.items()}


# same_


@pytest.mark.parametrize("workers", [1, 2, 3])
@pytest.mark.parametrize("build", BUILDS)
def test_same_outputs_where_everything_is_forgotten_at_once_and_nothing_is_left(
    build: Build, workers: int, seed: int, effort: int
) -> None:
    for case in range(effort):
        cluster, found = run(build, Looks, workers, seed + case, forgets=True)
        _, expected = run(build, Cluster, workers, seed + case, forgets=False)
        assert found == expected
        assert isinstance(cluster, Looks) and cluster.times > 3
        assert cluster.left() == [set()] * workers
        assert cluster.forgotten > 10


AT_TIMES: dict[str, Callable[[Collection, Collection], Collection]] = {
    "join": lambda a, b: a.join(b.rename({"v": "w"}), on="k"),
    "distinct": lambda a, b: a.concat(b).distinct(),
    "first": lambda a, b: a.concat(b).group_by("k").top_k(1, by="v"),
    "reduce": lambda a, b: a.concat(b).group_by("k").reduce(_joined, "all: string"),
    "three": lambda a, b: dd.join_all([a, b.rename({"v": "w"}), a.rename({"k": "w", "v": "x"})], ["k", "w"]),
}


@pytest.mark.parametrize("name", AT_TIMES)
def test_same_at_times_in_loops(name: str, seed: int, effort: int, monkeypatch: pytest.MonkeyPatch) -> None:
    for case in range(effort):
        rng = random.Random(seed + case)
        histories: list[list[Change]] = [
            [
                (
                    (rng.choice(TEXTS[:4]), rng.choice(TEXTS[2:8])),
                    (rng.randint(0, 2), rng.randint(0, 2)),
                    diff,
                )
                for diff in (1, 1, 1, 2, -1, 1)
            ]
            for _ in range(2)
        ]
        found = []
        for forgets in (False, True):
            monkeypatch.setattr(Cluster, "forgets_always", forgets)
            found.append(
                run_at_times(
                    AT_TIMES[name],
                    histories,
                    depth=2,
                    workers=2,
                    seed=seed + case,
                    schemas="k: string, v: string",
                )
            )
        assert found[0] == found[1]


def inputs_of_all_kinds(flow: Dataflow) -> None:
    """What keeps the last value, and what refuses removals of what is not there."""
    values = dd.input(flow, "values", "k: string, v: string", key="k", mode="upsert")
    values.output("values")
    values.group_by("v").agg(all=dd.collect("k")).output("by value")
    rows, refused = dd.checked_input(flow, "rows", "k: string")
    rows.output("rows")
    refused.output("refused")
    values.export("kept", by="k")


def importing(flow: Dataflow) -> None:
    """What another dataflow keeps, and texts of its own."""
    kept = dd.imported(flow, "inputs_of_all_kinds", "kept", "k: string, v: string")
    kept.select(both=dd.concat(col.k, col.v)).distinct().output("both")


def _everything(forgets: bool, workers: int, seed: int, monkeypatch: pytest.MonkeyPatch) -> list[object]:
    """Embedded workers, which share a table; what all outputs have after each epoch."""
    monkeypatch.setattr(SymbolTable, "is_full", property(lambda self: forgets))
    rng = random.Random(seed)
    found: list[object] = []
    with timely.connect(workers=workers, embedded=True) as cluster:
        flows = [cluster.install(inputs_of_all_kinds), cluster.install(importing)]
        for _ in range(4):
            flow = flows[0]
            for _ in range(3):
                flow.input("values").upsert([(rng.choice(TEXTS), rng.choice(TEXTS))])
                flow.input("rows").insert([(rng.choice(TEXTS),)])
                flow.input("rows").remove([(rng.choice(TEXTS),)])
            flow.seal()
            for one, name in [
                (flow, "values"),
                (flow, "by value"),
                (flow, "rows"),
                (flow, "refused"),
                (flows[1], "both"),
            ]:
                rows = one.output(name).snapshot().to_pylist()
                found.append(sorted(map(str, rows)))
    return found


@pytest.mark.parametrize("workers", [1, 2])
def test_same_of_inputs_exports_and_imports_on_embedded_workers(
    workers: int, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = [_everything(forgets, workers, seed, monkeypatch) for forgets in (True, False)]
    assert found[0] == found[1]


# mutants_

MUTANTS = [
    Trace,
    SharedTrace,
    WaitingRows,
    JoinMachine,
    TableLog,
    Collected,
    InputHandle,
    UpdateBatch,
    VertexRunner,
]
"""Who shows what it holds: with one of them silent something is missing, or is asked for in vain."""


@pytest.mark.parametrize("kind", MUTANTS, ids=lambda kind: kind.__name__)
def test_mutants_that_show_nothing_are_found(kind: type, seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kind, "symbols", lambda self, mark: None)
    monkeypatch.setattr(Looks, "before_forgetting", _look_always)
    with pytest.raises((AssertionError, UnknownSymbolError)):
        for case in range(20):
            for build in BUILDS:
                run(build, Looks, 2, seed + case, forgets=True)


def _look_always(cluster: Looks, worker: Worker) -> None:
    seen = shown(worker)
    missing = (held(worker) & SYMBOLS._values.keys()) - seen
    assert not missing, SYMBOLS.lookup_one(missing.pop())


# complete_

ABSTRACT = {Vertex, OperatorVertex, PassingVertex}
"""The room of vertices that take records only: these hold values, and no words."""


def _kinds(kind: type[Vertex]) -> Iterator[type[Vertex]]:
    for below in kind.__subclasses__():
        yield below
        yield from _kinds(below)


def test_complete_every_vertex_of_ours_says_which_words_it_keeps() -> None:
    ours = {kind for kind in _kinds(Vertex) if kind.__module__.split(".")[0] in ("timely", "differential")}
    assert len(ours) > 15
    of_records = {kind for kind in ours if kind.__module__.startswith(RECORDS)}
    assert all(kind.recv_all is Vertex.recv_all and kind.symbols is Vertex.symbols for kind in of_records)
    others = ours - of_records - ABSTRACT
    report(f"{kind.__module__}.{kind.__name__}" for kind in others if kind.symbols is Vertex.symbols)


def test_complete_every_attribute_of_who_shows_words_is_shown_or_known_to_hold_none() -> None:
    found = {name: known - named for name, known, named in attributes()}
    report(
        f"{name}.{attribute}: show its words in `symbols`, or say in tests/holds_no_words.py that it has none"
        for name, rest in found.items()
        for attribute in rest - set(HOLDS_NO_WORDS.get(name, "").split())
    )
    assert {name: " ".join(sorted(rest)) for name, rest in found.items()} == HOLDS_NO_WORDS, "and no others"


# soak_


def test_soak_of_texts_that_come_and_go_leaves_a_small_table(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each epoch brings texts that nobody has seen, long ones among them, and takes the last ones away."""
    monkeypatch.setattr(SYMBOLS, "_full_from", 2_000)
    monkeypatch.setattr(SYMBOLS, "_full_at", 0)
    passes = SYMBOLS.report()["passes"]
    with timely.connect(workers=2, embedded=True) as cluster:
        flow = cluster.install(groups)
        output, most = flow.output("top"), 0
        before: list[tuple[str, str]] = []
        for epoch in range(40):
            rows = [
                (f"key {epoch} {n % 7}", f"https://example.org/a/long/common/path/{epoch}/{n}")
                for n in range(200)
            ]
            flow.input("first").insert(rows)
            if before:
                flow.input("first").remove(before)
            before = rows
            flow.seal()
            output.snapshot()
            for name in ("ends", "top", "joined", "collected", "limited", "made", "constants", "small"):
                flow.output(name).forget(epoch)
            most = max(most, len(SYMBOLS))
        (stats, *_) = cluster.stats()
    symbols = stats["symbols"]
    assert isinstance(symbols, dict) and symbols["kept_by"] == []
    assert SYMBOLS.report()["passes"] - passes > 3
    assert most < 9_000, "of 20,000 that came"
