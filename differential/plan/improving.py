"""Which rules are applied to a plan, in which order, and what has come of it.

Fixed passes, each with a measure that only sinks (operators with state, distance of filters from inputs,
columns kept), so that applying them twice changes nothing more.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from timely.user_code.call_site import CallSite

from .nodes import Node
from .rewriting import beneath, rewrite
from .rules.circles import join_circle
from .rules.columns import needed_columns, with_needed_only
from .rules.filters import push_filter
from .rules.loop_results import consolidated_result, joined_results
from .rules.sets import drop_distinct

__all__ = ["Improved", "improve"]

_Add = Callable[[Node, Sequence[CallSite]], Node]
"""Enters a node into the plan, as written at these lines."""

_ROUNDS_MAX = 100
"""More than a plan is deep in practice: what is not done by then is left as it is."""


@dataclass
class Improved:
    """The roots of a better plan, and how often each rule has fired."""

    roots: list[Node]
    fired: Counter[str] = field(default_factory=Counter)

    def describe(self) -> str:
        """The rules that have fired."""
        times = (f"{name} {count}×" if count > 1 else name for name, count in sorted(self.fired.items()))
        return ", ".join(times) or "no rule has changed it"


def improve(roots: Sequence[Node], add: _Add, sites: Callable[[Node], Sequence[CallSite]]) -> Improved:
    """What the rules make of the plan beneath `roots`."""
    found = Improved(list(roots))
    _everywhere(found, "distinct away", lambda node, readers: drop_distinct(node), add, sites)
    _everywhere(found, "filter pushed", push_filter, add, sites)
    _everywhere(found, "joins in a circle at once", join_circle, add, sites)
    _consolidate_results(found, add, sites)
    _prune(found, add, sites)
    return found


def _everywhere(
    found: Improved,
    name: str,
    rule: Callable[[Node, Callable[[Node], int]], Node | None],
    add: _Add,
    sites: Callable[[Node], Sequence[CallSite]],
) -> None:
    """Apply a rule of single nodes until it applies to none."""
    for _ in range(_ROUNDS_MAX):
        counts = Counter(child.digest for node in beneath(found.roots) for child in node.children)
        before = [root.digest for root in found.roots]

        def visit(node: Node, children: tuple[Node, ...], counts: Counter[bytes] = counts) -> Node:
            made = node.with_children(children)
            better = rule(made, lambda below: counts[below.digest])
            if better is None:
                return add(made, sites(node))
            found.fired[name] += 1
            return _added(better, sites(node), add, sites)

        found.roots = rewrite(found.roots, visit)
        if [root.digest for root in found.roots] == before:
            return


def _consolidate_results(found: Improved, add: _Add, sites: Callable[[Node], Sequence[CallSite]]) -> None:
    results = joined_results(found.roots)
    if not results:
        return

    def visit(node: Node, children: tuple[Node, ...]) -> Node:
        made = node.with_children(children)
        found.fired["loop result consolidated"] += node.digest in results
        return _added(consolidated_result(node, made, results), sites(node), add, sites)

    found.roots = rewrite(found.roots, visit)


def _prune(found: Improved, add: _Add, sites: Callable[[Node], Sequence[CallSite]]) -> None:
    needs = needed_columns(found.roots)

    def visit(node: Node, children: tuple[Node, ...]) -> Node:
        made = _added(with_needed_only(node, children, needs), sites(node), add, sites)
        found.fired["columns dropped"] += made.digest != node.digest and made.children != children
        return made

    found.roots = rewrite(found.roots, visit)
    found.fired += Counter()  # without those that are zero


def _added(
    node: Node, written: Sequence[CallSite], add: _Add, sites: Callable[[Node], Sequence[CallSite]]
) -> Node:
    """`node` and what a rule has made beneath it, in the plan. What was there before keeps its lines."""
    new: list[Node] = []
    waiting = list(node.children)
    while waiting:
        part = waiting.pop()
        if not sites(part):
            new.append(part)
            waiting += part.children
    for part in reversed(new):
        add(part, written)
    return add(node, written)
