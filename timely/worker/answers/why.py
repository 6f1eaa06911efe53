"""What holds an epoch: the answer of one worker, in its own thread, or in another while it is in a call."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Mapping
from dataclasses import replace
from types import CodeType
from typing import Protocol

from ...errors import TimelyError
from ...failure import is_interrupt
from ...limits import REASONS_COUNT_MAX, RETAINED_COUNT_MAX
from ...running.core import Worker
from ...running.instance import Instance
from ...running.reasons.calls import call_of
from ...running.reasons.outstanding import Outstanding
from ...running.reasons.retained import retained
from ...wire.reasons import KINDS, Reason
from ...wire.requests import Reply, Value, Why
from ..counting.counters import loop_under_way
from ..orders import open_epoch

__all__ = ["Reasons"]


class _Versions(Protocol):
    """Knows which version of a dataflow has the outputs; see `Replacements`."""

    def instance(self, dataflow: int) -> Instance:
        """Return the running dataflow."""
        ...


class _Outputs(Protocol):
    """Knows how far outputs are; see `Outputs`."""

    @property
    def is_durable(self) -> bool:
        """True if only epochs are shown that a restart does not lose."""
        ...

    def complete(self, dataflow: int, output: str, epoch: int = -1, is_durable: bool = True) -> int:
        """Return the first epoch that is not complete."""
        ...

    def is_restored(self, dataflow: int, output: str) -> bool:
        """Return True if all answers that were shown before a restart are made again."""
        ...


class Reasons:
    """Says why an epoch is not complete, for one worker.

    Args:
        worker: the worker.
        address: where clients reach it.
        versions, outputs: of its server.
        is_awaited: returns True for a dataflow that is about to begin.
        entries: functions, beside the steps of the worker, in which its thread works for clients.
    """

    def __init__(
        self,
        worker: Worker,
        address: str,
        versions: _Versions,
        outputs: _Outputs,
        is_awaited: Callable[[int], bool],
        entries: Collection[CodeType] = (),
    ) -> None:
        self._worker = worker
        self._address = address
        self._versions = versions
        self._outputs = outputs
        self._is_awaited = is_awaited
        self._entries = entries
        self.addresses: Mapping[int, str] = {}
        """Where clients reach each worker, as far as that is known here."""

    def answer(self, request: Why) -> Reply:
        """Answer in the thread of the worker, between two steps. Raise the error that has ended the
        dataflow.
        """
        if request.dataflow < 0:
            return self._of_worker([])
        if self._is_awaited(request.dataflow):
            return self._reply([self._not_begun(request.dataflow)], 0)
        instance = self._versions.instance(request.dataflow)
        for loop in instance.loops:
            loop.report()
        complete = self._outputs.complete(request.dataflow, "", request.epoch)
        done = self._outputs.complete(request.dataflow, "", request.epoch, is_durable=False)
        reasons: list[Reason] = []
        who = (self._worker.index,)
        if not self._outputs.is_restored(request.dataflow, ""):
            again = "the answers that were shown before a restart are not made again yet"
            reasons.append(Reason("restart", instance.frozen.name, detail=again, workers=who))
            complete = min(complete, request.epoch)
        elif complete <= request.epoch < done:
            disk = f"the work on epoch {request.epoch} is done, and its rows are not on disk yet"
            reasons.append(Reason("disk", instance.frozen.name, detail=disk, workers=who))
        reply = self._found(instance, request.epoch, reasons, complete)
        if request.retained:
            entries = sorted(retained(instance, self._worker.instances), key=_size_of, reverse=True)
            reply.values["retained"] = list(entries[:RETAINED_COUNT_MAX])
            reply.values["left_out"] = max(0, len(entries) - RETAINED_COUNT_MAX)
        return reply

    def answer_from_outside(self, request: Why, seconds: float = -1.0) -> Reply:
        """Answer in another thread, while the worker is at work: since so many seconds in one call, if that
        is known. What it has outstanding is what it had when the call began, or nothing, if that changes
        meanwhile.
        """
        call = call_of(self._worker, seconds, self._entries)
        reasons = [] if call is None else [call]
        if request.dataflow < 0:
            return self._of_worker(reasons)
        instance = self._worker.instances.get(request.dataflow)
        if instance is None:
            if request.dataflow in self._worker.ended:
                raise self._worker.ended[request.dataflow]
            return self._reply(reasons, -1)
        try:
            done = instance.epochs_done()
            shown = min(done, request.epoch) if self._outputs.is_durable else done
            return self._found(instance, request.epoch, reasons, shown)
        except Exception as error:  # what is read changes in the other thread
            if isinstance(error, TimelyError) or is_interrupt(error):
                raise
            return self._reply(reasons, -1)

    def has_work(self, dataflow: int) -> bool:
        """Return True if the worker has work in a dataflow that it could do now."""
        instance = self._worker.instances.get(dataflow)
        return instance is not None and not instance.is_at_rest()

    def _found(self, instance: Instance, epoch: int, reasons: list[Reason], complete: int) -> Reply:
        outstanding = Outstanding(instance, epoch, self._worker.instances)
        reasons += outstanding.reasons()
        going = {
            each.frozen.name: loop_under_way(each, complete if each is instance else each.epochs_done())
            for each in self._worker.instances.values()
        }
        reasons = [_with_loop(reason, going.get(reason.dataflow, "")) for reason in reasons]
        view = [
            [viewed.reason.values(), viewed.events, viewed.own, viewed.untold]
            for viewed in outstanding.view()[: REASONS_COUNT_MAX + 1]
        ]
        return self._reply(reasons, complete, view)

    def _of_worker(self, reasons: list[Reason]) -> Reply:
        """Return what the worker is at, and what a client needs to ask about its dataflows."""
        reply = self._reply(reasons, -1)
        reply.values["addresses"] = [self.addresses.get(index, "") for index in range(self._worker.workers)]
        reply.values["dataflows"] = [
            [index, instance.frozen.name, open_epoch(instance) - 1]
            for index, instance in list(self._worker.instances.items())
        ]
        return reply

    def _not_begun(self, dataflow: int) -> Reason:
        return Reason(
            "install", detail=f"dataflow {dataflow} has not begun yet", workers=(self._worker.index,)
        )

    def _reply(self, reasons: list[Reason], complete: int, view: list[list[Value]] | None = None) -> Reply:
        reasons.sort(key=lambda reason: (not reason.is_first, KINDS.index(reason.kind), reason.time))
        return Reply(
            {
                "address": self._address,
                "process": os.getpid(),
                "complete": complete,
                "reasons": [reason.values() for reason in reasons[:REASONS_COUNT_MAX]],
                "view": (view or [])[:REASONS_COUNT_MAX],
                "is_cut": len(reasons) > REASONS_COUNT_MAX or len(view or []) > REASONS_COUNT_MAX,
            }
        )


def _size_of(entry: Mapping[str, Value]) -> int:
    size = entry["bytes"]
    assert isinstance(size, int)
    return size


def _with_loop(reason: Reason, going: str) -> Reason:
    """Let a reason say how far its loop has come, if it is about one."""
    how_far = going.removeprefix(f"the loop {reason.stage!r} ")
    if how_far == going or reason.kind not in ("loop", "call"):
        return reason
    return replace(reason, detail=f"{reason.detail}, which {how_far}" if reason.detail else how_far)
