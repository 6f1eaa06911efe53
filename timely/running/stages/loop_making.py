"""The choice of loops that are compiled.

Each outermost loop is compiled whose maker compiles all of its stages
(`timely/operators/compiled_loop.py`). They are the same on every worker: only the dataflow as built
decides, and settings that are compared when it is installed.
"""

from __future__ import annotations

from collections.abc import Sequence

from ...building.freeze import FrozenDataflow
from ...building.scope import Scope
from ...operators.compiled_loop import Link, LoopSite, Member
from .compiled_loop import CompiledLoopRunner, LoopScope
from .connector import LAST_ITERATIONS, Connector
from .surroundings import LoopSurroundings
from .upstream import sources_of, upstream_of
from .vertex_runner import VertexRunner

__all__ = ["compile_loops"]


def compile_loops(
    dataflow: LoopSurroundings[CompiledLoopRunner],
    frozen: FrozenDataflow,
    runners: Sequence[VertexRunner],
    connectors: Sequence[Connector],
) -> list[CompiledLoopRunner]:
    """Compile each outermost loop of a dataflow, whose vertices have started, that can be compiled.

    Connectors into such a loop lead to its runner from then on, and its vertices see the runner around them.
    """
    compiled: list[CompiledLoopRunner] = []
    for loop in dict.fromkeys(_outermost(stage.scope) for stage in frozen.stages):
        if loop is not None and loop.compile is not None:
            runner_of_loop = _compiled(
                dataflow, frozen, runners, connectors, loop, len(runners) + len(compiled)
            )
            compiled += [] if runner_of_loop is None else [runner_of_loop]
    inside = {stage for runner in compiled for stage in runner.stages}
    for stage, runner in enumerate(runners):
        # A compiled loop sends all rows of an epoch together, so waiting for more of them is of no use.
        sources = {spec.source for feeding in frozen.feeding[stage] for spec in feeding}
        runner.is_patient = runner.is_patient and not sources <= inside
    return compiled


def _compiled(
    dataflow: LoopSurroundings[CompiledLoopRunner],
    frozen: FrozenDataflow,
    runners: Sequence[VertexRunner],
    connectors: Sequence[Connector],
    loop: Scope,
    number: int,
) -> CompiledLoopRunner | None:
    inside = {n for n, stage in enumerate(frozen.stages) if _outermost(stage.scope) is loop}
    members = [runners[stage] for stage in sorted(inside)]
    loops: dict[Scope, int] = {}
    described: list[Member] = []
    for runner in members:
        if runner.vertex is None:
            return None
        around = _chain(frozen.stages[runner.stage].scope)
        if any(scope.stops for scope in around):
            return None
        numbers = tuple(loops.setdefault(scope, len(loops)) for scope in around)
        described.append(Member(runner.stage, runner.name, runner.vertex, runner.code, numbers))
    links: list[Link] = []
    entering: dict[int, tuple[int, int]] = {}
    leaving: list[Connector] = []
    for spec, connector in zip(frozen.connectors, connectors, strict=True):
        if spec.source in inside:
            target = spec.target if spec.target in inside else -1
            if target < 0:
                leaving.append(connector)
            limits = [(each.shift, each.mask, each.iterations_max - LAST_ITERATIONS) for each in spec.limits]
            links.append(
                Link(
                    spec.source, spec.output, target, spec.port, spec.keep, spec.add,
                    connector.whole_transform, limits, connector.iteration_counts is not None, connector,
                    connector.route,
                )
            )  # fmt: skip
        elif spec.target in inside:
            entering[spec.index] = (spec.target, spec.port)
        if spec.source in inside and spec.only:
            return None
    upstream = upstream_of(frozen, len(runners), list(entering))
    # By a way back of the root its rows come to it again: it would wait for itself with what it holds.
    if not leaving or inside & upstream:
        return None
    assert loop.compile is not None
    site = LoopSite(
        described,
        links,
        frozen.layout,
        list(entering.values()),
        dataflow.worker,
        dataflow.workers,
        dataflow.routing,
    )
    compiled = loop.compile(site)
    if compiled is None:
        return None
    scope = LoopScope(loop.name, frozen.layout)
    ports = {len(runners) + index: entry for index, entry in entering.items()}
    loop_runner = CompiledLoopRunner(dataflow, number, scope, compiled, members, ports, leaving)
    connected = list(entering)
    sources = [runners[stage] for stage in sources_of(frozen, connected)]
    loop_runner.follow(upstream, sources)
    for index in entering:
        connectors[index].target = loop_runner
    for member in members:
        member.move_into(loop_runner)
    return loop_runner


def _outermost(scope: Scope) -> Scope | None:
    chain = _chain(scope)
    return chain[0] if chain else None


def _chain(scope: Scope) -> list[Scope]:
    """Return the loops that a scope is in, itself included, outermost first."""
    loops: list[Scope] = []
    at: Scope | None = scope
    while at is not None and at.parent is not None:
        loops.append(at)
        at = at.parent
    return loops[::-1]
