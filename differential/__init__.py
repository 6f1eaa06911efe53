"""Differential dataflow: collections that change, over typed columns. Imports `timely` and `progress`.

    from differential import col
    import differential as dd

    def reachable(flow):
        edges = dd.input(flow, "edges", "src: int, dst: int")
        roots = dd.input(flow, "roots", "node: int")
        reached = roots.iterate(
            lambda r: r.join(edges, on={"node": "src"}).select(node=col.dst).concat(roots).distinct()
        )
        reached.output("reached")

An ordinary client of what `timely` offers: whatever is needed here, a user's vertex can have too. Read
`collections/` first, which writes plans, and `plan/`, which makes stages of them; then `operators/`,
`trace/` and `kernels/`, from the top to the bottom of an operator.
"""

from differential.aggregates import Aggregate, count, max, min, sum
from differential.collections.collection import Collection
from differential.collections.groups import Grouped
from differential.collections.sources import from_stream, imported, input
from differential.columns.column_types import (
    any_value,
    binary,
    boolean,
    floating,
    integer,
    string,
    timestamp,
)
from differential.columns.schema import Column, Schema
from differential.expressions.expression import Expr, col, lit, max_of, min_of, when
from differential.warming import warm

__all__ = [
    "Aggregate",
    "Collection",
    "Column",
    "Expr",
    "Grouped",
    "Schema",
    "any_value",
    "binary",
    "boolean",
    "col",
    "count",
    "floating",
    "from_stream",
    "imported",
    "input",
    "integer",
    "lit",
    "max",
    "max_of",
    "min",
    "min_of",
    "string",
    "sum",
    "timestamp",
    "warm",
    "when",
]
