"""table_in.py: an input takes in the columns that somebody reads, and no others."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest
from folded_flows import folded
from hypothesis import given
from hypothesis import strategies as st
from strategies_collections import examples

import differential as dd
import timely
from differential.columns.schema import Schema
from differential.columns.worker_symbols import SYMBOLS
from differential.errors import SchemaError
from differential.operators.edge.table_in import TableIn, of_base
from differential.operators.timed.keyed_io import KeyedTableIn
from timely.client.tables import InputForm

SCHEMA = Schema.of("id: int, note: string, n: int?, more: string?")
TABLE = pa.table({"id": [1, 2], "note": ["one", "two"], "n": [5, None], "more": [None, "x"]})


def some_columns(flow: timely.Dataflow) -> None:
    rows = dd.input(flow, "rows", "note: string, id: int, more: string?, n: int")
    rows.group_by("id").agg(n=dd.sum("n"), times=dd.count()).output("sums")
    dd.input(flow, "unread", "note: string, id: int")


def last_values(flow: timely.Dataflow) -> None:
    rows = dd.input(flow, "rows", "note: string, id: int, more: string?, n: int", key="id", mode="upsert")
    rows.filter(dd.col.more.is_not_null()).select("id", "more").output("more")


def codec_of(kept: list[str]) -> TableIn:
    return TableIn(SCHEMA, "rows", kept)


# Words.


def test_words_of_the_columns_that_are_kept_in_the_order_of_all() -> None:
    whole, some = TableIn(SCHEMA, "rows").encode(TABLE, 1, 7), codec_of(["n", "id"]).encode(TABLE, 1, 7)
    places = [*SCHEMA.words_of("id"), *SCHEMA.words_of("n"), SCHEMA.width, SCHEMA.width + 1]
    assert some.words.tolist() == whole.words[places].tolist()
    assert some.symbol_words == () and whole.symbol_words
    (folded,) = codec_of(["n", "id"]).encode_folded(TABLE, -1)
    assert folded.rows == 2


def test_words_of_plain_rows_are_those_of_tables() -> None:
    codec = codec_of(["id", "n"])
    plain = codec.checked_rows([(1, "one", 5, None), (2, "two", None, "x")], 1)
    assert plain == [(1, 5), (2, None)]
    assert codec.encode_rows(plain, [1, 1], 7).words.tolist() == codec.encode(TABLE, 1, 7).words.tolist()
    again = codec.encode(of_base(TABLE.select(["id", "n"])), 1, 7)
    assert again.words.tolist() == codec.encode(TABLE, 1, 7).words.tolist(), "rows that come from a store"


@pytest.mark.parametrize(
    "table, said",
    [
        (TABLE.drop_columns(["note"]), "missing 'note'"),
        (TABLE.append_column("x", pa.array([1, 2])), "x"),
        (TABLE.set_column(1, "note", pa.array([1, 2])), "'note'"),
        (TABLE.set_column(1, "note", pa.array(["a", None])), "'note'.*null"),
    ],
)
def test_words_of_no_table_that_does_not_fit_even_in_a_column_that_nobody_reads(
    table: pa.Table, said: str
) -> None:
    with pytest.raises(SchemaError, match=rf"(?s)'rows'.*{said}"):
        codec_of(["id"]).encode(table, 1, 7)


# Values by key: a value that nobody reads still says that the key has one.

values = st.one_of(st.none(), st.integers(0, 2))


@examples(2)
@given(st.lists(st.tuples(st.integers(0, 2), values, values, values), min_size=1, max_size=5), st.data())
def test_law_of_keys_narrowed_entries_are_the_entries_of_all_columns_narrowed(
    rows: list[tuple[int, int | None, int | None, int | None]], data: st.DataObject
) -> None:
    nullable = data.draw(st.tuples(st.booleans(), st.booleans(), st.booleans()))
    kept = ["k", *(name for name in "abc" if data.draw(st.booleans()))]
    schema = Schema.of(
        [("k", "int"), *((n, "int" + "?" * is_null) for n, is_null in zip("abc", nullable, strict=True))]
    )
    diffs = [data.draw(st.sampled_from([1, 1, -1])) for _ in rows]
    whole, some = KeyedTableIn(schema, "rows", ("k",)), KeyedTableIn(schema, "rows", ("k",))
    some.keep_only(kept)
    table = pa.Table.from_arrays(
        [pa.array([row[at] for row in rows], pa.int64()) for at in range(4)], names=["k", "a", "b", "c"]
    )
    places = [word for name in kept for word in schema.words_of(name)]
    places += range(schema.width, schema.width + 5)
    as_array = pa.array(diffs, pa.int64()).to_numpy()
    assert outcome(some, table, as_array, None) == outcome(whole, table, as_array, places)
    form = InputForm("rows", whole.describe(), whole.arrow_schema(), whole.converter, is_plain=True)
    plain = form.plain_rows(list(rows))
    if plain is not None:
        sent = [list(row) for row in plain]
        assert outcome(some, sent, 1, None) == outcome(whole, sent, 1, places)


def outcome(codec: KeyedTableIn, rows: object, diff: object, places: list[int] | None) -> object:
    """The words that entries have at these places, or the error."""
    try:
        if isinstance(rows, pa.Table):
            words = codec.encode(rows, diff, 7).words  # type: ignore[arg-type]
        else:
            checked = codec.checked_rows(rows, 1)
            words = codec.encode_rows(checked, [1] * len(checked), 7).words
    except SchemaError as error:
        return str(error)
    return (words if places is None else words[places]).tolist()


# In dataflows.


def held(flow: timely.Flow, output: str) -> Counter[tuple[object, ...]]:
    return Counter(tuple(row.values()) for row in flow.output(output).snapshot().to_pylist())


@pytest.mark.parametrize("workers", [1, 2])
def test_texts_that_nobody_reads_are_no_symbols(workers: int) -> None:
    texts = [f"a text that nobody reads, {workers}, {number}" for number in range(50)]
    with timely.connect(workers=workers, embedded=True) as cluster:
        flow = cluster.install(some_columns)
        before = len(SYMBOLS)
        flow.input("rows").insert([(text, at % 3, text, 1) for at, text in enumerate(texts)])
        table = pa.table({"note": texts, "id": [1] * 50, "more": texts, "n": [2] * 50})
        flow.input("rows").insert(table)
        flow.input("rows").remove(table.slice(0, 20))
        flow.input("unread").insert([(texts[0], 1)])
        flow.seal(wait=True)
        assert held(flow, "sums") == Counter([(0, 17, 17), (1, 17 + 60, 17 + 30), (2, 16, 16)])
        assert len(SYMBOLS) == before


def test_explained_as_what_the_input_leaves_out() -> None:
    flow = timely.Dataflow("explained")
    some_columns(flow)
    assert "input rows without note, more" in dd.explain(flow)


def test_all_columns_for_outputs_exports_functions_and_stages_by_hand() -> None:
    def whole(flow: timely.Dataflow) -> None:
        columns = "id: int, note: string"
        dd.input(flow, "shown", columns).output("shown")
        dd.input(flow, "exported", columns).export("exported")
        dd.input(flow, "given", columns).map(lambda row: (row.id,), "id: int").output("given")
        dd.input(flow, "streamed", columns).stream().inspect(lambda record: None)

    with timely.connect(workers=1, embedded=True) as cluster:
        flow = cluster.install(whole)
        for name in ("shown", "exported", "given", "streamed"):
            flow.input(name).insert([(1, "kept")])
        flow.seal(wait=True)
        assert held(flow, "shown") == Counter([(1, "kept")]) and held(flow, "given") == Counter([(1,)])


def test_the_key_of_last_values_is_kept_though_nobody_reads_it() -> None:
    def numbers(flow: timely.Dataflow) -> None:
        rows = dd.input(flow, "rows", "id: int, name: string, note: string", key="id", mode="upsert")
        rows.group_by("name").agg(n=dd.count()).output("numbers")

    with timely.connect(workers=2, embedded=True) as cluster:
        flow = cluster.install(numbers)
        flow.input("rows").upsert([(1, "a", "x"), (2, "a", "x"), (3, "b", "x"), (3, "a", "y")])
        flow.input("rows").delete([1])
        flow.seal(wait=True)
        assert held(flow, "numbers") == Counter([("a", 2)])


@pytest.mark.parametrize("build", [some_columns, last_values])
def test_refused_without_the_columns_that_nobody_reads(build: Callable[[timely.Dataflow], None]) -> None:
    with timely.connect(workers=1, embedded=True) as cluster:
        rows = cluster.install(build).input("rows")
        read = {"id": [1], "n": [5]} if build is some_columns else {"id": [1], "more": ["x"]}
        with pytest.raises(SchemaError, match="'note'"):
            rows.append(pa.table({**read, "diff": [1]}), writer="w", sequence=0)


def test_again_from_a_store(tmp_path: Path) -> None:
    for build, name in ((some_columns, "sums"), (last_values, "more")):
        folder = tmp_path / name
        rows = [("a", 1, "x", 5), ("b", 1, None, 6), ("a", 2, "y", 7)]
        table = pa.table({"note": ["c"], "id": [3], "more": ["z"], "n": [8]})
        expected = None
        for workers in (1, 2, 1):
            with timely.connect(workers=workers, embedded=True, durable=folder, sync="system") as cluster:
                flow = cluster.install(build)
                if expected is None:
                    insert = flow.input("rows").upsert if name == "more" else flow.input("rows").insert
                    insert(rows)
                    insert(table)
                    flow.seal(wait=True)
                    expected = held(flow, name)
                    assert expected
                assert held(flow, name) == expected
            folded(folder, forgets=False)


def test_fed_by_the_version_before_that_keeps_all_columns() -> None:
    def exporting(flow: timely.Dataflow) -> None:
        rows = dd.input(flow, "rows", "note: string, id: int, more: string?, n: int")
        rows.export("rows")
        rows.group_by("note").agg(n=dd.count()).output("notes")

    with timely.connect(workers=2, embedded=True) as cluster:
        old = cluster.install(exporting)
        old.input("rows").insert([("a", 1, None, 5), ("b", 1, "x", 6)])
        old.seal(wait=True)
        new = cluster.replace(old, some_columns)
        new.input("rows").insert([("a", 2, None, 7)])
        new.seal(wait=True)
        assert held(new, "sums") == Counter([(1, 11, 2), (2, 7, 1)])


def test_last_values_by_key_whatever_is_read() -> None:
    with timely.connect(workers=2, embedded=True) as cluster:
        flow = cluster.install(last_values)
        rows = flow.input("rows")
        rows.upsert([("a", 1, "x", 5), ("b", 2, "y", 6), ("c", 3, None, 7)])
        flow.seal(wait=True)
        assert held(flow, "more") == Counter([(1, "x"), (2, "y")])
        rows.upsert([("other", 1, "x", 9), (None, 2, None, None)])  # the second deletes its key
        rows.delete([3])
        flow.seal(wait=True)
        assert held(flow, "more") == Counter([(1, "x")])
