"""Explain how a query is computed, as text: its plan as written, the plan after the rules, and the stages."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from timely.building.dataflow import Dataflow
from timely.building.declarations import StageDeclaration
from timely.operators.vertex import Vertex
from timely.user_code.call_site import CallSite
from timely.user_code.html_tables import ShownText

from ..operators.between.imports import TableImport
from .building import Plan
from .durable.rules import kept_whole
from .facts import makes_all_pairs
from .improving import improve
from .nodes import ByHand, FromStream, Import, Input, IntoStream, LetRec, Node
from .rewriting import beneath
from .rules.sharing import share
from .stages.lowering import Lowering
from .stages.terms import Leaves
from .stages.timed import input_codec

__all__ = ["explain", "explain_plan"]

_SITE_COLUMN = 64


def explain(dataflow: Dataflow) -> str:
    """Return the text of how a dataflow computes all its outputs, exports, and effects such as `inspect`.

    `Collection.explain` shows one collection as if no other were computed. Only this function shows what is
    stored once for several outputs, and which columns some of them need.
    """
    plan = Plan.of(dataflow)
    return explain_plan(plan, plan.roots, are_asked_for=True)


def explain_plan(plan: Plan, roots: Sequence[Node], *, are_asked_for: bool = False) -> str:
    """Return the text for the nodes that `roots` need; in a loop, down to the loop's variables.

    `are_asked_for`: the roots are outputs and effects; otherwise they are collections that could be made
    outputs.
    """
    scratch = Plan(Dataflow(plan.dataflow.name))
    for node in beneath(roots):
        for site in plan.sites.get(node.digest, ()):
            scratch.add(node, site)
    written = list(_tree(scratch, roots))  # before rules give their lines to new nodes
    better = improve(list(roots), scratch.add_rewritten, lambda node: scratch.sites.get(node.digest, ()))
    parts = [
        "== as written ==",
        *written,
        f"== after the rules: {better.describe()} ==",
        *(_tree(scratch, better.roots) if better.fired else ()),
        f"== stages: {share(better.roots).describe()} ==",
        *_stages(scratch, better.roots, are_asked_for),
        *_warnings(scratch, better.roots),
        *_kept_whole(scratch, better.roots),
    ]
    return ShownText("\n".join(parts))


def _tree(plan: Plan, roots: Sequence[Node]) -> Iterator[str]:
    """Yield each node above the nodes it is computed from; a node with several readers gets a number."""
    readers = Counter(child.digest for node in beneath(roots) for child in node.children)
    numbers: dict[bytes, int] = {}
    waiting = [(root, 0, "") for root in reversed(roots)]
    while waiting:
        node, depth, role = waiting.pop()
        number = numbers.get(node.digest)
        if number is not None:
            yield f"{'  ' * depth}{role}[{number}]"
            continue
        label = ""
        if readers[node.digest] > 1 and node.children:
            numbers[node.digest] = len(numbers) + 1
            label = f"[{len(numbers)}] "
        line = f"{'  ' * depth}{role}{label}{node.describe()}"
        yield _with_site(line, plan.sites.get(node.digest, ()))
        waiting += [(child, depth + 1, word) for child, word in reversed(list(_children(node)))]


def _warnings(plan: Plan, roots: Sequence[Node]) -> Iterator[str]:
    """Yield a line for each join that makes pairs of all rows of two sides, with its place."""
    lines = [
        _with_site(
            f"{node.describe()}: all pairs of rows, on one worker; write an equality, or a band",
            plan.sites.get(node.digest, ()),
        )
        for node in beneath(roots)
        if makes_all_pairs(node)
    ]
    if lines:
        yield "== warnings =="
        yield from dict.fromkeys(lines)


def _kept_whole(plan: Plan, roots: Sequence[Node]) -> Iterator[str]:
    """Yield a line for each input whose whole history the store of a durable cluster keeps."""
    reasons = kept_whole(plan, roots)
    if reasons:
        yield "== in a durable cluster =="
        yield from (f"the whole history of input {name!r} is kept: {why}" for name, why in reasons.items())


def _children(node: Node) -> Iterator[tuple[Node, str]]:
    if not isinstance(node, LetRec):
        yield from ((child, "") for child in node.children)
        return
    yield from ((initial, "begins as ") for initial in node.initials)
    yield from ((body, "goes on as ") for body in node.bodies)
    yield from ((effect, "looks at ") for effect in node.effects)


def _with_site(line: str, sites: Sequence[CallSite]) -> str:
    where = ", ".join(f"{site.file.rsplit('/', 1)[-1]}:{site.line}" for site in sites if site.line)
    return f"{line:<{_SITE_COLUMN}}  {where}".rstrip()


def _stages(plan: Plan, roots: Sequence[Node], are_asked_for: bool) -> Iterator[str]:
    """Yield the stages that these roots become, built in a dataflow that is thrown away."""
    by_hand = (FromStream, IntoStream, ByHand)
    if any(root.free for root in roots) or any(isinstance(node, by_hand) for node in beneath(roots)):
        yield "(known once the loop, or the stages written by hand around it, are complete)"
        return
    dataflow = plan.dataflow
    leaves: Leaves = {}
    for node in beneath(roots):
        if isinstance(node, Input):
            leaves[node.digest] = (dataflow.input(node.name, input_codec(node)), ())
        elif isinstance(node, Import):
            imported = dataflow.imported(node.owner, node.name, TableImport(node.columns))
            leaves[node.digest] = (imported, ())
    lowering = Lowering(dataflow, leaves, plan.sites)
    lowering.sharing = share(roots)
    for root in roots:
        if are_asked_for:
            lowering.root(root)
        else:
            dataflow.stage("result", _never, lowering.feeds(root))
    for stage in dataflow.stages:
        if stage.kind == "vertex":
            yield from _stage(dataflow, stage)


def _never() -> Vertex:
    raise AssertionError("stages of an explanation do not run")


def _stage(dataflow: Dataflow, stage: StageDeclaration) -> Iterator[str]:
    yield f"{stage.index:>3}  {stage.name}   in {stage.scope.path()}"
    for feed in stage.feeds:
        source = dataflow.stages[feed.stream.stage_index]
        text = f"from {source.index} {source.name}{_what_enters(dataflow, source)}"
        if feed.detail:
            text += f": {feed.detail}"
        if feed.route is not None:
            text += f"   [{feed.route.describe()}]"
        yield f"       {text}"


def _what_enters(dataflow: Dataflow, stage: StageDeclaration) -> str:
    """For a way into a loop or out of it: name the stages that feed it, since it has no entry of its own."""
    if stage.kind not in ("ingress", "egress"):
        return ""
    sources = [dataflow.stages[feed.stream.stage_index] for feed in stage.feeds]
    names = [f"{source.index} {source.name}{_what_enters(dataflow, source)}" for source in sources]
    return f" (of {', '.join(names)})"
