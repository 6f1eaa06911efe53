"""Runs many texts in one dataflow while rows of the tables come and go; compares each epoch with DuckDB."""

from __future__ import annotations

import datetime as dt
import random
import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field

import duckdb
from sql.judge import Judge, Multiset, differences

import differential as dd
import timely
from differential import Schema
from timely.building.dataflow import Dataflow
from timely.client.session import Flow
from timely.errors import TimelyError

__all__ = ["Compared", "compared"]

EPOCHS = 4
"""In the last one everything has gone."""

Row = tuple[object, ...]
Tables = Mapping[str, list[Row]]


@dataclass
class Compared:
    """What became of texts: how many were compared; those with another answer than DuckDB's, and those that
    only DuckDB takes, each with the reason.
    """

    count: int = 0
    wrong: list[str] = field(default_factory=list)
    unneeded: int = 0
    """Answers that we have not, since a scalar subquery has several rows which no row needs."""
    optimised: int = 0
    """Answers with which DuckDB agrees once it optimises nothing: 2.0.1 takes rows from a right join whose
    left side has a condition that is never true.
    """
    refused: list[str] = field(default_factory=list)


def compared(judge: Judge, texts: Mapping[int, str], declared: Mapping[str, str], workers: int) -> Compared:
    """Compare the answers of texts, by their seeds, over tables with these columns."""
    seed = min(texts)
    schemas = {name: Schema.of(fields) for name, fields in declared.items()}
    epochs = _contents(seed, schemas)
    wanted = _wanted(judge, dict(texts), schemas, epochs)
    outcome = Compared()
    answered = sorted({number for number, _ in wanted})
    columns: dict[int, tuple[str, ...]] = {}

    def build(flow: Dataflow) -> None:
        tables = {name: dd.input(flow, name, schema) for name, schema in schemas.items()}
        for number in answered:
            try:
                answer = dd.sql(flow, texts[number], dialect="duckdb", clock=None, **tables)
            except TimelyError as error:
                outcome.refused.append(f"{number}: {error}\n{texts[number]}")
            else:
                columns[number] = answer.schema.names
                answer.output(f"q{number}")

    wrong: dict[int, str] = {}
    with timely.connect(workers=workers, embedded=True) as cluster:
        flow = cluster.install(build)
        before: Tables = {name: [] for name in schemas}
        for epoch, contents in enumerate(epochs):
            _change(flow, before, contents)
            before = contents
            for number, names in columns.items():
                try:
                    why = _difference(flow, number, names, wanted[number, epoch])
                except dd.NotEmptyError as error:
                    if _has_several_rows(judge, schemas, contents, texts[number], error):
                        outcome.unneeded += 1
                        continue
                    why = f"{error!s:.300} instead of {wanted[number, epoch]}"
                if why and _is_of_an_optimiser(judge, schemas, contents, texts[number], flow, number, names):
                    outcome.optimised += 1
                elif why:
                    wrong.setdefault(number, f"{number}, epoch {epoch}: {why} of {contents}\n{texts[number]}")
    outcome.count = len(columns)
    outcome.wrong += wrong.values()
    return outcome


def _change(flow: Flow, before: Tables, contents: Tables) -> None:
    """Make the tables have these contents, and end the epoch."""
    for name, rows in contents.items():
        old, new = (Counter(map(_hashable, each)) for each in (before[name], rows))
        if new - old:
            flow.input(name).insert([*(new - old).elements()])
        if old - new:
            flow.input(name).remove([*(old - new).elements()])
    flow.seal()


def _hashable(row: Row) -> Row:
    return tuple(tuple(each) if isinstance(each, list) else each for each in row)


def _difference(flow: Flow, number: int, names: tuple[str, ...], wanted: Multiset) -> str:
    try:
        table = flow.output(f"q{number}").snapshot()
    except dd.NotEmptyError:
        raise
    except TimelyError as error:
        return f"{type(error).__name__}: {error!s:.300} instead of {wanted}"
    have = Counter(zip(*(table.column(name).to_pylist() for name in names), strict=True))
    here, there = differences(have, wanted)
    return f"{here} instead of {there}" if here or there else ""


def _is_of_an_optimiser(
    judge: Judge,
    schemas: Mapping[str, Schema],
    contents: Tables,
    text: str,
    flow: Flow,
    number: int,
    names: tuple[str, ...],
) -> bool:
    for name, rows in contents.items():
        judge.tell(name, schemas[name], rows)
    return not _difference(flow, number, names, judge.answer(text, optimised=False))


def _has_several_rows(
    judge: Judge, schemas: Mapping[str, Schema], contents: Tables, text: str, error: dd.NotEmptyError
) -> bool:
    """Return True if the scalar subquery that an error names has several rows without the query around it, or
    if DuckDB says so once it optimises nothing. This is an error here even if no row needs the scalar; DuckDB
    may not look then.
    """
    for name, rows in contents.items():
        judge.tell(name, schemas[name], rows)
    try:
        judge.answer(text, optimised=False)
    except duckdb.Error as also:
        return "More than one row returned by a subquery" in str(also)
    place = re.search(r"<sql>:1:(\d+)", str(error))
    assert place is not None, "the error has the place of the subquery"
    start = text.rfind("(", 0, int(place[1]))
    depth, end = 1, start + 1
    while depth:
        depth += {"(": 1, ")": -1}.get(text[end], 0)
        end += 1
    try:
        return judge.answer(text[start + 1 : end - 1]).total() > 1
    except duckdb.Error:  # it reads columns around it
        return False


def _contents(seed: int, schemas: Mapping[str, Schema]) -> list[Tables]:
    rng = random.Random(seed)
    epochs = [{name: _table(rng, schema) for name, schema in schemas.items()} for _ in range(EPOCHS - 1)]
    return [*epochs, {name: [] for name in schemas}]


def _table(rng: random.Random, schema: Schema) -> list[Row]:
    def value(kind: str) -> object:
        if kind == "int":
            return rng.randint(0, 3)
        if kind == "float":
            return rng.choice([-1.5, 0.0, 0.5, 0.5, 2.0])
        if kind == "date":
            return dt.date(2024, 1, rng.randint(1, 4))
        if kind == "bool":
            return rng.random() < 0.5
        if kind == "array":
            return [rng.choice([0, 1, 2, 3]) for _ in range(rng.choice([0, 1, 2, 3]))]
        return rng.choice(["a", "b", "ab"])

    return [
        tuple(None if each.type.nullable and rng.random() < 0.2 else value(each.type.kind) for each in schema)
        for _ in range(rng.choice([0, 2, 5, 8]))
    ]


def _wanted(
    judge: Judge, texts: dict[int, str], schemas: Mapping[str, Schema], epochs: list[Tables]
) -> dict[tuple[int, int], Multiset]:
    """What DuckDB says; texts that it refuses, or that have two rows in a scalar, are left out."""
    wanted: dict[tuple[int, int], Multiset] = {}
    for epoch, tables in enumerate(epochs):
        for name, rows in tables.items():
            judge.tell(name, schemas[name], rows)
        for seed in list(texts):
            try:
                wanted[seed, epoch] = judge.answer(texts[seed])
            except duckdb.Error:
                del texts[seed]
    return {each: answer for each, answer in wanted.items() if each[0] in texts}
