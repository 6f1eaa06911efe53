"""Logs of a running incarnation, up to where they were cut.

Each process has begun a segment whose first record names the cut, after it had carried out all decisions
that worker 0 made before it asked for the cut. So the segments in front of it have all rows of the epochs
that were sealed by then, and the decisions about staged parts there are in front of the cut, too, unless
they are made later. A process reports the cut once its log has told it: then all of that counts,
whatever happens.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import islice

from ...errors import StoreError
from ..incarnations import Incarnation, OldLog
from ..records import records_in
from ..store import Store, log_folder, segment_path, store_errors
from .coverage import Logs
from .manifest import Base, base_numbers, read_base

__all__ = ["cut_logs"]

_SEGMENT = re.compile(r"p(\d+)-(\d{6,})\.log")
_OPENING_BYTES = 4_096


def cut_logs(store: Store, incarnation: Incarnation, name: str) -> Logs:
    """Return all that counts in front of a cut of this incarnation, and the newest base.

    Raises `StoreError` if the cut was not made on all processes, or something is damaged.
    """
    with store_errors(store):
        bases = base_numbers(store)
        base = read_base(store, bases[-1]) if bases else Base()
        segments: dict[int, list[int]] = {process: [] for process in range(incarnation.processes)}
        for file in store.list(log_folder(incarnation.number)):
            if match := _SEGMENT.fullmatch(file):
                segments.setdefault(int(match[1]), []).append(int(match[2]))
        own = [
            OldLog(
                incarnation.number,
                process,
                incarnation.workers,
                _segments_before(store, incarnation.number, process, sorted(numbers), name, base),
            )
            for process, numbers in sorted(segments.items())
        ]
    return Logs(store, [*incarnation.logs, *(log for log in own if log.segments)], base)


def _segments_before(
    store: Store, incarnation: int, process: int, numbers: Sequence[int], name: str, base: Base
) -> list[tuple[str, int]]:
    """Return the segments in front of the cut, with the bytes of each that count."""
    covered = base.covered.get((incarnation, process), -1)
    before = _before_cut(store, incarnation, process, numbers, name)
    segments: list[tuple[str, int]] = []
    while before is not None and before[0] > covered:
        number, end = before
        segments.insert(0, (segment_path(incarnation, process, number), end))
        head = _opening(store, incarnation, process, number)[0]
        before = _before(head)
    return [*base.pinned_of(incarnation, process), *segments]


def _before_cut(
    store: Store, incarnation: int, process: int, numbers: Sequence[int], name: str
) -> tuple[int, int] | None:
    """Return the segment in front of that with the cut, and its bytes that count; None if there is none."""
    for number in reversed(numbers):
        opening = _opening(store, incarnation, process, number)
        if len(opening) == 2 and opening[1] == ["cut", name]:
            return _before(opening[0])
    raise StoreError(
        f"{store.name}: the log of process {process} of incarnation {incarnation} was not cut for {name!r}"
    )


def _opening(store: Store, incarnation: int, process: int, number: int) -> list[list[object]]:
    """Return the heads of the first two records of a segment, as far as they are whole."""
    path = segment_path(incarnation, process, number)
    data = store.read(path, _OPENING_BYTES)
    if data is None:
        raise StoreError(f"{store.name}/{path} is missing")
    return [record.head for record in islice(records_in(data, f"{store.name}/{path}", None, True), 2)]


def _before(header: Sequence[object]) -> tuple[int, int] | None:
    before = header[-1]
    if not isinstance(before, list):
        return None
    number, end = before
    return number, end
