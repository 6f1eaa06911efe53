"""An event that also comes when something can go on in an event loop: for threads that wait beside them."""

from __future__ import annotations

import math
import select
import socket
import threading
from collections.abc import Sequence
from contextlib import suppress

__all__ = ["LoopsEvent"]


class LoopsEvent(threading.Event):
    """Its `wait` also returns True when one of some descriptors is readable. One thread may wait."""

    def __init__(self, descriptors: Sequence[int]) -> None:
        super().__init__()
        self._heard, self._said = socket.socketpair()
        self._said.setblocking(False)
        self._poll = select.poll()
        for each in (*descriptors, self._heard.fileno()):
            self._poll.register(each, select.POLLIN)

    def set(self) -> None:
        """Let the thread that waits go on; any thread may call this."""
        super().set()
        with suppress(OSError):  # full of earlier bytes
            self._said.send(b"!")

    def wait(self, timeout: float | None = None) -> bool:
        """Wait for `set`, or until a descriptor is readable; return False if neither has come in time."""
        if self.is_set():
            return True
        milliseconds = None if timeout is None else math.ceil(1_000 * timeout)
        return bool(self._poll.poll(milliseconds))

    def __del__(self) -> None:
        self._heard.close()
        self._said.close()
