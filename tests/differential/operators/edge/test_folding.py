"""Folding: tables in pieces that wait packed, wherever they are cut.

words_*     pieces, against the batch of the whole table
answers_*   whole dataflows, against insertions that are not folded
errors_*    a bad row in any piece leaves nothing behind, and has the number that it has in the table
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from low_limits import everything_is_much
from strategies_collections import examples
from words_seen import Seen

import differential as dd
import timely
from differential import col
from differential.columns.schema import Schema
from differential.columns.update_batch import words_of
from differential.columns.worker_symbols import SYMBOLS
from differential.errors import SchemaError
from differential.operators.edge import folding
from differential.operators.edge.table_in import TableIn
from timely.dictionaries import Mark
from timely.operators.inputs import codecs
from timely.operators.inputs.folded import Folded

SCHEMA = "k: int, name: string?, far: float, kind: string"

values = st.tuples(
    st.one_of(st.integers(-3, 3), st.integers(-(2**63), 2**63 - 1)),
    st.one_of(st.none(), st.sampled_from(["", "a", "b", "long " * 9])),
    st.floats(allow_nan=False),
    st.sampled_from(["x", "y"]),
)


def table_of(rows: list[tuple[int, str | None, float, str]], cuts: list[int]) -> pa.Table:
    """The rows, in chunks that end at `cuts`; the last column is a dictionary."""
    schema = Schema.of(SCHEMA).to_arrow()
    ends = [0, *sorted(min(cut, len(rows)) for cut in cuts), len(rows)]
    pieces = [
        pa.Table.from_arrays(
            [pa.array([row[at] for row in rows[first:last]], schema.types[at]) for at in range(4)],
            schema=schema,
        )
        for first, last in zip(ends, ends[1:], strict=False)
    ]
    table = pa.concat_tables(pieces)
    return table.set_column(3, "kind", table.column("kind").dictionary_encode())


@pytest.fixture
def _small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(folding, "BLOCK_ROWS", 3)
    monkeypatch.setattr(folding, "PIECE_WORDS", 6 * 6)


@pytest.mark.usefixtures("_small")
@given(
    st.lists(values, min_size=1, max_size=40),
    st.lists(st.integers(0, 40), max_size=4),
    st.sampled_from([1, -1, None]),
    st.data(),
)
def test_words_of_all_pieces_are_those_of_the_whole_table_in_its_order(
    rows: list[tuple[int, str | None, float, str]], cuts: list[int], same: int | None, data: st.DataObject
) -> None:
    codec, table = TableIn(Schema.of(SCHEMA), "in"), table_of(rows, cuts)
    diff = np.array(data.draw(st.lists(st.sampled_from([1, -2]), min_size=len(rows), max_size=len(rows))))
    wanted = codec.encode(table, diff if same is None else same, 96)
    pieces = codec.encode_folded(table, diff if same is None else same)
    assert sum(piece.rows for piece in pieces) == len(rows)
    assert all(isinstance(piece, Folded) for piece in pieces)
    batches = [piece.unfolded(96) for piece in pieces if isinstance(piece, Folded)]
    assert np.array_equal(np.concatenate([words_of(batch) for batch in batches], axis=1), wanted.words)
    assert {batch.symbol_words for batch in batches} == {wanted.symbol_words}


@pytest.mark.usefixtures("_small")
def test_words_that_are_symbols_are_shown_while_they_wait_and_as_they_enter() -> None:
    codec = TableIn(Schema.of("n: int, name: string"), "in")
    for piece in codec.encode_folded(pa.table({"n": [1, 2, 3, 4], "name": ["a", "b", "c", "d"]}), 1):
        assert isinstance(piece, Folded)
        names = set(words_of(piece.unfolded(0))[1].tolist())
        assert SYMBOLS.lookup(np.array(sorted(names)))
        seen = Seen()
        piece.symbols(Mark([seen]))
        assert seen.words == names
        piece.unfolded(0).symbols(Mark([seen]))
        assert seen.words > names, "the other column, too, for a batch does not always know"


@pytest.mark.usefixtures("_small")
def test_words_of_neighbours_are_one_piece_as_far_as_that_is_not_too_large() -> None:
    codec = TableIn(Schema.of("n: int"), "in")
    first, second = (codec.encode_folded(pa.table({"n": numbers}), 1)[0] for numbers in ([1, 2], [3, 4]))
    (other,) = codec.encode_folded(pa.table({"n": [5]}), -1)
    large = codec.encode_folded(pa.table({"n": range(12)}), 1)[0]
    assert isinstance(first, Folded) and isinstance(second, Folded)
    assert isinstance(other, Folded) and isinstance(large, Folded)
    both = first.with_next(second)
    assert both is not None and words_of(both.unfolded(0))[0].tolist() == [1, 2, 3, 4]
    assert first.with_next(other) is None, "removed, not inserted"
    assert first.with_next(large) is None


def test_words_that_wait_take_a_few_bytes_a_row() -> None:
    """Ten bytes of two numbers below 2^20 and 2^40; time and diff would be sixteen more."""
    rows = 300_000
    rng = np.random.default_rng(3)
    table = pa.table({"a": rng.integers(0, 1 << 20, rows), "b": rng.integers(0, 1 << 30, rows)})
    pieces = list(folding.folded(Schema.of("a: int, b: int"), table, 1, SYMBOLS, "in"))
    assert sum(piece.size_bytes for piece in pieces) <= (3 + 4) * rows + 3 * 4096


@timely.builder
def _counted(flow: timely.Dataflow) -> None:
    rows = dd.input(flow, "rows", "k: int, v: int")
    other = dd.input(flow, "other", "k: int, w: int")
    rows.group_by("k").agg(n=dd.count(), total=dd.sum("v"), least=dd.min("v")).output("groups")
    rows.filter(col.v > 0).join(other, on="k").output("pairs")
    edges = rows.select(src=col.k, dst=col.v)
    roots = other.select(node=col.k)
    roots.iterate(
        lambda at: (
            at.join(edges, left_on="node", right_on="src").select(node=col.dst).concat(roots).distinct()
        )
    ).output("reached")


numbers = st.lists(st.tuples(st.integers(-2, 4), st.integers(-2, 4)), min_size=1, max_size=30)


def _answers(
    workers: int, epochs: list[tuple[list[tuple[int, int]], list[tuple[int, int]]]]
) -> list[list[tuple[object, ...]]]:
    with timely.connect(embedded=True, workers=workers) as cluster:
        flow = cluster.install(_counted)
        for rows, others in epochs:
            flow.input("rows").insert(pa.table(dict(zip(("k", "v"), zip(*rows, strict=True), strict=True))))
            flow.input("other").insert(
                pa.table(dict(zip(("k", "w"), zip(*others, strict=True), strict=True)))
            )
            flow.input("rows").remove(
                pa.table({"k": [row[0] for row in rows[::3]], "v": [row[1] for row in rows[::3]]})
            )
            flow.seal()
        return [
            [tuple(row.values()) for row in flow.output(name).changes().to_pylist()]
            for name in ("groups", "pairs", "reached")
        ]


@examples(0.2)
@given(st.lists(st.tuples(numbers, numbers), min_size=1, max_size=3), st.integers(1, 3))
def test_answers_are_the_same_whole_and_in_pieces(
    epochs: list[tuple[list[tuple[int, int]], list[tuple[int, int]]]], workers: int
) -> None:
    whole = _answers(workers, epochs)
    with pytest.MonkeyPatch.context() as monkeypatch:
        everything_is_much(monkeypatch)
        assert _answers(workers, epochs) == whole


@pytest.mark.parametrize("bad", [0, 4, 11])
def test_errors_in_any_piece_leave_nothing_behind(bad: int, monkeypatch: pytest.MonkeyPatch) -> None:
    everything_is_much(monkeypatch)
    keys = [None if row == bad else row for row in range(12)]
    table = pa.table({"k": pa.array(keys, pa.int64()), "v": list(range(12)), "diff": [1, 2] * 6})
    with timely.connect(embedded=True, workers=2) as cluster:
        flow = cluster.install(_counted)
        with pytest.raises(SchemaError, match=f"column 'k' .*row {bad}: None is null"):
            flow.input("rows").insert(table.drop_columns(["diff"]))
        with pytest.raises(timely.MisuseError, match="None is null"):
            flow.input("rows").append(table, epoch=0, writer="me", sequence=0)
        with pytest.raises(timely.MisuseError, match="None is null"):
            flow.input("rows").append(table)
        flow.seal()
        assert flow.output("groups").changes().num_rows == 0
        good = table.set_column(0, "k", pa.array(range(12)))
        assert flow.input("rows").append(good, epoch=1, writer="me", sequence=0), "the number is not used up"
        flow.seal()
        assert flow.output("groups").snapshot().num_rows == 12


def test_few_rows_are_not_folded() -> None:
    codec, few = TableIn(Schema.of("n: int"), "in"), codecs.FOLDED_ROWS_MIN - 1
    (batch,) = codecs.batches_of(codec, "in", pa.table({"n": np.arange(few)}), 1, 0)
    assert not isinstance(batch, Folded)
    (piece,) = codecs.batches_of(codec, "in", pa.table({"n": np.arange(few + 1)}), 1, 0)
    assert isinstance(piece, Folded)
