"""Apply the rules to a plan in a fixed order, and count how often each fired.

Each pass has a measure that only decreases (operators with state, distance of filters from inputs, columns
stored), so that a second pass changes nothing more.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from timely.user_code.call_site import CallSite

from .nodes import Input, Node
from .rewriting import beneath, rewrite
from .rules.bounds import between_bounds
from .rules.circles import join_circle
from .rules.columns import needed_columns, with_needed_only
from .rules.filters import push_filter
from .rules.first_rows import first_rows
from .rules.loop_results import consolidated_result, joined_results
from .rules.many_terms import many_terms_summed
from .rules.sets import drop_distinct

__all__ = ["Improved", "improve"]

_Add = Callable[[Node, Sequence[CallSite]], Node]
"""Enter a node into the plan, as written at these lines."""

_ROUNDS_MAX = 100
"""More rounds than a plan is deep in practice. A rule stops after that many, even if it still applies."""


@dataclass
class Improved:
    """The roots of a better plan, and how often each rule has fired."""

    roots: list[Node]
    fired: Counter[str] = field(default_factory=Counter)

    def describe(self) -> str:
        """Return the rules that have fired, with counts."""
        times = (f"{name} {count}×" if count > 1 else name for name, count in sorted(self.fired.items()))
        return ", ".join(times) or "no rule has changed it"


def improve(
    roots: Sequence[Node],
    add: _Add,
    sites: Callable[[Node], Sequence[CallSite]],
    whole: Sequence[Node] = (),
) -> Improved:
    """Return the plan beneath `roots` after all rules. The inputs beneath `whole` keep all their columns."""
    improved = Improved(list(roots))
    numbered = -1  # first rows may be a set, and let filters pass: so once more behind the last of them
    while numbered != improved.fired["row numbers to first rows"]:
        numbered = improved.fired["row numbers to first rows"]
        _everywhere(improved, "distinct away", lambda node, readers: drop_distinct(node), add, sites)
        _everywhere(improved, "filter pushed", push_filter, add, sites)
        _everywhere(improved, "row numbers to first rows", first_rows, add, sites)
    _everywhere(improved, "joins in a circle at once", join_circle, add, sites)
    _consolidate_results(improved, add, sites)
    _prune(improved, add, sites, whole)
    _bound_rows(improved, add, sites)
    if improved.fired["rows between bounds"]:
        _everywhere(improved, "filter pushed", push_filter, add, sites)  # bounds are not null
        _prune(improved, add, sites, whole)
    _sum_many_terms(improved, add, sites)
    return improved


def _everywhere(
    improved: Improved,
    name: str,
    rule: Callable[[Node, Callable[[Node], int]], Node | None],
    add: _Add,
    sites: Callable[[Node], Sequence[CallSite]],
) -> None:
    """Apply a rule for single nodes until it applies to none."""
    for _ in range(_ROUNDS_MAX):
        counts = Counter(child.digest for node in beneath(improved.roots) for child in node.children)
        before = [root.digest for root in improved.roots]

        def visit(node: Node, children: tuple[Node, ...], counts: Counter[bytes] = counts) -> Node:
            rewritten = node.with_children(children)
            better = rule(rewritten, lambda below: counts[below.digest])
            if better is None:
                return add(rewritten, sites(node))
            improved.fired[name] += 1
            return _added(better, sites(node), add, sites)

        improved.roots = rewrite(improved.roots, visit)
        if [root.digest for root in improved.roots] == before:
            return


def _consolidate_results(improved: Improved, add: _Add, sites: Callable[[Node], Sequence[CallSite]]) -> None:
    results = joined_results(improved.roots)
    if not results:
        return

    def visit(node: Node, children: tuple[Node, ...]) -> Node:
        rewritten = node.with_children(children)
        improved.fired["loop result consolidated"] += node.digest in results
        return _added(consolidated_result(node, rewritten, results), sites(node), add, sites)

    improved.roots = rewrite(improved.roots, visit)


def _prune(
    improved: Improved, add: _Add, sites: Callable[[Node], Sequence[CallSite]], whole: Sequence[Node]
) -> None:
    needs = needed_columns(improved.roots)
    needs.update(
        (node.digest, frozenset(node.schema.names)) for node in beneath(whole) if isinstance(node, Input)
    )

    def visit(node: Node, children: tuple[Node, ...]) -> Node:
        rewritten = _added(with_needed_only(node, children, needs), sites(node), add, sites)
        improved.fired["columns dropped"] += (
            rewritten.digest != node.digest and rewritten.children != children
        )
        improved.fired["columns of inputs left out"] += isinstance(node, Input) and rewritten is not node
        return rewritten

    improved.roots = rewrite(improved.roots, visit)
    improved.fired += Counter()  # drop the zeros


def _bound_rows(improved: Improved, add: _Add, sites: Callable[[Node], Sequence[CallSite]]) -> None:
    needs = needed_columns(improved.roots)
    counts = Counter(child.digest for node in beneath(improved.roots) for child in node.children)

    def visit(node: Node, children: tuple[Node, ...]) -> Node:
        rewritten = node.with_children(children)
        better = between_bounds(rewritten, needs[node.digest], lambda below: counts[below.digest])
        if better is None:
            return add(rewritten, sites(node))
        improved.fired["rows between bounds"] += 1
        return _added(better, sites(node), add, sites)

    improved.roots = rewrite(improved.roots, visit)
    improved.fired += Counter()


def _sum_many_terms(improved: Improved, add: _Add, sites: Callable[[Node], Sequence[CallSite]]) -> None:
    counts = Counter(child.digest for node in beneath(improved.roots) for child in node.children)
    terms: dict[bytes, int] = {}

    def visit(node: Node, children: tuple[Node, ...]) -> Node:
        rewritten = node.with_children(children)
        summed = many_terms_summed(rewritten, terms, lambda: counts[node.digest])
        if summed is None:
            return add(rewritten, sites(node))
        improved.fired["many terms summed"] += 1
        return _added(summed, sites(node), add, sites)

    improved.roots = rewrite(improved.roots, visit)


def _added(
    node: Node, lines: Sequence[CallSite], add: _Add, sites: Callable[[Node], Sequence[CallSite]]
) -> Node:
    """Enter `node`, and new nodes that a rule has made beneath it; nodes that were there keep their lines."""
    new: list[Node] = []
    waiting = list(node.children)
    while waiting:
        node_below = waiting.pop()
        if not sites(node_below):
            new.append(node_below)
            waiting += node_below.children
    for node_below in reversed(new):
        add(node_below, lines)
    return add(node, lines)
