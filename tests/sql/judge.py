"""The second judge: DuckDB, over what has accumulated in the tables.

It shares nothing with our operators: rows are given to it as whole tables, one for each epoch, and it is
asked again from the beginning. Results are multisets of Python values.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence

import duckdb
import pyarrow as pa

from differential.columns.schema import Schema

__all__ = ["Judge", "Multiset", "differences"]

Row = tuple[object, ...]
Multiset = Counter[Row]
ROUNDING = 2e-9
"""By how much of themselves floats may differ that are added up in another order."""

CANCELLATION = 1e-13
"""By how much floats near 0 may differ: DuckDB's skewness of two values, from sums of powers, is −3e-16."""


class Judge:
    """A database in memory. `tell` replaces a table; `answer` runs a query."""

    def __init__(self) -> None:
        self._database = duckdb.connect(":memory:", config={"threads": 1})
        self._database.execute("SET TimeZone = 'UTC'")
        self._database.execute(
            "SET order_by_non_integer_literal = true"
        )  # random queries have constants there
        self._told: dict[str, str] = {}

    def tell(self, name: str, schema: Schema, rows: Iterable[Sequence[object]]) -> None:
        """The table `name` has these rows from now on, and no others."""
        listed = list(rows)
        told = f"{schema!r} {listed!r}"
        if self._told.get(name) == told:
            return
        fields = pa.schema([(each.name, each.type.arrow_of_values()) for each in schema])
        columns = [pa.array([row[place] for row in listed], field.type) for place, field in enumerate(fields)]
        self.tell_table(name, pa.Table.from_arrays(columns, schema=fields))
        self._told[name] = told

    def tell_table(self, name: str, table: pa.Table) -> None:
        """The same, of an Arrow table."""
        self._told.pop(name, None)
        self._database.register("told", table)
        self._database.execute(f'CREATE OR REPLACE TABLE "{name}" AS SELECT * FROM told')
        self._database.unregister("told")

    def answer(self, sql: str, optimised: bool = True) -> Multiset:
        """The rows of `sql`, each as often as it is there; without `optimised` as the text says it."""
        if optimised:
            return Counter(self._database.execute(sql).fetchall())
        self._database.execute("PRAGMA disable_optimizer")
        try:
            return Counter(self._database.execute(sql).fetchall())
        finally:
            self._database.execute("PRAGMA enable_optimizer")

    def width(self, sql: str) -> int:
        """How many columns the answer of `sql` has."""
        return len(self._database.execute(sql).description or ())

    def changed(self, name: str, gone: pa.Table, come: pa.Table) -> pa.Table:
        """The table `name` after some of its rows have gone and others come; it has these from now on."""
        self._database.register("gone", gone)
        self._database.register("come", come)
        answer = self._database.sql(
            f'(SELECT * FROM "{name}" EXCEPT ALL SELECT * FROM gone) UNION ALL SELECT * FROM come'
        )
        table: pa.Table = answer.to_arrow_table()
        self.tell_table(name, table)
        return table

    def close(self) -> None:
        """No more questions."""
        self._database.close()


def differences(have: Mapping[Row, int], want: Mapping[Row, int]) -> tuple[list[Row], list[Row]]:
    """Rows that only one of the two multisets has, apart from the rounding of floats.

    Floats are compared, not cut to so many digits: of two that differ in the last bit one may be a tie.
    """
    wanted: dict[Row, list[Row]] = defaultdict(list)
    for row in Counter(want).elements():
        wanted[_exact(row)].append(row)
    only_have: list[Row] = []
    assert min(have.values(), default=0) >= 0, "rows that are there less than never"
    for row in Counter(have).elements():
        candidates = wanted[_exact(row)]
        place = next((at for at, other in enumerate(candidates) if _is_near(row, other)), None)
        if place is None:
            only_have.append(row)
        else:
            del candidates[place]
    return only_have, [row for rest in wanted.values() for row in rest]


def _exact(row: Row) -> Row:
    """What must be equal in rows that are alike: all but floats; of these, where they are."""
    return tuple(_kind(value) for value in row)


def _kind(value: object) -> object:
    if isinstance(value, float):
        return float
    return value


def _is_near(row: Row, other: Row) -> bool:
    return all(
        math.isclose(one, two, rel_tol=ROUNDING, abs_tol=CANCELLATION)
        or (math.isnan(one) and math.isnan(two))
        for one, two in zip(row, other, strict=True)
        if isinstance(one, float) and isinstance(two, float)
    )
