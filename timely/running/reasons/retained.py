"""What keeps an arrangement from summing up history, or an output from dropping changes, on one worker?

An arrangement distinguishes times from `since` on, the least that some reader may still ask about. A reader
moves on with the frontier of its stage. So what holds `since` is what is outstanding up to that time and can
lead to the reader: the same as what holds an epoch, seen from there.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from ...failure import is_interrupt
from ...limits import REASONS_COUNT_MAX
from ...operators.capture import FOREVER, CaptureVertex
from ...wire.reasons import Reason
from ...wire.requests import Value
from ..instance import Instance
from .outstanding import Outstanding

__all__ = ["retained"]

_OWN: Final = "the export itself"
"""The name of the hold that an export has for imports to come: one epoch behind its frontier."""


def retained(instance: Instance, instances: Mapping[int, Instance]) -> Iterator[dict[str, Value]]:
    """Yield each arrangement and output of a dataflow that keeps more than it would if nothing were
    outstanding.

    Values: kind ("arrangement" or "output"), name, number and site of its stage, epoch (from which on it
    distinguishes times), newest (the last epoch that an input has open), rows, bytes, readers (those that
    hold it), reasons (`Reason.values`).
    """
    newest = _newest(instance)
    for runner in instance.runners:
        for arrangement in _arrangements(instance, runner.stage):
            if (held := _held(instance, instances, runner.stage, arrangement, newest)) is not None:
                yield held
    for name in instance.frozen.outputs:
        if (held := _of_output(instance, name)) is not None:
            yield held


def _newest(instance: Instance) -> int:
    """Return the last epoch that an input or import has open; if none has, there is none too late."""
    opened = [each.epoch for each in instance.inputs.values() if not each.is_closed]
    opened += [each.epoch for each in instance.imports if each.epoch < FOREVER]
    return max(opened, default=FOREVER)


def _arrangements(instance: Instance, stage: int) -> Sequence[Value]:
    vertex = instance.runners[stage].vertex
    if vertex is None:
        return []
    try:
        report = vertex.report()
    except BaseException as error:  # a vertex of a user: `stats` says so
        if is_interrupt(error):
            raise
        return []
    match report.get("arrangements"):
        case [*arrangements]:
            return arrangements
        case _:
            return []


def _held(
    instance: Instance, instances: Mapping[int, Instance], stage: int, arrangement: Value, newest: int
) -> dict[str, Value] | None:
    match arrangement:
        case {
            "name": str(name),
            "rows": int(rows),
            "bytes": int(size),
            "since": [*since],
            "readers": [*all_],
        }:
            epoch = min((_epoch_of(time) for time in since), default=newest)
        case _:
            return None
    readers: list[str] = []
    reasons: list[Reason] = []
    for reader in all_:
        match reader:
            case {"name": str(of), "holds_back": [*times]} if epoch in map(_epoch_of, times):
                at = epoch + (of == _OWN)  # its frontier
                if at < newest:
                    readers.append(of)
                    reasons += _causes(instance, instances, stage, of, at)
    if not rows or not reasons:  # a reader moves its hold on when it matters: nothing keeps it from that
        return None
    site = instance.runners[stage].site
    return _told("arrangement", (name, stage, site), epoch, newest, (rows, size), readers, reasons)


def _causes(
    instance: Instance, instances: Mapping[int, Instance], stage: int, reader: str, epoch: int
) -> list[Reason]:
    """Return what is outstanding up to an epoch and can lead to a reader of an arrangement."""
    reading = [
        spec.target
        for spec in instance.frozen.connectors
        if spec.source == stage and instance.runners[spec.target].name == reader
    ]
    if not reading and reader != _OWN:
        detail = f"{reader} is about to read it, and has not begun"
        who = (instance.worker,)
        return [
            Reason("import", instance.frozen.name, reader, stage, time=(epoch,), detail=detail, workers=who)
        ]
    towards = reading or [stage]
    reasons = Outstanding(instance, epoch, instances, towards=towards).reasons()
    return [reason for reason in reasons if reason.is_first] or reasons


def _of_output(instance: Instance, name: str) -> dict[str, Value] | None:
    """Return which clients, or which fold, hold changes of complete epochs of an output."""
    capture = instance.output(name)
    complete = min(capture.complete_before, _newest(instance))
    reasons = list(_holders(instance, capture, name, complete))
    if not reasons:
        return None
    epoch = min(reason.time[0] for reason in reasons)
    stage = next((runner.stage for runner in instance.runners if runner.vertex is capture), -1)
    site = instance.runners[stage].site if stage >= 0 else ""
    return _told("output", (name, stage, site), epoch, complete, capture.held_from(epoch), [], reasons)


def _holders(instance: Instance, capture: CaptureVertex, name: str, complete: int) -> Iterator[Reason]:
    dataflow, who = instance.frozen.name, (instance.worker,)
    for reader in capture.places.told():
        if reader.epoch < complete:
            rows, size = capture.held_from(reader.epoch)
            yield Reason(
                "reader", dataflow, name, time=(reader.epoch,), seconds=reader.seconds, workers=who,
                detail=reader.client or reader.name, where=reader.site, rows=rows, bytes=size,
            )  # fmt: skip
    if capture.changes_kept_from < complete:
        yield Reason("fold", dataflow, name, time=(capture.changes_kept_from,), workers=who)


def _told(
    kind: str,
    of: tuple[str, int, str],
    epoch: int,
    newest: int,
    size: tuple[int, int],
    readers: Sequence[str],
    reasons: Sequence[Reason],
) -> dict[str, Value]:
    name, stage, site = of
    rows, bytes_ = size
    return {
        "kind": kind,
        "name": name,
        "number": stage,
        "site": site,
        "epoch": epoch,
        "newest": newest,
        "rows": rows,
        "bytes": bytes_,
        "readers": list(dict.fromkeys(readers)),
        "reasons": [reason.values() for reason in list(dict.fromkeys(reasons))[:REASONS_COUNT_MAX]],
    }


def _epoch_of(time: Value) -> int:
    match time:
        case [int(epoch), *_]:
            return epoch
        case _:
            return FOREVER
