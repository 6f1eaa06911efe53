"""What can happen after an event? Found by letting it happen.

The slow and obvious twin of `progress/graph/could_result_in.py`: walk from a pointstamp along the dataflow,
one step at a time, with the times themselves and not with summaries of them. Loops are taken until a
coordinate exceeds `value_max`, so the answer holds for times whose coordinates are well below.
"""

from __future__ import annotations

from progress.graph.graph import Graph
from progress.times.timestamp import Timestamp

Pointstamp = tuple[int, Timestamp]


def next_pointstamps(graph: Graph, pointstamp: Pointstamp) -> list[Pointstamp]:
    """What an event at a pointstamp can cause at once, at the earliest times."""
    location, time = pointstamp
    stages = len(graph.stages)
    caused: list[Pointstamp] = []
    if location < stages:
        for number, connector in enumerate(graph.connectors):
            if connector.source == location:
                caused.append((stages + number, connector.summary.apply(time)))
        return caused
    arrival = graph.connectors[location - stages]
    stage = graph.stages[arrival.target]
    sent: list[Timestamp | None] = []
    for output in range(stage.outputs):
        inside = graph.internal(arrival.target, arrival.input, output)
        sent.append(None if inside is None else inside.apply(time))
    for number, connector in enumerate(graph.connectors):
        if connector.source == arrival.target:
            leaves = sent[connector.output]
            if leaves is not None:
                caused.append((stages + number, connector.summary.apply(leaves)))
    # To keep a capability is to keep the right to send on every output; it must be allowed to each of them.
    if not sent:
        caused.append((arrival.target, time))
    for candidate in sent:
        if candidate is not None and all(
            other is not None and stage.shape.less_equal(other, candidate) for other in sent
        ):
            caused.append((arrival.target, candidate))
            break
    return caused


def reachable(graph: Graph, start: Pointstamp, value_max: int) -> set[Pointstamp]:
    """All pointstamps, without those beyond `value_max`, that an event at `start` can lead to."""
    found = {start}
    waiting = [start]
    while waiting:
        for caused in next_pointstamps(graph, waiting.pop()):
            if caused not in found and max(caused[1]) <= value_max:
                found.add(caused)
                waiting.append(caused)
    return found


def could_result_in(graph: Graph, a: Pointstamp, b: Pointstamp, value_max: int = 8) -> bool:
    """Whether a walk from `a` ends at the location of `b` at a time that is no later."""
    shape = graph.shape_of(b[0])
    return any(
        location == b[0] and shape.less_equal(time, b[1]) for location, time in reachable(graph, a, value_max)
    )
