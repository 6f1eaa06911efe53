"""table_io.py: Arrow tables in, Arrow tables out.

log_*       changes of complete epochs, snapshots, and what is forgotten
types_*     every type of column, nulls included, through join, group_by, reduce and output on 1 to 3 workers
            that share no symbols
refused_*   names that tables of changes use themselves, tables that do not fit
"""

from __future__ import annotations

import datetime as dt
from collections import Counter

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from reference.collection import Row, accumulated_at, collection, history
from reference.dataflow import FOREVER, Change, Cluster
from strategies_collections import NUMBERS, examples, histories
from words_seen import Seen

import differential as dd
import timely
from differential import Collection, col
from differential.errors import MultiplicityOverflowError, SchemaError
from differential.operators import table_io
from differential.operators.edge import collected
from differential.operators.edge.table_in import TableIn
from differential.operators.table_io import TableLog, TableOut
from differential.testing import assert_updates
from progress.errors import InputClosedError, MisuseError
from timely import ForgottenError
from timely.building.dataflow import Dataflow
from timely.dictionaries import Mark

UTC = dt.UTC


def _same(flow: Dataflow) -> None:
    dd.input(flow, "numbers", NUMBERS).output("result")


# log_


@examples(1)
@given(histories(1), st.integers(1, 3), st.integers(0, 2**20))
def test_log_has_each_epoch_s_changes_consolidated(changes: list[Change], workers: int, seed: int) -> None:
    """Rows come in at all workers; equal ones are summed per worker, so they are compared summed."""
    cluster = Cluster(_same, workers, seed)
    for number, (row, (epoch,), diff) in enumerate(changes):
        cluster.change("numbers", [(row, diff)], epoch, worker=(number + seed) % workers)
    for epoch in range(4):
        cluster.seal(epoch)
        if seed >> epoch & 1:
            cluster.run()
    cluster.run()
    assert cluster.changes("result") == history(changes)
    assert cluster.snapshot("result") == accumulated_at(history(changes), (3,))
    for instance in cluster.instances:
        table = instance.output("result").log.changes(0, FOREVER)
        keys = list(zip(*[table.column(name).to_pylist() for name in ("k", "v", "epoch")], strict=True))
        assert len(set(keys)) == len(keys)
        assert 0 not in table.column("diff").to_pylist()
        assert table.column("epoch").to_pylist() == sorted(table.column("epoch").to_pylist())


def test_log_says_nothing_of_an_epoch_that_is_open() -> None:
    cluster = Cluster(_same)
    cluster.change("numbers", [((1, 1), 1)], epoch=1)
    cluster.seal(0)
    cluster.run()
    log = cluster.instances[0].output("result").log
    assert log.changes(0, FOREVER).num_rows == 0 and log.snapshot(-1).num_rows == 0
    cluster.seal(1)
    cluster.run()
    log = cluster.instances[0].output("result").log
    assert_updates(log.changes(0, FOREVER), "k | v | epoch | diff\n 1 | 1 | 1 | +1")
    assert log.changes(0, 1).num_rows == 0


def test_log_waits_for_an_epoch_that_one_worker_has_not_sealed() -> None:
    """Worker 0 is ahead: its rows of epoch 1 have come in, and epoch 1 is not complete."""
    cluster = Cluster(_same, workers=2)
    cluster.change("numbers", [((1, 1), 1)], epoch=1)
    cluster.change("numbers", [((2, 2), 1)], epoch=0)
    for instance, epoch in zip(cluster.instances, (1, 0), strict=True):
        instance.input("numbers").seal(epoch)
    cluster.run()
    assert cluster.changes("result") == {(0,): collection([(2, 2)])}
    assert cluster.snapshot("result") == collection([(2, 2)])
    cluster.instances[1].input("numbers").seal(1)
    cluster.run()
    assert cluster.snapshot("result") == collection([(1, 1), (2, 2)])


def test_log_forgets_what_it_is_told_to_and_says_so() -> None:
    cluster = Cluster(_same)
    for epoch in range(3):
        cluster.change("numbers", [((epoch, epoch), 1)])
        cluster.seal()
        cluster.run()
    log = cluster.instances[0].output("result").log
    log.forget(2)
    with pytest.raises(ForgottenError, match="before 2 are no longer kept.*snapshot"):
        log.changes(0, FOREVER)
    assert_updates(log.changes(2, FOREVER), "k | v | epoch | diff\n 2 | 2 | 2 | +1")
    assert log.snapshot(2).num_rows == 3 and log.snapshot(1).num_rows == 2
    with pytest.raises(ForgottenError, match="before 2 are no longer kept"):
        log.snapshot(0)


