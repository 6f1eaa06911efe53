"""Rows in files are the rows that would be in memory: answers, changes, errors and the end are the same.

law_*     random plans whose every array lies in a file, against an interpreter
holds_*   workers of each kind, loops and texts, against plain Python
full_*    a disk without room ends one dataflow, and says why
"""

from __future__ import annotations

import errno
import gc
import os
import random
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from reference.collection import Collection as Rows
from reference.expressions import NoValue
from reference.plan import DidNotEnd, meaning
from strategies_collections import examples
from strategies_plans import draw_collection, read_twice

import differential as dd
import timely
from differential import algorithms
from differential.kernels.rows import room
from differential.plan.building import Plan
from timely.building.dataflow import Dataflow
from timely.spilling import settings
from timely.spilling.budget import SPILL
from timely.spilling.file_memory import bytes_in_files

INPUTS = {"ab": "a: int, b: int", "cd": "c: int, d: int?"}
NODES, EDGES = 300, 400

changes = st.dictionaries(
    st.tuples(st.integers(-1, 2), st.integers(-1, 2)), st.sampled_from([-2, -1, 1, 1, 2]), max_size=6
).map(Counter)


@pytest.fixture
def spill(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """A folder for all arrays of 64 bytes and more; nothing of it is left."""
    monkeypatch.setattr(settings, "_file_system", lambda folder: "ext4")  # temporary folders may be in memory
    monkeypatch.setattr(settings, "_LEAST", 0)
    monkeypatch.setattr(room, "MAPPED_BYTES_MIN", 64)
    yield str(tmp_path)
    assert not list(tmp_path.iterdir())
    assert SPILL.place is None


def _build(dataflow: Dataflow) -> None:
    edges = dd.input(dataflow, "edges", "src: int, dst: int")
    algorithms.connected_components(edges).output("components")
    names = dd.input(dataflow, "names", "src: int, name: str")
    joined = edges.join(names, on="src")
    joined.group_by("name").agg(rows=dd.count(), least=dd.min(dd.col.dst)).output("by_name")


def _wanted(edges: Rows, names: Rows) -> tuple[Counter[tuple[int, int]], Counter[tuple[str, int, int]]]:
    label = {node: node for edge in edges for node in edge}
    while moved := [(a, b) for a, b in edges if label[a] != label[b]]:
        for a, b in moved:
            label[a] = label[b] = min(label[a], label[b])
    joined = [(name, b, n) for (a, b), n in edges.items() for (c, name), _ in names.items() if a == c]
    by_name = {
        name: (sum(n for x, _, n in joined if x == name), min(b for x, b, _ in joined if x == name))
        for name in {name for name, _, _ in joined}
    }
    return Counter(label.items()), Counter((name, *answer) for name, answer in by_name.items())


def _rows(flow: timely.Flow, name: str) -> Counter[tuple[object, ...]]:
    return Counter(tuple(row.values()) for row in flow.output(name).snapshot().to_pylist())


@pytest.mark.parametrize(
    "how",
    [{"workers": 1, "embedded": True}, {"workers": 2, "embedded": True}, {"workers": 2, "threads": True}],
)
def test_holds_with_loops_texts_and_retractions(spill: str, how: dict[str, object], seed: int) -> None:
    draw = random.Random(seed)
    edges: Rows = Counter()
    names = Counter((node, f"name {node % 7} " + "x" * 40) for node in range(NODES))
    with timely.connect(**how, spill=spill, memory=0) as cluster:
        flow = cluster.install(_build)
        flow.input("names").insert([*names])
        for _ in range(4):
            gone = draw.sample([*edges], len(edges) // 2)
            new = {(draw.randrange(NODES), draw.randrange(NODES)) for _ in range(EDGES)} - {*edges}
            edges = Counter({*edges} - {*gone} | new)
            flow.input("edges").remove(gone)
            flow.input("edges").insert([*new])
            flow.wait(flow.seal())
            components, by_name = _wanted(edges, names)
            assert _rows(flow, "components") == components
            assert _rows(flow, "by_name") == by_name
        report = cluster.stats()[0]
        memory = report["memory"]
        assert isinstance(memory, dict) and memory["spill"] == spill and memory["budget_bytes"] == 0
        assert memory["file_bytes"] == bytes_in_files() > 0
        stages = report["dataflows"][0]["stages"]
        in_files = sum(stage.get("trace_file_bytes", 0) for stage in stages)
        assert 0 < in_files <= sum(stage.get("trace_bytes", 0) for stage in stages)


def test_law_random_plans(spill: str) -> None:
    @examples(4)
    @given(st.data(), st.lists(st.tuples(changes, changes), min_size=1, max_size=3))
    def holds(data: st.DataObject, epochs: list[tuple[Rows, Rows]]) -> None:
        made: list[Plan] = []

        def build(dataflow: Dataflow) -> None:
            inputs = [dd.input(dataflow, name, schema) for name, schema in INPUTS.items()]
            draw_collection(data.draw, inputs, read_twice).output("out")
            made.append(Plan.of(dataflow))

        with timely.connect(workers=1, embedded=True, spill=spill, memory=0) as cluster:
            flow = cluster.install(build)
            sums = {name: Counter[tuple[object, ...]]() for name in INPUTS}
            for epoch in epochs:
                for name, rows in zip(INPUTS, epoch, strict=True):
                    flow.input(name).insert([row for row, n in rows.items() for _ in range(max(n, 0))])
                    flow.input(name).remove([row for row, n in rows.items() for _ in range(max(-n, 0))])
                    sums[name].update(rows)
                flow.seal()
            try:
                wanted = meaning(made[0].roots[0], {n: _nonzero(rows) for n, rows in sums.items()})
            except (NoValue, DidNotEnd):
                return
            flow.wait()
            changes_read = flow.output("out").changes().to_pylist()
            found: Counter[tuple[object, ...]] = Counter()
            for row in changes_read:
                values = [value for name, value in row.items() if name not in ("epoch", "diff")]
                found[tuple(values)] += row["diff"]
            assert _nonzero(found) == wanted

    holds()


def _nonzero(rows: Rows) -> Rows:
    return Counter({row: n for row, n in rows.items() if n})


class _Disk:
    """A disk that has room for so many more blocks."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.blocks = 1 << 60
        self._reserve = os.posix_fallocate
        monkeypatch.setattr(os, "posix_fallocate", self._take)

    def _take(self, file: int, start: int, size: int) -> None:
        self.blocks -= 1
        if self.blocks < 0:
            raise OSError(errno.ENOSPC, "No space left on device")
        self._reserve(file, start, size)


def _count(dataflow: Dataflow) -> None:
    rows = dd.input(dataflow, "rows", "key: int, number: int")
    rows.group_by("key").agg(n=dd.count()).output("counts")
    rows.output("rows")


def test_full_disks_end_one_dataflow_and_say_why(spill: str, monkeypatch: pytest.MonkeyPatch) -> None:
    disk = _Disk(monkeypatch)
    table = pa.table({"key": [n % 7 for n in range(20_000)], "number": range(20_000)})
    wanted = Counter((key, len(range(key, 20_000, 7))) for key in range(7))
    has_failed = 0
    with timely.connect(workers=1, embedded=True, spill=spill, memory=0) as cluster:
        other = cluster.install(_count)
        other.input("rows").insert(table)
        for blocks in (0, 1, 2, 4, 1 << 60):
            flow = cluster.install(_count)
            disk.blocks = blocks
            try:
                flow.input("rows").insert(table)
                flow.wait(flow.seal())
            except timely.SpillError as error:
                assert f"MiB in a file of {spill}" in str(error) and "No space left" in str(error)
                has_failed += 1
            disk.blocks = 1 << 60
            if not blocks:  # a refused insertion has done nothing
                flow.input("rows").insert(table)
                flow.wait(flow.seal())
            if blocks in (0, 1 << 60):
                assert _rows(flow, "counts") == wanted
        assert has_failed >= 3
        other.wait(other.seal())
        assert _rows(other, "counts") == wanted


@pytest.mark.parametrize("how", [{"workers": 1, "embedded": True}, {"workers": 2, "threads": True}])
def test_holds_that_a_closed_cluster_leaves_nothing_in_files(spill: str, how: dict[str, object]) -> None:
    gc.collect()
    before = bytes_in_files()
    gc.disable()
    try:
        with timely.connect(**how, spill=spill, memory=0) as cluster:  # type: ignore[arg-type]
            flow = cluster.install(_count)
            flow.input("rows").insert(pa.table({"key": range(20_000), "number": range(20_000)}))
            flow.wait(flow.seal())
            assert bytes_in_files() > before
        assert bytes_in_files() == before
        with pytest.raises(timely.MisuseError, match="closed"):
            flow.output("counts").snapshot()
    finally:
        gc.enable()


def test_holds_that_a_forked_process_connects_again(spill: str) -> None:
    with timely.connect(workers=1, embedded=True, spill=spill, memory=0) as cluster:
        flow = cluster.install(_count)
        flow.input("rows").insert(pa.table({"key": range(20_000), "number": range(20_000)}))
        flow.wait(flow.seal())
        child = os.fork()
        if child == 0:
            try:
                flow.input("rows").insert([(1, 1)])
                flow.wait(flow.seal())
            except timely.MisuseError:
                os._exit(0)
            os._exit(1)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        assert sum(n for _, n in _rows(flow, "counts")) == 20_000


def test_holds_in_processes_with_a_store(
    spill: str, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The budget is of each process; what is restored goes into files, too."""
    monkeypatch.setattr(settings, "_LEAST", 1 << 20)
    rows = 300_000
    table = pa.table({"key": [n * 7_919 % rows for n in range(rows)], "number": range(rows)})
    store = tmp_path_factory.mktemp("store")
    for restarted in (False, True):
        with timely.connect(workers=2, durable=store, spill=spill, memory="1MiB") as cluster:
            if restarted:
                flow = cluster.flow(0)
            else:
                flow = cluster.install(_count)
                flow.input("rows").insert(table)
                flow.wait(flow.seal())
            assert flow.output("counts").snapshot().num_rows == rows
            for report in cluster.stats():
                memory = report["memory"]
                assert isinstance(memory, dict) and memory["budget_bytes"] == 1 << 20
                assert memory["plain_bytes"] < 1 << 20 < memory["file_bytes"], memory
