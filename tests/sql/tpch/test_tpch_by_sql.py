"""The 22 queries of TPC-H as SQL texts: after the load and after random changes of all tables they come to
what DuckDB says, with one worker and with two.
"""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from sql.judge import Judge, differences
from sql.tpch.changing import changed, some, texts, typed_rows
from sql.tpch.tables import SCHEMAS, inputs, load

import differential as dd
import timely
from timely.building.dataflow import Dataflow

DATA = Path(__file__).resolve().parents[4] / "shared" / "data" / "tpch-sf0.02"
HERE = [DATA] if DATA.exists() else []
EPOCHS = 3
PARTS = {"lineitem": 0.1, "orders": 0.1}
"""Of large tables a quick run takes so much."""


@pytest.mark.timeout(600)
@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.parametrize("folder", HERE, ids=["tpch"])
def test_texts_come_to_what_duckdb_says(folder: Path, workers: int, effort: int) -> None:
    rng = random.Random(workers)
    tables = {name: load(folder, name) for name in SCHEMAS}
    if effort == 1:
        tables |= {name: some(tables[name], part, rng) for name, part in PARTS.items()}
    judge = Judge()
    for name, table in tables.items():
        judge.tell_table(name, table)
    named = texts(judge)

    def build(flow: Dataflow) -> None:
        collections = vars(inputs(flow))
        for name, text in named.items():
            dd.sql(flow, text, dialect="duckdb", **collections).output(name)

    wrong: list[str] = []
    with timely.connect(workers=workers, embedded=True) as cluster:
        flow = cluster.install(build)
        for name, table in tables.items():
            flow.input(name).insert(table)
        for epoch in range(EPOCHS * effort):
            flow.seal()
            for name, text in named.items():
                wanted = judge.answer(text)
                here, there = differences(typed_rows(flow.output(name).snapshot(), wanted), wanted)
                if here or there:
                    wrong.append(f"{name}, epoch {epoch}: {here[:5]} instead of {there[:5]}")
            for name, table in tables.items():
                gone = some(table, 0.02, rng)
                come = changed(gone, rng) if epoch % 2 else some(gone, 0.5, rng)
                flow.input(name).remove(gone)
                flow.input(name).insert(come)
                tables[name] = judge.changed(name, gone, come)
    judge.close()
    assert not wrong, "\n".join(wrong)
