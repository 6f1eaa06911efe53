"""Graphs as the algorithms take them: collections of edges, with columns that the caller may name.

    edges     two columns of one type, by default `src` and `dst`, and one for weights where they matter
    nodes     one column of that type, by default `node`

Whatever the caller's columns are called, an algorithm works on these names, and its result has them. Errors
name the algorithm, the line that called it, and what to write.
"""

from __future__ import annotations

from differential.aggregates import min as least
from differential.collections.collection import Collection
from differential.columns.column_types import ColumnType
from differential.errors import SchemaError
from differential.expressions.expression import col
from progress.errors import GraphError, MisuseError
from timely.user_code.call_site import call_site

__all__ = [
    "as_edges",
    "as_nodes",
    "both_ways",
    "check_collection",
    "column_type",
    "ends",
    "least_labels",
    "neighbours",
    "whole_number",
]


def as_edges(caller: str, edges: Collection, src: str, dst: str, weight: str | None = None) -> Collection:
    """Return the edges as `src`, `dst` and, if a column is named for it, `weight`; multiplicities stay.

    Raises GraphError for a value that is no collection, SchemaError for a missing column, ends of two types,
    or weights that are no numbers; both with the line that called `caller`.
    """
    check_collection(caller, "edges", edges)
    named = {"src": src, "dst": dst} if weight is None else {"src": src, "dst": dst, "weight": weight}
    types = {role: column_type(caller, "edges", edges, role, name) for role, name in named.items()}
    if types["src"] != types["dst"]:
        raise SchemaError(
            f"{caller} ({call_site()}): the ends of an edge are of one type, but {src!r} is {types['src']} "
            f"and {dst!r} is {types['dst']}. Cast one of them before: edges.with_columns({dst}=…)"
        )
    if weight is not None and (types["weight"].kind not in ("int", "float") or types["weight"].nullable):
        raise SchemaError(
            f"{caller} ({call_site()}): weights are numbers, int or float and never null, but {weight!r} "
            f"is {types['weight']}. Cast it, or fill it: "
            f"edges.with_columns({weight}=col.{weight}.fill_null(0))"
        )
    return edges.select(**{role: col(name) for role, name in named.items()})


def as_nodes(caller: str, nodes: Collection, node: str, edges: Collection, what: str = "roots") -> Collection:
    """Return the nodes as `node`; `edges` are those of `as_edges`, whose ends must be of the same type.

    Raises as `as_edges`; `what` is the parameter's name in messages.
    """
    check_collection(caller, what, nodes)
    type_ = column_type(caller, what, nodes, "node", node)
    end_type = edges.schema["src"].type
    if type_ != end_type:
        raise SchemaError(
            f"{caller} ({call_site()}): {node!r} of {what} is {type_}, but the ends of the edges are "
            f"{end_type}. Cast one of them before: {what}.with_columns({node}=…)"
        )
    return nodes.select(node=col(node))


def both_ways(edges: Collection) -> Collection:
    """Return each edge in both directions; one from a node to itself twice."""
    return edges.concat(edges.select(src=col.dst, dst=col.src))


def neighbours(edges: Collection) -> Collection:
    """Return the simple undirected graph: pairs (src, dst) of different nodes, once in both directions."""
    return both_ways(edges.filter(col.src != col.dst)).distinct()


def ends(edges: Collection) -> Collection:
    """Return the nodes (`node`) that occur in an edge, once each."""
    return edges.select(node=col.src).concat(edges.select(node=col.dst)).distinct()


def least_labels(own: Collection, along: Collection, name: str, *, prioritised: bool = False) -> Collection:
    """Return the least of the labels `own` (`node`, `label`) that reaches each node along the edges.

    A label has reached all its nodes after as many iterations as the farthest of them is edges away. With
    `prioritised` labels must be whole numbers, and set out one after another, small ones first. `name`: the
    loop's.
    """

    def spread(labels: Collection, begun: Collection) -> Collection:
        proposals = labels.join(along, on={"node": "src"}).select(node=col.dst, label=col.label)
        return proposals.concat(begun).group_by("node").agg(label=least("label"))

    if prioritised:
        return own.prioritized_iterate(spread, priority="label", name=name)
    return own.iterate(lambda labels: spread(labels, own), name=name)


def whole_number(caller: str, name: str, value: object, least: int = 1) -> int:
    """Return `value`, which must be a whole number from `least` up; MisuseError otherwise."""
    if isinstance(value, bool) or not isinstance(value, int) or value < least:
        raise MisuseError(
            f"{caller} ({call_site()}): {name} is a whole number from {least} up, not {value!r}"
        )
    return value


def check_collection(caller: str, what: str, value: object) -> None:
    """Raise GraphError unless the parameter `what` is a collection."""
    if not isinstance(value, Collection):
        raise GraphError(
            f"{caller} ({call_site()}): {what} is a collection, as dd.input gives, not {type(value).__name__}"
        )


def column_type(caller: str, what: str, rows: Collection, role: str, name: str) -> ColumnType:
    """Return the type of the column `name` of the parameter `what`.

    Raises SchemaError if there is none; the error names the parameter `role`, by which to name another
    column.
    """
    if name not in rows.schema.names:
        raise SchemaError(
            f"{caller} ({call_site()}): {what} has the columns {', '.join(rows.schema.names)}, and none "
            f"called {name!r}: say which it is, as in {caller}(…, {role}='{rows.schema.names[0]}')"
        )
    return rows.schema[name].type
