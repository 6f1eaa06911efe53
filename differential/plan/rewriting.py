"""Making one plan out of another, without recursion: a plan may be thousands of operators deep."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

from .nodes import Node

__all__ = ["Visit", "beneath", "rewrite"]

Visit = Callable[[Node, tuple[Node, ...]], Node]
"""A node and what its children have become: what it becomes."""


def rewrite(roots: Sequence[Node], visit: Visit) -> list[Node]:
    """What `visit` makes of each root; every node is visited once, after its children."""
    made: dict[bytes, Node] = {}
    for node in beneath(roots):
        made[node.digest] = visit(node, tuple(made[child.digest] for child in node.children))
    return [made[root.digest] for root in roots]


def beneath(roots: Iterable[Node]) -> Iterator[Node]:
    """All nodes that the roots are computed of, and the roots: each once, children first."""
    done: set[bytes] = set()
    for root in roots:
        waiting = [root]
        while waiting:
            top = waiting[-1]
            if top.digest in done:
                waiting.pop()
                continue
            missing = [child for child in top.children if child.digest not in done]
            if missing:
                waiting.extend(reversed(missing))
                continue
            waiting.pop()
            done.add(top.digest)
            yield top
