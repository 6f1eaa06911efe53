"""Expressions over one column against DuckDB: where do the two differ?"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

import duckdb
import pyarrow as pa
from expression_values import values_of

from differential.columns.rows import Row
from differential.columns.schema import Schema
from differential.expressions.expression import Expr

__all__ = ["against_duckdb"]


def against_duckdb(
    type_: str, values: Sequence[object], claims: Iterable[tuple[Expr, str]], zone: str = "UTC"
) -> None:
    """Each expression over the column `v` has the values that DuckDB's has, which is written in SQL.

    Floats may differ in the last bits.
    """
    schema = Schema.of(f"v: {type_}")
    rows: list[Row] = [(value,) for value in values]
    database = duckdb.connect(":memory:", config={"threads": 1})
    table = pa.table({"v": pa.array(values, schema.to_arrow().field("v").type)})
    database.execute(f"SET TimeZone = '{zone}'")
    database.register("t", table)
    for expr, sql in claims:
        want = database.sql(f"SELECT {sql} AS w FROM t").to_arrow_table().column("w")
        if pa.types.is_timestamp(want.type):
            want = want.cast(pa.timestamp("us", tz="UTC"))
        have = values_of(expr, rows, schema)
        for value, ours, theirs in zip(values, have, want.to_pylist(), strict=True):
            assert _same(ours, theirs), f"{expr} of {value!r} is {ours!r}; DuckDB's {sql} is {theirs!r}"
    database.close()


def _same(ours: object, theirs: object) -> bool:
    if isinstance(ours, float) and isinstance(theirs, float):
        return math.isclose(ours, theirs, rel_tol=1e-14, abs_tol=1e-300) or (
            ours != ours and theirs != theirs
        )
    return ours == theirs
