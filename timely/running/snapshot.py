"""What is outstanding on a worker, by looking.

Nothing here trusts a count: messages are found in inboxes, rights where they are kept. So what
was counted can be held against it (`progress/checking/predicates.py`, whose letters these functions carry).
To be called between activations: while a vertex runs, what it consumes is neither in its inbox nor counted
off.
"""

from __future__ import annotations

from collections.abc import Sequence

from progress.checking.predicates import Counts
from progress.graph.pointstamp_order import Pointstamp

from ..building.freeze import FrozenDataflow
from .instance import Instance

__all__ = ["counted", "first_epochs", "owned", "view"]


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
    for runner in instance.runners:
        found += [(location, word) for _, location, word, _ in runner.inbox]
        found += [(runner.stage, word) for word in runner.requested]
        for word, count in runner.held_words().items():
            found += [(runner.stage, word)] * count
    return counted(found)


def view(instance: Instance) -> Counts:
    """glob[q]: the occurrence counts of the worker's tracker."""
    return {(location, word): count for location, word, count, _ in instance.tracker.active()}


def counted(points: Sequence[Pointstamp]) -> dict[Pointstamp, int]:
    """How often each occurs."""
    result: dict[Pointstamp, int] = {}
    for point in points:
        result[point] = result.get(point, 0) + 1
    return result
