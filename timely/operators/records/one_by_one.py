"""Vertices that do the same with each record, whatever else comes in.

They keep nothing: what they do in an epoch depends on the records of that epoch alone. `PutOffVertex` is the
exception, since its records belong to later epochs afterwards.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import ClassVar, TypeAlias, cast

from progress.errors import MisuseError
from progress.times.timestamp import Timestamp

from ...failure import text_of
from ...wire.claims import shown
from ...wire.nesting import is_one_record
from ..vertex import Vertex

__all__ = [
    "BranchVertex",
    "Delays",
    "FilterVertex",
    "FlatMapVertex",
    "Function",
    "MapVertex",
    "OkErrVertex",
    "PartitionVertex",
    "PassVertex",
    "PutOffVertex",
    "ShowVertex",
]


Function: TypeAlias = Callable[[object], object]
"""Takes a record."""
Delays: TypeAlias = Callable[[object, Timestamp], Timestamp]
"""Takes a record and its time, and returns when it is to be sent."""


class _OfFunction(Vertex):
    """Calls a function of the user."""

    keeps: ClassVar[str] = "nothing"
    takes_only_records: ClassVar[bool] = True

    def __init__(self, function: Function) -> None:
        self._function = function


class PassVertex(Vertex):
    """Sends on what comes in: the exchange in front of it divides records among workers."""

    keeps: ClassVar[str] = "nothing"

    def on_recv(self, edge: int, message: list[object], time: Timestamp) -> None:
        """Send the records."""
        self.send_by(0, message, time)


class MapVertex(_OfFunction):
    """Sends the result for each record."""

    def on_recv(self, edge: int, message: list[object], time: Timestamp) -> None:
        """Send the results."""
        self.send_by(0, [self._function(record) for record in message], time)


class FlatMapVertex(_OfFunction):
    """Sends all records of the result for each record."""

    def on_recv(self, edge: int, message: list[object], time: Timestamp) -> None:
        """Send the records of all results."""
        results: list[object] = []
        for record in message:
            records = self._function(record)
            if is_one_record(records) or not isinstance(records, Iterable):
                raise MisuseError(
                    f"{self!r}: the function of flat_map returned {shown(records)} for {shown(record)}; it "
                    "returns a list of records, which may be empty. For one record each, write map(…)"
                )
            results += records
        self.send_by(0, results, time)


class FilterVertex(_OfFunction):
    """Sends the records for which the result is true."""

    def on_recv(self, edge: int, message: list[object], time: Timestamp) -> None:
        """Send those records."""
        self.send_by(0, [record for record in message if self._function(record)], time)


class ShowVertex(Vertex):
    """Shows each record, or each list of records with its time, to a function, and sends it on."""

    keeps: ClassVar[str] = "nothing"
    takes_only_records: ClassVar[bool] = True

    def __init__(self, function: Function, is_of_batches: bool) -> None:
        self._function = function
        self._is_of_batches = is_of_batches

    def on_recv(self, edge: int, message: list[object], time: Timestamp) -> None:
        """Show the records, and send them."""
        if self._is_of_batches:
            cast("Callable[[Timestamp, list[object]], object]", self._function)(time, list(message))
        else:
            for record in message:
                self._function(record)
        self.send_by(0, message, time)


class BranchVertex(_OfFunction):
    """Sends records for which the result is true by output 0, and the others by output 1."""

    def on_recv(self, edge: int, message: list[object], time: Timestamp) -> None:
        """Divide the records."""
        parts: tuple[list[object], list[object]] = [], []
        for record in message:
            parts[not self._function(record)].append(record)
        for output, part in enumerate(parts):
            self.send_by(output, part, time)


class PartitionVertex(Vertex):
    """Sends each record by the output whose number the function returns."""

    keeps: ClassVar[str] = "nothing"
    takes_only_records: ClassVar[bool] = True

    def __init__(self, parts: int, function: Function) -> None:
        self._parts = parts
        self._function = function

    def on_recv(self, edge: int, message: list[object], time: Timestamp) -> None:
        """Divide the records."""
        parts: list[list[object]] = [[] for _ in range(self._parts)]
        for record in message:
            part = self._function(record)
            if not isinstance(part, int) or not 0 <= part < self._parts:
                raise MisuseError(
                    f"{self!r}: the function of partition returned {shown(part)} for {shown(record)}; it "
                    f"returns the number of a part, 0 to {self._parts - 1}"
                )
            parts[part].append(record)
        for output, records in enumerate(parts):
            self.send_by(output, records, time)


class OkErrVertex(_OfFunction):
    """Sends results by output 0; by output 1 each record for which the function raised, with the error."""

    def on_recv(self, edge: int, message: list[object], time: Timestamp) -> None:
        """Send results and errors."""
        results: list[object] = []
        errors: list[object] = []
        for record in message:
            try:
                results.append(self._function(record))
            except Exception as error:
                errors.append((record, f"{type(error).__name__}: {text_of(error)}"))
        self.send_by(0, results, time)
        self.send_by(1, errors, time)


class PutOffVertex(Vertex):
    """Sends each record at the time that the function returns, which is the same or later."""

    takes_only_records: ClassVar[bool] = True

    def __init__(self, function: Delays) -> None:
        self._function = function

    def on_recv(self, edge: int, message: list[object], time: Timestamp) -> None:
        """Send the records of each new time together."""
        by_time: dict[Timestamp, list[object]] = {}
        for record in message:
            later = self._function(record, time)
            self.word_at(later, "delay(function)", may_be_far=True)
            by_time.setdefault(tuple(later), []).append(record)
        for later, records in by_time.items():
            self.send_by(0, records, later)