def test_log_takes_back_what_came_after_the_epoch_of_a_snapshot() -> None:
    cluster = Cluster(_same)
    for rows in ([((1, 1), 2), ((2, 2), 1)], [((1, 1), -1)], [], [((2, 2), -1), ((3, 3), 5)]):
        cluster.change("numbers", rows)
        cluster.seal()
        cluster.run()
    log = cluster.instances[0].output("result").log
    found = [
        {(row["k"], row["v"]): row["diff"] for row in log.snapshot(epoch).to_pylist()}
        for epoch in range(-1, 4)
    ]
    second = {(1, 1): 1, (2, 2): 1}
    assert found == [{}, {(1, 1): 2, (2, 2): 1}, second, second, {(1, 1): 1, (3, 3): 5}]


def test_log_is_complete_when_all_inputs_are_closed() -> None:
    cluster = Cluster(_same, workers=2)
    cluster.change("numbers", [((1, 1), 2)], epoch=5)
    cluster.close()
    cluster.run()
    assert cluster.changes("result") == {(5,): collection({(1, 1): 2})}


def test_log_says_which_row_of_several_epochs_leaves_64_bits(monkeypatch: pytest.MonkeyPatch) -> None:
    """As its columns have it, and not as words."""
    monkeypatch.setattr(collected, "BESIDE_ROWS_MAX", 1)
    cluster = Cluster(_same, workers=1)
    for epoch in range(2):
        cluster.change("numbers", [((1, 7), (1 << 63) - 1)], epoch)
        cluster.seal(epoch)
    with pytest.raises(MultiplicityOverflowError, match=r"\(k=1, v=7\)"):
        cluster.run()


