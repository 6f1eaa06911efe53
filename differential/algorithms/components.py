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

_NAME = "connected_components"


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

    `edges` has two columns of one type. Directions do not matter, nor how often an edge is there, as long as
    that is not less than zero times: while an edge is removed that was never inserted, labels may swing for
    ever (`edges.distinct()` guards against it). A node's component is the smallest node in it. The nodes are
    those that occur in an edge, or those of `nodes` (column `node`), which must then include all that do.

    In every iteration a node takes the least label among its own identity and its neighbours' labels; a label
    has reached its whole component after as many iterations as its farthest node is edges away.

    With `prioritised` small labels set out first, and when most other labels come, smaller ones have been
    there: a random graph loads about four times as fast, and a change is followed twice as fast. The result
    is the same. Nodes must then be whole numbers, int and never null; SchemaError for others. The option is
    made for numbers close to 0: numbers with equally many bits set out together, and all numbers below 0 set
    out with them.
    """
    both = both_ways(as_edges(_NAME, edges, src, dst))
    if prioritised:
        _check_whole(both.schema["src"].type, src)
    if nodes is None:
        present = both.select(node=col.src).distinct()
    else:
        present = as_nodes(_NAME, nodes, node, both, "nodes")
    labels = least_labels(
        present.select(node=col.node, label=col.node), both, "components", prioritised=prioritised
    )
    return labels.rename(label="component")


def _check_whole(type_: ColumnType, src: str) -> None:
    if type_.kind != "int" or type_.nullable:
        raise SchemaError(
            f"{_NAME} ({call_site()}): prioritised=True is for nodes that are whole numbers, int, never "
            f"null, but {src!r} is {type_}. Without it nodes may be of any type"
        )
