"""How long does the fixed point of `examples/galen.py` take from scratch, in DuckDB?

    python -m bench.peers.galen_duckdb FOLDER [--share 0.3] [--threads 1]

Semi-naive evaluation: in every round each rule is a union of joins, one for each of its atoms of p or q, in
which that atom stands for the facts that the last round has found, those before it for all before the last
round, and those behind it for all. A recursive common table expression sees the rows of the last round only,
and so cannot say a rule that needs two facts found at different times; hence the loop outside. Prints one
line of JSON.
"""

from __future__ import annotations

import argparse
import json
import re
import resource
import time
from collections.abc import Iterator
from pathlib import Path

import duckdb

from examples.galen import SCHEMAS, read

RULES = """
    p(x,z)   :- p(x,y), p(y,z).
    q(x,r,z) :- p(x,y), q(y,r,z).
    p(x,z)   :- p(y,w), u(w,r,z), q(x,r,y).
    p(x,z)   :- c(y,w,z), p(x,w), p(x,y).
    q(x,q,z) :- q(x,r,z), s(r,q).
    q(x,e,o) :- q(x,y,z), r(y,u,e), q(z,u,o).
"""

_ATOM = re.compile(r"(\w)\(([\w,]+)\)")
_DERIVED = ("p", "q")


def queries(rule: str) -> Iterator[tuple[str, str]]:
    """What a rule derives, and a query for each of its atoms of p or q that may be new."""
    (head, given), *body = [(name, names.split(",")) for name, names in _ATOM.findall(rule)]
    derived = [place for place, (name, _) in enumerate(body) if name in _DERIVED]
    for new in derived:
        tables, conditions = [], []
        where: dict[str, str] = {}
        for place, (name, names) in enumerate(body):
            version = "" if name not in _DERIVED else ("_old", "_new", "")[(place >= new) + (place > new)]
            tables.append(f"{name}{version} AS t{place}")
            for column, variable in enumerate(names):
                term = f"t{place}.c{column}"
                if variable in where:
                    conditions.append(f"{where[variable]} = {term}")
                where.setdefault(variable, term)
        columns = ", ".join(f"{where[variable]} AS c{place}" for place, variable in enumerate(given))
        yield head, f"SELECT {columns} FROM {', '.join(tables)} WHERE {' AND '.join(conditions)}"


def fixed_point(connection: duckdb.DuckDBPyConnection) -> int:
    """Derive all that follows from the tables p, q, r, c, u, s; returns the rounds."""
    per_head: dict[str, list[str]] = {name: [] for name in _DERIVED}
    for rule in RULES.strip().splitlines():
        for head, query in queries(rule):
            per_head[head].append(query)
    for name in _DERIVED:
        connection.execute(f"CREATE TABLE {name}_new AS SELECT DISTINCT * FROM {name}")
        connection.execute(f"CREATE TABLE {name}_old AS SELECT * FROM {name} LIMIT 0")
    for rounds in range(1, 1000):
        for name, parts in per_head.items():
            connection.execute(
                f"CREATE OR REPLACE TABLE {name}_found AS "
                f"(SELECT DISTINCT * FROM ({' UNION ALL '.join(parts)})) EXCEPT SELECT * FROM {name}"
            )
        found = 0
        for name in _DERIVED:
            connection.execute(f"INSERT INTO {name}_old SELECT * FROM {name}_new")
            connection.execute(f"CREATE OR REPLACE TABLE {name}_new AS SELECT * FROM {name}_found")
            connection.execute(f"INSERT INTO {name} SELECT * FROM {name}_new")
            found += _count(connection, f"{name}_new")
        if not found:
            return rounds
    raise AssertionError("no fixed point")


def _count(connection: duckdb.DuckDBPyConnection, table: str) -> int:
    counted = connection.execute(f"SELECT count(*) FROM {table}").fetchone()
    assert counted is not None
    return int(counted[0])


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description="galen from scratch in DuckDB")
    parser.add_argument("folder", type=Path)
    parser.add_argument("--share", type=float, default=1.0)
    parser.add_argument("--threads", type=int, default=1)
    options = parser.parse_args()
    connection = duckdb.connect(config={"threads": options.threads})
    for name in SCHEMAS:
        table = read(options.folder, name, options.share)
        given = table.rename_columns([f"c{place}" for place in range(table.num_columns)])
        connection.register("given", given)
        connection.execute(f"CREATE TABLE {name} AS SELECT * FROM given")
    begun = time.perf_counter()
    rounds = fixed_point(connection)
    seconds = round(time.perf_counter() - begun, 3)
    counts = {name: _count(connection, name) for name in _DERIVED}
    used = resource.getrusage(resource.RUSAGE_SELF)
    cpu, peak = round(used.ru_utime + used.ru_stime, 1), used.ru_maxrss >> 10
    figures = {"rounds": rounds, "seconds": seconds, "cpu_seconds": cpu, "peak_mib": peak}
    print(json.dumps({**counts, **figures}))


if __name__ == "__main__":
    main()
