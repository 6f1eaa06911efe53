"""The 22 queries of TPC-H as texts that Spark analyses: after the load and after random changes of all tables
they come to what DuckDB says, with a worker in this process and with two processes. Of Spark only plans are
read, once; DuckDB judges in a hundredth of its time.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from house import ROOT
from pyspark.sql import SparkSession
from pyspark.sql.pandas.types import from_arrow_schema
from sql.judge import Judge, differences
from sql.tpch.changing import changed, some, texts, typed_rows
from sql.tpch.tables import SCHEMAS, inputs, load

import differential as dd
import timely
from timely.building.dataflow import Dataflow
from timely.spark.plans.planned import query_of_frames

DATA = ROOT.parent / "shared" / "data" / "tpch-sf0.02"
HERE = [DATA] if DATA.exists() else []
EPOCHS = 2
PARTS = {"lineitem": 0.1, "orders": 0.1}
"""Of large tables a quick run takes so much."""


_Queries = dict[str, Callable[..., object]]  # type: ignore[explicit-any]  # of tables


@pytest.fixture(scope="module")
def queries(spark: SparkSession) -> _Queries:
    judge = Judge()
    for name, schema in SCHEMAS.items():
        judge.tell_table(name, schema.to_arrow().empty_table())
    named = texts(judge)
    judge.close()
    fields = {name: from_arrow_schema(schema.to_arrow()) for name, schema in SCHEMAS.items()}
    frames = {name: spark.createDataFrame([], each) for name, each in fields.items()}
    return {name: query_of_frames(text, frames, fields).build for name, text in named.items()}


@pytest.fixture(params=["embedded", "processes"])
def cluster(request: pytest.FixtureRequest) -> Iterator[timely.Cluster]:
    if request.param == "processes":
        yield request.getfixturevalue("two_workers")
        return
    with timely.connect(workers=1, embedded=True) as embedded:
        yield embedded


@pytest.mark.timeout(600)
@pytest.mark.parametrize("folder", HERE, ids=["tpch"])
def test_plans_come_to_what_duckdb_says(
    folder: Path,
    queries: _Queries,
    cluster: timely.Cluster,
    effort: int,
) -> None:
    rng = random.Random(5)
    tables = {name: load(folder, name) for name in SCHEMAS}
    if effort == 1:
        tables |= {name: some(tables[name], part, rng) for name, part in PARTS.items()}
    judge = Judge()
    for name, table in tables.items():
        judge.tell_table(name, table)
    named = texts(judge)

    def build(flow: Dataflow) -> None:
        collections = vars(inputs(flow))
        for name, query in queries.items():
            answer = query(**collections)
            assert isinstance(answer, dd.Collection)
            answer.output(name)

    wrong: list[str] = []
    flow = cluster.install(build)
    try:
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
    finally:
        flow.uninstall()
    judge.close()
    assert not wrong, "\n".join(wrong)
