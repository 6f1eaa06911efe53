"""The 22 queries of TPC-H as SQL texts: after the load and after random changes of all tables they come to
what DuckDB says, with one worker and with two.
"""

from __future__ import annotations

import inspect
import random
from collections import Counter
from pathlib import Path

import pyarrow as pa
import pytest
from sql.judge import Judge, Multiset, differences
from sql.tpch.of_orders import OF_ORDERS
from sql.tpch.of_parts import OF_PARTS
from sql.tpch.tables import SCHEMAS, inputs, load

import differential as dd
import timely
from timely.building.dataflow import Dataflow

DATA = Path(__file__).resolve().parents[4] / "shared" / "data" / "tpch-sf0.02"
HERE = [DATA] if DATA.exists() else []
EPOCHS = 3
PARTS = {"lineitem": 0.1, "orders": 0.1}
"""Of large tables a quick run takes so much."""


def _texts(judge: Judge) -> dict[str, str]:
    """The texts, with names for all of their columns."""
    texts = {}
    for query in (*OF_ORDERS, *OF_PARTS):
        text = inspect.getdoc(query) or ""
        names = ", ".join(f"c{place}" for place in range(judge.width(text)))
        texts[query.__name__] = f"SELECT * FROM ({text}) AS t ({names})"
    return texts


def _some(table: pa.Table, part: float, rng: random.Random) -> pa.Table:
    places = [place for place in range(table.num_rows) if rng.random() < part]
    return table.take(pa.array(places, pa.int64()))


def _changed(table: pa.Table, rng: random.Random) -> pa.Table:
    """As many rows, of which some have other values in other columns than the first."""
    columns = table.columns
    place = rng.randrange(1, table.num_columns)
    values = columns[place].to_pylist()
    rng.shuffle(values)
    columns[place] = pa.chunked_array([pa.array(values, columns[place].type)])
    return pa.Table.from_arrays(columns, schema=table.schema)


def _rows(answer: pa.Table, wanted: Multiset) -> Multiset:
    """The rows of an answer; quotients and means of decimals are decimals here, and floats in DuckDB."""
    floats = {place for row in wanted for place, value in enumerate(row) if isinstance(value, float)}
    columns = [
        column.cast(pa.float64()) if place in floats else column
        for place, column in enumerate(answer.columns)
    ]
    return Counter(zip(*(column.to_pylist() for column in columns), strict=True))


@pytest.mark.timeout(600)
@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.parametrize("folder", HERE, ids=["tpch"])
def test_texts_come_to_what_duckdb_says(folder: Path, workers: int, effort: int) -> None:
    rng = random.Random(workers)
    tables = {name: load(folder, name) for name in SCHEMAS}
    if effort == 1:
        tables |= {name: _some(tables[name], part, rng) for name, part in PARTS.items()}
    judge = Judge()
    for name, table in tables.items():
        judge.tell_table(name, table)
    texts = _texts(judge)

    def build(flow: Dataflow) -> None:
        collections = vars(inputs(flow))
        for name, text in texts.items():
            dd.sql(flow, text, dialect="duckdb", **collections).output(name)

    wrong: list[str] = []
    with timely.connect(workers=workers, embedded=True) as cluster:
        flow = cluster.install(build)
        for name, table in tables.items():
            flow.input(name).insert(table)
        for epoch in range(EPOCHS * effort):
            flow.seal()
            for name, text in texts.items():
                wanted = judge.answer(text)
                here, there = differences(_rows(flow.output(name).snapshot(), wanted), wanted)
                if here or there:
                    wrong.append(f"{name}, epoch {epoch}: {here[:5]} instead of {there[:5]}")
            for name, table in tables.items():
                gone = _some(table, 0.02, rng)
                come = _changed(gone, rng) if epoch % 2 else _some(gone, 0.5, rng)
                flow.input(name).remove(gone)
                flow.input(name).insert(come)
                tables[name] = judge.changed(name, gone, come)
    judge.close()
    assert not wrong, "\n".join(wrong)
