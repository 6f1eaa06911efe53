"""Pointstamps outstanding on a worker, found by looking.

Nothing here trusts a count: it finds messages in inboxes, and rights where they are kept. So counts can be
compared with it (`progress/checking/predicates.py`, whose letters these functions carry). Call it between
activations: while a vertex runs, the messages that it consumes are neither in its inbox nor counted off.
Words are wide, and count from epoch 0 (`progress/times/anchor.py`), so that workers can be compared.
"""

from __future__ import annotations

from collections.abc import Sequence

from progress.checking.predicates import Counts, total
from progress.graph.pointstamp_order import Pointstamp

from ...building.freeze import FrozenDataflow
from ..instance import Instance
from .loops import holds

__all__ = ["counted", "first_epochs", "first_owned", "owned", "view"]


def first_epochs(
    frozen: FrozenDataflow, worker: int, epoch: int = 0, *, holds_back_sources: bool = False
) -> list[Pointstamp]:
    """Return what a worker owns before it has done anything: the first epoch of each input, import and
    constant, and of each source that sends there; of all sources if they are held back.
    """
    sources = [
        stage for stage, holders in frozen.sources.items() if holds_back_sources or holders.has(worker)
    ]
    return [(stage, frozen.codes[stage].pack_wide((epoch,))) for stage in (*frozen.open_stages, *sources)]


def first_owned(instance: Instance, epoch: int = 0) -> Counts:
    """Return caps[p] before the worker has done anything; what its compiled loops hold is in it."""
    holds_back_sources = any(source.is_held_back for source in instance.sources)
    opened = first_epochs(instance.frozen, instance.worker, epoch, holds_back_sources=holds_back_sources)
    return total(counted(opened), _held_by_loops(instance))


def _held_by_loops(instance: Instance) -> Counts:
    base = instance.anchor.epoch << instance.frozen.layout.shifts[0]
    return total(*({(at, word + base): count} for loop in instance.loops for at, word, count in holds(loop)))


def owned(instance: Instance) -> Counts:
    """Return caps[p]: messages that wait in inboxes, requested notifications, holds, open epochs."""
    stages = instance.frozen.stage_of
    declared = instance.frozen.inputs
    opened: list[tuple[int, int | None]] = []
    for name, handle in instance.inputs.items():
        feed = instance.feeds.get(name)
        epoch = handle.held_epoch if feed is None else feed.held_epoch
        opened.append((stages[declared[name].stage], epoch))
    for imported, reading in zip(instance.frozen.imports, instance.imports, strict=True):
        opened.append((stages[imported.stage], reading.held_epoch))
    for constant, entering in zip(instance.frozen.constants, instance.constants, strict=True):
        opened.append((stages[constant.stage], entering.held_epoch))
    codes = instance.frozen.codes
    points = [(stage, codes[stage].pack_wide((epoch,))) for stage, epoch in opened if epoch is not None]
    base = instance.anchor.epoch << instance.frozen.layout.shifts[0]
    for runner in instance.runners:
        points += [(location, word + base) for _, location, word, _ in runner.inbox]
        points += [(runner.stage, word + base) for word in runner.asked_words()]
        for word, count in runner.held_words().items():
            points += [(runner.stage, word + base)] * count
    for loop in instance.loops:
        points += [(at, word + base) for _, at, word, _ in loop.inbox if at != loop.location]
    caps = counted([*points, *instance.late_words()])
    return total(caps, _held_by_loops(instance)) if instance.loops else caps


def view(instance: Instance) -> Counts:
    """Return glob[q]: the occurrence counts that the worker knows of."""
    return {(location, word): count for location, word, count in instance.pointstamps()}


def counted(points: Sequence[Pointstamp]) -> dict[Pointstamp, int]:
    """Return how often each pointstamp occurs."""
    result: dict[Pointstamp, int] = {}
    for point in points:
        result[point] = result.get(point, 0) + 1
    return result
