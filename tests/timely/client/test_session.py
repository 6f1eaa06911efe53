"""An installed dataflow as a client sees it; in one process, since that is the same code.

reading_*    changes, snapshots, what was read already
sealing_*    what must have arrived
spreading_*  which worker gets which rows
"""

from __future__ import annotations

import gc
import weakref
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import ClassVar

import numpy as np
import pyarrow as pa
import pytest
from dataflows import word_count
from fixed_members import FixedMembers

import timely
from progress.compiled.arrays import Int64s
from progress.times.time_words import TimeCode
from timely import Batch, Records
from timely.client.feeding import appending
from timely.client.posting import Poster, Refusals
from timely.client.session import Flow
from timely.limits import APPEND_BYTES_MAX, SPREAD_ROWS_MIN
from timely.operators.failures import FailureLog
from timely.operators.inputs.deliveries import Deliveries
from timely.operators.inputs.names import worker_of
from timely.operators.outputs.output_log import OutputLog, check_kept
from timely.wire.batch import Frame
from timely.wire.requests import IN_OPEN, WHEN_NAMED, Decide, Deliver, Describe, Reply, Request


class Rows:
    """Batches of (a, diff) pairs, for tables of one integer column."""

    KIND: ClassVar[int] = 901

    def __init__(self, table: pa.Table) -> None:
        self.table = table

    @property
    def rows(self) -> int:
        return int(self.table.num_rows)

    def shifted(self, keep: int, add: int) -> Rows:
        return self

    def to_frames(self) -> list[Frame]:
        raise AssertionError("stays on its worker")

    @classmethod
    def from_frames(cls, frames: Sequence[memoryview]) -> Rows:
        raise AssertionError("stays on its worker")


class TableIn:
    """A codec as `differential` has one: with a schema."""

    def encode(self, table: pa.Table, diff: int | Int64s, epoch_word: int) -> Batch:
        diffs = np.broadcast_to(np.asarray(diff, np.int64), table.num_rows)
        return Rows(table.append_column("diff", pa.array(diffs)))

    def describe(self) -> str:
        return "a: int"

    def arrow_schema(self) -> pa.Schema:
        return pa.schema([("a", pa.int64())])


class TableLog:
    def __init__(self) -> None:
        self.tables: dict[int, pa.Table] = {}
        self.complete_before = 0
        self.kept_from = 0

    def start(self, code: TimeCode, failures: FailureLog | None = None) -> None: ...

    def add(self, epoch: int, batch: Batch) -> None:
        assert isinstance(batch, Rows)
        known = self.tables.get(epoch)
        self.tables[epoch] = batch.table if known is None else pa.concat_tables([known, batch.table])

    def complete(self, epoch: int) -> None:
        self.complete_before = epoch

    @property
    def is_settled(self) -> bool:
        return False

    def note_complete(self, epoch: int) -> None:
        raise AssertionError("it is never settled")

    def settle(self) -> None: ...

    def changes(self, start: int, stop: int) -> pa.Table:
        check_kept(start, self.kept_from)
        schema = pa.schema([("a", pa.int64()), ("diff", pa.int64()), ("epoch", pa.int64())])
        found = [
            table.append_column("epoch", pa.array([epoch] * table.num_rows, pa.int64()))
            for epoch, table in sorted(self.tables.items())
            if start <= epoch < stop
        ]
        return pa.concat_tables([schema.empty_table(), *found])

    def keep_digests(self) -> bool:
        return False

    def snapshot(self, epoch: int) -> pa.Table:
        return self.changes(self.kept_from, epoch + 1).select(["a", "diff"])

    def forget(self, stop: int) -> None:
        self.kept_from = max(stop, self.kept_from)
        self.tables = {epoch: table for epoch, table in self.tables.items() if epoch >= stop}


class TableOut:
    def new_log(self) -> OutputLog:
        return TableLog()

    def describe(self) -> str:
        return "a: int"


def passing(dataflow: timely.Dataflow) -> None:
    dataflow.output("out", dataflow.input("in", TableIn()), TableOut())


@pytest.fixture(params=[1, 3])
def flow(request: pytest.FixtureRequest) -> Iterator[Flow]:
    with timely.connect(workers=request.param, embedded=True) as cluster:
        yield cluster.install(passing)


def changed(table: pa.Table) -> list[tuple[int, int, int]]:
    return [(row["a"], row["epoch"], row["diff"]) for row in table.to_pylist()]


