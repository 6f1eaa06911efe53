"""Reading the log of a process that goes on writing it.

What a reader sees of a segment may be more than what counts in the end: the process may give the segment up,
and write the last records again elsewhere (`log.py`). Then, or if segments are gone that a fold no longer
needs, a `Tail` raises `OvertakenError`, and its owner begins anew.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

from ...errors import OvertakenError, StoreError
from ..bases.manifest import SegmentName
from ..records import Record, records_behind
from ..store import Store, log_folder, segment_path, store_errors

__all__ = ["Tail", "TailRecord"]

_OPENING_BYTES: Final = 4_096
"""So many bytes have the header of a segment."""


class TailRecord(NamedTuple):
    """A record of a log, and the file in which it is."""

    record: Record
    path: str


class Tail:
    """Reads the records of one log, each once, as far as they are there.

    Args:
        store: where the log is.
        incarnation, process: whose log it is.
        first: the number of the first segment to read.
    """

    def __init__(self, store: Store, incarnation: int, process: int, first: int) -> None:
        self._store = store
        self._incarnation = incarnation
        self._process = process
        self._first = first
        self._number = first - 1
        self._offset = -1
        """The bytes of the present segment that have been read; -1: none of it shall be."""
        self._crc = 0
        self._next = -1, 0
        """The offset and the CRC once the record that was yielded last has been read."""
        self._headers: dict[int, int] = {}
        """The bytes of the header of each segment that was begun."""
        self._ends: dict[int, int] = {}
        """How many bytes of each earlier segment have been read."""
        self.fresh_count = 0
        """How many segments were entered that need no symbols of segments before them."""
        self._pattern = re.compile(rf"p{process}-(\d{{6,}})\.log")

    def records(self) -> Iterator[TailRecord]:
        """Yield the records that have come since the last call, without headers. A record counts as read once
        the caller asks for the next one.
        """
        with store_errors(self._store):
            while True:
                yield from self._rest_of(self._path(self._number), None)
                following = self._following()
                if following is None:
                    return
                number, before = following
                yield from self._rest_of(self._path(self._number), None)
                self._enter(number, before, self._path(number))

    def records_to(self, segments: Sequence[tuple[str, int]]) -> Iterator[TailRecord]:
        """Yield the records that have not been read of these segments, up to the ends of these: they are what
        counts of the log.
        """
        with store_errors(self._store):
            for path, end in segments:
                number = SegmentName.of(path).number
                if number < self._first:
                    continue
                if number < self._number:
                    if self._ends.get(number) != end:
                        raise self._overtaken(f"{end:,} bytes of segment {number} count")
                    continue
                if number > self._number:
                    header = self._header(path)
                    if header is None:
                        raise StoreError(f"{self._store.name}/{path} has no header")
                    before, _ = header
                    if before is not None and before[0] == self._number:
                        yield from self._rest_of(self._path(self._number), before[1])
                    self._enter(number, before, path)
                yield from self._rest_of(path, end)
                if self._offset != end:
                    raise self._overtaken(f"{end:,} bytes of segment {number} count")

    def note_read(self) -> None:
        """Let the record that was yielded last count as read, though the next one is not asked for."""
        self._offset, self._crc = self._next

    def _path(self, number: int) -> str:
        return segment_path(self._incarnation, self._process, number)

    def _rest_of(self, path: str, end: int | None) -> Iterator[TailRecord]:
        """Yield what is there of the present segment, up to `end`."""
        if self._offset < 0 or (end is not None and self._offset >= end):
            return
        data = self._store.read(path, end, self._offset)
        if data is None:
            if end is None and self._store.exists(self._path(self._number + 1)):
                raise self._overtaken(f"segment {self._number} is gone")
            return
        start = self._offset
        for record, crc in records_behind(data, f"{self._store.name}/{path}", self._crc):
            self._next = start + record.end, crc
            yield TailRecord(record, path)
            self.note_read()

    def _following(self) -> tuple[int, tuple[int, int] | None] | None:
        """Return the number of the next segment, and which it says is before it; None if there is none."""
        names = self._store.list(log_folder(self._incarnation))
        numbers = sorted(int(match[1]) for name in names if (match := self._pattern.fullmatch(name)))
        for number in numbers:
            if number > self._number and (header := self._header(self._path(number))) is not None:
                return number, header[0]
        return None

    def _header(self, path: str) -> tuple[tuple[int, int] | None, Record] | None:
        """Return which segment a header says is before, and the header; None if it is not whole."""
        data = self._store.read(path, _OPENING_BYTES)
        opening = None if data is None else next(records_behind(data, path, 0), None)
        if opening is None:
            return None
        record = opening[0]
        before = record.head[-1]
        return (None if before is None else (int(before[0]), int(before[1]))), record  # type: ignore[index]

    def _enter(self, number: int, before: tuple[int, int] | None, path: str) -> None:
        """Go on with a segment; raise `OvertakenError` if the one before it is not as it was read."""
        read = dict(self._ends)
        if self._offset >= 0:
            read[self._number] = self._offset
        if before is not None and before[0] >= self._first and read.get(before[0]) != before[1]:
            raise self._overtaken(f"{before[1]:,} bytes of segment {before[0]} count")
        given_up = [each for each in read if before is None or each > before[0]]
        if any(read[each] > self._headers[each] for each in given_up):
            raise self._overtaken("a segment was given up")
        self._ends = {each: end for each, end in read.items() if each not in given_up}
        header = self._header(path)
        assert header is not None, "the caller has read it"
        data = self._store.read(path, header[1].end)
        assert data is not None, "the caller has read it"
        ((record, crc),) = records_behind(data, path, 0)
        self._number, self._offset, self._crc = number, record.end, crc
        self.fresh_count += not record.head[-2]
        self._headers[number] = record.end

    def _overtaken(self, why: str) -> OvertakenError:
        return OvertakenError(
            f"{self._store.name}/{self._path(self._number)} was read up to byte {self._offset:,}, and {why}: "
            "what has been read is no part of what counts"
        )
