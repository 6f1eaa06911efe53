"""Answers about probes: has a stream come past a time?

A view is never ahead of the truth, so what one worker knows to be past is past on all. In a durable cluster
an answer that was shown is never withdrawn: only times of durable epochs are past. After a restart a time of
an epoch that was sealed before may have been shown as past; until it is past again, there is no answer.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from progress.errors import MisuseError
from progress.times.anchor import EPOCH_MAX
from progress.times.timestamp import Timestamp

from ...errors import WaitTimeoutError
from ...limits import REPLY_SECONDS_MAX
from ...running.instance import Instance
from ...wire.requests import Probe, Reply
from ..durability.durability import Durability
from .later import Later

__all__ = ["Probes"]


class _ProbedVersions(Protocol):
    """Knows which version of a dataflow has the outputs; see `Replacements`."""

    def instance(self, dataflow: int) -> Instance:
        """Return the running dataflow."""
        ...


class Probes:
    """Answers for the probes of one worker."""

    def __init__(self, versions: _ProbedVersions, clock: Callable[[], float]) -> None:
        self._versions = versions
        self._clock = clock
        self.durability: Durability | None = None

    def answer(self, request: Probe) -> Reply | Later:
        """Return whether the stream is past a time: at once, or, if the request waits, once it is."""
        time = self._time(request)
        if time is None:
            return Reply({"is_past": False})
        begun = self._clock()
        waits = request.waits or self._may_have_been_shown(request, time)
        seconds = request.timeout_seconds if request.waits else REPLY_SECONDS_MAX

        def ready() -> Reply | None:
            is_past = self._is_past(request, time)
            return None if waits and not is_past else Reply({"is_past": is_past})

        def late() -> WaitTimeoutError:
            instance = self._versions.instance(request.dataflow)
            front = instance.probe(request.probe).front()
            at = " and ".join(map(str, front)) or "no time: the stream has ended"
            is_over = 0 <= seconds <= self._clock() - begun
            waited = f" after {seconds + request.waited_seconds:g} s" if is_over else ""
            again = "" if request.waits else ", since the cluster has started again,"
            return WaitTimeoutError(
                f"the probe {request.probe!r} of dataflow {request.dataflow} is not past {time}{again} on "
                f"worker {instance.worker}{waited}: the earliest that may still come is {at}"
            )

        deadline = begun + seconds if seconds >= 0 else float("inf")
        return ready() or Later(ready, late, deadline, is_of_outputs=True)

    def _time(self, request: Probe) -> Timestamp | None:
        """Return the time of a request; None if it only asks whether the probe is there."""
        vertex = self._versions.instance(request.dataflow).probe(request.probe)
        if not request.time:
            return None
        levels = vertex.code.shape.levels
        numbers = [number for number in request.time if type(number) is int and 0 <= number <= EPOCH_MAX]
        if len(numbers) != len(request.time) or len(numbers) != levels:
            form = "(epoch,)" if levels == 1 else f"(epoch, {', '.join(['iteration'] * (levels - 1))})"
            raise MisuseError(
                f"the probe {request.probe!r} is at a stream whose times are {form}, of whole numbers from 0 "
                f"on, not {tuple(request.time)!r:.80}"
            )
        return tuple(numbers)

    def _is_past(self, request: Probe, time: Timestamp) -> bool:
        instance = self._versions.instance(request.dataflow)
        vertex = instance.probe(request.probe)
        is_past = vertex.is_at_least(time) if request.is_strict else vertex.is_past(time)
        if not is_past or self.durability is None:
            return is_past
        stage = instance.frozen.stage_of[instance.frozen.probes[request.probe]]
        return _last_epoch(request, time) < self.durability.epochs.shown_before(instance, stage)

    def _may_have_been_shown(self, request: Probe, time: Timestamp) -> bool:
        """Return True if the cluster has started again since the epoch was sealed."""
        if self.durability is None:
            return False
        flow = self.durability.past.flows.get(self._versions.instance(request.dataflow).index)
        return flow is not None and _last_epoch(request, time) <= flow.sealed


def _last_epoch(request: Probe, time: Timestamp) -> int:
    """Return the last epoch that the answer is about: nothing of `(e, 0, …)` is before that."""
    return time[0] - (request.is_strict and not any(time[1:]))
