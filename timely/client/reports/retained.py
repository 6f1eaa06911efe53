"""What keeps arrangements from summing up history, and outputs from dropping changes, with all workers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from ...operators.capture import FOREVER
from ...wire.reasons import Reason
from ...wire.requests import Reply, Value
from .why import silent_workers, together

__all__ = ["Retained", "RetainedReport", "retained_of"]

_REASONS_SHOWN: Final = 3
_ENTRIES_SHOWN: Final = 20


@dataclass(frozen=True)
class Retained:
    """An arrangement or output that keeps history.

    kind      "arrangement" or "output"
    name      of the stage that keeps the arrangement, or of the output
    number    of the stage
    site      the line of the program that has built it
    epoch     from this one on times are distinguished, or changes are kept
    epochs    how many sealed or complete epochs these are; -1: not known, as no input is open
    rows      with all workers; -1: not known
    bytes     of these
    readers   the operators that hold it
    reasons   what they wait for, the likeliest cause first
    workers   where
    """

    kind: str
    name: str
    number: int
    site: str
    epoch: int
    epochs: int
    rows: int
    bytes: int
    readers: tuple[str, ...]
    reasons: tuple[Reason, ...]
    workers: tuple[int, ...]

    def __str__(self) -> str:
        what = f"output {self.name!r}" if self.kind == "output" else repr(self.name)
        count = f": {self.epochs:,} epoch{'s' * (self.epochs != 1)}" if self.epochs >= 0 else ""
        size = f", {self.rows:,} rows in {self.bytes:,} bytes" if self.rows >= 0 else ""
        by = f", for {', '.join(map(repr, self.readers))}" if self.readers else ""
        lines = [f"{what} keeps what changed from epoch {self.epoch} on{count}{size}{by}"]
        lines += [f"  {reason}" for reason in self.reasons[:_REASONS_SHOWN]]
        if len(self.reasons) > _REASONS_SHOWN:
            lines.append(f"  and {len(self.reasons) - _REASONS_SHOWN} more")
        return "\n".join(lines)


@dataclass(frozen=True)
class RetainedReport:
    """What keeps history in a dataflow, from `Flow.why_retained`; `print` shows it in a few lines.

    `entries`: the most bytes first. `silent`: the workers that have not answered. `left_out`: how many more
    entries, with the fewest bytes, the worker with the most of them has not listed.
    """

    dataflow: str
    entries: tuple[Retained, ...] = ()
    silent: tuple[Reason, ...] = ()
    left_out: int = 0

    def __str__(self) -> str:
        lines = [str(reason) for reason in self.silent]
        lines += [str(entry) for entry in self.entries[:_ENTRIES_SHOWN]]
        if (more := max(0, len(self.entries) - _ENTRIES_SHOWN) + self.left_out) > 0:
            lines.append(f"and {more:,} more")
        return "\n".join(lines) or f"nothing keeps history in {self.dataflow!r} for longer than it is needed"


def retained_of(dataflow: str, answers: Sequence[Reply | str]) -> RetainedReport:
    """Return the report from the answers of all workers, in order, to `Why` with `retained`."""
    merged: dict[tuple[str, str, int], Retained] = {}
    for worker, answer in enumerate(answers):
        told = answer.values.get("retained") if isinstance(answer, Reply) else None
        for entry in told if isinstance(told, list) else ():
            if (one := _read(entry, worker)) is not None:
                key = one.kind, one.name, one.number
                merged[key] = _with(merged[key], one) if key in merged else one
    entries = [replace(entry, reasons=tuple(together(entry.reasons, answers))) for entry in merged.values()]
    entries.sort(key=lambda entry: (-entry.bytes, entry.number))
    busy = [reason for answer in answers if isinstance(answer, Reply) for reason in _calls(answer)]
    left_out = max((_left_out(answer) for answer in answers), default=0)
    return RetainedReport(dataflow, tuple(entries), (*silent_workers(answers), *busy), left_out)


def _left_out(answer: Reply | str) -> int:
    count = answer.values.get("left_out") if isinstance(answer, Reply) else 0
    return count if isinstance(count, int) else 0


def _calls(answer: Reply) -> list[Reason]:
    """Return the call that a worker is in, if it has not answered itself because of that."""
    read = (
        [Reason.read(value) for value in answer.items("reasons")] if "retained" not in answer.values else []
    )
    return [reason for reason in read if reason is not None and reason.kind == "call"]


def _read(entry: Value, worker: int) -> Retained | None:
    match entry:
        case {
            "kind": str(kind), "name": str(name), "number": int(number), "site": str(site),
            "epoch": int(epoch), "newest": int(newest), "rows": int(rows), "bytes": int(size),
            "readers": [*readers], "reasons": [*values],
        }:  # fmt: skip
            reasons = [reason for value in values if (reason := Reason.read(value)) is not None]
            epochs = newest - epoch if newest < FOREVER else -1
            names = tuple(str(reader) for reader in readers)
            return Retained(
                kind, name, number, site, epoch, epochs, rows, size, names, tuple(reasons), (worker,)
            )
        case _:
            return None


def _with(one: Retained, other: Retained) -> Retained:
    return replace(
        one,
        epoch=min(one.epoch, other.epoch),
        epochs=max(one.epochs, other.epochs),
        rows=one.rows + other.rows if min(one.rows, other.rows) >= 0 else -1,
        bytes=one.bytes + other.bytes if min(one.bytes, other.bytes) >= 0 else -1,
        readers=tuple(dict.fromkeys((*one.readers, *other.readers))),
        reasons=(*one.reasons, *other.reasons),
        workers=(*one.workers, *other.workers),
    )
