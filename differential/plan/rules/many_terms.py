"""Sum a collection of very many terms by a stage, where several operators read it.

A collection is the sum of its terms: streams, each with the linear operators on the way from it. A left join
has two terms more than its left side: the pairs, the rows of the left, and the negation of those in a pair.
Every operator that reads the collection reads each term by a chain of its own. In a chain of left joins the
n-th has 2n + 1 terms of n tables, and as many chains for each reader: 100 joins took a minute to plan.
Updates that cancel in one join, as a row of the left and its negation, all go on to the next one.

The meaning stays: see `loop_results.py`, which has the same operator for another reason. The rule leaves
alone what is inside of a loop, and collections that one operator reads, as a UNION ALL of 200 queries.
"""

from __future__ import annotations

from collections.abc import Callable, MutableMapping

from ...thresholds import TERMS_MAX
from ..nodes import Concat, Consolidate, Node, NotNull, Select
from ..nodes.guarded import Provided

__all__ = ["many_terms_summed"]


def many_terms_summed(
    node: Node, terms: MutableMapping[bytes, int], readers: Callable[[], int]
) -> Node | None:
    """Return `node` with a stage that sums it, or what it reads, if it has too many terms; None otherwise.

    `terms` has the numbers of terms of all nodes beneath, and gets those of `node`.
    """
    if isinstance(node, Concat | Provided):
        count = sum(terms[child.digest] for child in node.children)
    else:
        count = terms[node.children[0].digest] if node.is_linear and node.children else 1
    terms[node.digest] = count
    if count <= TERMS_MAX or node.free or readers() < 2:
        return None
    if isinstance(node, Concat | Provided | Select | NotNull):
        summed: Node = Consolidate(node)
    else:  # what reads an arrangement, for instance, has to find it there
        summed = node.with_children((Consolidate(node.children[0]),))
    terms[summed.digest] = 1
    return summed
