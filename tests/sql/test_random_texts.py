"""Random SQL texts, subqueries within subqueries: at every epoch the answer is DuckDB's, rows having gone.

The long form: `python tests/sql/test_random_texts.py FIRST COUNT`.
"""

from __future__ import annotations

import random
import sys
from collections import Counter
from collections.abc import Mapping
from pathlib import Path

if __name__ == "__main__":
    sys.path[:0] = [str(Path(__file__).parents[1]), str(Path(__file__).parents[2])]

import duckdb
from sql.judge import Judge, Multiset, differences
from sql.texts import TABLES, random_text

import differential as dd
import timely
from differential import Schema
from timely.building.dataflow import Dataflow

EPOCHS = 4
"""In the last one everything has gone."""

SCHEMAS = {name: Schema.of(fields) for name, fields in TABLES.items()}
Row = tuple[object, ...]
Tables = dict[str, list[Row]]


def _table(rng: random.Random, schema: Schema) -> list[Row]:
    def value(kind: str, nullable: bool) -> object:
        if nullable and rng.random() < 0.2:
            return None
        return rng.randint(0, 3) if kind == "int" else rng.choice(["a", "b", "ab"])

    return [
        tuple(value(each.type.kind, each.type.nullable) for each in schema)
        for _ in range(rng.choice([0, 2, 5, 8]))
    ]


def _contents(seed: int) -> list[Tables]:
    rng = random.Random(seed)
    epochs = [{name: _table(rng, schema) for name, schema in SCHEMAS.items()} for _ in range(EPOCHS - 1)]
    return [*epochs, {name: [] for name in SCHEMAS}]


def _wanted(judge: Judge, texts: dict[int, str], epochs: list[Tables]) -> dict[tuple[int, int], Multiset]:
    """What DuckDB says; texts that it refuses, or that have two rows in a scalar, are left out."""
    wanted: dict[tuple[int, int], Multiset] = {}
    for epoch, tables in enumerate(epochs):
        for name, rows in tables.items():
            judge.tell(name, SCHEMAS[name], rows)
        for seed in list(texts):
            try:
                wanted[seed, epoch] = judge.answer(texts[seed])
            except duckdb.Error:
                del texts[seed]
    return wanted


def wrong_answers(judge: Judge, first: int, count: int, workers: int) -> tuple[int, list[str]]:
    """How many texts were compared, and which were wrong."""
    texts = {seed: random_text(random.Random(seed), 1 + seed % 3) for seed in range(first, first + count)}
    epochs = _contents(first)
    wanted = _wanted(judge, texts, epochs)
    columns: dict[int, tuple[str, ...]] = {}

    def build(flow: Dataflow) -> None:
        tables = {name: dd.input(flow, name, schema) for name, schema in SCHEMAS.items()}
        for seed, text in texts.items():
            answer = dd.sql(flow, text, dialect="duckdb", **tables)
            columns[seed] = answer.schema.names
            answer.output(f"q{seed}")

    wrong: dict[int, str] = {}
    with timely.connect(workers=workers, embedded=True) as cluster:
        flow = cluster.install(build)
        before: Mapping[str, list[Row]] = {name: [] for name in TABLES}
        for epoch, contents in enumerate(epochs):
            for name, rows in contents.items():
                old, new = Counter(before[name]), Counter(rows)
                if new - old:
                    flow.input(name).insert([*(new - old).elements()])
                if old - new:
                    flow.input(name).remove([*(old - new).elements()])
            before = contents
            flow.seal()
            for seed, names in columns.items():
                table = flow.output(f"q{seed}").snapshot()
                have = Counter(zip(*(table.column(name).to_pylist() for name in names), strict=True))
                here, there = differences(have, wanted[seed, epoch])
                if here or there:
                    wrong.setdefault(
                        seed, f"{seed}, epoch {epoch}: {here} instead of {there} of {contents}\n{texts[seed]}"
                    )
    return len(columns), [*wrong.values()]


def test_random_texts_come_to_what_duckdb_says_at_every_epoch(effort: int) -> None:
    judge = Judge()
    for number in range(effort):
        compared, wrong = wrong_answers(judge, 100 + 12 * number, 12, 1 + number % 2)
        assert compared > 6
        assert not wrong, "\n".join(wrong)
    judge.close()


if __name__ == "__main__":
    start, number_of_texts = int(sys.argv[1]), int(sys.argv[2])
    database, right = Judge(), 0
    for at in range(start, start + number_of_texts, 40):
        count_of_texts, mistakes = wrong_answers(database, at, 40, 1 + at // 40 % 2)
        right += count_of_texts - len(mistakes)
        sys.stdout.write(
            "".join(f"WRONG {mistake}\n" for mistake in mistakes) + f"{right} right, up to {at + 40}\n"
        )
        sys.stdout.flush()