def test_log_of_many_rows_is_what_that_of_few_is() -> None:
    """Many are packed on the whole way, moved by a select as they are, and kept once for all who read."""
    count = 40_000
    rng = np.random.default_rng(3)
    keys, values = rng.integers(0, 1 << 20, (2, count))
    with timely.connect() as cluster:
        flow = cluster.install(_swapped)
        rows = pa.table({"k": keys, "v": values})
        flow.input("numbers").insert(rows)
        flow.seal()
        flow.input("numbers").remove(rows.slice(0, count // 2))
        flow.seal()
        changes, left = flow.output("result").changes(), flow.output("result").snapshot()
        flow.output("result").forget()
        again = flow.output("result").snapshot()
    first = Counter(zip(values.tolist(), keys.tolist(), strict=True))
    gone = Counter(zip(values.tolist()[: count // 2], keys.tolist()[: count // 2], strict=True))
    wanted = [(v, k, 0, n) for (v, k), n in sorted(first.items())]
    wanted += [(v, k, 1, -n) for (v, k), n in sorted(gone.items())]
    assert list(zip(*[column.to_pylist() for column in changes.columns], strict=True)) == wanted
    found = list(zip(*[column.to_pylist() for column in left.columns], strict=True))
    assert found == sorted((first - gone).elements())
    assert again.equals(left)


@timely.builder
def _swapped(flow: Dataflow) -> None:
    dd.input(flow, "numbers", "k: int, v: int").select(v=col.v, k=col.k).output("result")


DOING = ["few", "many", "huge", "seal", "read", "run"]


@given(st.lists(st.sampled_from(DOING), max_size=25), st.integers(0, 5))
def test_log_puts_few_rows_in_order_for_who_reads_and_many_at_once(doing: list[str], most: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(table_io, "UNREAD_BATCH_ROWS_MAX", 3)
        patch.setattr(table_io, "UNREAD_ROWS_MAX", most)
        cluster, changes = Cluster(_same), list[Change]()
        epoch, done = 0, -1
        for number, what in enumerate([*doing, "seal", "run", "read"]):
            if what in ("few", "many", "huge"):
                count, diff = 9 if what == "many" else 2, 1 if number % 4 else -1
                rows = [((row, number % 3), diff << 40 if what == "huge" else diff) for row in range(count)]
                cluster.change("numbers", rows, epoch)
                changes += [(row, (epoch,), diff) for row, diff in rows]
            elif what == "seal":
                cluster.seal(epoch)
                epoch += 1
            elif what == "run":
                cluster.run()
                done = epoch - 1
                log = cluster.instances[0].output("result").log
                assert isinstance(log, TableLog) and log._few_rows <= most
            else:
                known = [change for change in changes if change[1][0] <= done]
                assert cluster.changes("result") == history(known)
                assert cluster.snapshot("result") == accumulated_at(history(known), (max(done, 0),))
                log = cluster.instances[0].output("result").log
                assert isinstance(log, TableLog) and log._few == []


def test_log_leaves_few_rows_as_they_came_until_somebody_asks() -> None:
    cluster = Cluster(_same)
    for epoch in range(3):
        cluster.change("numbers", [((1, epoch), 1), ((1, 0), 1)])
        cluster.seal()
        cluster.run()
    log = cluster.instances[0].output("result").log
    assert isinstance(log, TableLog)
    assert log._few_rows == 6
    seen = Seen()
    log.symbols(Mark([seen]))
    assert seen.words >= {0, 1, 2}
    assert log.extent() == (0, 3) and log._few_rows == 0
    wanted = """
        k | v | epoch | diff
        1 | 0 | 0     | +2
        1 | 0 | 1     | +1
        1 | 1 | 1     | +1
        1 | 0 | 2     | +1
        1 | 2 | 2     | +1
    """
    assert_updates(log.changes(0, FOREVER), wanted)


def test_log_lets_rows_of_one_epoch_wait_as_they_came_up_to_a_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    """An array for each of many batches would take far more memory than their rows."""

    def both(flow: Dataflow) -> None:
        dd.input(flow, "numbers", NUMBERS).concat(dd.input(flow, "others", NUMBERS)).output("result")

    monkeypatch.setattr(table_io, "UNREAD_ROWS_MAX", 5)
    cluster = Cluster(both)
    for number in range(40):
        cluster.change("numbers", [((number, 0), 1)])
    cluster.instances[0].input("numbers").seal(0)  # and the other input is behind
    cluster.run()
    log = cluster.instances[0].output("result").log
    assert isinstance(log, TableLog) and log._few_rows <= 6
    cluster.instances[0].input("others").seal(0)
    cluster.run()
    assert cluster.snapshot("result") == collection([(number, 0) for number in range(40)])


def test_log_ends_with_rows_that_leave_64_bits_and_not_when_they_are_read() -> None:
    """Where few rows wait for who reads, and others of the same epoch come that are there very often."""
    cluster = Cluster(_same)
    cluster.change("numbers", [((1, 7), 1)])
    cluster.change("numbers", [((1, 7), (1 << 63) - 1)])
    cluster.seal()
    with pytest.raises(MultiplicityOverflowError, match=r"\(k=1, v=7\)"):
        cluster.run()


# types_

TYPES = "key: string?, when: timestamp, x: float, b: bool, tag: string, data: bytes, n: int?"
moments = st.datetimes(dt.datetime(1950, 1, 1), dt.datetime(2100, 1, 1)).map(
    lambda at: at.replace(tzinfo=UTC)
)
typed_rows = st.tuples(
    st.sampled_from([None, "", "a", "ä€", "b" * 40]),
    moments,
    st.sampled_from([0.0, -1.5, 3.25, float("inf"), -float("inf"), 1e-300]),
    st.booleans(),
    st.sampled_from(["red", "green", "blue"]),
    st.sampled_from([b"", b"\x00\xff", b"data"]),
    st.sampled_from([None, 0, -5, 2**62]),
)


def _all_types(flow: Dataflow) -> None:
    first = dd.input(flow, "first", TYPES)
    second = dd.input(flow, "second", "key: string?, other: string")
    first.output("same")
    first.join(second, on="key").output("joined")
    first.group_by("tag", "key").agg(
        n=dd.count(), first=dd.min("when"), least=dd.min("x"), any=dd.max("b")
    ).output("grouped")
    first.select("key", "tag").filter(col.tag != "blue").group_by("key").reduce(
        _tags, "tags: string?, n: int"
    ).output("reduced")
    first.select(tag=dd.lit("fixed"), key=col.key).distinct().output("constants")


def _tags(key: Row, rows: list[tuple[Row, int]]) -> list[Row]:
    """All tags in one text, which no worker has seen before."""
    tags = sorted(str(row[0]) for row, count in rows if count > 0)
    return [("+".join(tags) if key[0] is not None else None, sum(count for _, count in rows))]


def _plainly(first: list[Row], second: list[Row]) -> dict[str, list[Row]]:
    groups: dict[tuple[object, object], list[Row]] = {}
    tags: dict[object, list[str]] = {}
    for row in first:
        groups.setdefault((row[4], row[0]), []).append(row)
        if row[4] != "blue":
            tags.setdefault(row[0], []).append(str(row[4]))
    return {
        "same": first,
        "joined": [(*row, other) for row in first for key, other in second if row[0] == key is not None],
        "grouped": [
            (*key, len(rows), min(r[1] for r in rows), min(r[2] for r in rows), max(r[3] for r in rows))  # type: ignore[type-var]
            for key, rows in groups.items()
        ],
        "reduced": [
            (key, None if key is None else "+".join(sorted(set(found))), len(found))
            for key, found in tags.items()
        ],
        "constants": [("fixed", key) for key in {row[0] for row in first}],
    }


@examples(0.5)
@given(
    st.lists(st.tuples(typed_rows, st.booleans()), max_size=8),
    st.lists(st.tuples(st.sampled_from([None, "a", "b" * 40]), st.sampled_from(["x", "y"])), max_size=4),
    st.integers(1, 3),
    st.integers(0, 2**20),
)
def test_types_pass_through_every_operator_between_workers_without_common_symbols(
    first: list[tuple[Row, bool]], second: list[Row], workers: int, seed: int
) -> None:
    """Rows marked True are removed again in epoch 1: removals must find the same words."""
    cluster = Cluster(_all_types, workers, seed, own_symbols=workers > 1)
    for number, (row, is_removed) in enumerate(first):
        cluster.change("first", [(row, 1)], 0, worker=(number + seed) % workers)
        if is_removed:
            cluster.change("first", [(row, -1)], 1, worker=(number + seed + 1) % workers)
    for number, row in enumerate(second):
        cluster.change("second", [(row, 1)], number % 2, worker=number % workers)
    cluster.seal(0)
    cluster.run()
    at_first = _plainly([row for row, _ in first], [row for n, row in enumerate(second) if n % 2 == 0])
    for name, rows in at_first.items():
        assert cluster.snapshot(name) == collection(rows), name
    cluster.seal(1)
    cluster.run()
    for name, rows in _plainly([row for row, is_removed in first if not is_removed], second).items():
        assert cluster.snapshot(name) == collection(rows), name


def test_types_a_symbol_table_of_its_own_is_what_a_worker_lacks_words_in() -> None:
    """The test above can fail: without entries a worker could not print what it never saw."""
    cluster = Cluster(_all_types, 2, own_symbols=True)
    row: Row = ("only here", dt.datetime(2020, 1, 1, tzinfo=UTC), 1.0, True, "red", b"", None)
    cluster.change("first", [(row, 1)], worker=0)
    assert cluster._symbols is not None
    has = ["only here" in symbols["_words"] for symbols in cluster._symbols]
    assert has == [True, False]


# refused_


@pytest.mark.parametrize("name", ["epoch", "diff"])
def test_refused_columns_that_tables_of_changes_have_themselves(name: str) -> None:
    with pytest.raises(SchemaError) as caught:
        dd.input(Dataflow("queries"), "numbers", f"k: int, {name}: int")
    assert "'numbers'" in str(caught.value) and repr(name) in str(caught.value)


def test_refused_tables_that_do_not_fit_name_input_column_and_row() -> None:
    codec = TableIn(dd.Schema.of("k: int, name: string"), "numbers")
    for table, said in (
        (pa.table({"k": [1]}), "missing 'name'"),
        (pa.table({"k": [1], "name": ["a"], "more": [1]}), "'more'"),
        (pa.table({"k": [1, None], "name": ["a", "b"]}), "row 1"),
        (pa.table({"k": ["x"], "name": ["a"]}), "'k'"),
    ):
        with pytest.raises(SchemaError) as caught:
            codec.encode(table, 1, 0)
        assert "'numbers'" in str(caught.value) and said in str(caught.value)


def test_refused_rows_for_an_epoch_that_is_sealed() -> None:
    cluster = Cluster(_same)
    cluster.seal(2)
    with pytest.raises(InputClosedError, match="'numbers': epoch 1 is sealed"):
        cluster.change("numbers", [((1, 1), 1)], epoch=1)


def test_refused_two_outputs_of_one_name() -> None:
    numbers = dd.input(Dataflow("queries"), "numbers", NUMBERS)
    numbers.output("result")
    with pytest.raises(MisuseError, match="already has an output 'result'"):
        numbers.output("result")


def test_codecs_say_their_columns_for_fingerprints_and_clients() -> None:
    schema = dd.Schema.of("k: int, name: string?")
    assert TableIn(schema, "numbers").describe() == TableOut(schema).describe() == f"table ({schema})"
    assert TableIn(schema, "numbers").arrow_schema() == schema.to_arrow()


def test_an_input_is_a_collection_of_its_columns() -> None:
    numbers: Collection = dd.input(Dataflow("queries"), "numbers", {"k": int, "name": str | None})
    assert str(numbers.schema) == "k: int, name: string?"
