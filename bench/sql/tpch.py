"""The 22 queries of TPC-H while 50 lines of orders go and 50 others come in each change.

The texts and tables are those of `tests/sql/tpch`: money is whole cents. Larger tables are copies of the same
rows with other keys.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import sqlglot
from sql.tpch.of_orders import OF_ORDERS
from sql.tpch.of_parts import OF_PARTS
from sql.tpch.tables import SCHEMAS, load
from sqlglot import exp

from bench.sql.stream import Epoch, Query, Stream, StreamTable

__all__ = ["queries", "streamed"]

_KEYS = {
    "supplier": ("s_suppkey",),
    "customer": ("c_custkey",),
    "part": ("p_partkey",),
    "partsupp": ("ps_partkey", "ps_suppkey"),
    "orders": ("o_orderkey", "o_custkey"),
    "lineitem": ("l_orderkey", "l_partkey", "l_suppkey"),
}
"""Columns that are other numbers in a copy."""
_KEY_STEP = 10_000_000
_STEP = 50
"""So many lines go in a change, and so many come."""


def streamed(folder: Path, changes: int, copies: int = 1, part: int | None = None) -> Stream:
    """The tables of a folder, each so many times, or the first `part` rows of orders and lines alone."""
    tables = {name: load(folder, name) for name in SCHEMAS}
    if part is not None:
        tables |= {name: tables[name].slice(0, part) for name in ("orders", "lineitem")}
    streams = {}
    for name, table in tables.items():
        keys = _KEYS.get(name)
        if keys is None:
            rows = table
        else:
            rows = pa.concat_tables(_copy(table, keys, number) for number in range(copies))
        streams[name] = StreamTable(rows, _epochs(rows.num_rows, changes, changing=name == "lineitem"))
    return Stream(streams, range(1, changes + 2))


def _copy(table: pa.Table, keys: tuple[str, ...], number: int) -> pa.Table:
    for key in keys if number else ():
        moved = pc.add(table.column(key), number * _KEY_STEP)
        table = table.set_column(table.schema.get_field_index(key), table.schema.field(key), moved)
    return table


def _epochs(rows: int, changes: int, changing: bool) -> list[Epoch]:
    nothing = Epoch(slice(0, 0), slice(0, 0))
    if not changing:
        return [Epoch(slice(0, 0), slice(0, rows)), *[nothing] * changes]
    loaded = rows - changes * _STEP
    changed = [
        Epoch(slice(begin, begin + _STEP), slice(loaded + begin, loaded + begin + _STEP))
        for begin in range(0, changes * _STEP, _STEP)
    ]
    return [Epoch(slice(0, 0), slice(0, loaded)), *changed]


def _in_flink(text: str, columns: Sequence[exp.Expr]) -> str:
    """The text where quotients and means of whole numbers are whole numbers, and groups have no names."""
    text = text.replace("::DOUBLE", "").replace(" / ", " * 1e0 / ").replace("avg(", "avg(1e0 * ")
    keys = [column.unalias().sql("spark") for column in columns if not column.find(exp.AggFunc)]
    return text.replace("GROUP BY ALL", f"GROUP BY {', '.join(keys)}").replace(
        "GROUP BY y", f"GROUP BY {keys[0] if keys else 'y'}"
    )


def _says(reads: tuple[str, ...]) -> str:
    return "" if "lineitem" in reads else "(reads no lines: nothing changes)"


def queries() -> list[Query]:
    """The 22 queries, by their numbers."""
    made = []
    for function in (*OF_ORDERS, *OF_PARTS):
        text = inspect.getdoc(function) or ""
        reads = tuple(name for name in SCHEMAS if re.search(rf"\b{name}\b", text))
        columns = sqlglot.parse_one(text, read="spark", into=exp.Select).selects
        names = ", ".join(f"c{place}" for place in range(len(columns)))
        ours, flinks = (f"SELECT * FROM ({each}) AS t ({names})" for each in (text, _in_flink(text, columns)))
        made.append(Query(function.__name__, _says(reads), reads, ours, flinks))
    return sorted(made, key=lambda query: int(query.name[1:]))
