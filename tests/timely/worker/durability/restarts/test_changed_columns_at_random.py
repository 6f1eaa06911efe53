"""Inputs whose columns change from version to version, in durable clusters that start again: the collections
are those of the rows as the last version has them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import TypeAlias

import pyarrow as pa
import pytest
from durable_workers import embedded, survivors
from evolving_flows import KEYED, ROWS, evolving, is_refused, read_as
from hypothesis import given
from hypothesis import strategies as st
from simulated_store import SimulatedDisk, SimulatedStore

import timely
from timely.durable.bases.coverage import logs_of
from timely.durable.bases.folding import fold
from timely.durable.bases.pruning import prune
from timely.durable.incarnations import announce

Row: TypeAlias = dict[str, object]
Step: TypeAlias = tuple[str, object]

SMALL = st.integers(0, 3)
TEXT = st.sampled_from(["x", "y"])
ROW = st.tuples(SMALL, SMALL, TEXT, st.booleans())
STEPS = st.one_of(
    st.tuples(st.just("insert"), st.lists(ROW, min_size=1, max_size=4)),
    st.tuples(st.just("table"), st.lists(ROW, min_size=1, max_size=4)),
    st.tuples(st.just("remove"), st.integers(0, 9)),
    st.tuples(st.just("ahead"), st.lists(ROW, min_size=1, max_size=3)),
    st.tuples(st.just("upsert"), st.lists(ROW, min_size=1, max_size=3)),
    st.tuples(st.just("delete"), st.lists(SMALL, min_size=1, max_size=2)),
    st.tuples(st.just("older client"), st.lists(ROW, min_size=1, max_size=2)),
    st.tuples(st.just("seal"), st.just(1)),
    st.tuples(st.just("check"), st.just(1)),
    st.tuples(st.just("replace"), st.integers(1, 2)),
    st.tuples(st.just("restart"), st.integers(1, 3)),
    st.tuples(st.just("fold"), st.integers(1, 3)),
)


def drawn(
    columns: dict[str, Callable[[int, int, str, bool], object]], row: tuple[int, int, str, bool]
) -> Row:
    """The row of some columns that is made of a drawn one."""
    return {name: make(*row) for name, make in columns.items()}


@dataclass
class History:
    """What clients did, as rows of the version that they knew; and what the newest version makes of it."""

    version: int = 0
    rows: Counter[tuple[object, ...]] = field(default_factory=Counter)
    values: dict[object, Row] = field(default_factory=dict)

    def insert(self, row: Row, times: int = 1) -> None:
        self.rows[tuple(row[name] for name in ROWS[self.version].makers)] += times

    def go_on(self, version: int) -> None:
        """Read all rows as a version does that follows at once."""
        old, read = list(ROWS[self.version].makers), Counter[tuple[object, ...]]()
        for row, times in self.rows.items():
            values = read_as(ROWS, self.version, version, dict(zip(old, row, strict=True)))
            read[tuple(values.values())] += times
        self.rows = read
        self.values = {key: read_as(KEYED, self.version, version, row) for key, row in self.values.items()}
        self.version = version


class Cluster:
    """An embedded durable cluster, the program that uses it, and clients that know older versions."""

    def __init__(self) -> None:
        self.disk = SimulatedDisk()
        self.history = History()
        self.ahead: list[tuple[int, Row]] = []
        self.appended = 0
        self.begin(2)

    def begin(self, workers: int) -> None:
        self.stack = ExitStack()
        self.cluster, _ = self.stack.enter_context(embedded(self.disk, workers))
        self.flow = self.cluster.install(evolving, version=self.history.version)
        self.older: list[tuple[int, timely.Flow]] = []

    def do(self, what: str, facts: object) -> None:
        flow, history = self.flow, self.history
        makers, keyed = ROWS[history.version].makers, KEYED[history.version].makers
        if what in ("insert", "table", "ahead"):
            rows = [drawn(makers, row) for row in facts]  # type: ignore[attr-defined]
            self.add(what, rows)
        elif what == "remove" and (
            there := sorted((row for row, n in history.rows.items() if n > 0), key=repr)
        ):
            row = there[int(facts) % len(there)]  # type: ignore[call-overload]
            flow.input("rows").remove([row])
            history.insert(dict(zip(makers, row, strict=True)), -1)
        elif what == "upsert":
            rows = [drawn(keyed, row) for row in facts]  # type: ignore[attr-defined]
            flow.input("values").upsert([tuple(row.values()) for row in rows])
            history.values.update({row["k"]: row for row in rows})
        elif what == "delete":
            flow.input("values").delete(facts)
            for key in facts:  # type: ignore[attr-defined]
                history.values.pop(key, None)
        elif what == "older client" and self.older:
            self.of_older(*self.older[0], facts)  # type: ignore[arg-type]
        elif what == "seal":
            flow.seal()
        elif what == "check":
            self.check()
        elif what == "replace":
            version = min(history.version + int(facts), len(ROWS) - 1)  # type: ignore[call-overload]
            self.replace(version)
        elif what in ("restart", "fold"):
            self.disturb(what == "fold", int(facts))  # type: ignore[call-overload]
        self.flow.refresh()

    def replace(self, version: int) -> None:
        """Install a version in place of the one that is there, which goes on if that is refused."""
        history = self.history
        if is_refused(history.version, version):
            with pytest.raises(timely.GraphError, match="'country' is new and may not be null"):
                self.cluster.replace(self.flow, evolving, version=version)
            return
        self.older.append((history.version, self.flow))
        self.flow = self.cluster.replace(self.flow, evolving, version=version)
        history.go_on(version)

    def add(self, what: str, rows: Sequence[Row]) -> None:
        for row in rows:
            self.history.insert(row)
        given = self.flow.input("rows")
        if what == "insert":
            given.insert([tuple(row.values()) for row in rows])
            return
        table = pa.table(
            {
                name: pa.array([row[name] for row in rows], given.form.schema.field(name).type)
                for name in rows[0]
            }
        )
        if what == "table":
            given.insert(table)
        else:
            self.appended += 1
            table = table.append_column("diff", pa.array([1] * len(rows)))
            given.append(table, epoch=self.flow.epoch + 1, writer="a", sequence=self.appended)

    def of_older(self, version: int, flow: timely.Flow, facts: Sequence[tuple[int, int, str, bool]]) -> None:
        """Let a client of an older version send rows: they count as that version's, or are refused."""
        now = self.history.version
        for name, versions in (("rows", ROWS), ("values", KEYED)):
            rows = [drawn(versions[version].makers, row) for row in facts]
            given = flow.input(name)
            send = given.insert if name == "rows" else given.upsert
            if versions[version].goes_on_until < now:
                with pytest.raises(timely.ReplacedError, match="has other columns"):
                    send([tuple(row.values()) for row in rows])
                    flow.refresh()
                continue
            send([tuple(row.values()) for row in rows])
            for row in rows:
                read = read_as(versions, version, now, row)
                if name == "rows":
                    self.history.insert(read)
                else:
                    self.history.values[read["k"]] = read

    def disturb(self, folds: bool, workers: int) -> None:
        """Let the machine fail, or fold; then start again."""
        disk = survivors(self.disk)
        self.stack.close()
        self.disk = disk
        if folds:
            store = SimulatedStore(disk)
            incarnation = announce(store, 1, 1)
            fold(logs_of(store, incarnation))
            prune(store, incarnation.number, count=1)
        self.begin(workers)

    def check(self) -> None:
        """Compare the collections with those of the rows that the history has."""
        self.flow.seal(through=self.flow.epoch + 1)  # of rows that were appended ahead, too
        self.flow.wait(timeout=60)
        found = Counter(tuple(row.values()) for row in self.flow.output("rows").snapshot().to_pylist())
        assert found == +self.history.rows
        values = {row["k"]: row for row in self.flow.output("values").snapshot().to_pylist()}
        assert values == self.history.values


