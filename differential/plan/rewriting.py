"""Making one plan out of another, without recursion: a plan may be thousands of operators deep."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

from .nodes import Node

__all__ = ["Visit", "beneath", "rewrite"]

Visit = Callable[[Node, tuple[Node, ...]], Node]
"""Given a node and its rewritten children, return the rewritten node."""


def rewrite(roots: Sequence[Node], visit: Visit) -> list[Node]:
    """Return the rewritten roots; `visit` is called once for every node, after its children."""
    rewritten: dict[bytes, Node] = {}
    for node in beneath(roots):
        rewritten[node.digest] = visit(node, tuple(rewritten[child.digest] for child in node.children))
    return [rewritten[root.digest] for root in roots]


def beneath(roots: Iterable[Node]) -> Iterator[Node]:
    """Yield the roots and all nodes that they are computed from: each once, children first."""
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
