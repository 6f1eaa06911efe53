"""Connectors and stages that lead to a stage, on one worker or on any."""

from __future__ import annotations

from collections.abc import Sequence

from ...building.freeze import FrozenDataflow
from ...operators.vertex import Feeder
from .connector import Carrier, Connector
from .vertex_runner import VertexRunner

__all__ = ["connected", "feeders", "follow_inputs", "sources_of", "upstream_of"]


def connected(carrier: Carrier, frozen: FrozenDataflow, runners: Sequence[VertexRunner]) -> list[Connector]:
    """Make all connectors of a worker, and give each to the runner that sends by it."""
    connectors: list[Connector] = []
    for spec in frozen.connectors:
        connector = Connector(carrier, spec, runners[spec.target], len(runners) + spec.index)
        runners[spec.source].outputs[spec.output].append(connector)
        connectors.append(connector)
    return connectors


def feeders(
    frozen: FrozenDataflow,
    runners: Sequence[VertexRunner],
    connectors: Sequence[Connector],
    stage: int,
    port: int,
) -> list[Feeder]:
    """Return the vertices that send to input `port` of a stage on one worker."""
    feeding = []
    for spec in frozen.feeding[stage][port] if port < len(frozen.feeding[stage]) else ():
        runner, connector = runners[spec.source], connectors[spec.index]
        is_plain = connector.route is None and connector.transform is None and spec.placed is None
        feeding.append(Feeder(runner.vertex, runner.name, runner.code, spec.keep, spec.add, is_plain))
    return feeding


def follow_inputs(frozen: FrozenDataflow, runners: Sequence[VertexRunner]) -> None:
    """On a lone worker: let stages outside of loops follow their inputs, if rows come from inputs only."""
    for stage, runner in enumerate(runners):
        if runner.code.shape.coordinates > 1:
            continue
        leading = [
            sources_of(frozen, [connector.index for connector in frozen.feeding[stage][port]])
            for port in range(len(runner.ports))
        ]
        if leading and all(leading):
            runner.follow([[runners[source] for source in sources] for sources in leading])


def sources_of(frozen: FrozenDataflow, connectors: Sequence[int]) -> list[int]:
    """Return the stages of inputs from which these connectors lead, each once; none if one of them leads
    from a vertex, or by a way back of the root. So epochs do not change on the way: from an input connectors
    lead only into loops.
    """
    sources = dict.fromkeys(frozen.connectors[index].source for index in connectors)
    if any(frozen.connectors[index].advances for index in connectors):
        return []
    return list(sources) if all(source in frozen.open_stages for source in sources) else []


def upstream_of(frozen: FrozenDataflow, stages: int, connectors: list[int]) -> frozenset[int]:
    """Return all locations from which rows may come to these connectors."""
    locations = {stages + index for index in connectors}
    sources = [frozen.connectors[index].source for index in connectors]
    while sources:
        stage = sources.pop()
        if stage not in locations:
            locations.add(stage)
            before = [spec for feeding in frozen.feeding[stage] for spec in feeding]
            locations.update(stages + spec.index for spec in before)
            sources += [spec.source for spec in before]
    return frozenset(locations)
