"""Pages that wait for news, and the form in which they get it."""

from __future__ import annotations

import asyncio
import json
import re
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Final

from .told import Json

__all__ = ["Lookers", "packed"]


_LARGE: Final = re.compile(r"[\[:,]-?\d{16,}")
"""A number that a browser might round, if it stands in no text."""
_EXACT_MAX: Final = (1 << 53) - 1


def packed(value: Json) -> bytes:
    """Return a value as one line of JSON in ASCII. Whole numbers that a browser would round, as epochs may
    be, are texts.
    """
    text = json.dumps(value, separators=(",", ":"), allow_nan=False)
    if _LARGE.search(text):
        text = json.dumps(_exact(value), separators=(",", ":"), allow_nan=False)
    return text.encode("ascii")


def _exact(value: Json) -> Json:
    if isinstance(value, Mapping):
        return {name: _exact(part) for name, part in value.items()}
    if isinstance(value, list | tuple):
        return [_exact(part) for part in value]
    return str(value) if isinstance(value, int) and abs(value) > _EXACT_MAX else value


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