def run(steps: Sequence[Step]) -> None:
    one = Cluster()
    try:
        for what, facts in steps:
            one.do(what, facts)
        one.check()
        one.disturb(True, 2)
        one.check()
    finally:
        one.stack.close()


@given(st.lists(STEPS, max_size=14))
def test_older_rows_are_read_as_new_ones(steps: list[Step]) -> None:
    run(steps)


def test_each_version_after_the_other() -> None:
    row = (1, 2, "x", True)
    steps: list[Step] = []
    for _ in range(len(ROWS)):
        steps += [("insert", [row, (0, 1, "y", False)]), ("upsert", [row, (2, 0, "y", False)])]
        steps += [("older client", [row]), ("delete", [2]), ("seal", 1), ("ahead", [row]), ("table", [row])]
        steps += [("upsert", [(3, 1, "x", False)]), ("replace", 1), ("older client", [row]), ("restart", 2)]
    run(steps)


def test_versions_that_were_left_out_fill_nothing() -> None:
    row = (1, 2, "x", True)
    given: list[Step] = [("insert", [row]), ("upsert", [row, (2, 0, "y", False)]), ("ahead", [row])]
    run([*given, ("replace", 2), ("check", 1), ("older client", [row]), ("replace", 2), ("restart", 1)])


def test_a_version_that_cannot_follow_is_refused_and_nothing_is_lost() -> None:
    row = (1, 2, "x", True)
    given: list[Step] = [("insert", [row]), ("upsert", [row]), ("ahead", [row]), ("replace", 1)]
    run([*given, ("replace", 2), *given, ("older client", [row]), ("restart", 3)])
