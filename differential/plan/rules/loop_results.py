"""Consolidate what leaves an inner loop and is joined, once for all joins that read it.

Within one iteration of the outer loop, an inner loop gives the changes of all its own iterations, and most of
them cancel: a label that falls from 9 to 7 to 3 leaves as +9, −9, +7, −7, +3, all at one time of the outer
loop. Aggregates and `distinct` wait until a time is complete and sum its changes. A join does not wait: it
keeps each change by key, and makes pairs of each with all rows of the other side. Consolidated, the changes
are one: +3.

The meaning stays. `Consolidate` gives of each row at each time one update, the sum of all updates of the row
at this time, or none if the sum is zero. A collection at a time t is the sum of all updates at times ≤ t,
whether times have a total order or a partial one; this sum stays, and so does whatever an operator makes of
the collection. Nothing comes late, since the stage holds the times of the rows that wait in it. Nothing waits
for itself: a way from the stage back to itself leads through the feedback of the outer loop, to a later time.

The rule leaves alone:

    loops in no other loop, since a compiled loop sums what leaves it, epoch by epoch
    results that reach no join but through an operator that waits
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

from ..nodes import ByPriority, Consolidate, JoinAll, LeaveLoop, LetRec, Node, Pairs, Variable
from ..rewriting import beneath

__all__ = ["consolidated_result", "joined_results"]


def joined_results(roots: Sequence[Node]) -> frozenset[bytes]:
    """Return the digests of the results of inner loops that some join reads before anything sums them.

    Rows get to a join through linear operators, and through a variable of a loop that begins with them.
    """
    nodes = list(beneath(roots))
    initials: defaultdict[tuple[int, int], list[Node]] = defaultdict(list)
    for loop in nodes:
        if isinstance(loop, LetRec):
            for index, initial in enumerate(loop.initials):
                initials[loop.depth, index].append(initial)
    waiting = [
        child for node in nodes if isinstance(node, Pairs | JoinAll | ByPriority) for child in node.children
    ]
    seen: set[bytes] = set()
    results: set[bytes] = set()
    while waiting:
        node = waiting.pop()
        if node.digest in seen:
            continue
        seen.add(node.digest)
        if node.is_linear:
            waiting.extend(node.children)
        elif isinstance(node, Variable):
            # Loops beside one another may have equal variables; then those of all of them count as joined.
            waiting.extend(initials[node.depth, node.index])
        elif isinstance(node, LeaveLoop) and node.free:
            results.add(node.digest)
    return frozenset(results)


def consolidated_result(node: Node, rewritten: Node, results: frozenset[bytes]) -> Node:
    """Return `rewritten`, which `node` has become: consolidated if `node` is in `results`, never twice."""
    if node.digest in results:
        return Consolidate(rewritten)
    if isinstance(rewritten, Consolidate) and isinstance(rewritten.source, Consolidate):
        return rewritten.source
    return rewritten
