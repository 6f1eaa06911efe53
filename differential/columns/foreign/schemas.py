"""Which columns does a schema of another library have, and may they be null?

pyarrow.Schema, Table, RecordBatch    as each field says; Arrow's fields allow nulls by default
pandas DataFrame                      by its dtypes; columns of objects by their values
pandas Series (`df.dtypes`)           nulls, except in numpy's integers, floats and bools
Spark StructType, or a DataFrame      as each field says
Polars DataFrame, LazyFrame, Schema   nulls everywhere
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final, cast

import pyarrow as pa

__all__ = ["foreign_fields"]

_WITHOUT_NULLS: Final = ("int", "uint", "float", "bool")
"""Prefixes of numpy's dtypes without nulls; pandas' dtypes of the same names begin with capital letters."""


def foreign_fields(spec: object) -> list[tuple[str, object, bool]] | None:
    """Return name, type and nullability of each column; None if `spec` is no schema of another library."""
    package = type(spec).__module__.partition(".")[0]
    if package == "pandas":
        return _of_pandas(spec)
    if isinstance(spec, pa.Table | pa.RecordBatch):
        spec = spec.schema
    if isinstance(spec, pa.Schema):
        return [(field.name, field.type, field.nullable) for field in spec]
    if package == "polars" and callable(collect := getattr(spec, "collect_schema", None)):
        spec = collect()
    inner = getattr(spec, "schema", None)
    if inner is not None and package in ("polars", "pyspark"):
        return foreign_fields(inner)
    if package == "polars" and isinstance(spec, Mapping):
        return [(str(name), type_, True) for name, type_ in spec.items()]
    fields = getattr(spec, "fields", None)
    if isinstance(fields, list) and all(hasattr(field, "dataType") for field in fields):
        return [(field.name, field.dataType, field.nullable) for field in fields]
    return None


def _of_pandas(spec: object) -> list[tuple[str, object, bool]] | None:
    dtypes = getattr(spec, "dtypes", None)
    if type(spec).__name__ == "DataFrame":
        inferred = pa.Schema.from_pandas(spec, preserve_index=False)
        return [
            (field.name, field.type if str(dtype) == "object" else dtype, _may_be_null(dtype))
            for field, dtype in zip(inferred, cast("Iterable[object]", dtypes), strict=True)
        ]
    if type(spec).__name__ == "Series":
        items = cast("Iterable[tuple[object, object]]", cast("Mapping[object, object]", spec).items())
        return [(str(name), dtype, _may_be_null(dtype)) for name, dtype in items]
    return None


def _may_be_null(dtype: object) -> bool:
    return not str(dtype).startswith(_WITHOUT_NULLS) or type(dtype).__module__.startswith("pandas")
