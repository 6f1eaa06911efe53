"""The records of logs that a base does not stand for."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

from ...errors import PeerError, StoreError
from ..incarnations import Incarnation, OldLog, begun, joined, read_segment
from ..records import Record
from ..store import Store, store_errors
from .manifest import Base, SegmentName, base_numbers, read_base

__all__ = ["OF_FLOWS", "LoggedRecord", "Logs", "incarnations_to_fold", "logs_of", "unreadable"]

OF_FLOWS: Final = frozenset({"few", "rows", "part", "source", "taken", "older", "digest", "place"})
"""Records that a base must not stand for as long as it does not have their dataflow."""


class LoggedRecord(NamedTuple):
    """A record, and the log and the file in which it is. `is_pinned`: the base stands for it, unless it is a
    part; it is not about a dataflow that the base does not have.
    """

    record: Record
    log: OldLog
    path: str
    is_pinned: bool


@dataclass(frozen=True)
class Logs:
    """Logs that count, and the base that stands for some of their segments; number 0 stands for none."""

    store: Store
    logs: Sequence[OldLog]
    base: Base

    def records(self) -> Iterator[LoggedRecord]:
        """Yield the records that count beside the base, headers of segments among them: by incarnation, and
        in each by process. That of worker 0, which decides, is the first of its incarnation. Raise
        `StoreError` for damage.
        """
        for log in sorted(self.logs, key=lambda each: (each.incarnation, each.process)):
            for path, end in log.segments:
                segment = SegmentName.of(path)
                if self.base.needs(segment):
                    for record in read_segment(self.store, path, end):
                        is_pinned = self.base.covers(segment) and not _is_of_version(self.base, record.head)
                        yield LoggedRecord(record, log, path, is_pinned)

    def incarnations(self) -> int:
        """Return from how many incarnations there are segments that the base does not stand for."""
        return len(
            {
                log.incarnation
                for log in self.logs
                if not all(self.base.covers(SegmentName.of(path)) for path, _ in log.segments)
            }
        )


def incarnations_to_fold(store: Store) -> int:
    """Return from how many incarnations before the newest one there are logs that no base stands for."""
    with store_errors(store):
        numbers = begun(store)
        if not numbers:
            return 0
        bases = base_numbers(store)
        base = read_base(store, bases[-1]) if bases else Base()
        return Logs(store, joined(store, numbers[-1]).logs, base).incarnations()


def logs_of(store: Store, incarnation: Incarnation) -> Logs:
    """Return the logs from before an incarnation, and the base from which it goes on."""
    with store_errors(store):
        base = read_base(store, incarnation.base) if incarnation.base else Base()
    return Logs(store, incarnation.logs, base)


def _is_of_version(base: Base, head: Sequence[object]) -> bool:
    """Return True if a record of a segment that `base` stands for tells of a dataflow that `base` does not
    know: of a new version about which nothing was decided by then, or of one that has begun since.
    """
    match head:
        case ("version", int(number), *_):
            return not base.has_known(number)
        case (str(kind), int(), int(number), *_) if kind in OF_FLOWS:
            return not base.has_known(number)
    return False


def unreadable(logs: Logs, logged: LoggedRecord, error: PeerError) -> StoreError:
    """Return the error about a record of rows."""
    return StoreError(
        f"{logs.store.name}/{logged.path} has a record of rows, at byte {logged.record.start:,}, that cannot "
        f"be read: {error}"
    )
