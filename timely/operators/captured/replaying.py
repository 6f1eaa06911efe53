"""A source that gives a captured stream again: the same records at the same epochs.

Each worker replays its share of the files, and holds the first epoch that is not over in one of them. So an
epoch is over here once all files say so, and not before. Of several files it reads on in the one that is
furthest behind; a turn ends where an epoch does, so others see each epoch by itself.

All workers stop in front of the same epoch, the first that is not over in some file (`CapturedStream.end`).

A stream that was captured in a loop comes out of the source as pairs (time, message), at the epoch of the
time; `AtItsTimeVertex`, which is in the loop, sends each message at its time.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Final, cast

import pyarrow as pa

from progress.errors import MisuseError
from progress.times.timestamp import Timestamp

from ...errors import RequestError, TimelyError
from ...user_code.call_site import CallSite
from ...wire.batch import UNPACK_ERRORS
from ...wire.frames.record_values import unpack_value
from ...wire.frames.tables import frame_to_table
from ..capability import Capability
from ..vertex import Vertex
from .capture_files import FRONT, RECORDS, TABLE, CapturedFrame, CaptureReader, times_in
from .capture_folder import CapturedShare, CapturedStream, epoch_of_front

__all__ = ["AtItsTimeVertex", "ReplayVertex", "ReplaysFrom", "message_of"]

_TURN_BYTES: Final = 1 << 20
"""A turn ends when it has sent records of so many bytes."""
_NUMBER_BYTES: Final = 8


class ReplayVertex(Vertex):
    """Replays the files of one worker. `coordinates`: how many numbers the times have; 1: no loop."""

    def __init__(self, folder: str, coordinates: int, site: CallSite) -> None:
        self._folder = folder
        self._coordinates = coordinates
        self._site = site

    def on_start(self) -> None:
        """Look at all files."""
        self._stream = CapturedStream(self._folder, self.worker, self.workers, self._site)
        coordinates = self._stream.coordinates
        if coordinates not in (0, self._coordinates):
            self._stream.close()
            raise MisuseError(
                f"the stream in {self._folder!r} cannot be replayed here ({self._site}): its times have "
                f"{coordinates} numbers, and here times have {self._coordinates}. Write "
                + (
                    f"dataflow.replay({self._folder!r})"
                    if coordinates == 1
                    else f"loop.replay({self._folder!r}), in a loop that is {coordinates - 1} deep"
                )
            )

    def on_open(self, capability: Capability) -> None:
        """Begin."""
        self._held = capability
        self.on_activate()

    def on_activate(self) -> None:
        """Replay up to the end of an epoch, or a turn's worth."""
        if not self._held.is_held:
            return
        left = _TURN_BYTES
        while left > 0:
            shares, end = self._stream.shares, self._stream.end
            epoch = min((share.epoch for share in shares), default=end)
            if epoch >= end:
                self._held.drop()
                self._stream.close()
                return
            (held,) = self._held.time
            if epoch > held:
                self._held.downgrade((int(epoch),))
                break
            share = next(share for share in shares if share.epoch == epoch)
            left -= self._replay(share, share.reader)
        self.activate()

    def on_end(self, reason: TimelyError | None) -> None:
        """Close the files."""
        self._stream.close()

    def compared(self) -> object:
        """Return all that decides what it will do."""
        shares = [(share.reader.place, share.epoch) for share in self._stream.shares]
        return shares, getattr(self, "_held", None)

    def _replay(self, share: CapturedShare, reader: CaptureReader) -> int:
        """Take the next frame of a file; return its size."""
        frame = reader.next()
        if frame is None:
            raise reader.damage(reader.place, "the file has become shorter since it was opened")
        if frame.kind == FRONT:
            share.epoch = epoch_of_front(reader, frame.start, frame.content)
        elif frame.kind in (RECORDS, TABLE):
            self._send(frame, share, reader)
        else:
            raise reader.damage(frame.start, f"there is no frame of kind {frame.kind}")
        return len(frame.content)

    def _send(self, frame: CapturedFrame, share: CapturedShare, reader: CaptureReader) -> None:
        size = _NUMBER_BYTES * self._coordinates
        times, is_whole = times_in(frame.content[:size], self._coordinates)
        if not (is_whole and times) or times[0][0] < share.epoch:
            raise reader.damage(frame.start, "it has records at no time, or at one that is over in this file")
        (time,) = times
        if time[0] >= self._stream.end:
            return
        if time[0] < self._held.time[0]:
            raise MisuseError(
                f"the stream in {self._folder!r} cannot be replayed here: it has records at epoch "
                f"{time[0]}, and this dataflow begins at epoch {self._held.time[0]}. Replay it in a dataflow "
                "of its own"
            )
        message = message_of(frame, frame.content[size:], reader)
        if self._coordinates == 1:
            self.send_by(0, message, time)
        else:
            self.send_by(0, [(time, message)], time[:1])


class AtItsTimeVertex(Vertex):
    """Sends each message at the time that comes with it."""

    keeps: ClassVar[str] = "nothing"

    def on_recv(self, edge: int, message: list[object], time: Timestamp) -> None:
        """Send the messages of pairs (time, message)."""
        for pair in message:
            at, sent = cast(tuple[Timestamp, list[object]], pair)
            self.send_by(0, sent, at)


def message_of(frame: CapturedFrame, content: memoryview, reader: CaptureReader) -> list[object] | pa.Table:
    """Return the records, or the table, of a frame."""
    try:
        if frame.kind == TABLE:
            return frame_to_table(content)
        records = unpack_value(content)
    except (RequestError, *UNPACK_ERRORS) as error:
        raise reader.damage(frame.start, f"its records cannot be read: {error}") from error
    if not isinstance(records, tuple):
        raise reader.damage(frame.start, "it is no list of records")
    return list(records)


@dataclass(frozen=True)
class ReplaysFrom:
    """Makes the vertices of a source that replays a folder; `site`: the user's line."""

    folder: str
    coordinates: int
    site: CallSite

    def __call__(self) -> ReplayVertex:
        """Return a vertex."""
        return ReplayVertex(self.folder, self.coordinates, self.site)