def test_reading_changes_returns_each_epoch_once_and_in_order(flow: Flow) -> None:
    flow.input("in").insert([(3,), (1,), (3,)])
    flow.seal()
    flow.input("in").remove([(3,)])
    flow.seal()
    output = flow.output("out")
    assert [row[1] for row in changed(output.changes())] == sorted(
        row[1] for row in changed(output.changes(0))
    )
    assert changed(output.changes()) == []
    assert changed(output.changes(1, 2)) == [(3, 1, -1)]
    flow.seal()
    assert changed(output.changes()) == []
    flow.input("in").insert([(9,)])
    assert changed(output.changes_nowait()) == []
    flow.seal()
    assert changed(output.changes_nowait()) == [(9, 3, 1)]


def test_reading_a_snapshot_is_the_collection_now(flow: Flow) -> None:
    for rows in ([(1,), (2,)], [(2,), (5,)]):
        flow.input("in").insert(rows)
        flow.seal()
    flow.input("in").remove([(1,)])
    assert flow.output("out").snapshot().column("a").to_pylist() == [1, 2, 2, 5], (
        "what is not sealed does not count"
    )
    flow.seal()
    assert sorted(flow.output("out").snapshot(timeout=5).column("a").to_pylist()) == [2, 2, 5]


def test_reading_forgets_what_was_read(flow: Flow) -> None:
    flow.input("in").insert([(1,)])
    flow.seal()
    output = flow.output("out")
    output.changes()
    output.forget()
    with pytest.raises(timely.ForgottenError, match="before 1 are no longer kept"):
        output.changes(0, 1)
    flow.seal()
    assert changed(output.changes()) == []


def test_reading_names_that_do_not_exist_are_told_with_those_that_do(flow: Flow) -> None:
    with pytest.raises(timely.MisuseError, match="has no input 'out': there are 'in'"):
        flow.input("out")
    with pytest.raises(timely.MisuseError, match="has no output 'in': there are 'out'"):
        flow.output("in")
    assert "inputs ['in'], outputs ['out']" in repr(flow)
    assert (flow.inputs, flow.outputs) == (["in"], ["out"])
    assert repr(flow.output("out")) == f"FlowOutput('out' of {flow.name!r}: a: int)"
    assert repr(flow.input("in")) == f"FlowInput('in' of {flow.name!r}: a: int)"
    assert flow.stages[1].startswith("stage 0 'input in'") and len(flow.fingerprint) == 64


def test_reading_an_epoch_below_0_is_no_matter_of_forgetting(flow: Flow) -> None:
    with pytest.raises(timely.MisuseError, match=r"epochs begin at 0.*Write changes\(0\)"):
        flow.output("out").changes(-1)


@pytest.mark.parametrize("number", [0, 3])
def test_sealing_takes_no_number_without_its_name(flow: Flow, number: int) -> None:
    with pytest.raises(timely.MisuseError, match=rf"write seal\(through={number}\)"):
        flow.seal(number)  # type: ignore[arg-type]
    assert flow.epoch == 0


def test_connecting_takes_numbers_of_workers_by_name_only() -> None:
    with pytest.raises(timely.MisuseError, match=r"not 2\. .*write connect\(workers=2\)"):
        timely.connect(2)  # type: ignore[arg-type]


def test_uninstalled_a_flow_says_so_of_itself(flow: Flow) -> None:
    assert "ended" not in repr(flow)
    flow.uninstall()
    assert repr(flow).startswith(f"Flow({flow.name!r}, has ended (UninstalledError), ")


def test_sealing_completes_epochs_one_by_one(flow: Flow) -> None:
    assert [flow.seal(), flow.seal(), flow.epoch] == [0, 1, 2]
    assert flow.wait() == 1
    assert flow.output("out").complete_before() == 2


def test_sealing_through_an_epoch_that_is_complete_completes_no_other(flow: Flow) -> None:
    """It completed the open one, too, so that rows of the next second were those of the one after."""
    assert [flow.seal(through=epoch) for epoch in (-1, 4, 4, 2)] == [-1, 4, 4, 2]
    assert (flow.epoch, flow.seal(), flow.refresh()) == (5, 5, 6)


def test_sealing_by_another_client_is_seen_by_refreshing() -> None:
    with timely.connect(embedded=True) as cluster:
        mine = cluster.install(passing)
        theirs = cluster.flow(mine.index)
        theirs.seal()
        assert mine.epoch == 0 and mine.refresh() == 1
        theirs.seal()
        assert mine.input("in").insert([(1,)]) == mine.epoch == 2, "rows enter the epoch that is open"
        assert mine.seal() == 2 and changed(mine.output("out").changes()) == [(1, 2, 1)]


def test_sealing_what_another_client_has_sealed_is_no_error(flow: Flow) -> None:
    mine, theirs = flow, timely.Flow(flow._workers, flow._workers.ask([(0, Describe(0), None)])[0])
    assert (theirs.seal(), theirs.seal(), mine.seal(), mine.seal()) == (0, 1, 0, 2)


