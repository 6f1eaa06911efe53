"""The state of compiled loops on all workers at one moment, and what is wrong with it.

L1   rows that a worker keeps, or that are on their way to it in round messages, are not before what it
     holds: it may have to send what follows from them
L2   nothing outstanding, on any worker or wire, can lead to rows in an epoch that some worker has closed
L3   workers go in step: they have voted as often as one another, or once more; and those that wait for no
     vote after as many votes have done the same epochs
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from differential.columns.packed.parts import column_of
from differential.compiled_loops.round_messages import RoundMessage
from progress.checking.protocol_state import Failure
from progress.graph.pointstamp_order import Pointstamp, PointstampOrder
from timely.running.checking.loops import LoopSight, comes_in_closed, sight_of
from timely.running.instance import Instance
from timely.running.progress_messages import DataHeader
from timely.wire.batch import Batch

__all__ = ["LoopState", "RoundSight", "failures_of_loops", "loops_of", "round_in", "rows_into_closed"]


class RoundSight(NamedTuple):
    """A round message: its loop, its round, and the first epoch of its rows; None if it has no rows."""

    way: int
    number: int
    first: int | None


class LoopState(NamedTuple):
    """One worker's share of a loop, with the round messages that it has received and not taken up."""

    sight: LoopSight
    way: int
    heard: tuple[RoundSight, ...]


def loops_of(instance: Instance) -> tuple[LoopState, ...]:
    """What all compiled loops of an instance are in the middle of."""
    states = []
    for loop in instance.loops:
        anchor, shift = instance.anchor.epoch, loop._shift
        waiting = [batch for _, at, _, batch in loop.inbox if at == loop.location]
        waiting += [batch for each in loop._heard.values() for batch in each]
        heard = tuple(sorted((_seen(loop.way, batch, anchor, shift) for batch in waiting), key=str))
        states.append(LoopState(sight_of(loop), loop.way, heard))
    return tuple(states)


def round_in(header: DataHeader, frames: Sequence[memoryview], source: int, shift: int) -> RoundSight:
    """What is in a round message on a wire."""
    message = RoundMessage.from_frames(frames, source)
    return _seen(header.connector, message, header.anchor, shift)


def _seen(way: int, batch: Batch, anchor: int, shift: int) -> RoundSight:
    assert isinstance(batch, RoundMessage)
    firsts = [int(column_of(part, -2).min()) for _, part in batch.parts]
    return RoundSight(way, batch.vote.number, anchor + (min(firsts) >> shift) if firsts else None)


def failures_of_loops(
    loops: Sequence[Sequence[LoopState]], under_way: Sequence[Sequence[RoundSight]]
) -> Iterator[Failure]:
    """Which of L1 and L3 do not hold: `loops` by worker, `under_way` the round messages to each worker."""
    for worker, states in enumerate(loops):
        for state in states:
            held = state.sight.held
            coming = [each for each in (*state.heard, *under_way[worker]) if each.way == state.way]
            early = [
                each for each in coming if each.first is not None and (held is None or each.first < held)
            ]
            if state.sight.is_late or early:
                yield "L1", f"at worker {worker}, {state.sight}, {early}", []
    for every in zip(*loops, strict=True):
        sights = [state.sight for state in every]
        rounds = [sight.rounds for sight in sights]
        resting = {(sight.rounds, sight.done) for sight in sights if not sight.voted}
        if max(rounds) - min(rounds) > 1 or len({each for each, _ in resting}) < len(resting):
            yield "L3", f"in {sights}", []


def rows_into_closed(
    instance: Instance, earliest: Iterable[Pointstamp], order: PointstampOrder
) -> Iterator[Failure]:
    """L2 at one worker: `earliest` are the minimal points that are outstanding anywhere."""
    points = list(earliest)
    for loop in instance.loops:
        for port in loop._entries:
            found = [
                point
                for point in points
                if any(
                    comes_in_closed(loop, image)
                    for image in order.images(point, instance.tracker.watched[port])
                )
            ]
            if found:
                yield "L2", f"at worker {instance.worker}, {loop.title()}, port {port}", found
