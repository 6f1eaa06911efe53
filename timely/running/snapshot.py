"""What is outstanding on a worker, and under way to it, by looking.

Nothing here trusts a count: messages are found in inboxes and on wires, rights where they are kept. So what
was counted can be held against it (`progress/checking/predicates.py`, whose letters these functions carry).
To be called between activations: while a vertex runs, what it consumes is neither in its inbox nor counted
off.
"""

from __future__ import annotations

from collections.abc import Sequence

from progress.checking.predicates import Counts
from progress.graph.pointstamp_order import Pointstamp
from progress.tracking.broadcast import changes_in

from ..building.freeze import FrozenDataflow
from .instance import Instance
from .progress_messages import DataHeader, ProgressHeader, read_header

__all__ = ["counted", "first_epochs", "owned", "under_way", "untold", "view"]


def first_epochs(frozen: FrozenDataflow) -> list[Pointstamp]:
    """What every worker owns before it has done anything: the first epoch of each input."""
    stages = [frozen.stage_of[declared.stage] for declared in frozen.inputs.values()]
    return [(stage, frozen.codes[stage].pack((0,))) for stage in stages]


def owned(instance: Instance) -> Counts:
    """caps[p]: messages that wait in inboxes, notifications asked for, holds, open epochs."""
    stages = instance.frozen.stage_of
    declared = instance.frozen.inputs
    found = [
        (stages[declared[name].stage], handle.epoch_word(handle.held_epoch))
        for name, handle in instance.inputs.items()
        if handle.held_epoch is not None
    ]
    for host in instance.hosts:
        found += [(location, word) for _, location, word, _ in host.inbox]
        found += [(host.stage, word) for word in host.requested]
        for word, count in host.held_words().items():
            found += [(host.stage, word)] * count
    return counted(found)


def untold(instance: Instance) -> Counts:
    """temp[p]: changes that no other worker has been told."""
    return {(location, word): delta for location, word, delta in instance.untold()}


def view(instance: Instance) -> Counts:
    """glob[q]: the occurrence counts of the worker's tracker."""
    return {(location, word): count for location, word, count, _ in instance.tracker.active()}


def under_way(
    messages: Sequence[list[memoryview]], source: int, dataflow: int, frozen: FrozenDataflow
) -> tuple[list[Counts], list[Pointstamp]]:
    """Of the messages of a wire, those of one dataflow: payloads (msg[p][q]), and where data is."""
    payloads: list[Counts] = []
    data: list[Pointstamp] = []
    for frames in messages:
        header = read_header(frames[0], source)
        if isinstance(header, ProgressHeader) and header.dataflow == dataflow:
            changes = changes_in(frames[1])
            payloads.append({(location, word): delta for location, word, delta in changes})
        elif isinstance(header, DataHeader) and header.dataflow == dataflow:
            data.append((frozen.graph.connector_location(header.connector), header.word))
    return payloads, data


def counted(points: Sequence[Pointstamp]) -> dict[Pointstamp, int]:
    """How often each occurs."""
    result: dict[Pointstamp, int] = {}
    for point in points:
        result[point] = result.get(point, 0) + 1
    return result
