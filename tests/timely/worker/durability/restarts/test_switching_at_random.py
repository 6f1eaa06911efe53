"""Dataflows that are replaced again and again in durable clusters that start again: they show what those show
that never end, epoch by epoch.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from contextlib import ExitStack
from typing import TypeAlias

import pyarrow as pa
from durable_workers import embedded, survivors
from hypothesis import given, note
from hypothesis import strategies as st
from simulated_store import SimulatedDisk, SimulatedStore
from version_flows import VERSIONS, versions

import timely
from timely.durable.bases.coverage import logs_of
from timely.durable.bases.folding import fold
from timely.durable.bases.pruning import prune
from timely.durable.incarnations import announce
from timely.wire.requests import Progress, Read

Step: TypeAlias = tuple[str, object]
Answer: TypeAlias = tuple[object, ...]

EDGES = st.lists(st.tuples(st.integers(0, 5), st.integers(0, 5)), min_size=1, max_size=4)
VALUES = st.lists(st.tuples(st.integers(0, 3), st.sampled_from(["x", "y", "z"])), min_size=1, max_size=3)
STEPS = st.one_of(
    st.tuples(st.just("edges"), EDGES),
    st.tuples(st.just("named"), EDGES),
    st.tuples(st.just("repeat"), st.integers(0, 5)),
    st.tuples(st.just("values"), VALUES),
    st.tuples(st.just("delete"), st.lists(st.integers(0, 3), min_size=1, max_size=2)),
    st.tuples(st.just("more"), st.tuples(st.integers(0, 5), st.sampled_from(["a", "b"]))),
    st.tuples(st.just("ahead"), EDGES),
    st.tuples(st.just("seal"), st.integers(1, 2)),
    st.tuples(st.just("replace"), st.integers(0, VERSIONS - 1)),
    st.tuples(st.just("forget"), st.sampled_from(["out", "values", "other"])),
    st.tuples(st.just("restart"), st.integers(1, 3)),
    st.tuples(st.just("fold"), st.integers(1, 3)),
)
DISTURBANCES = ("restart", "fold")


class Cluster:
    """An embedded cluster, and the program that uses it; with a disk, a durable one."""

    def __init__(self, disk: SimulatedDisk | None) -> None:
        self.disk = disk
        self.version = 0
        self.sent: list[list[tuple[int, int]]] = []
        self.appended = 0
        self.begin(2)

    def begin(self, workers: int) -> None:
        self.stack = ExitStack()
        if self.disk is None:
            self.cluster = self.stack.enter_context(timely.connect(workers=workers, embedded=True))
        else:
            self.cluster, _ = self.stack.enter_context(embedded(self.disk, workers))
        self.flow = self.cluster.install(versions, version=self.version)

    def end(self) -> None:
        self.stack.close()

    def do(self, what: str, facts: object) -> None:
        if what in DISTURBANCES:
            if self.disk is not None:
                self.disturb(what == "fold", facts)  # type: ignore[arg-type]
            return
        flow = self.flow
        if what == "edges":
            flow.input("edges").insert(facts)  # type: ignore[arg-type]
        elif what == "named":
            flow.input("edges").insert(facts, writer="w", sequence=len(self.sent))  # type: ignore[arg-type]
            self.sent.append(facts)  # type: ignore[arg-type]
        elif what == "repeat" and self.sent:
            sequence = int(facts) % len(self.sent)  # type: ignore[call-overload]
            flow.input("edges").insert(self.sent[sequence], writer="w", sequence=sequence)
        elif what == "values":
            flow.input("values").upsert(facts)  # type: ignore[arg-type]
        elif what == "delete":
            flow.input("values").delete(facts)  # type: ignore[arg-type]
        elif what == "more" and "more" in flow.inputs:
            flow.input("more").insert([facts])  # type: ignore[list-item]
        elif what == "ahead":
            src, dst = zip(*facts, strict=True)  # type: ignore[call-overload]
            self.appended += 1
            table = pa.table({"src": src, "dst": dst, "diff": [1] * len(src)})
            flow.input("edges").append(table, epoch=flow.epoch + 1, writer="a", sequence=self.appended)
        elif what == "seal":
            flow.seal(through=flow.epoch + int(facts) - 1)  # type: ignore[call-overload]
        elif what == "forget" and facts in flow.outputs:
            flow.wait(timeout=60)
            flow.ask_all(Progress(flow.index, str(facts), keep_from=max(flow.epoch - 2, 0), drops=True))
        elif what == "replace":
            self.version = int(facts)  # type: ignore[call-overload]
            self.flow = self.cluster.replace(flow, versions, version=self.version)
        flow.refresh()

    def disturb(self, folds: bool, workers: int) -> None:
        """Let the machine fail, or fold; then start again."""
        assert self.disk is not None
        disk = survivors(self.disk)
        self.end()
        self.disk = disk
        if folds:
            store = SimulatedStore(disk)
            incarnation = announce(store, 1, 1)
            fold(logs_of(store, incarnation))
            prune(store, incarnation.number, count=1)
        before = self.flow
        self.begin(workers)
        assert (self.flow.index, self.flow.epoch) == (before.index, before.epoch)

    def answers(self) -> dict[str, Answer]:
        """What each output shows, by epoch, as far as it is kept; also to those who ask for old versions."""
        self.flow.seal()
        self.flow.wait(timeout=60)
        found: dict[str, Answer] = {}
        for name in self.flow.outputs:
            extents = self.flow.ask_all(Progress(self.flow.index, name, extent=True, timeout_seconds=0.0))
            kept = max(reply.integer("kept") for reply in extents)
            changes: Counter[Answer] = Counter()
            failed: set[Answer] = set()
            request = Read(self.flow.index, name, kept, self.flow.epoch, 60.0, with_failures=True)
            for reply in self.flow.ask_all(request):
                failed |= {(each[0], each[1], each[3][0]) for each in reply.values["failed"]}  # type: ignore
                for row in reply.columns().to_pylist():
                    diff = row.pop("diff")
                    changes[tuple(row.items())] += diff
            snapshot: Counter[Answer] | str
            try:
                snapshot = Counter(
                    tuple(row.values()) for row in self.flow.output(name).snapshot().to_pylist()
                )
            except timely.TimelyError as error:
                snapshot = type(error).__name__
            found[name] = kept, {row: n for row, n in changes.items() if n}, failed, snapshot
        for number in range(self.flow.index):
            for name in ("out", "other", "named"):
                try:
                    self.flow.ask_all(Read(number, name, self.flow.epoch - 1, self.flow.epoch, 60.0))
                    found[f"{number} {name}"] = ("goes on",)
                except timely.TimelyError as error:
                    found[f"{number} {name}"] = (type(error).__name__, str(error))
        return found


def run(steps: Sequence[Step], disk: SimulatedDisk | None) -> dict[str, Answer]:
    one = Cluster(disk)
    try:
        for what, facts in steps:
            one.do(what, facts)
        return one.answers()
    finally:
        one.end()


def differences(durable: dict[str, Answer], undisturbed: dict[str, Answer]) -> list[str]:
    """What the durable cluster shows differently. It may have kept more."""
    lines = [] if durable.keys() == undisturbed.keys() else [f"{sorted(durable)} {sorted(undisturbed)}"]
    for name, before in undisturbed.items():
        answer, other = before, durable.get(name, ())
        if len(answer) == len(other) == 4 and other[0] <= answer[0]:  # type: ignore[operator]
            other = from_epoch(answer[0], *other)  # type: ignore[arg-type]
            answer = from_epoch(answer[0], *answer)  # type: ignore[arg-type]
        if other != answer:
            lines.append(f"{name}\n  durable     {other}\n  undisturbed {answer}")
    return lines


def from_epoch(
    first: int, kept: int, changes: dict[Answer, int], failed: set[tuple[int, int, str]], snapshot: object
) -> Answer:
    """The part of an answer about epochs from this one on."""
    del kept
    later = {row: n for row, n in changes.items() if dict(row)["epoch"] >= first}  # type: ignore[arg-type,operator]
    return later, {(max(start, first), *rest) for start, *rest in failed if rest[0] > first}, snapshot


@given(st.lists(STEPS, max_size=14), st.integers(1, 3))
def test_shows_what_an_undisturbed_cluster_shows(steps: list[Step], workers: int) -> None:
    again = [*steps, ("fold", workers), ("restart", 1)]
    undisturbed = run(steps, None)
    assert not differences(run(steps, SimulatedDisk()), undisturbed)
    note("once more, folded")
    assert not differences(run(again, SimulatedDisk()), undisturbed)
