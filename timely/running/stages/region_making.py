"""Which loops are regions?

Each outermost loop of whose stages somebody can make one (`timely/operators/region.py`). On every worker they
are the same: they are chosen by what was built, and by settings that are compared when it is installed.
"""

from __future__ import annotations

from collections.abc import Sequence

from ...building.freeze import FrozenDataflow
from ...building.scope import Scope
from ...operators.region import Link, Member, RegionSite
from .connector import LAST_ROUNDS, Connector
from .joint_regions import JointRegionRunner
from .regions import Place, RegionRunner
from .upstream import sources_of, upstream_of
from .vertex_runner import VertexRunner

__all__ = ["make_regions"]


def make_regions(
    place: Place,
    frozen: FrozenDataflow,
    runners: Sequence[VertexRunner],
    connectors: Sequence[Connector],
) -> list[RegionRunner]:
    """The regions of a dataflow whose vertices have started: of each outermost loop of which one can be made.

    Connectors into a region lead to its runner from then on, and its vertices see the region around them.
    """
    made: list[RegionRunner] = []
    for loop in dict.fromkeys(_outermost(stage.scope) for stage in frozen.stages):
        if loop is not None and loop.region is not None:
            found = _made_of(place, frozen, runners, connectors, loop, len(runners) + len(made))
            made += [] if found is None else [found]
    inside = {stage for region in made for stage in region.stages}
    for stage, runner in enumerate(runners):
        # What a region sends comes together as it is.
        sources = {spec.source for spec in frozen.connectors if spec.target == stage}
        runner.is_patient = runner.is_patient and not sources <= inside
    return made


def _made_of(
    place: Place,
    frozen: FrozenDataflow,
    runners: Sequence[VertexRunner],
    connectors: Sequence[Connector],
    loop: Scope,
    number: int,
) -> RegionRunner | None:
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
            limits = [(each.shift, each.mask, each.iterations_max - LAST_ROUNDS) for each in spec.limits]
            links.append(
                Link(
                    spec.source, spec.output, target, spec.port, spec.keep, spec.add,
                    connector.whole_transform, limits, connector.rounds is not None, connector,
                    connector.route,
                )
            )  # fmt: skip
        elif spec.target in inside:
            entering[spec.index] = (spec.target, spec.port)
    if not leaving:
        return None
    assert loop.region is not None
    site = RegionSite(
        described, links, frozen.layout, list(entering.values()), place.worker, place.workers, place.routing
    )
    region = loop.region(site)
    if region is None:
        return None
    kind = RegionRunner if place.workers == 1 else JointRegionRunner
    made = kind(place, number, loop.name, frozen.layout, members, len(runners), entering, leaving)
    made.region = region
    if isinstance(made, JointRegionRunner):
        made.upstream = upstream_of(frozen, len(runners), list(entering))
    else:
        made.follow([runners[stage] for stage in sources_of(frozen, list(entering))])
    for index in entering:
        connectors[index].target = made
    for member in members:
        member.move_into(made)
    return made


def _outermost(scope: Scope) -> Scope | None:
    chain = _chain(scope)
    return chain[0] if chain else None


def _chain(scope: Scope) -> list[Scope]:
    """The loops that a scope is in, itself included, outermost first."""
    found: list[Scope] = []
    at: Scope | None = scope
    while at is not None and at.parent is not None:
        found.append(at)
        at = at.parent
    return found[::-1]
