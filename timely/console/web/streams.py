"""Server-sent events: frames to a page, at the pace at which it takes them.

A page that takes no bytes has one event under way, and none that wait for it: when it goes on it gets the
newest. If it takes none for long, its connection is cut off: see `connections.py`.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import Final

from starlette.types import Receive, Scope, Send

from ..asking import ClusterWatch

__all__ = ["PULSE", "EventStream", "event", "events_of", "has_come"]

_PULSE_SECONDS: Final = 10.0
"""A comment is sent after so long without an event: a page that is gone is noticed by that."""


PULSE: Final = b": still here\n\n"
"""A comment, which pages do not see."""


async def has_come(news: asyncio.Event) -> bool:
    """Wait for news, and return True; after a while without any return False."""
    # Not `wait_for`: until Python 3.12 it forgets that its task was cancelled if the event is set in that
    # moment. The stream of a page that is gone would then go on for ever.
    try:
        async with asyncio.timeout(_PULSE_SECONDS):
            await news.wait()
    except TimeoutError:
        return False
    return True


def event(name: str, data: bytes) -> bytes:
    """Return an event, of one line of data."""
    return b"event: %s\ndata: %s\n\n" % (name.encode(), data)


async def events_of(watch: ClusterWatch) -> AsyncIterator[bytes]:
    """Yield the events of the workers: first all that is known, then what changes."""
    shape = frame = status = 0
    if watch.is_stale:
        frame, status = watch.frame[0], watch.status[0]
    with watch.lookers.joined() as news:
        while True:
            news.clear()
            parts = []
            if watch.status[0] != status:
                status, data = watch.status
                parts.append(event("status", data))
            if watch.shape[0] != shape:
                shape, data = watch.shape
                parts.append(event("shape", data))
            if watch.frame[0] != frame:
                frame, data = watch.frame
                parts.append(event("frame", data))
            if parts:
                yield b"".join(parts)
            if not await has_come(news):
                yield PULSE


class EventStream:
    """An answer that goes on until the page leaves."""

    def __init__(self, events: Callable[[], AsyncIterator[bytes]]) -> None:
        self._events = events

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send events until the page is gone, or takes none any more."""
        headers = [(b"content-type", b"text/event-stream; charset=utf-8"), (b"x-accel-buffering", b"no")]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        sending = asyncio.ensure_future(self._send(send))
        leaving = asyncio.ensure_future(_left(receive))
        try:
            await asyncio.wait({sending, leaving}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in (sending, leaving):
                task.cancel()
            await asyncio.gather(sending, leaving, return_exceptions=True)

    async def _send(self, send: Send) -> None:
        events = self._events()
        try:
            async for each in events:
                message = {"type": "http.response.body", "body": each, "more_body": True}
                await send(message)
        finally:
            close = getattr(events, "aclose", None)
            if close is not None:
                await close()


async def _left(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
