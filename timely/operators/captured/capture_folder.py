"""The folder of a captured stream: which files it has, and up to which epoch they are whole together.

Each worker writes one file: `worker-1-of-3.capture`. What its file says of progress holds for that worker, so
an epoch is over once all files say so. A file may end earlier than others, if its process was killed: the
stream is whole up to the first epoch that is not over in some file, and nobody gets a part of a later one.
"""

from __future__ import annotations

import logging
import re
from contextlib import suppress
from dataclasses import dataclass
from math import inf
from os import PathLike, fspath
from pathlib import Path
from typing import Final

from ...errors import CaptureError, MisuseError
from ...user_code.call_site import CallSite, call_site
from ...wire.claims import shown
from .capture_files import FRONT, CaptureReader, CaptureWriter, times_in

__all__ = ["CapturedShare", "CapturedStream", "epoch_of_front", "folder_name", "new_file", "remove_file"]

_log = logging.getLogger("timely")
_NAME: Final = re.compile(r"worker-(0|[1-9]\d{0,8})-of-([1-9]\d{0,8})\.capture")


def folder_name(call: str, folder: object) -> str:
    """Return the path of a folder; raise `MisuseError`, which names the call, if it is no path."""
    name = fspath(folder) if isinstance(folder, (str, PathLike)) else None
    if isinstance(name, str) and name and "\0" not in name:
        return name
    raise MisuseError(
        f"{call}({shown(folder)}) ({call_site()}): `folder` is the path of a folder, as in {call}('orders')"
    )


def _name(worker: int, workers: int) -> str:
    return f"worker-{worker}-of-{workers}.capture"


def new_file(folder: str, worker: int, workers: int, coordinates: int, site: CallSite) -> CaptureWriter:
    """Return the new file of a worker; make the folder. Raise `MisuseError` if the folder holds anything but
    the files of the other workers, which may have come first.
    """
    path = Path(folder)
    try:
        path.mkdir(parents=True, exist_ok=True)
        for name in sorted(each.name for each in path.iterdir()):
            other = _NAME.fullmatch(name)
            if other is None or int(other[2]) != workers or int(other[1]) == worker:
                raise _refusal(folder, name, site)
        try:
            return CaptureWriter(path / _name(worker, workers), worker, workers, coordinates)
        except FileExistsError:
            raise _refusal(folder, _name(worker, workers), site) from None
    except OSError as error:
        raise CaptureError(
            f"a stream cannot be captured into {folder!r} ({site}): {error.strerror} ({error.filename}). "
            "Mend that, or name another folder"
        ) from error


def _refusal(folder: str, name: str, site: CallSite) -> MisuseError:
    return MisuseError(
        f"a stream cannot be captured into {folder!r} ({site}), which holds {name!r} already: a captured "
        "stream has a folder of its own. Name another folder, or remove this one; "
        f"dataflow.replay({folder!r}) reads a stream that was captured there"
    )


def remove_file(writer: CaptureWriter) -> None:
    """Remove a file that nothing was written to, and its folder, if that is empty then."""
    with suppress(OSError):
        writer.path.unlink()
        writer.path.parent.rmdir()


@dataclass(eq=False)
class CapturedShare:
    """One file that this worker replays, and the first epoch that is not over in it, as far as it is read."""

    reader: CaptureReader
    epoch: float = 0


class CapturedStream:
    """What a folder holds, as one of the workers sees it that replay it.

    `end`: the first epoch that is not over in all files; `inf` if the stream is whole. `shares`: the files
    that this worker replays. `coordinates`: how many numbers a time has; 0 if no file says.
    """

    def __init__(self, folder: str, worker: int, workers: int, site: CallSite) -> None:
        self._site = site
        self.shares: list[CapturedShare] = []
        self.end = inf
        self.coordinates = 0
        self._folder = folder
        try:
            for number, path in enumerate(self._files()):
                is_mine = number % workers == worker
                reader = CaptureReader(path)
                if is_mine:
                    self.shares.append(CapturedShare(reader))
                try:
                    self._check(reader, number)
                    self.end = min(self.end, self._end_of(reader, is_mine))
                    if is_mine:
                        reader.restart()
                finally:
                    if not is_mine:
                        reader.close()
        except BaseException as error:
            self.close()
            if isinstance(error, OSError):
                raise CaptureError(
                    f"the stream in {folder!r} cannot be replayed ({site}): {error.strerror} "
                    f"({error.filename})"
                ) from error
            raise

    def close(self) -> None:
        """Close all files."""
        for share in self.shares:
            share.reader.close()

    def _files(self) -> list[Path]:
        """Return the files by the number of their worker; raise `MisuseError` if one is missing."""
        path = Path(self._folder)
        matches = [_NAME.fullmatch(each.name) for each in path.iterdir()] if path.is_dir() else []
        names = {match.string: int(match[2]) for match in matches if match is not None}
        if not names:
            raise MisuseError(
                f"there is no captured stream in {self._folder!r} ({self._site}): name a folder "
                "that stream.capture(folder) has written"
            )
        workers = max(names.values())
        wanted = [_name(worker, workers) for worker in range(min(workers, len(names) + 1))]
        missing = [name for name in wanted if name not in names]
        others = sorted(names.keys() - set(wanted))
        if missing or others:
            what = f"lacks {missing[0]}" if missing else f"has {others[0]}, too"
            raise MisuseError(
                f"the captured stream in {self._folder!r} ({self._site}) is of {workers} "
                f"workers, and {what}. Put the files of all workers of one capture into one folder, and no "
                "others"
            )
        return [path / name for name in wanted]

    def _check(self, reader: CaptureReader, number: int) -> None:
        if not reader.coordinates:
            return
        if reader.path.name != _name(reader.worker, reader.workers):
            raise MisuseError(
                f"{reader.path} was {_name(reader.worker, reader.workers)} when it was written: give it its "
                "name again"
            )
        if self.coordinates not in (0, reader.coordinates):
            raise MisuseError(f"{reader.path} (file {number}) and those before it are of different streams")
        self.coordinates = reader.coordinates

    def _end_of(self, reader: CaptureReader, tells: bool) -> float:
        """Return the first epoch that is not over in a file; write to the log where its end is torn."""
        end: float = 0
        while (frame := reader.next(skips_records=True)) is not None:
            if frame.kind == FRONT:
                end = epoch_of_front(reader, frame.start, frame.content)
        if reader.torn_at is not None and tells:
            _log.warning(
                "%s ends at byte %d in the middle of a frame, which is ignored: its writer was stopped there",
                reader.path, reader.torn_at,
            )  # fmt: skip
        return end


def epoch_of_front(reader: CaptureReader, start: int, content: memoryview) -> float:
    """Return the least epoch of a front; `inf` if nothing comes any more."""
    times, are_whole = times_in(content, reader.coordinates)
    if not are_whole:
        raise reader.damage(start, "the times there are not whole")
    return min((time[0] for time in times), default=inf)
