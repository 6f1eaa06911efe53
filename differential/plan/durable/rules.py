"""By which rule is each input of a plan folded, and how far do answers look back?

Let s be the epoch up to which rows are summed. Every answer at an epoch from s + lookback on must be the same
as without the fold. For most operators the sum of the rows will do: an answer is a function of what the
inputs hold, and of its epoch. The others:

    upsert input            the last entry of each key
    checked input           what is there, and what was refused
    delay(k)                an answer looks back k epochs; the delays on a path add up
    split_late directly     whether a row is late depends on the epoch in which it came. Rows that are on
      behind inputs         time go to an epoch in which they are, others to one in which they are late
    split_late elsewhere,   need each epoch of the inputs beneath: nothing is summed
      delay(function),
      delays in loops
    stream()                needs each epoch: stages that were written by hand get the changes of each
    announcements           need each epoch, too: their sum contradicts itself
    during, last            rows that they have let go are dropped, if nothing else reads the input

*Directly behind inputs* means: only operators that treat every row by itself, without functions of users,
lie between.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

from timely.durable.bases.facts import InputFacts

from ..building import Plan
from ..encoding import encode_plan
from ..expressions import schema_data
from ..nodes import (
    Arrange,
    AssertEmpty,
    ByHand,
    Concat,
    ConstantRows,
    Delay,
    During,
    Empty,
    Filter,
    Import,
    Input,
    IntoStream,
    LetRec,
    Negate,
    Node,
    NotNull,
    OneRow,
    OnTime,
    Select,
    Slide,
    Spread,
    Steered,
    Weigh,
)
from ..rewriting import beneath

__all__ = ["FORMS", "PlanFacts", "ViewKind", "kept_whole", "plan_facts"]

FORMS: Final = {
    "append": "differential.plan.durable.summing:summed_rows",
    "upsert": "differential.plan.durable.latest:latest_rows",
    "checked": "differential.plan.durable.clamped:clamped_rows",
}
"""By mode of an input: what makes the form of its rows."""

_STATELESS: Final = (Select, Filter, NotNull, Negate, Weigh, Slide, Arrange, AssertEmpty, Concat)

ViewKind = str
"""all       whoever reads the rows behind these operators needs all of them
during    needs those that are not let go: the last column is the epoch from which on a row is gone
on time   decides by the epoch in which a row comes: the last column is the last epoch in which it is on time
"""


class PlanFacts(NamedTuple):
    """See `timely.durable.bases.facts.FoldFacts`."""

    lookback: int
    inputs: tuple[InputFacts, ...]
    import_reason: str


class _View(NamedTuple):
    """A node that reads rows of inputs through stateless operators."""

    node: Node
    kind: ViewKind


def plan_facts(plan: Plan) -> PlanFacts:
    """Return how the inputs of a plan are folded; the plan has been carried out."""
    nodes = list(beneath(plan.improved.roots))
    stateless = _stateless(nodes)
    reasons = _reasons(plan, nodes, stateless)
    lookbacks = _lookbacks(nodes)
    views = _views(nodes, plan.improved.roots, stateless)
    inputs: list[InputFacts] = []
    lookback, import_reason = 0, ""
    read = {node.digest: node for node in nodes}
    imports = [node for node in plan.nodes.values() if isinstance(node, Import)]
    for node in (*plan.taken_in.values(), *imports):
        if isinstance(node, Input):
            why = reasons.get(node.digest, "")
            own = [] if why or node.digest not in read else views.get(node.digest, [])
            details = _details(plan, node, own)
            inputs.append(InputFacts(node.name, FORMS[node.mode], details, not why, why, bool(details[-1])))
        elif node.digest in reasons:
            import_reason = import_reason or reasons[node.digest]
        if node.digest in read:
            lookback = max(lookback, lookbacks[node.digest])
    return PlanFacts(lookback, tuple(inputs), import_reason)


def kept_whole(plan: Plan, roots: Sequence[Node]) -> dict[str, str]:
    """Return, by name, why a store keeps each epoch of an input, of those that these nodes read. `plan` has
    the places where the nodes were written.
    """
    nodes = list(beneath(roots))
    reasons = _reasons(plan, nodes, _stateless(nodes))
    inputs = [node for node in nodes if isinstance(node, Input)]
    return {node.name: reasons[node.digest] for node in inputs if node.digest in reasons}


def _details(plan: Plan, node: Input, views: Sequence[_View]) -> list[object]:
    """Return name, columns, keys, the plan of the views, their kinds, and whether rows may be dropped."""
    columns = schema_data(node.columns)
    if node.mode == "checked":
        columns = columns[:-1]
    is_needed = not views or any(view.kind == "needed" for view in views)
    used = [view for view in views if view.kind == "on time" or (not is_needed and view.kind != "needed")]
    packed = encode_plan(plan, [view.node for view in used]) if used else b""
    return [node.name, columns, list(node.keys), packed, [view.kind for view in used], not is_needed]


def _stateless(nodes: Sequence[Node]) -> dict[bytes, frozenset[bytes]]:
    """Return, by digest of each node that is computed from append inputs by stateless operators alone, the
    digests of these inputs.
    """
    stateless: dict[bytes, frozenset[bytes]] = {}
    for node in nodes:
        if isinstance(node, Input) and node.mode == "append":
            stateless[node.digest] = frozenset((node.digest,))
        elif isinstance(node, OneRow | ConstantRows | Empty):
            stateless[node.digest] = frozenset()
        elif isinstance(node, _STATELESS) and all(child.digest in stateless for child in node.children):
            stateless[node.digest] = frozenset[bytes]().union(
                *(stateless[child.digest] for child in node.children)
            )
    return stateless


def _reasons(plan: Plan, nodes: Sequence[Node], stateless: dict[bytes, frozenset[bytes]]) -> dict[bytes, str]:
    """Return, by digest, why each epoch of a node is needed, where it is."""
    reasons: dict[bytes, str] = {}
    for node in nodes:
        if isinstance(node, LetRec):
            inside = [one for one in beneath((*node.bodies, *node.effects)) if one.free]
            by_hand = [one for one in inside if isinstance(one, ByHand)]
            if by_hand:
                reasons[node.digest] = _by_hand_reason(plan, by_hand[0])
            timed = [one for one in inside if isinstance(one, Delay | OnTime)]
            if timed:
                reasons[node.digest] = (
                    f"{_where(plan, timed[0])} is in a loop, so an answer may depend on any epoch before it. "
                    "Take it out of the loop"
                )
    for node in reversed(nodes):  # readers before what they read
        why = reasons.get(node.digest, "") or _reason(plan, node, stateless)
        for child in node.children if why else ():
            reasons.setdefault(child.digest, why)
        if isinstance(node, Spread) and not isinstance(node.announcements, Steered):
            reasons.setdefault(
                node.announcements.digest,
                "announcements hold from their epochs on, and are kept as they came; they are few",
            )
    return reasons


def _reason(plan: Plan, node: Node, stateless: dict[bytes, frozenset[bytes]]) -> str:
    """Return why a node needs each epoch of what it reads; "" if it does not."""
    if isinstance(node, OnTime) and node.source.digest not in stateless:
        return (
            f"{_where(plan, node)} decides by the epoch in which a row comes, and reads more than the rows "
            "of inputs. Write split_late directly behind the input, before joins, groups and functions"
        )
    if isinstance(node, Delay) and node.function is not None:
        return (
            f"{_where(plan, node)} delays by a function, so an answer may depend on any epoch before it. "
            "Write the number of epochs, as delay(3)"
        )
    if isinstance(node, IntoStream | ByHand):
        return _by_hand_reason(plan, node)
    return ""


def _by_hand_reason(plan: Plan, node: Node) -> str:
    what = "gets" if isinstance(node, ByHand) else "sends"
    to = "" if isinstance(node, ByHand) else " to stages that were written by hand"
    return (
        f"{_where(plan, node)} {what} the changes of each epoch{to}. Where you can, write operators of "
        "collections in place of stages by hand"
    )


def _lookbacks(nodes: Sequence[Node]) -> dict[bytes, int]:
    """Return, by digest, the largest sum of delays on a way from a node to whoever reads it."""
    lookbacks = {node.digest: 0 for node in nodes}
    for node in reversed(nodes):
        behind = lookbacks[node.digest] + (node.epochs if isinstance(node, Delay) else 0)
        for child in node.children:
            lookbacks[child.digest] = max(lookbacks[child.digest], behind)
    return lookbacks


def _views(
    nodes: Sequence[Node], roots: Sequence[Node], stateless: dict[bytes, frozenset[bytes]]
) -> dict[bytes, list[_View]]:
    """Return, by digest of an input, what reads its rows. A view of the kind "needed" stands for readers that
    need every row.
    """
    views: dict[bytes, list[_View]] = {}
    filtered = _filtered(nodes, stateless)

    def add(source: Node, view: _View) -> None:
        for digest in stateless.get(source.digest, ()):
            views.setdefault(digest, []).append(view)

    for node in nodes:
        if node.digest in stateless:
            continue
        for child in node.children:
            is_filtered = child.digest in filtered
            if isinstance(node, OnTime):
                add(child, _View(child, "on time"))
                if not is_filtered:
                    add(child, _View(child, "needed"))
            elif isinstance(node, During):
                add(child, _View(child, "during"))
            else:
                add(child, _View(child, "all" if is_filtered else "needed"))
    for root in roots:
        add(root, _View(root, "needed"))
    return views


def _filtered(nodes: Sequence[Node], stateless: dict[bytes, frozenset[bytes]]) -> set[bytes]:
    """Return the digests of the stateless nodes all of whose rows have passed a filter."""
    filtered: set[bytes] = set()
    for node in nodes:
        if node.digest in stateless and (
            isinstance(node, Filter | Empty | OneRow | ConstantRows)
            or (node.children and all(child.digest in filtered for child in node.children))
        ):
            filtered.add(node.digest)
    return filtered


def _where(plan: Plan, node: Node) -> str:
    """Return an operator as its user wrote it, with the line."""
    name = "split_late" if isinstance(node, OnTime) else node.describe()
    sites = plan.sites.get(node.digest, ())
    return f"{name} ({sites[0]})" if sites else name
