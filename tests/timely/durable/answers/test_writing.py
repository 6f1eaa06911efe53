"""A stored answer is what a snapshot shows, for dataflows of every kind, whatever happens meanwhile.

Most of these fold in the process of the test: another process takes a second to start.

same_*      as a snapshot: all kinds of dataflows, types of columns, and numbers of workers
read_*      by programs that know nothing of this cluster
refused_*   what is not stored, and why
often_*     rows that are there several times
died_*      folds that are killed
"""

from __future__ import annotations

import datetime as dt
import shutil
from collections import Counter
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from folded_flows import QUERIES, Query, collected, folded, history_for, run
from stored_flows import cluster, entries, rows_in, table_in, totals

import differential as dd
import timely
from differential import Collection, col
from timely.durable import stored
from timely.durable.answers import writing
from timely.durable.answers.old import prune_answers
from timely.durable.answers.writing import AnswersOfFold
from timely.durable.bases import folding
from timely.durable.bases.coverage import logs_of
from timely.durable.bases.folding import fold
from timely.durable.bases.history import read_history
from timely.durable.bases.pruning import prune
from timely.durable.bases.rows_form import BUCKETS, BucketRange
from timely.durable.commands import run_command
from timely.durable.folder_store import FolderStore
from timely.durable.incarnations import announce, joined
from timely.errors import StoreError
from timely.worker.durability.folds.fold_process import FoldProcess


