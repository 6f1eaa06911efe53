"""PySpark programs, unchanged, beside Spark itself: the same rows after each epoch, also of removals."""

from __future__ import annotations

import datetime as dt
import inspect
import random
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from decimal import Decimal

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql.pandas.types import to_arrow_schema
from spark.plans.frame_programs import COLUMNS, PROGRAMS

import differential as dd
import timely
from timely.building.dataflow import Dataflow
from timely.spark.frames import frame_of
from timely.spark.plans.marking import dataframes
from timely.spark.plans.planned import query_of_frames

EPOCHS = 2
NAMES = ["ann", "bob", "eve", "kim", None]


def rows_of(name: str, rng: random.Random, count: int) -> list[tuple[object, ...]]:
    day = dt.date(2024, 1, 30)

    def some(*values: object) -> object:
        return rng.choice([*values, None])

    if name == "orders":
        return [
            (rng.randrange(1000), rng.choice(NAMES), rng.choice(["tea", "bread", "milk"]),
             some(*range(0, 400, 30)),
             some(1, 2, 3), some(day, day + dt.timedelta(rng.randrange(400))),
             some(dt.datetime(2024, 1, 31, 9, rng.randrange(60), 1, tzinfo=dt.UTC),
                  dt.datetime(2023, 12, 31, 23, 59, 59, 5, tzinfo=dt.UTC)),
             some(0.5, 1.25, -3.0), some(Decimal("1.25"), Decimal("19.99"), Decimal("-0.07")),
             some(["new"], ["a", "new", "a"], [], ["b", None]))
            for _ in range(count)
        ]  # fmt: skip
    if name == "customers":
        return [
            (each, some("Rome", "new york", "La Paz"), some(12, 40, 70), some(day, dt.date(2020, 2, 29)))
            for each in rng.sample([*NAMES[:4], "zoe", "Max"], min(count, 6))
        ]
    if name == "employees":
        return [
            (f"{rng.choice(NAMES[:4])}{rng.randrange(20)}", some("it", "hr", "law"),
             some(*range(900, 3000, 300)),
             some("ann1", "bob2", "eve3"), some(0.0, 150.5, 99.25, 2.5))
            for _ in range(count)
        ]  # fmt: skip
    return [(some(1, 2, 3), some(0, 1, 2, 3)) for _ in range(count)]


def plain(value: object) -> object:
    """A value as one of Python's that compares: floats to 12 digits."""
    if isinstance(value, float):
        return float(f"{value:.12g}")
    if isinstance(value, dt.datetime):
        return value.astimezone(dt.UTC)
    if isinstance(value, dict | Row):
        values = value.values() if isinstance(value, dict) else value
        return tuple(plain(each) for each in values)
    if isinstance(value, list | tuple):
        return tuple(plain(each) for each in value)
    return value.normalize() if isinstance(value, Decimal) else value


def sets_sorted(name: str, rows: list[tuple[object, ...]]) -> Counter[tuple[object, ...]]:
    """The rows; lists of `collect_set` have no order."""
    if name != "many_statistics":
        return Counter(rows)
    return Counter(
        tuple(tuple(sorted(each)) if isinstance(each, tuple) else each for each in row)  # type: ignore[type-var]  # texts
        for row in rows
    )


@contextmanager
def without_compiling(spark: SparkSession) -> Iterator[None]:
    """Inside, Spark interprets its plans: for a dozen rows it would compile for longer than it computes."""
    quick = {
        "spark.sql.codegen.wholeStage": "false", "spark.sql.codegen.factoryMode": "NO_CODEGEN",
        "spark.sql.adaptive.enabled": "false", "spark.sql.shuffle.partitions": "1",
    }  # fmt: skip
    before = {name: spark.conf.get(name) for name in quick}
    for name, value in quick.items():
        spark.conf.set(name, value)
    try:
        yield
    finally:
        for name, value in before.items():
            spark.conf.set(name, str(value))


@pytest.mark.timeout(300)
def test_programs_come_to_what_spark_says_at_every_epoch(spark: SparkSession, effort: int) -> None:
    rng = random.Random(4)
    schemas = {name: spark.createDataFrame([], columns).schema for name, columns in COLUMNS.items()}
    arrow = {name: to_arrow_schema(schema, timezone="UTC") for name, schema in schemas.items()}
    tables = {name: rows_of(name, rng, 14) for name in COLUMNS}

    def frames() -> dict[str, DataFrame]:
        return {name: frame_of(spark, _table(rows, arrow[name])) for name, rows in tables.items()}

    first = frames()
    queries = {}
    for name, program in PROGRAMS.items():
        taken = inspect.signature(program).parameters
        inputs = {each: first[each] for each in taken}
        queries[name] = (
            taken,
            query_of_frames(dataframes(program), inputs, {each: schemas[each] for each in taken}).build,
        )

    def build(flow: Dataflow) -> None:
        collections = {name: dd.input(flow, name, schema) for name, schema in arrow.items()}
        for name, (taken, query) in queries.items():
            answer = query(**{each: collections[each] for each in taken})
            assert isinstance(answer, dd.Collection)
            answer.output(name)

    wrong: list[str] = []
    with timely.connect(workers=2, embedded=True) as cluster:
        flow = cluster.install(build)
        for name, rows in tables.items():
            flow.input(name).insert(_table(rows, arrow[name]))
        for epoch in range(EPOCHS * effort):
            flow.seal()
            there = frames()
            for name, program in PROGRAMS.items():
                wanted_frame = program(**{each: there[each] for each in queries[name][0]})
                with without_compiling(spark):
                    rows_there = wanted_frame.collect()
                wanted = sets_sorted(name, [tuple(map(plain, row)) for row in rows_there])
                answer = flow.output(name).snapshot()
                if answer.schema.names != wanted_frame.columns:
                    wrong.append(f"{name}: columns {answer.schema.names}, not {wanted_frame.columns}")
                found = sets_sorted(name, [tuple(map(plain, row.values())) for row in answer.to_pylist()])
                if found != wanted:
                    wrong.append(f"{name}, epoch {epoch}: {found - wanted} instead of {wanted - found}")
            for name, rows in tables.items():
                gone, come = rng.sample(rows, len(rows) // 3), rows_of(name, rng, 3)
                flow.input(name).remove(_table(gone, arrow[name]))
                flow.input(name).insert(_table(come, arrow[name]))
                tables[name] = [*_without(rows, gone), *come]
    assert not wrong, "\n".join(wrong)


def _table(rows: list[tuple[object, ...]], schema: pa.Schema) -> pa.Table:
    columns = list(zip(*rows, strict=True)) or [[] for _ in schema]
    arrays = [pa.array(column, field.type) for column, field in zip(columns, schema, strict=True)]
    return pa.Table.from_arrays(arrays, schema=schema)


def _without(rows: list[tuple[object, ...]], gone: list[tuple[object, ...]]) -> list[tuple[object, ...]]:
    left = list(rows)
    for row in gone:
        left.remove(row)
    return left
