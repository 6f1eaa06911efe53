"""Arrow data against the declared columns.

cast_*       what is taken although it comes as another Arrow type
refuse_*     what is not, and that the message names input, column, row, value
"""

from __future__ import annotations

import datetime as dt

import numpy as np
import pyarrow as pa
import pytest

from differential.columns.client_tables import client_table
from differential.columns.conforming import Conforming
from differential.columns.float_words import float_to_word
from differential.columns.rows import decode_rows
from differential.columns.schema import Schema
from differential.columns.symbols.table import SymbolTable
from differential.errors import SchemaError


@pytest.mark.parametrize(
    ("declared", "array", "words"),
    [
        ("int", pa.array([1, 2], pa.int8()), [1, 2]),
        ("int", pa.array([1, 2**63 - 1], pa.uint64()), [1, 2**63 - 1]),
        ("int", pa.array([5, 6, 5]).dictionary_encode(), [5, 6, 5]),
        ("float", pa.array([0, 2**53]), [0, float_to_word(2.0**53)]),
        ("float", pa.array([0.5], pa.float32()), [float_to_word(0.5)]),
        ("timestamp", pa.array([1], pa.timestamp("s")), [1_000_000]),
        ("timestamp", pa.array([2000], pa.timestamp("ns", tz="Europe/Berlin")), [2]),
        ("timestamp", pa.array([1], pa.date32()), [86_400_000_000]),
    ],
)
def test_cast_what_loses_nothing(declared: str, array: pa.Array, words: list[int]) -> None:
    assert Schema.of({"a": declared}).encode(pa.table({"a": array})).tolist() == [words]


def test_cast_is_done_once_for_a_table_that_has_been_made_to_conform() -> None:
    schema = Schema.of("a: int, b: int")
    table = pa.table({"b": [1, 2], "a": pa.array([3, 4], pa.int8())})
    for _ in range(2):
        conformed = schema.conform(table)
        assert conformed.schema.names == ["a", "b"]
    assert conformed is not table and schema.conform(conformed) is conformed
    assert schema.encode(conformed).tolist() == schema.encode(table).tolist() == [[3, 4], [1, 2]]
    with pytest.raises(SchemaError, match="'a'"):
        schema.conform(pa.table({"a": [None, 1], "b": [1, 2]}))
    del conformed
    assert schema.encode(table.slice(1)).tolist() == [[4], [2]], "the last table is not held"


