"""table_io.py and timed/keyed_io.py: few plain rows go as they are, all others as tables. Both ways must mean
the same: equal words, and an error where, and as, the way of tables has one.
"""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from typing import cast

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from differential.columns.client_tables import client_table
from differential.columns.schema import Schema
from differential.errors import SchemaError
from differential.operators.edge.table_in import TableIn
from differential.operators.timed.keyed_io import KeyedTableIn
from timely.client.tables import InputForm
from timely.errors import MisuseError

TYPES = ("int", "float", "bool", "string", "bytes", "timestamp", "date", "decimal(5, 2)", "any")
FITTING: dict[str, st.SearchStrategy[object]] = {
    "int": st.sampled_from([0, 1, -1, -(1 << 63), (1 << 63) - 1]) | st.integers(-9, 9),
    "float": st.floats() | st.sampled_from([0.0, -0.0]),
    "bool": st.booleans(),
    "string": st.text(max_size=3),
    "bytes": st.binary(max_size=3),
    "timestamp": st.datetimes(),
    "date": st.dates(),
    "decimal(5, 2)": st.decimals(-99, 99, places=2),
    "any": st.none() | st.integers(-9, 9) | st.tuples(st.integers(-9, 9)),
}
ODD: st.SearchStrategy[object] = st.sampled_from(
    [
        None, 1 << 63, -(1 << 63) - 1, 1 << 64, 3.0, True, "\ud800", "x" * 2_000, bytearray(b"x"),
        np.int64(5), np.float64(0.5), np.bool_(True), np.str_("x"), Decimal("1.234"), Decimal("NaN"),
        dt.datetime(2020, 1, 1), dt.date(2020, 1, 1), (1, 2), [3], {"a": 1}, object, float("nan"),
    ]
)  # fmt: skip


@st.composite
def schemas(draw: st.DrawFn) -> Schema:
    kinds = draw(st.lists(st.tuples(st.sampled_from(TYPES), st.booleans()), min_size=1, max_size=4))
    return Schema.of([(f"c{at}", kind + "?" * nullable) for at, (kind, nullable) in enumerate(kinds)])


@st.composite
def given_rows(draw: st.DrawFn, schema: Schema) -> list[object]:
    """Rows that mostly fit."""
    rows: list[object] = []
    for _ in range(draw(st.integers(1, 4))):
        values = []
        for column in schema:
            kind = str(column.type.not_null())
            fitting = FITTING[kind] | st.none() if column.type.nullable else FITTING[kind]
            values.append(draw(ODD if draw(st.integers(0, 19)) == 0 else fitting))
        form = draw(st.sampled_from(["tuple"] * 3 + ["list", "dict", "short", "renamed"]))
        names = [f"x{name}" if form == "renamed" else name for name in schema.names]
        as_dict = dict(zip(names, values, strict=True))
        forms = {"tuple": tuple(values), "list": values, "short": tuple(values[1:])}
        rows.append(forms.get(form, as_dict))
    return rows


def by_table(codec: TableIn | KeyedTableIn, form: InputForm, data: object, diff: int) -> object:
    """The words that the way of tables gives, or its error."""
    try:
        return codec.encode(client_table(data, form.schema, form.name), diff, 77).words.tolist()
    except (SchemaError, MisuseError) as error:
        return type(error), str(error)


def as_given(codec: TableIn | KeyedTableIn, form: InputForm, data: object, diff: int) -> object:
    """The same by the way that a client takes."""
    rows = form.plain_rows(data)
    if rows is None:
        return by_table(codec, form, data, diff)
    try:
        checked = codec.checked_rows([list(row) for row in rows], diff)  # as they come by a wire
        return codec.encode_rows(checked, [diff] * len(rows), 77).words.tolist()
    except (SchemaError, MisuseError) as error:
        return type(error), str(error)


def form_of(codec: TableIn | KeyedTableIn) -> InputForm:
    return InputForm("rows", codec.describe(), codec.arrow_schema(), codec.converter, is_plain=True)


@given(st.data(), st.sampled_from([1, -1]))
def test_plain_rows_mean_what_their_table_means(data: st.DataObject, diff: int) -> None:
    schema = data.draw(schemas())
    codec = TableIn(schema, "rows")
    rows = data.draw(given_rows(schema))
    assert as_given(codec, form_of(codec), rows, diff) == by_table(codec, form_of(codec), rows, diff)


@given(st.data(), st.booleans())
def test_plain_values_by_key_mean_what_their_table_means(data: st.DataObject, deletes: bool) -> None:
    schema = Schema((*Schema.of("key: int, other: string").columns, *data.draw(schemas()).columns))
    codec = KeyedTableIn(schema, "rows", ("other", "key"))
    form = form_of(codec).of_keys if deletes else form_of(codec)
    said = schema.picked(("other", "key")) if deletes else schema
    rows = data.draw(given_rows(said))
    diff = -1 if deletes else 1
    assert as_given(codec, form, rows, diff) == by_table(codec, form, rows, diff)


@pytest.mark.parametrize(
    "spec", ["n: int", "x: float", "b: bool", "s: string", "d: bytes", "n: int?, s: string?"]
)
def test_plain_rows_take_the_short_way(spec: str) -> None:
    """Without this the tests above would compare tables with themselves."""
    values = {"int": 5, "float": 0.5, "bool": True, "string": "ä", "bytes": b"\xff"}
    schema = Schema.of(spec)
    form = form_of(TableIn(schema, "rows"))
    row = tuple(values[str(column.type.not_null())] for column in schema)
    assert form.plain_rows([row]) == [row]


def test_rows_of_several_insertions_are_one_batch_with_a_diff_each() -> None:
    codec = TableIn(Schema.of("n: int, s: string?"), "rows")
    rows = codec.checked_rows([(1, "a"), (2, None)], 1)
    batch = codec.encode_rows(rows, [1, -1], 77)
    assert batch.words.tolist()[:2] == [[1, 2], [1, 0]]
    assert batch.words.tolist()[3:] == [[77, 77], [1, -1]]
    assert batch.symbol_words == (2,)
    assert batch.words.flags.writeable and batch.words.flags.c_contiguous, "as kernels take it"


@pytest.mark.parametrize("rows", [[(1, 2)], "x", [(None, "a")], [[[1], "a"]], 5, [{"n": 1}]])
def test_what_a_stranger_sends_as_plain_rows_is_looked_at(rows: object) -> None:
    for codec in (
        TableIn(Schema.of("n: int, s: string"), "rows"),
        KeyedTableIn(Schema.of("n: int, s: string"), "rows", ("n",)),
    ):
        with pytest.raises(MisuseError, match="these are no plain rows of its columns; send them as a table"):
            codec.checked_rows(cast("object", rows), 1 if rows != [(None, "a")] else -1)
