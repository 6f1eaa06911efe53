"""What a compiled loop is in the middle of, for who checks it between two activations.

To progress tracking a compiled loop is what it holds. These functions show the rest: how far it has gone, and
which rows it keeps. Epochs count from 0.
"""

from __future__ import annotations

from typing import NamedTuple

from progress.times.timestamp import Timestamp
from progress.tracking.count_changes import Change

from ...operators.capture import FOREVER
from ..instance import Instance
from ..stages.compiled_loop import HOLD, CompiledLoopRunner

__all__ = ["LoopSight", "comes_in_closed", "count_of_hold", "holds", "sight_of"]


class LoopSight(NamedTuple):
    """One worker's share of a compiled loop.

    held     the epoch that it holds; None: it holds none
    first    the first epoch in which it keeps rows; None: it keeps none
    closed   the first epoch in which rows may still come in, as far as it has gone on without them
    done     all epochs before this one are done
    rounds   the number of its votes so far
    voted    True in a span, if there are peers: it has voted, and waits for the others
    """

    held: int | None
    first: int | None
    closed: int
    done: int
    rounds: int
    voted: bool

    @property
    def is_late(self) -> bool:
        """L1: True if it keeps rows of an epoch before the one that it holds."""
        return self.first is not None and (self.held is None or self.first < self.held)


def sight_of(loop: CompiledLoopRunner) -> LoopSight:
    """Return what it is in the middle of. Messages that it has not taken in yet do not count as its rows."""
    anchor, shift = loop._dataflow.anchor.epoch, loop._shift
    first = loop.loop.first()
    return LoopSight(
        None if loop.held is None else anchor + (loop.held >> shift),
        None if first is None else anchor + (first >> shift),
        loop._done if loop._span is None else loop._span,
        loop._done,
        loop._round,
        loop._vote is not None,
    )


def count_of_hold(instance: Instance) -> int:
    """Return how often one hold of a compiled loop is counted; 0: the dataflow has none."""
    return 0 if not instance.loops else HOLD if instance.workers > 1 else 1


def holds(loop: CompiledLoopRunner) -> list[Change]:
    """Return what it holds, as (location, word, how often it is counted)."""
    if loop.held is None:
        return []
    count = 1 if loop._is_alone else HOLD
    return [(each.location, loop.held + each.add, count) for each in loop.leaving]


def comes_in_closed(loop: CompiledLoopRunner, time: Timestamp) -> bool:
    """L2: return True if a row of this time, which comes in from outside, would be of a closed epoch."""
    closed = loop._done if loop._span is None else loop._span
    return closed >= FOREVER or time[0] < closed
