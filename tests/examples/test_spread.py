"""examples/spread.py: each query under each scheme, against DuckDB on the same rows.

answers_*   at the end of every epoch, some of which take rows away; nothing is left of nothing
shows_*     the program says the same under a scheme and without
"""

from __future__ import annotations

import subprocess
import sys
from typing import Final

import duckdb
import pyarrow as pa
import pytest
from example_programs import example
from house import ROOT

import timely

SPREAD = example("spread")
EPOCHS: Final = 4
SQL: Final = {
    "q3": f"""
        SELECT l."order", ordered, sum(cents * (100 - reduced)) AS sum
        FROM lines l JOIN orders o ON l."order" = o."order" JOIN customers c ON o.customer = c.customer
        WHERE segment = 1 AND ordered < {SPREAD.DAY} AND shipped > {SPREAD.DAY}
        GROUP BY ALL ORDER BY sum DESC, l."order" LIMIT 10""",
    "q5": f"""
        SELECT c.nation, sum(cents * (100 - reduced)) AS sum
        FROM lines l JOIN orders o ON l."order" = o."order" JOIN customers c ON o.customer = c.customer
        JOIN suppliers s ON s.supplier = l.supplier AND s.nation = c.nation
        WHERE ordered BETWEEN {SPREAD.YEAR.start} AND {SPREAD.YEAR.stop - 1} AND s.nation < {SPREAD.NEAR}
        GROUP BY ALL""",
    "band": """
        SELECT count(*) FROM lines one JOIN lines other
        ON one.quantity > 45 AND other.reduced = 0 AND abs(one."order" - other."order") <= 1""",
    "lrb": """
        SELECT one.lane, count(*) FROM reports one JOIN reports other
        ON (one.speed, one.lane, one.direction) = (other.speed, other.lane, other.direction)
        AND one.car <> other.car GROUP BY ALL""",
}


def _by_duckdb(query: str, tables: dict[str, pa.Table]) -> list[tuple[int, ...]]:
    with duckdb.connect() as database:
        for name, table in tables.items():
            database.register(name, table)
        return sorted(tuple(map(int, row)) for row in database.execute(SQL[query]).fetchall())


@pytest.mark.parametrize("scheme", ["plain", "hash", "JB", "JB6", "D-JB", "matrix"])
@pytest.mark.parametrize("query", list(SQL))
def test_answers_of_every_epoch_are_those_of_duckdb(query: str, scheme: str) -> None:
    tables: dict[str, pa.Table] = SPREAD.made_up(1_500, skew=1.2)
    names = SPREAD.QUERIES[query][0]
    there = {name: tables[name].slice(0, 0) for name in tables}
    with timely.connect(workers=2, embedded=True) as cluster:
        flow = cluster.install(SPREAD.answered, query=query, scheme=scheme, units=8)
        for epoch in range(EPOCHS):
            for name in names:
                table = tables[name]
                first, last = (table.num_rows * at // EPOCHS for at in (epoch, epoch + 1))
                flow.input(name).insert(table.slice(first, last - first))
                there[name] = pa.concat_tables([there[name], table.slice(first, last - first)])
                if epoch == 2:  # what came first goes
                    gone = table.num_rows // EPOCHS // 2
                    flow.input(name).remove(table.slice(0, gone))
                    there[name] = there[name].slice(gone)
            flow.seal()
            found = sorted(tuple(row.values()) for row in flow.output("answer").snapshot().to_pylist())
            assert found == _by_duckdb(query, there), epoch
        assert found, "and there are some"
        for name in names:
            flow.input(name).remove(there[name])
        flow.seal()
        left = flow.output("answer").snapshot().to_pylist()
        assert left == ([{"pairs": 0}] if query == "band" else [])


def test_shows_the_same_by_any_scheme_and_how_long_it_took() -> None:
    command = [sys.executable, "examples/spread.py", "q5", "--rows", "2000", "--epochs", "3", "--times"]
    plain, spread = (
        subprocess.run([*command, *more], cwd=ROOT, capture_output=True, text=True, check=True)
        for more in ([], ["--scheme", "JB", "--units", "4", "--skew", "1.0"])
    )
    assert plain.stdout == spread.stdout and plain.stdout.split()[:2] == ["nation", "sum"]
    assert len(plain.stdout.splitlines()) > 1
    assert "an epoch: " in spread.stderr
