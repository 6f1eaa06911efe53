"""Pages that wait for news, and the form in which they get it."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from .told import Json

__all__ = ["Lookers", "packed"]


def packed(value: Json) -> bytes:
    """Return a value as one line of JSON in ASCII."""
    return json.dumps(value, separators=(",", ":"), allow_nan=False).encode("ascii")


class Lookers:
    """Coroutines that wait for news, woken from any thread. Those of several event loops may wait."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._events: dict[asyncio.Event, asyncio.AbstractEventLoop] = {}
        self.came = threading.Event()
        """Set as long as anybody waits."""

    def __len__(self) -> int:
        return len(self._events)

    @contextmanager
    def joined(self) -> Iterator[asyncio.Event]:
        """Give a coroutine an event that is set when there is news."""
        event = asyncio.Event()
        with self._lock:
            self._events[event] = asyncio.get_running_loop()
            self.came.set()
        try:
            yield event
        finally:
            with self._lock:
                del self._events[event]
                if not self._events:
                    self.came.clear()

    def wake(self) -> None:
        """Set the events of all."""
        with self._lock:
            waiting = list(self._events.items())
        for event, loop in waiting:
            with suppress(RuntimeError):  # its loop has ended
                loop.call_soon_threadsafe(event.set)
