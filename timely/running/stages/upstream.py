"""What leads to a stage, on one worker or on any."""

from __future__ import annotations

from collections.abc import Sequence

from ...building.freeze import FrozenDataflow
from ...operators.vertex import Feeder
from .connector import Carrier, Connector
from .vertex_runner import VertexRunner

__all__ = ["connected", "feeders", "follow_inputs", "sources_of", "upstream_of"]


def connected(carrier: Carrier, frozen: FrozenDataflow, runners: Sequence[VertexRunner]) -> list[Connector]:
    """All connectors of a worker, each in the hands of who sends by it."""
    made: list[Connector] = []
    for spec in frozen.connectors:
        connector = Connector(carrier, spec, runners[spec.target], len(runners) + spec.index)
        runners[spec.source].outputs[spec.output].append(connector)
        made.append(connector)
    return made


def feeders(
    frozen: FrozenDataflow,
    runners: Sequence[VertexRunner],
    connectors: Sequence[Connector],
    stage: int,
    port: int,
) -> list[Feeder]:
    """Who sends to input `port` of a stage on one worker."""
    found = []
    for spec in frozen.connectors:
        if spec.target == stage and spec.port == port:
            runner, connector = runners[spec.source], connectors[spec.index]
            is_plain = connector.route is None and connector.transform is None
            found.append(Feeder(runner.vertex, runner.name, runner.code, spec.keep, spec.add, is_plain))
    return found


def follow_inputs(frozen: FrozenDataflow, runners: Sequence[VertexRunner]) -> None:
    """On a worker that is alone: let stages outside of loops follow the inputs from which alone rows come."""
    for stage, runner in enumerate(runners):
        if runner.code.shape.coordinates > 1:
            continue
        leading = [
            sources_of(frozen, [c.index for c in frozen.connectors if c.target == stage and c.port == port])
            for port in range(len(runner.ports))
        ]
        if leading and all(leading):
            runner.follow([[runners[source] for source in sources] for sources in leading])


def sources_of(frozen: FrozenDataflow, connectors: Sequence[int]) -> list[int]:
    """The stages for inputs from which these connectors lead, each once; none if one of them leads from a
    vertex. Epochs stay as they are on the way: from an input nothing leads but into loops.
    """
    sources = dict.fromkeys(frozen.connectors[index].source for index in connectors)
    return list(sources) if sources.keys() <= set(frozen.open_stages) else []


def upstream_of(frozen: FrozenDataflow, stages: int, connectors: list[int]) -> frozenset[int]:
    """All locations from which something may come to these connectors."""
    found = {stages + index for index in connectors}
    sources = [frozen.connectors[index].source for index in connectors]
    while sources:
        stage = sources.pop()
        if stage not in found:
            found.add(stage)
            before = [spec for spec in frozen.connectors if spec.target == stage]
            found.update(stages + spec.index for spec in before)
            sources += [spec.source for spec in before]
    return frozenset(found)
