"""Rows by the epochs that a column says: beside appends of each epoch's rows by themselves."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from datetime import date, datetime

import msgpack
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from differential.columns.schema import Schema
from differential.operators.edge.table_in import TableIn
from differential.operators.timed.keyed_io import KeyedTableIn
from timely import MisuseError, Records
from timely.operators.inputs import by_epoch
from timely.operators.inputs.by_epoch import ByEpoch, batches_by_epoch, divided
from timely.operators.inputs.codecs import InputCodec, RecordsIn, batches_of
from timely.operators.inputs.folded import Folded, Waiting

ROWS = TableIn(Schema.of("k: int, t: string"), "rows")
KEYED = KeyedTableIn(ROWS.schema, "rows", ("k",))
KEYED_OR_NULL = KeyedTableIn(Schema.of("k: int, t: string?"), "rows", ("k",))
ROW = st.tuples(st.integers(0, 4), st.integers(-9, 9), st.text(max_size=3), st.sampled_from([1, 1, -1, 2, 0]))
NAMES = ["day", "k", "t", "diff"]


def table(rows: Sequence[Sequence[object]], names: Sequence[str] = NAMES) -> pa.Table:
    columns = list(zip(*rows, strict=True)) or [()] * len(names)
    types = {"day": pa.int64(), "k": pa.int64(), "t": pa.string(), "diff": pa.int64()}
    return pa.table([pa.array(c, types[n]) for n, c in zip(names, columns, strict=True)], names=list(names))


def words_of(batches: list[Waiting], word: int) -> Counter[tuple[int, ...]]:
    """Each row's words, but for its time, and how often it is there."""
    found: Counter[tuple[int, ...]] = Counter()
    for batch in batches:
        words = (batch.unfolded(word) if isinstance(batch, Folded) else batch).words  # type: ignore[attr-defined]
        assert words.flags.c_contiguous and (words[-2] == word).all()
        for *row, _, diff in words.T.tolist():
            found[tuple(row)] += diff
    return Counter({row: n for row, n in found.items() if n})


@given(st.lists(ROW, max_size=30), st.booleans(), st.integers(1, 8))
def test_each_epoch_has_its_rows(rows: list[tuple[int, int, str, int]], is_sorted: bool, folds: int) -> None:
    """In whatever order they come, also where an epoch has so many that they wait folded."""
    if is_sorted:
        rows.sort(key=lambda row: row[0])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(by_epoch, "FOLDED_ROWS_MIN", folds)
        patch.setattr("timely.operators.inputs.codecs.FOLDED_ROWS_MIN", folds)
        found = divided(ROWS, "rows", table(rows), "day")
        batches = batches_by_epoch(ROWS, "rows", found, [10 + epoch for epoch in found.epochs], 0)
    assert found.epochs == sorted({row[0] for row in rows})
    assert found.table.column_names == ["k", "t", "diff"]
    for epoch, made in zip(found.epochs, batches, strict=True):
        own = [row[1:] for row in rows if row[0] == epoch and row[3]]
        expected = Counter[tuple[int, ...]]()
        for k, t, diff in own:
            (words,) = words_of([ROWS.encode(table([(k, t)], ["k", "t"]), 1, 5)], 5)
            expected[words] += diff
        assert words_of(made, 10 + epoch) == Counter({row: n for row, n in expected.items() if n})


SAID = st.tuples(
    st.integers(0, 4),
    st.integers(0, 2),
    st.sampled_from(["a", "b", None]),
    st.sampled_from([1, 1, 1, -1, -1, 0, 2]),
)


@given(
    st.sampled_from([ROWS, KEYED, KEYED_OR_NULL]),
    st.lists(SAID, max_size=12),
    st.sampled_from([0, 0, 0, 1, -1]),
    st.booleans(),
    st.integers(1, 8),
)
def test_encoded_together_rows_are_as_those_of_each_epoch_by_itself(
    codec: InputCodec, rows: list[tuple[int, int, str | None, int]], diff: int, is_sorted: bool, folds: int
) -> None:
    """Also in their order, of which values of keys are made; and what is refused of one is refused of all."""
    if is_sorted:
        rows.sort(key=lambda row: row[0])
    given = table(rows)
    if diff:
        given = given.drop_columns("diff")
    epochs = sorted({row[0] for row in rows})
    words = [10 + epoch for epoch in epochs]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(by_epoch, "FOLDED_ROWS_MIN", folds)
        patch.setattr("timely.operators.inputs.codecs.FOLDED_ROWS_MIN", folds)
        try:
            apart = [
                batches_of(codec, "rows", own.drop_columns("day"), diff, word)
                for word, epoch in zip(words, epochs, strict=True)
                for own in [given.filter(pa.array([row[0] == epoch for row in rows]))]
            ]
        except MisuseError as error:
            with pytest.raises(type(error)):
                batches_by_epoch(codec, "rows", divided(codec, "rows", given, "day"), words, diff)
            return
        together = batches_by_epoch(codec, "rows", divided(codec, "rows", given, "day"), words, diff)
    assert [plain(made, word) for made, word in zip(together, words, strict=True)] == [
        plain(made, word) for made, word in zip(apart, words, strict=True)
    ]