def test_sealing_waits_for_no_missing_append_but_names_it(flow: Flow) -> None:
    expected = [("in", "loader", sequence) for sequence in range(4)]
    rows = pa.table({"a": [1], "diff": [2]})
    for name, writer, sequence in expected[:3]:
        assert flow.input(name).append(rows, writer=writer, sequence=sequence)
    with pytest.raises(
        timely.MisuseError, match=r"epoch 0 is not sealed: 1 of the expected appends have not arrived"
    ):
        flow.seal(expected)
    assert flow.input("in").append(rows, writer="loader", sequence=3)
    assert flow.input("in").append(rows, writer="loader", sequence=3) is False
    assert flow.seal(expected) == 0
    assert sum(row[2] for row in changed(flow.output("out").changes())) == 8


def test_sealing_appends_have_a_whole_identity_or_none(flow: Flow) -> None:
    rows = pa.table({"a": [1, 1, 2], "diff": [1, -1, 0]})
    with pytest.raises(timely.MisuseError, match="give both, or neither"):
        flow.input("in").append(rows, writer="w")
    assert flow.input("in").append(rows) and flow.input("in").append(rows)
    with pytest.raises(timely.MisuseError, match=r"'diff'.*\['a'\].* write table\.append_column\('diff', "):
        flow.input("in").append(pa.table({"a": [1]}))
    with pytest.raises(timely.MisuseError, match="the column 'diff' holds integers"):
        flow.input("in").append(pa.table({"a": [1], "diff": ["x"]}))
    with pytest.raises(timely.InputClosedError, match="sealed"):
        flow.seal()
        flow.input("in").append(rows, epoch=0)


class Listens(FixedMembers):
    """Workers that only write down what is asked of them."""

    def __init__(self, count: int) -> None:
        self.count = count
        self.addresses: list[str] = []
        self.refusals = Refusals()
        self.part_bytes = APPEND_BYTES_MAX
        self.incarnation = 0
        self.asked: list[tuple[int, Request, int]] = []

    def ask(
        self, requests: Sequence[tuple[int, Request, pa.Table | None]], timeout_seconds: float = 0
    ) -> list[Reply]:
        for worker, request, table in requests:
            self.asked.append((worker, request, 0 if table is None else table.num_rows))
        return [Reply({"is_new": True, "epoch": 4, "entered": [[True, 4]]}) for _ in requests]

    def post(
        self,
        worker: int,
        request: Request,
        table: pa.Table | None,
        poster: Poster,
        call: str,
        is_ordered: bool = False,
    ) -> None:
        poster.on_answer(self.ask([(worker, request, table)])[0])

    def settle(self, timeout_seconds: float = 0.0) -> None: ...

    def close(self) -> None: ...


def listening(count: int) -> tuple[Listens, Flow]:
    described = {
        "dataflow": 0,
        "name": "x",
        "fingerprint": "",
        "stages": [],
        "epoch": 0,
        "outputs": [],
        "ahead": [],
        "exports": [],
        "imports": [],
        "first": 0,
        "note": "",
    }
    workers = Listens(count)
    return workers, Flow(workers, Reply({**described, "inputs": [["in", "a: int", None, None, False]]}))


def test_spreading_few_rows_of_a_writer_go_to_one_worker_with_numbers_that_follow() -> None:
    workers, flow = listening(3)
    for _ in range(6):
        assert flow.input("in").insert({"a": [1]}) == 4
    assert {worker for worker, _, _ in workers.asked} == {0} and flow.epoch == 4
    inserts = [request for _, request, _ in workers.asked if isinstance(request, Deliver)]
    assert [insert.sequence for insert in inserts] == [0, 1, 2, 3, 4, 5]
    assert len({insert.writer for insert in inserts}) == 1


def test_spreading_writers_are_spread_over_all_workers(monkeypatch: pytest.MonkeyPatch) -> None:
    """Those of tables that are not posted."""
    monkeypatch.setattr(appending, "POSTED_BYTES_MAX", -1)
    asked: set[int] = set()
    for _ in range(60):
        workers, flow = listening(3)
        flow.input("in").insert({"a": [1]})
        asked |= {worker for worker, _, _ in workers.asked}
    assert asked == {0, 1, 2}


def test_spreading_named_insertions_are_all_known_at_one_place() -> None:
    workers, flow = listening(3)
    for writer in range(60):
        flow.input("in").insert({"a": [1]}, writer=f"writer {writer}", sequence=0)
    assert {worker for worker, _, _ in workers.asked} == {0}