@pytest.fixture
def all_stored(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every output is stored."""
    output = Collection.output

    def stored_output(self: Collection, name: str, *, strict: bool = False) -> None:
        output(self, name, strict=strict, stored=True)

    monkeypatch.setattr(Collection, "output", stored_output)


@pytest.fixture
def unfolded(monkeypatch: pytest.MonkeyPatch) -> None:
    """No fold begins: what it would read is in the logs."""
    monkeypatch.setattr(FoldProcess, "_start", lambda self, name, in_use: None)


# same_


@pytest.mark.parametrize("query", QUERIES, ids=lambda query: query.__name__)
def test_same_as_a_snapshot(query: Query, all_stored: None, unfolded: None, tmp_path: Path) -> None:
    history = history_for(query, 7, 9)
    for workers, until in ((2, 4), (1, 6), (3, 9)):
        with cluster(tmp_path, workers) as started:
            flow = started.install(query)
            run(flow, history, 7, flow.epoch, until)
            flow.wait()
            names = list(flow.outputs)
            if until == 6:  # readers need earlier epochs no more
                for name in names:
                    flow.output(name).forget(4)
            expected = collected(flow, until - 1)
        folded(tmp_path, forgets=False)
        for name in names:
            own = Counter({row[1:]: n for row, n in expected.items() if row[0] == name})
            answer = stored(tmp_path, name) if min(own.values(), default=1) > 0 else None
            if answer is None:
                (line,) = [line for line in run_command(["inspect", str(tmp_path)]) if " times, and" in line]
                assert f"output {name!r} is not stored as of epoch {until - 1}" in line
            else:
                assert (answer.epoch, answer.why) == (until - 1, "")
                assert entries(table_in(answer)) == own


@pytest.mark.parametrize("workers", [1, 3])
def test_same_after_each_kind_of_end(workers: int, tmp_path: Path) -> None:
    with cluster(tmp_path, workers) as started:
        flow = started.install(totals)
        flow.input("orders").insert([("ada", 5), ("bea", 2), ("ada", 30)])
        flow.seal()
        flow.input("orders").insert([("cy", 1)])  # its epoch stays open
    assert rows_in(tmp_path) == (0, [("ada", 35), ("bea", 2)])
    with cluster(tmp_path, workers) as started:
        flow = started.install(totals)
        flow.input("orders").remove([("ada", 5), ("ada", 30), ("bea", 2)])
        flow.finish()
    assert rows_in(tmp_path) == (1, [("cy", 1)])
    with cluster(tmp_path, 2) as started:
        flow = started.install(totals)
        expected = flow.output("totals").snapshot()
    assert rows_in(tmp_path) == (1, [("cy", 1)])
    assert table_in(stored(tmp_path, "totals")).schema.equals(expected.schema)


def test_same_when_it_is_empty(tmp_path: Path) -> None:
    with cluster(tmp_path, 2) as started:
        flow = started.install(totals)
        flow.seal()
    assert rows_in(tmp_path) == (0, [])
    assert pq.read_table(stored(tmp_path, "totals").path).column_names == ["customer", "cents"]


TYPES = (
    "i: int, f: float, b: bool, t: timestamp, d: date, m: decimal(10, 2), s: string, y: bytes, "
    "w: decimal(38, 3), l: array<array<int?>>, p: struct<x: int, n: map<string, decimal(5, 1)?>?>, "
    "ni: int?, nf: float?, nb: bool?, nt: timestamp?, nd: date?, nm: decimal(10, 2)?, ns: string?, "
    "ny: bytes?, nw: decimal(38, 3)?, nl: array<array<int?>>?, "
    "np: struct<x: int, n: map<string, decimal(5, 1)?>?>?"
)
VALUES = (
    2**62, 0.5, True, dt.datetime(2026, 2, 3, 4, 5, 6, 7, dt.UTC), dt.date(2026, 2, 3), Decimal("12.34"),
    "text ü", b"\xff", Decimal(10**34 + 1), [[1, None], []], {"x": 1, "n": {"a": Decimal("0.5"), "b": None}},
)  # fmt: skip


def typed(flow: timely.Dataflow) -> None:
    dd.input(flow, "rows", TYPES).output("rows", stored=True)


def test_same_types(tmp_path: Path) -> None:
    with cluster(tmp_path) as started:
        flow = started.install(typed)
        rows = [VALUES + VALUES, VALUES + (None,) * len(VALUES)]
        flow.input("rows").insert([*rows, rows[0], (*VALUES[:-1], {"x": 2}, *rows[1][len(VALUES) :])])
        flow.seal()
        expected = flow.output("rows").snapshot()
    table = table_in(stored(tmp_path, "rows"))
    assert table.schema.equals(expected.schema)
    assert sorted(map(repr, table.to_pylist())) == sorted(map(repr, expected.to_pylist()))


@pytest.mark.parametrize("bytes_max", [200_000, 1 << 30])
def test_same_in_several_passes_and_files(
    bytes_max: int, unfolded: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with cluster(tmp_path, 2) as started:
        flow = started.install(totals)
        for number in range(4):
            names = [f"customer {500 * number + n}" for n in range(1_000)]
            flow.input("orders").insert(pa.table({"customer": names, "cents": list(range(1_000))}))
            flow.seal()
        expected = entries(flow.output("totals").snapshot())
    monkeypatch.setattr(folding, "FOLD_DIVIDED_ROWS_MIN", 100)
    folded(tmp_path, forgets=False, bytes_max=bytes_max)
    answer = stored(tmp_path, "totals")
    assert len(list(Path(answer.path).iterdir())) > 5
    assert entries(table_in(answer)) == expected


# read_


def test_read_by_duckdb(tmp_path: Path) -> None:
    with cluster(tmp_path, 2) as started:
        flow = started.install(totals)
        flow.input("orders").insert([("ada", 5), ("bea", 2), ("ada", 30), ("ada", 30)])
        flow.seal()
    path = stored(tmp_path, "orders").path
    by_duckdb = duckdb.sql(f"SELECT sum(cents), count(*) FROM read_parquet('{path}/*.parquet')").fetchall()
    assert by_duckdb == [(67, 4)]
    assert duckdb.sql(f"SELECT cents FROM '{path}/*.parquet' WHERE customer = 'bea'").fetchall() == [(2,)]


# refused_


def dividing(flow: timely.Dataflow) -> None:
    rows = dd.input(flow, "rows", "a: int, b: int")
    rows.select(q=col.a // col.b).output("quotients", stored=True)
    rows.output("rows", stored=True)


@pytest.mark.parametrize("workers", [1, 2])
def test_refused_while_it_fails(workers: int, unfolded: None, tmp_path: Path) -> None:
    def run_to_end(use: Callable[[timely.Flow], None]) -> None:
        with cluster(tmp_path, workers) as started:
            flow = started.install(dividing)
            use(flow)
            flow.seal()
        folded(tmp_path, forgets=False)

    run_to_end(lambda flow: flow.input("rows").insert([(6, 0)]))
    with pytest.raises(StoreError, match="has no stored answer: at epoch 0 it has no answer: .*divi"):
        stored(tmp_path, "quotients")
    run_to_end(lambda flow: flow.input("rows").remove([(6, 0)]))
    assert rows_in(tmp_path, "quotients") == (1, [])
    run_to_end(lambda flow: flow.input("rows").insert([(6, 3)]))
    assert rows_in(tmp_path, "quotients") == (2, [(2,)])
    run_to_end(lambda flow: flow.input("rows").insert([(5, 0)]))
    assert rows_in(tmp_path, "quotients") == (2, [(2,)])
    assert "divi" in stored(tmp_path, "quotients").why
    assert rows_in(tmp_path, "rows") == (3, [(5, 0), (6, 3)])
    run_to_end(lambda flow: flow.input("rows").remove([(5, 0)]))
    assert rows_in(tmp_path, "quotients") == (4, [(2,)]) and not stored(tmp_path, "quotients").why


def test_refused_if_a_row_is_owed(tmp_path: Path) -> None:
    with cluster(tmp_path, 2) as started:
        flow = started.install(totals)
        flow.input("orders").remove([("ada", 5)])
        flow.seal()
    with pytest.raises(StoreError, match="customer = 'ada', cents = 5 is there -1 times"):
        stored(tmp_path, "orders")
    with cluster(tmp_path, 2) as started:
        flow = started.install(totals)
        flow.input("orders").insert([("ada", 5)])
        flow.seal()
    assert rows_in(tmp_path, "orders") == (1, [])


def test_refused_without_a_durable_cluster() -> None:
    with (
        timely.connect(embedded=True) as started,
        pytest.raises(timely.MisuseError, match="output 'totals' of .* is to be stored, .*durable=FOLDER"),
    ):
        started.install(totals)


def test_refused_types_and_records(tmp_path: Path) -> None:
    def untyped(flow: timely.Dataflow) -> None:
        dd.input(flow, "rows", "a: int, x: any").output("rows", stored=True)

    def records(flow: timely.Dataflow) -> None:
        flow.output("rows", flow.input("rows"), stored=True)

    with cluster(tmp_path) as started:
        with pytest.raises(timely.TimelyError, match="column 'x' has the type any, .*drop\\('x'\\)"):
            started.install(untyped)
        with pytest.raises(timely.GraphError, match="this one carries records"):
            started.install(records)


def test_refused_as_another_query(tmp_path: Path) -> None:
    def query(is_stored: bool) -> Callable[[timely.Dataflow], None]:
        def totals(flow: timely.Dataflow) -> None:
            dd.input(flow, "rows", "a: int").output("rows", stored=is_stored)

        return totals

    with cluster(tmp_path) as started:
        started.install(query(False))
    with cluster(tmp_path) as started, pytest.raises(timely.MisuseError, match="; stored"):
        started.install(query(True))


class Factor:
    """What a function should not depend on."""

    now = 1


def by_chance(flow: timely.Dataflow) -> None:
    rows = dd.input(flow, "rows", "a: int")
    rows.map(lambda row: (row[0] * Factor.now,), "a: int").output("out", stored=True)


def test_refused_if_it_is_another_one_after_a_restart(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with cluster(tmp_path) as started:
        flow = started.install(by_chance)
        flow.input("rows").insert([(1,)])
        flow.seal()
    assert rows_in(tmp_path, "out") == (0, [(1,)])  # nobody but the store has read it
    monkeypatch.setattr(Factor, "now", 2)
    with pytest.raises(timely.NotRepeatableError, match="output 'out' .* has changed at epoch 0"):  # noqa: SIM117
        with cluster(tmp_path, 2) as started:
            flow = started.install(by_chance)
            flow.seal(wait=True)
    assert rows_in(tmp_path, "out") == (0, [(1,)])
    run_command(["accept", str(tmp_path), "0"])
    with cluster(tmp_path) as started:
        started.install(by_chance)
    assert rows_in(tmp_path, "out") == (1, [(2,)])
    monkeypatch.setattr(Factor, "now", 3)
    run_command(["accept", str(tmp_path), "0"])
    with cluster(tmp_path) as started:
        started.install(by_chance)
    assert rows_in(tmp_path, "out") == (1, [(3,)])  # the same epoch, by a later incarnation


# often_


def test_often_means_as_many_rows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with cluster(tmp_path, 2) as started:
        flow = started.install(totals)
        flow.input("orders").insert([("ada", 5)] * 7 + [("bea", 2)] * 2 + [("cy", 1)])
        flow.seal()
        expected = entries(flow.output("orders").snapshot())
    assert (
        entries(table_in(stored(tmp_path, "orders")))
        == expected
        == {("ada", 5): 7, ("bea", 2): 2, ("cy", 1): 1}
    )


def test_often_in_pieces() -> None:
    table = pa.table({"a": ["x", "y", "z"]})
    for size in (1, 2, 3, 10, 100):
        pieces = _repeated(table, [3, 1, 4], size)
        assert [len(piece) for piece in pieces[:-1]] == [size] * (len(pieces) - 1)
        assert sum(pieces, []) == list("xxxyzzzz")


def _repeated(table: pa.Table, counts: list[int], size: int) -> list[list[str]]:
    import numpy as np

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(writing, "FOLD_FILE_ROWS_MAX", size)
        pieces = list(writing._repeated(table, np.array(counts)))
    return [piece.column("a").to_pylist() for piece in pieces]


def test_often_beyond_measure(tmp_path: Path) -> None:
    with cluster(tmp_path) as started:
        flow = started.install(totals)
        many = pa.table({"customer": ["ada"], "cents": [1], "diff": [2**40]})
        flow.input("orders").append(many, epoch=0)
        flow.seal()
    with pytest.raises(StoreError, match="more than 2,147,483,648 rows"):
        stored(tmp_path, "orders")
    assert rows_in(tmp_path, "totals") == (0, [("ada", 2**40)])


# died_


class Died(BaseException):
    """The fold ends here."""


class DyingStore(FolderStore):
    """A store whose process dies at the operation number `last`."""

    def __init__(self, folder: Path, last: int) -> None:
        super().__init__(folder)
        self.left = last

    def _count(self) -> None:
        if not self.left:
            raise Died
        self.left -= 1

    def put_new(self, path: str, data: bytes) -> bool:
        self._count()
        return super().put_new(path, data)

    def remove(self, path: str) -> None:
        self._count()
        super().remove(path)


def test_died_anywhere_the_answer_before_is_whole_and_the_next_fold_goes_on(
    unfolded: None, tmp_path: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    def use(folder: Path, cents: int, workers: int) -> None:
        with cluster(folder, workers) as started:
            flow = started.install(totals)
            flow.input("orders").insert([("ada", cents)])
            flow.seal()

    use(tmp_path, 5, 2)
    folded(tmp_path, forgets=False)
    use(tmp_path, 30, 2)
    incarnation = announce(FolderStore(tmp_path), 1, 1)
    last, done = 0, False
    while not done:
        folder = tmp_path_factory.mktemp("copy") / "store"
        shutil.copytree(tmp_path, folder)
        dying = DyingStore(folder, last)
        try:
            fold(logs_of(dying, incarnation))
            prune(dying, incarnation.number, count=1)
            prune_answers(dying, incarnation.number, count=1, seconds=0.0)
            done = True
        except Died:
            pass
        assert rows_in(folder) in ((0, [("ada", 5)]), (1, [("ada", 35)])), last
        run_command(["verify", str(folder)])
        folded(folder, forgets=False)
        assert rows_in(folder) == (1, [("ada", 35)]), last
        use(folder, 100, 1 + last % 3)
        folded(folder, forgets=False)
        assert rows_in(folder) == (2, [("ada", 135)]), last
        last += 1
    assert last > 8


def test_died_slowly_a_fold_that_comes_late_takes_the_place_of_no_newer_answer(
    unfolded: None, tmp_path: Path
) -> None:
    store = FolderStore(tmp_path)

    def use() -> None:
        with cluster(tmp_path) as started:
            flow = started.install(totals)
            flow.input("orders").insert([("ada", 5)])
            flow.seal()

    use()
    old = AnswersOfFold(store, read_history(logs_of(store, announce(store, 1, 1)), 0), "01d")
    use()
    new = AnswersOfFold(store, read_history(logs_of(store, announce(store, 1, 1)), 0), "2e3")
    for answers in (new, old):  # both have the same number
        answers.begin_pass(BucketRange(0, BUCKETS))
        answers.write_pass(lambda rows: [BucketRange(0, BUCKETS)])
    assert {each.epoch for each in old.finish()} == {0}
    assert {(each.epoch, each.number) for each in new.finish()} == {(1, 2)}
    late = AnswersOfFold(store, read_history(logs_of(store, joined(store, 2)), 0), "1a7e")
    assert late.finish() == []
    assert stored(tmp_path, "totals").epoch == 1