def plain(batches: list[Waiting], word: int) -> list[tuple[bool, list[list[int]]]]:
    """Whether a batch is folded, and its rows in order."""
    return [
        (
            isinstance(batch, Folded),
            (batch.unfolded(word) if isinstance(batch, Folded) else batch).words.tolist(),
        )  # type: ignore[attr-defined]
        for batch in batches
    ]


@pytest.mark.parametrize("codec", [ROWS, KEYED])
@pytest.mark.parametrize("diffs", [[1], [1, -1], [0, 1, -1, 1]])
@pytest.mark.parametrize("is_sorted", [True, False])
def test_however_many_epochs_there_are_values_are_encoded_once(
    codec: TableIn | KeyedTableIn, diffs: list[int], is_sorted: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever their diffs are, 0 among them."""
    asked: list[int] = []
    encode = codec.encode
    monkeypatch.setattr(
        codec, "encode", lambda rows, *rest: asked.append(rows.num_rows) or encode(rows, *rest)
    )
    rows = [(day, day % 5, "t", diffs[day % len(diffs)]) for day in range(40)]
    given = table(rows if is_sorted else rows[::-1])
    made = batches_by_epoch(codec, "rows", divided(codec, "rows", given, "day"), [*range(40)], 0)
    assert asked == [sum(row[3] != 0 for row in rows)]
    assert [len(each) for each in made] == [int(row[3] != 0) for row in rows]


def test_beside_an_epoch_of_many_rows_others_are_still_encoded_together(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Those before it, and those behind."""
    asked: list[int] = []
    encode = ROWS.encode
    monkeypatch.setattr(by_epoch, "FOLDED_ROWS_MIN", 3)
    monkeypatch.setattr("timely.operators.inputs.codecs.FOLDED_ROWS_MIN", 3)
    monkeypatch.setattr(
        ROWS, "encode", lambda rows, *rest: asked.append(rows.num_rows) or encode(rows, *rest)
    )
    given = table([(day, day, "", 1) for day in [*range(20), 7, 7, *range(8, 15)]])
    found = divided(ROWS, "rows", given, "day")
    made = batches_by_epoch(ROWS, "rows", found, [*range(20)], 0)
    assert asked == [7, 19], "of epochs 0 to 6, and 8 to 19"
    assert [words_of(each, day) for day, each in enumerate(made)] == [
        Counter({(day, *words[1:]): often})
        for day, often in enumerate([1] * 7 + [3] + [2] * 7 + [1] * 5)
        for words in words_of(made[day], day)
    ]


def test_rows_that_are_left_of_an_epoch_of_many_are_of_that_epoch(monkeypatch: pytest.MonkeyPatch) -> None:
    """If most of them are there no times they do not wait folded, and have its word."""
    monkeypatch.setattr(by_epoch, "FOLDED_ROWS_MIN", 3)
    monkeypatch.setattr("timely.operators.inputs.codecs.FOLDED_ROWS_MIN", 3)
    given = table([(1, 1, "", 1), (2, 2, "", 1), (2, 3, "", 0), (2, 4, "", 0), (3, 5, "", 1)])
    made = batches_by_epoch(ROWS, "rows", divided(ROWS, "rows", given, "day"), [10, 20, 30], 0)
    assert [[batch.words[[0, -2]].T.tolist() for batch in each] for each in made] == [  # type: ignore[union-attr]
        [[[1, 10]]],
        [[[2, 20]]],
        [[[5, 30]]],
    ]


def test_a_row_that_does_not_fit_is_named_by_where_it_was_looked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is left out is not counted; epochs beside one of many rows are counted by themselves."""
    rows = TableIn(Schema.of("k: int"), "rows")

    def found(at: list[int], k: list[int | None], diff: list[int]) -> MisuseError:
        given = pa.table({"at": at, "k": k, "diff": diff})
        with pytest.raises(MisuseError) as raised:
            batches_by_epoch(rows, "rows", divided(rows, "rows", given, "at"), [*range(len({*at}))], 0)
        return raised.value

    error = found([5, 4, 5], [1, 2, None], [0, 1, 1])
    assert "row 1" in str(error) and error.__notes__ == ["rows are counted without those whose diff is 0"]
    monkeypatch.setattr(by_epoch, "FOLDED_ROWS_MIN", 2)
    error = found([6, 5, 4, 5], [None, 2, 3, 4], [1, 1, 1, 1])
    assert "row 0" in str(error)
    assert error.__notes__ == ["rows are counted among those of epochs 6 to 6, in this order"]
    error = found([5, 4, 8, 6, 5], [1, 2, 3, None, 4], [1, 1, 1, 1, 1])
    assert "row 0" in str(error)
    assert error.__notes__ == ["rows are counted among those of epochs 6 to 8, in this order"]


@pytest.mark.parametrize("folds", [1, 100])
def test_of_what_is_wrong_with_a_column_nothing_is_said_of_rows(
    folds: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(by_epoch, "FOLDED_ROWS_MIN", folds)
    given = table([(1, 1, "a", 1), (2, 2, "b", 0), (2, 3, "b", -1)]).drop_columns("k")
    for codec in (ROWS, KEYED):
        with pytest.raises(MisuseError, match="takes the columns k, t; missing 'k'") as raised:
            batches_by_epoch(codec, "rows", divided(codec, "rows", given, "day"), [1, 2], 0)
        assert not hasattr(raised.value, "__notes__")


def test_a_column_of_the_input_stays_with_the_rows() -> None:
    days = TableIn(Schema.of("day: int, k: int"), "rows")
    found = divided(days, "rows", table([(3, 1, 1), (2, 5, 1)], ["day", "k", "diff"]), "day")
    assert found.table.column_names == ["day", "k", "diff"]
    batches = batches_by_epoch(days, "rows", found, [2, 3], 0)
    assert [made[0].words.T.tolist() for made in batches] == [[[2, 5, 2, 1]], [[3, 1, 3, 1]]]  # type: ignore[union-attr]


@pytest.mark.parametrize("is_sorted", [True, False])
def test_codecs_that_know_nothing_of_it_are_asked_epoch_by_epoch(is_sorted: bool) -> None:
    records = [(0, "a"), (0, "b"), (7, "c")] if is_sorted else [(7, "c"), (0, "a"), (0, "b")]
    given = pa.table(
        {"at": [at for at, _ in records], "record": [msgpack.packb(record) for _, record in records]}
    )
    found = divided(RecordsIn(), "rows", given, "at")
    batches = batches_by_epoch(RecordsIn(), "rows", found, [0, 7], 1)
    assert [[batch.records for batch in made if isinstance(batch, Records)] for made in batches] == [
        [["a", "b"]],
        [["c"]],
    ]


def test_who_is_asked_epoch_by_epoch_says_of_which_a_row_is_none() -> None:
    given = pa.table({"at": [5, 4, 5], "record": [b"\x01", b"\x01", b"\xc1"]})
    found = divided(RecordsIn(), "rows", given, "at")
    with pytest.raises(MisuseError, match="row 1, holds what is not msgpack") as raised:
        batches_by_epoch(RecordsIn(), "rows", found, [4, 5], 1)
    assert raised.value.__notes__ == ["rows are counted among those of epoch 5"]


def test_a_row_that_does_not_fit_is_named_by_its_place_in_the_table() -> None:
    """Also if rows are not in the order of their epochs."""
    rows = TableIn(Schema.of("k: int"), "rows")
    given = pa.table({"at": [5, 4, 5], "k": [1, None, 3], "diff": [1, 1, 1]})
    with pytest.raises(MisuseError, match="row 1"):
        batches_by_epoch(rows, "rows", divided(rows, "rows", given, "at"), [4, 5], 0)


def test_rows_of_a_keyed_input_keep_their_order_in_an_epoch() -> None:
    keyed = KeyedTableIn(Schema.of("k: int, t: string"), "rows", ("k",))
    given = table([(1, 7, "b", 1), (0, 7, "x", 1), (1, 7, "a", 1)])
    found = divided(keyed, "rows", given, "day")
    together = batches_by_epoch(keyed, "rows", found, [0, 1], 0)
    apart = [
        [keyed.encode(table(rows, ["k", "t"]), 1, word)]
        for word, rows in ((0, [(7, "x")]), (1, [(7, "b"), (7, "a")]))
    ]
    assert [made[0].words.tolist() for made in together] == [made[0].words.tolist() for made in apart]  # type: ignore[union-attr]


@pytest.mark.parametrize("codec", [ROWS, KeyedTableIn(ROWS.schema, "rows", ("k",))])
def test_also_of_many_rows_those_of_an_epoch_keep_their_order(codec: InputCodec) -> None:
    """Few are sorted by insertion, which keeps it in any case."""
    given = table([(number % 2, number, "", 1) for number in range(200)])
    batches = batches_by_epoch(codec, "rows", divided(codec, "rows", given, "day"), [0, 1], 0)
    for epoch, made in enumerate(batches):
        assert made[0].words[0].tolist() == list(range(epoch, 200, 2))  # type: ignore[union-attr]


def test_rows_that_are_there_no_times_do_not_enter() -> None:
    given = table([(1, 1, "a", 0), (2, 2, "b", 0), (2, 3, "b", -1)])
    batches = batches_by_epoch(ROWS, "rows", divided(ROWS, "rows", given, "day"), [1, 2], 0)
    assert [[batch.rows for batch in made] for made in batches] == [[], [1]]


def test_an_epoch_of_many_rows_waits_folded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(by_epoch, "FOLDED_ROWS_MIN", 3)
    monkeypatch.setattr("timely.operators.inputs.codecs.FOLDED_ROWS_MIN", 3)
    given = table([(day, number, "", 1) for day, rows in ((1, 2), (2, 3)) for number in range(rows)])
    few, many = batches_by_epoch(ROWS, "rows", divided(ROWS, "rows", given, "day"), [1, 2], 0)
    assert [isinstance(batch, Folded) for batch in (*few, *many)] == [False, True]


@pytest.mark.parametrize(
    ("column", "found"),
    [
        (pa.array([1.5]), "whole numbers without nulls; the column 'day' is double$"),
        (pa.array([None], pa.int64()), "1 of them null$"),
        (pa.array([date(2024, 1, 1)]), r"date32\[day\]. Number them.*days_between\(first, table\['day'\]\)"),
        (pa.array([datetime(2024, 1, 1)]), r"timestamp\[us\]. Number them"),
        (pa.array([2**63], pa.uint64()), "numbers of 64 bits"),
        (None, "takes the epoch of each row from that column; this table has \\['k', 't', 'diff'\\]"),
    ],
)
def test_what_is_no_epoch_is_refused(column: pa.Array | None, found: str) -> None:
    rows = table([(1, "a", 1)], ["k", "t", "diff"])
    given = rows if column is None else rows.append_column("day", column)
    with pytest.raises(MisuseError, match=f"input 'rows': .*{found}"):
        divided(ROWS, "rows", given, "day")


def test_integers_of_any_width_are_epochs() -> None:
    rows = table([(1, "a", 1)], ["k", "t", "diff"])
    for kind in (pa.int8(), pa.uint32(), pa.uint64()):
        assert divided(ROWS, "rows", rows.append_column("day", pa.array([3], kind)), "day").epochs == [3]


def test_there_is_a_limit_on_the_epochs_of_one_append(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(by_epoch, "APPEND_EPOCHS_MAX", 2)
    assert divided(ROWS, "rows", table([(1, 0, "", 1), (9, 0, "", 1)]), "day").epochs == [1, 9]
    with pytest.raises(MisuseError, match="rows of 2 epochs at most, this one of 3: append it in several"):
        divided(ROWS, "rows", table([(d, 0, "", 1) for d in (1, 5, 9)]), "day")


def test_no_rows_are_of_no_epochs() -> None:
    codec: InputCodec = ROWS
    found = divided(codec, "rows", table([]), "day")
    assert found == ByEpoch(found.table, [], None, []) and batches_by_epoch(codec, "rows", found, [], 0) == []


def test_columns_of_which_arrow_takes_no_rows_are_refused_unless_they_are_in_order(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Where rows are put in order: beside epochs with so many that they wait folded."""
    codec = TableIn(Schema.of("k: string"), "rows")
    texts = pa.array(["a", "b", "c"], pa.string_view())
    for folds in (2, 1):
        monkeypatch.setattr(by_epoch, "FOLDED_ROWS_MIN", folds)
        for days in ([1, 2, 3], [3, 1, 2]):
            given = divided(codec, "rows", pa.table({"day": days, "k": texts, "diff": [1, 1, 1]}), "day")
            if folds == 1 and days[0] == 3:
                with pytest.raises(MisuseError, match="'rows': the rows cannot be put in the order of their"):
                    batches_by_epoch(codec, "rows", given, [1, 2, 3], 0)
            else:
                made = batches_by_epoch(codec, "rows", given, [1, 2, 3], 0)
                assert [len(each) for each in made] == [1, 1, 1]


@pytest.mark.parametrize("is_sorted", [True, False])
def test_a_table_of_many_pieces_is_looked_through_once(
    is_sorted: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And not once for each epoch, where each is encoded by itself."""
    rows = [(day, day, "", 1) for day in (range(9) if is_sorted else range(8, -1, -1))]
    pieces = pa.concat_tables([table([row]) for row in rows for _ in range(2)])
    seen: list[int] = []
    monkeypatch.setattr(by_epoch, "FOLDED_ROWS_MIN", 1)
    monkeypatch.setattr(
        by_epoch, "batches_of", lambda codec, name, part, *rest: seen.append(part.column(0).num_chunks) or []
    )
    batches_by_epoch(ROWS, "rows", divided(ROWS, "rows", pieces, "day"), [*range(9)], 0)
    assert seen == [1] * 9


@pytest.mark.parametrize("codec", [ROWS, KEYED])
@pytest.mark.parametrize(("pieces", "left"), [(64, 64), (65, 1)])
def test_a_table_that_was_put_together_from_very_many_is_encoded_in_one_piece(
    codec: TableIn | KeyedTableIn, pieces: int, left: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = [(day % 9, day, str(day), 1) for day in range(pieces)]
    given = pa.concat_tables([table([row]) for row in rows])
    seen: list[int] = []
    encode = codec.encode
    monkeypatch.setattr(
        codec, "encode", lambda table, *rest: seen.append(table.column(0).num_chunks) or encode(table, *rest)
    )
    made = batches_by_epoch(codec, "rows", divided(codec, "rows", given, "day"), [*range(9)], 0)
    assert seen == [left]
    whole = batches_by_epoch(codec, "rows", divided(codec, "rows", table(rows), "day"), [*range(9)], 0)
    assert [plain(each, 0) for each in made] == [plain(each, 0) for each in whole]


def test_one_column_in_very_many_pieces_is_enough() -> None:
    given = table([(day % 9, day, "", 1) for day in range(65)])
    pieces = pa.chunked_array([column for day in range(65) for column in given["k"].slice(day, 1).chunks])
    assert divided(ROWS, "rows", given.set_column(1, "k", pieces), "day").table["k"].num_chunks == 1


@pytest.mark.parametrize("folds", [200, 20])
def test_pieces_that_cannot_be_put_together_are_taken_as_they_are(
    folds: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Such as categories of which there are more in all than their numbers have room for."""
    monkeypatch.setattr(by_epoch, "FOLDED_ROWS_MIN", folds)
    monkeypatch.setattr("timely.operators.inputs.codecs.FOLDED_ROWS_MIN", folds)
    codec = TableIn(Schema.of("t: string"), "rows")
    numbers = pa.array([0, 1, 2], pa.int8())
    pieces = [
        pa.DictionaryArray.from_arrays(numbers, pa.array([f"{piece} {at}" for at in range(3)]))
        for piece in range(70)
    ]
    days = [*[0] * 10, *[1] * 190, *[2] * 10]
    given = pa.table({"day": days, "t": pa.chunked_array(pieces), "diff": [1] * 210})
    plain_texts = given.set_column(1, "t", given["t"].cast(pa.string()))
    made, expected = (
        batches_by_epoch(codec, "rows", divided(codec, "rows", rows, "day"), [*range(3)], 0)
        for rows in (given, plain_texts)
    )
    assert [len(each) for each in made] == [1, 1, 1] and isinstance(made[1][0], Folded) == (folds == 20)
    assert [plain(each, at) for at, each in enumerate(made)] == [
        plain(each, at) for at, each in enumerate(expected)
    ]