def test_an_embedded_worker_does_not_check_again_what_the_client_has_made_conform(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    schema = Schema.of("a: int, b: int?, c: string")
    table = client_table({"a": [1], "b": [None], "c": ["x"]}, schema.to_arrow(), "rows")
    checked: list[pa.Table] = []

    def note(form: Conforming, table: pa.Table) -> bool:
        del form
        checked.append(table)
        return True

    monkeypatch.setattr(Conforming, "is_met_by", note)
    assert schema.conform(table) is table and not checked
    Schema.of("a: int, b: int, c: string").conform(table)
    assert checked == [table], "other columns are another form"


def test_schemas_that_are_written_alike_are_different_forms() -> None:
    one, two = Schema.of({"a: int, b": "int"}), Schema.of({"a": "int", "b": "int"})
    assert str(one) == str(two)
    assert two.encode(pa.table({"a": [1], "b": [2]})).tolist() == [[1], [2]]
    assert one.encode(pa.table({"a: int, b": [3]})).tolist() == [[3]]


@pytest.mark.parametrize(
    "array",
    [
        pa.array(["x", None, "y", "x"], pa.large_string()),
        pa.array(["x", None, "y", "x"]).dictionary_encode(),
        pa.DictionaryArray.from_arrays(pa.array([0, 1, 2, 0]), pa.array(["x", None, "y"])),
        pa.array(["x", None, "y", "x"], pa.string_view()),
    ],
)
def test_cast_every_form_of_strings(array: pa.Array) -> None:
    symbols = SymbolTable()
    schema = Schema.of("a: string?")
    words = schema.encode(pa.table({"a": array}), symbols)
    assert schema.decode(words, symbols).column("a").to_pylist() == ["x", None, "y", "x"]


def test_cast_any_takes_every_arrow_type_and_its_own_packed_form() -> None:
    symbols = SymbolTable()
    schema = Schema.of("a: any?")
    words = schema.encode(pa.table({"a": pa.array([[1, 2], None, []])}), symbols)
    assert decode_rows(schema, words, symbols) == [((1, 2),), (None,), ((),)]
    assert np.array_equal(schema.encode(schema.decode(words, symbols), symbols), words)


def test_cast_any_takes_bytes_for_bytes_where_nobody_says_that_they_are_packed() -> None:
    """Of the type in which packed values are kept, in the first table and in one like it; metadata alone tell
    them apart."""
    symbols, schema = SymbolTable(), Schema.of("a: any")
    for value in (b"\x01", b"xyz"):
        words = schema.encode(pa.table({"a": pa.array([value])}), symbols)
        assert decode_rows(schema, words, symbols) == [(value,)]
        assert schema.encode(schema.decode(words, symbols), symbols).tolist() == words.tolist()


def test_cast_looks_at_each_table_that_is_like_the_one_before() -> None:
    schema = Schema.of("a: int, b: string?")
    like = pa.schema([("a", pa.int16()), ("b", pa.string())])
    rows = [{"a": 1, "b": "x"}, {"a": 2, "b": None}]
    for row in rows:
        symbols = SymbolTable()
        words = schema.encode(pa.Table.from_pylist([row], like), symbols)
        assert decode_rows(schema, words, symbols) == [(row["a"], row["b"])]
    with pytest.raises(SchemaError, match="column 'a'.*row 1: None is null"):
        schema.encode(pa.Table.from_pylist([*rows[:1], {"a": None, "b": "y"}], like), SymbolTable())
    with pytest.raises(SchemaError, match="column 'a'.*comes as string"):
        schema.encode(pa.table({"a": ["1"], "b": ["y"]}), SymbolTable())


def test_cast_a_column_of_nulls_only_has_no_type_to_be_wrong() -> None:
    table = pa.table({"n": pa.nulls(2), "s": pa.nulls(2)})
    words = Schema.of("n: int?, s: string?").encode(table, SymbolTable())
    assert not words.any()


NULL_BELOW = pa.DictionaryArray.from_arrays(pa.array([0]), pa.array([None, "x"]))


@pytest.mark.parametrize(
    ("spec", "table", "said"),
    [
        ("a: int", {"a": pa.array([1, None])}, r"'edges', column 'a' \(int\), row 1: None is null.*: int\?"),
        ("a: int", {"a": pa.array([3.0])}, r"row 0: 3\.0 comes as double, not int.*\"a: float\""),
        ("a: int", {"a": pa.array([1, 2**63], pa.uint64())}, r"row 1: 9223372036854775808 \(uint64\)"),
        ("a: float", {"a": pa.array([0, 1, 2**53 + 1])}, r"row 2: 9007199254740993 \(int64\).*without loss"),
        ("a: timestamp", {"a": pa.array([1000, 1], pa.timestamp("ns"))}, r"row 1: '1970-01-01.*1'"),
        ("a: int", {"a": pa.array([3.0])}, r"pandas frame\['a'\]\.astype\('int64'\)\)"),
        ("a: decimal(9, 2)", {"a": pa.array([3.5])}, r"pandas frame\['a'\]\.map\(.*Decimal\(x\), 2\)\)\)"),
        ("a: date", {"a": pa.array([dt.datetime(2024, 1, 1)])}, r"pandas frame\['a'\]\.dt\.date\)"),
        ("a: bool", {"a": pa.array([1])}, "row 0: 1 comes as int64, not bool"),
        ("a: string", {"a": pa.array([None, 5])}, "row 1: 5 comes as int64, not string"),
        ("a: string", {"a": NULL_BELOW}, "row 0: None is null"),
        ("a: int, b: int", {"a": pa.array([1]), "c": pa.array([1])}, "missing 'b'; not declared 'c'"),
        ("a: int", {"a": pa.array([1]), "diff": pa.array([1])}, r"'diff' says how often each comes"),
    ],
)  # fmt: skip
def test_refuse_what_does_not_fit(spec: str, table: dict[str, pa.Array], said: str) -> None:
    with pytest.raises(SchemaError, match=f"(?s){said}"):
        Schema.of(spec).encode(pa.table(table), SymbolTable(), "edges")


def test_refuse_finds_the_first_misfit_in_a_long_chunked_column() -> None:
    good = np.arange(10_000, dtype=np.uint64)
    bad = good.copy()
    bad[[777, 778]] = 2**63
    table = pa.concat_tables([pa.table({"a": good}), pa.table({"a": bad})])
    with pytest.raises(SchemaError, match="row 10777"):
        Schema.of("a: int").encode(table)


def test_dictionaries_are_not_written_out_and_hide_no_nulls() -> None:
    """A long value that many rows mean is kept once: to write it out would take memory out of proportion."""
    hidden = pa.DictionaryArray.from_arrays(pa.array([0, 1, 0, None]), pa.array(["a" * 1_000, None]))
    for declared in ("x: string?", "x: any?"):
        conformed = Schema.of(declared).conform(pa.table({"x": hidden}))
        assert pa.types.is_dictionary(conformed.column("x").type)
        assert conformed.column("x").is_null().to_pylist() == [False, True, False, True]
    for declared in ("x: string", "x: any"):
        with pytest.raises(SchemaError, match="row 1"):
            Schema.of(declared).conform(pa.table({"x": hidden}))


def test_values_that_python_has_not_are_refused_by_name() -> None:
    late = pa.table({"x": pa.array([2**62], pa.int64()).cast(pa.date64(), safe=False)})
    for declared in ("x: any", "x: int"):
        with pytest.raises(SchemaError, match="column 'x'"):
            Schema.of(declared).conform(late)


def test_dictionaries_without_a_row_have_their_type() -> None:
    nothing = pa.chunked_array([], pa.dictionary(pa.int32(), pa.string()))
    assert Schema.of("x: any").conform(pa.table({"x": nothing})).num_rows == 0