def test_spreading_many_rows_go_to_all_by_ranges_and_enter_when_all_have_arrived() -> None:
    workers, flow = listening(3)
    flow.input("in").insert(pa.table({"a": np.arange(SPREAD_ROWS_MIN + 1)}))
    *parts, (decides, enter, _) = workers.asked
    assert [worker for worker, _, _ in parts] == [0, 1, 2]
    assert all(isinstance(one, Deliver) and one.counts == WHEN_NAMED for _, one, _ in parts)
    assert sum(rows for _, _, rows in parts) == SPREAD_ROWS_MIN + 1
    assert decides == 0 and isinstance(enter, Decide)
    named = {(one.input, one.writer, one.sequence) for _, one, _ in parts if isinstance(one, Deliver)}
    assert [[*name, 1] for name in named] == enter.enter, "of one part each"


def test_spreading_large_and_small_insertions_have_lines_of_numbers_without_gaps() -> None:
    workers, flow = listening(2)
    for size in (1, SPREAD_ROWS_MIN, 1, SPREAD_ROWS_MIN, 1):
        flow.input("in").insert(pa.table({"a": np.arange(size)}))
    rows = [one for _, one, _ in workers.asked if isinstance(one, Deliver)]
    small = [(one.writer, one.sequence) for one in rows if one.counts == IN_OPEN]
    entered = [one.enter[0] for _, one, _ in workers.asked if isinstance(one, Decide)]
    large = [(writer, sequence) for _, writer, sequence, _ in entered]  # type: ignore[misc]
    assert [[sequence for _, sequence in names] for names in (small, large)] == [[0, 1, 2], [0, 1]]
    writers = [{writer for writer, _ in names} for names in (small, large)]
    assert writers[0].isdisjoint(writers[1]), "number 0 of the one is not number 0 of the other"


def test_records_are_read_as_pairs() -> None:
    with timely.connect(embedded=True) as cluster:
        flow = cluster.install(word_count)
        flow.input("lines").insert(["b a"])
        flow.seal()
        assert flow.output("counts").is_records
        assert flow.output("counts").changes() == [(0, ("a", 1)), (0, ("b", 1))]
        with pytest.raises(timely.MisuseError, match="records, which accumulate to nothing"):
            flow.output("counts").snapshot()
        with pytest.raises(timely.MisuseError, match="can only be added to"):
            flow.input("lines").remove(["a"])
    assert Records([1]).rows == 1


def test_spreading_named_insertions_of_any_size_are_one_line_of_numbers(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Small ones go to one worker, large ones in parts to all; one place knows both."""
    monkeypatch.setitem(Deliveries.__init__.__kwdefaults__, "gaps_max", 3)
    writer = next(name for name in map(str, range(99)) if worker_of(name, 0, 2) == 1)
    sizes = [SPREAD_ROWS_MIN - number % 2 for number in range(12)]
    with timely.connect(workers=2, embedded=True) as cluster:
        flow = cluster.install(lambda flow: flow.output("all", flow.input("records")))
        for number, size in enumerate(sizes):
            flow.input("records").insert([number] * size, writer=writer, sequence=number)
        flow.input("records").insert([0] * (SPREAD_ROWS_MIN - 1), writer=writer, sequence=0)
        flow.seal()
        counts = Counter(record for _, record in flow.output("all").changes())
    assert [counts[number] for number in range(12)] == sizes


def test_uninstalled_a_dataflow_is_given_back_at_once_though_its_parts_refer_to_each_other() -> None:
    class Holds(timely.Vertex):
        def on_recv(self, edge: int, message: object, time: object) -> None:
            pass

    held: list[weakref.ref[Holds]] = []

    def made() -> Holds:
        vertex = Holds()
        held.append(weakref.ref(vertex))
        return vertex

    def holding(dataflow: timely.Dataflow) -> None:
        stream = dataflow.input("words")
        dataflow.stage("holds", made, [stream.feed()], outputs=0)

    gc.disable()
    try:
        with timely.connect(workers=1, embedded=True) as cluster:
            flow = cluster.install(holding)
            assert [vertex() is None for vertex in held] == [False]
            flow.uninstall()
            assert [vertex() is None for vertex in held] == [True]
    finally:
        gc.enable()


@pytest.mark.parametrize("workers", [1, 2])
def test_small_is_what_has_few_bytes_of_its_own_and_is_not_spread(workers: int) -> None:
    large = pa.table({"a": np.arange(SPREAD_ROWS_MIN * 8)})
    assert not appending.is_small(large, workers)
    assert appending.is_small(large.slice(5, 100), workers)
    flags = pa.table({"a": np.zeros(SPREAD_ROWS_MIN, np.bool_)})
    assert appending.is_small(flags, workers) == (workers == 1)
    assert appending.is_small(flags.slice(1), workers)
