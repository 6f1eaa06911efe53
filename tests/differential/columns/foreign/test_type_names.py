"""Types of other libraries, by object and by name."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from differential.columns.column_types import as_column_type
from differential.columns.foreign.type_names import Named, kind_of_arrow, kind_of_name, type_text
from differential.errors import SchemaError


@pytest.mark.parametrize(
    ("spec", "type_"),
    [
        ("bigint", "int"), ("long", "int"), ("smallint", "int"), ("double", "float"), ("real", "float"),
        ("decimal(10,2)", "decimal(10, 2)"), ("numeric( 5 )", "decimal(5, 0)"), ("decimal", "decimal(10, 0)"),
        ("DATE?", "date?"), ("timestamp_ntz", "timestamp"), ("timestamp[us, tz=UTC]", "timestamp"),
        ("datetime64[ns, Europe/Berlin]", "timestamp"), ("varchar(20)", "string"), ("binary", "bytes"),
        ("array<string>", "array<string>"), ("struct<a: int>", "struct<a: int>"), ("array", "any"),
        ("boolean", "bool"), ("Utf8", "string"), ("array<interval>", "any"),
        ("Decimal(precision=9, scale=3)", "decimal(9, 3)"), ("List(Int64)", "any"),
        (pa.int64(), "int"), (pa.uint8(), "int"), (pa.float32(), "float"), (pa.date64(), "date"),
        (pa.decimal128(12, 3), "decimal(12, 3)"), (pa.large_string(), "string"), (pa.string_view(), "string"),
        (pa.dictionary(pa.int32(), pa.string()), "string"), (pa.list_(pa.int8()), "array<int?>"),
        (pa.timestamp("ns", tz="Europe/Berlin"), "timestamp"), (pa.binary(5), "bytes"),
        (np.dtype("int32"), "int"), (np.float32, "float"), (np.dtype("M8[ns]"), "timestamp"),
        (pd.Int64Dtype(), "int"), (pd.StringDtype(), "string"), (pd.CategoricalDtype(["a"]), "string"),
        (pd.CategoricalDtype([1, 2]), "int"), (pd.BooleanDtype(), "bool"),
    ],
)  # fmt: skip
def test_a_type_of_another_library_is_the_column_type_that_holds_its_values(spec: object, type_: str) -> None:
    assert str(as_column_type(spec)) == type_


@pytest.mark.parametrize(
    "spec", ["integral", "int64x", "decimal(a)", "", "int int", pa.duration("us"), pa.time32("s"), 5, list]
)
def test_what_names_no_type_is_refused(spec: object) -> None:
    with pytest.raises(SchemaError, match=r"not a column type|decimal"):
        as_column_type(spec)


def test_decimals_have_38_digits_at_most() -> None:
    with pytest.raises(SchemaError, match="at most 38 digits"):
        as_column_type("decimal(39, 18)")
    with pytest.raises(SchemaError, match="all of them behind the point"):
        as_column_type("decimal(2, 3)")
    with pytest.raises(SchemaError, match="at least one digit"):
        as_column_type("decimal(0)")
    assert kind_of_name("decimal(38, 18)") == Named("decimal", 38, 18)
    assert kind_of_arrow(pa.decimal128(38, 18)) == Named("decimal", 38, 18)


def test_only_types_have_a_text() -> None:
    assert type_text(np.dtype("int8")) == "int8"
    assert type_text(object()) is None and type_text("int") is None
