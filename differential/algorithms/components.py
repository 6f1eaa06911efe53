"""Connected components by label propagation."""

from __future__ import annotations

from differential.algorithms.graphs import as_edges, as_nodes, both_ways, least_labels
from differential.collections.collection import Collection
from differential.columns.column_types import ColumnType
from differential.errors import SchemaError
from differential.expressions.expression import col
from timely.user_code.call_site import call_site
from timely.user_code.short_traces import short

__all__ = ["connected_components"]

_WHO = "connected_components"


@short
def connected_components(
    edges: Collection,
    nodes: Collection | None = None,
    *,
    src: str = "src",
    dst: str = "dst",
    node: str = "node",
    prioritised: bool = False,
) -> Collection:
    """The component of every node of an undirected graph: columns `node`, `component`.

    `edges` has two columns of one type. Directions do not matter, nor how often an edge is
    there, as long as that is not less than zero times: while an edge is removed that was never inserted,
    labels may swing for ever (`edges.distinct()` guards against it). A node's component is the smallest node
    in it. The nodes are those that occur in an edge, or those of `nodes` (column `node`), which must then
    include all of them.

    In every iteration a node takes the least label among its own identity and its neighbours' labels; a label
    has reached its whole component after as many iterations as its farthest node is edges away.

    With `prioritised` small labels set out first, and most others find when they come that they have lost: a
    random graph is loaded about four times as fast, and a change followed twice as fast. The result is the
    same. The nodes are whole numbers then, int and never null; SchemaError for others. Numbers close to 0 are
    what it is made for: those with as many bits set out together, and with them all that are below 0.
    """
    both = both_ways(as_edges(_WHO, edges, src, dst))
    if prioritised:
        _check_whole(both.schema["src"].type, src)
    if nodes is None:
        present = both.select(node=col.src).distinct()
    else:
        present = as_nodes(_WHO, nodes, node, both, "nodes")
    labels = least_labels(
        present.select(node=col.node, label=col.node), both, "components", prioritised=prioritised
    )
    return labels.rename(label="component")


def _check_whole(type_: ColumnType, src: str) -> None:
    if type_.kind != "int" or type_.nullable:
        raise SchemaError(
            f"{_WHO} ({call_site()}): prioritised=True is for nodes that are whole numbers, int, never null, "
            f"but {src!r} is {type_}. Without it nodes may be of any type"
        )
