"""Rows of inputs and outputs whose form nobody knows but their query: batches as they were logged.

["rows", epoch, order, place, shape]   batches, with frames; `place` is None if they have their order
["few", epoch, diffs, rows]            plain rows
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Sequence
from typing import cast

from ...dictionaries import dictionaries
from ...own_files import OWN_NAMES
from ...wire.batch import Batch, Frame, bytes_of, is_known
from ..journal import READER, Shape, append_batches, batches_in
from ..log import new_peer
from .coverage import Logs
from .files import RawWriter, raw_records
from .manifest import BaseFile

__all__ = ["RawRows"]

_FILES_MAX = 8
"""More files of one input are written anew as one."""


class RawRows:
    """The raw rows of one input, as far as the next base has them.

    Args:
        details: the module that defines the classes of its batches; then, if batches as they are read lack
            something, the function "module:function" that adds it, and its second argument.
        files: of the base before.
        dropped: rows up to this epoch are dropped.
    """

    def __init__(self, details: Sequence[object], files: Sequence[BaseFile], dropped: int) -> None:
        module, *whole = details
        if str(module).partition(".")[0] in OWN_NAMES:  # those of users may be anywhere
            importlib.import_module(str(module))
        self._made_whole = _made_whole(whole)
        self._dropped = dropped
        self._files = [file for file in files if file.epochs[1] > dropped]
        self._writer = RawWriter()
        self._peer = new_peer()
        """Stands for a reader of the file, which has each symbol once. Files of other inputs are made at the
        same time, and each of them needs its symbols."""

    def take(
        self, epoch: int, shape: Shape, frames: Sequence[memoryview], order: int, place: int | None
    ) -> None:
        """Take batches of one epoch. Those of a class that is not known here stay as they are."""
        if all(is_known(kind) for kind, _ in shape):
            batches = [self._made_whole(batch) for batch in batches_in(shape, iter(frames), is_mine=True)]
            if epoch <= self._dropped:
                return
            own: list[Frame] = []
            own_shape = append_batches(self._peer, batches, own)
            rows = sum(batch.rows for batch in batches)
            self._writer.add(epoch, ["rows", epoch, order, place, own_shape], own, rows)
        elif epoch > self._dropped:
            own = [bytes(bytes_of(frame)) for frame in frames]
            self._writer.add(epoch, ["rows", epoch, order, place, shape], own, 1)

    def take_plain(self, epoch: int, rows: Sequence[Sequence[object]], diffs: Sequence[int]) -> None:
        """Take plain rows of one epoch."""
        if epoch > self._dropped:
            self._writer.add(epoch, ["few", epoch, list(diffs), list(rows)], (), len(rows))

    def write(self, logs: Logs, path: str) -> list[BaseFile]:
        """Return the files that the next base has; of these `path` is new."""
        files = self._files
        is_to_drop = any(file.epochs[0] <= self._dropped for file in files)
        if is_to_drop or len(files) >= _FILES_MAX:
            self._join(logs)
            files = []
        for dictionary in dictionaries():
            dictionary.withdraw(self._peer)
        return [*files, self._writer.write(logs.store, path)] if self._writer.rows else files

    def _join(self, logs: Logs) -> None:
        """Put what is in the files in front of what was taken."""
        taken, self._writer = self._writer, RawWriter()
        for dictionary in dictionaries():
            dictionary.withdraw(self._peer)
        for file in self._files:
            for record in raw_records(logs.store, logs.base.number, file):
                self._take_record(record.head, record.frames)
        for dictionary in dictionaries():
            dictionary.withdraw(READER)
        for head, frames in taken.records():
            self._take_record(head, frames)
        for dictionary in dictionaries():
            dictionary.withdraw(READER)

    def _take_record(self, head: Sequence[object], frames: Sequence[memoryview]) -> None:
        match head:
            case ("rows", int(epoch), int(order), place, shape):
                self.take(epoch, cast("Shape", shape), frames, order, cast("int | None", place))
            case ("few", int(epoch), diffs, rows):
                self.take_plain(epoch, cast("Sequence[Sequence[object]]", rows), cast("Sequence[int]", diffs))


def _made_whole(whole: Sequence[object]) -> Callable[[Batch], Batch]:
    """Return the function that adds what batches lack that were read from a log."""
    if not whole or str(whole[0]).partition(".")[0] not in OWN_NAMES:
        return lambda batch: batch
    name, argument = whole
    module, _, function = str(name).partition(":")
    add = cast("Callable[[Batch, object], Batch]", getattr(importlib.import_module(module), function))
    return lambda batch: add(batch, argument)
