"""A disk that is slow, or fails, when a test wants that.

Python imports this before anything else in programs that have this folder on their path. The file that
SOAK_DISK names says what the disk does: "slow SECONDS" (each sync takes that long), "sync" (a sync fails
with EIO), "write" (a write stops in the middle, with ENOSPC), or nothing.
"""

from __future__ import annotations

import errno
import os
import time
from collections.abc import Sequence
from pathlib import Path

_control = os.environ.get("SOAK_DISK", "")


def _state() -> list[str]:
    try:
        return Path(_control).read_text().split()
    except OSError:
        return []


def _spoil() -> None:
    from timely.durable import folder_store
    from timely.wire.batch import Frame

    real_sync = folder_store._sync_data
    real_write = folder_store._FolderLogFile.write

    def sync(descriptor: int) -> None:
        state = _state()
        if state[:1] == ["slow"]:
            time.sleep(float(state[1]))
        if state[:1] == ["sync"]:
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        real_sync(descriptor)

    def write(self: folder_store._FolderLogFile, pieces: Sequence[Frame]) -> None:
        if _state()[:1] == ["write"]:
            whole = b"".join(bytes(memoryview(piece)) for piece in pieces)
            real_write(self, [whole[: len(whole) // 2]])
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        real_write(self, pieces)

    folder_store._sync_data = sync
    setattr(folder_store._FolderLogFile, "write", write)  # noqa: B010  # a method is no variable to mypy


if _control:
    _spoil()
