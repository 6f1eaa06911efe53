"""The tables of TPC-H while rows come, go and change, and the queries as texts that name their columns."""

from __future__ import annotations

import inspect
import random
from collections import Counter

import pyarrow as pa
from sql.judge import Judge, Multiset
from sql.tpch.of_orders import OF_ORDERS
from sql.tpch.of_parts import OF_PARTS

__all__ = ["changed", "some", "texts", "typed_rows"]


def texts(judge: Judge) -> dict[str, str]:
    """The texts, with names for all of their columns."""
    named = {}
    for query in (*OF_ORDERS, *OF_PARTS):
        text = inspect.getdoc(query) or ""
        names = ", ".join(f"c{place}" for place in range(judge.width(text)))
        named[query.__name__] = f"SELECT * FROM ({text}) AS t ({names})"
    return named


def some(table: pa.Table, part: float, rng: random.Random) -> pa.Table:
    places = [place for place in range(table.num_rows) if rng.random() < part]
    return table.take(pa.array(places, pa.int64()))


def changed(table: pa.Table, rng: random.Random) -> pa.Table:
    """As many rows, of which some have other values in other columns than the first."""
    columns = table.columns
    place = rng.randrange(1, table.num_columns)
    values = columns[place].to_pylist()
    rng.shuffle(values)
    columns[place] = pa.chunked_array([pa.array(values, columns[place].type)])
    return pa.Table.from_arrays(columns, schema=table.schema)


def typed_rows(answer: pa.Table, wanted: Multiset) -> Multiset:
    """The rows of an answer; quotients and means of decimals are decimals here, and floats in DuckDB."""
    floats = {place for row in wanted for place, value in enumerate(row) if isinstance(value, float)}
    columns = [
        column.cast(pa.float64()) if place in floats else column
        for place, column in enumerate(answer.columns)
    ]
    return Counter(zip(*(column.to_pylist() for column in columns), strict=True))
