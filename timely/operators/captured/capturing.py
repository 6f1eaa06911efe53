"""A vertex that writes a stream into a file: its records with their times, and which times are over."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import pyarrow as pa

from progress.errors import MisuseError
from progress.times.timestamp import Timestamp

from ...errors import CaptureError, TimelyError
from ...user_code.call_site import CallSite
from ...wire.batch import Frame, Records
from ...wire.frames.table_batch import TableBatch
from ..vertex import Vertex
from .capture_files import RECORDS, TABLE
from .capture_folder import new_file, remove_file

__all__ = ["CapturesInto", "FileCaptureVertex"]


class FileCaptureVertex(Vertex):
    """Writes one file. A frame of records is written before any front that is past them."""

    wants_frontier: ClassVar[bool] = True

    def __init__(self, folder: str, site: CallSite) -> None:
        self._folder = folder
        self._site = site
        self._front: list[Timestamp] | None = None

    def on_start(self) -> None:
        """Make the file."""
        coordinates = self.code.shape.coordinates
        self._writer = new_file(self._folder, self.worker, self.workers, coordinates, self._site)

    def on_recv(self, edge: int, message: list[object] | pa.Table, time: Timestamp) -> None:
        """Write records, or a table."""
        is_table = isinstance(message, pa.Table)
        batch = TableBatch(message) if is_table else Records(message)
        (content,) = self._frames_of(batch)
        try:
            self._writer.records(TABLE if is_table else RECORDS, time, content)
        except OSError as error:
            raise self._failure(error) from error

    def on_frontier(self) -> None:
        """Write at or after which times records may still come; close the file once there are none."""
        front = sorted(self.frontier(0))
        if front == self._front or not self._writer.is_open:
            return
        self._front = front
        try:
            self._writer.front(front)
            if not front:
                self._writer.close()
        except OSError as error:
            raise self._failure(error) from error

    def on_end(self, reason: TimelyError | None) -> None:
        """Close the file. If the dataflow was refused before anything came, leave nothing behind."""
        writer = self._writer
        writer.close()
        if reason is not None and writer.is_empty:
            remove_file(writer)

    def compared(self) -> object:
        """Return all that decides what it will do."""
        return self._front

    def _frames_of(self, batch: Records | TableBatch) -> Sequence[Frame]:
        try:
            return batch.to_frames(self.worker)
        except MisuseError as error:
            raise MisuseError(
                f"{self!r} cannot write what came in: {error}".replace(
                    "cannot be sent to another worker", "cannot be captured"
                )
            ) from error

    def _failure(self, error: OSError) -> CaptureError:
        return CaptureError(
            f"{self!r} cannot write {self._writer.path}: {error.strerror}. What is in the file is "
            "whole up to the last epoch that was over; capture the stream anew where there is room"
        )


@dataclass(frozen=True)
class CapturesInto:
    """Makes the vertices of a stage that captures its stream; `site`: the user's line."""

    folder: str
    site: CallSite

    def __call__(self) -> FileCaptureVertex:
        """Return a vertex."""
        return FileCaptureVertex(self.folder, self.site)
