"""Connections of browsers, and how many and how slow they may be.

A connection on which too much waits to be sent is cut off, not closed: a socket that is closed still waits
for the other side to take what is left, and counts as a connection until then.
"""

from __future__ import annotations

import asyncio
from typing import Final

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

from ...limits import CONSOLE_PEERS_MAX, CONSOLE_REQUEST_SECONDS_MAX, CONSOLE_STALLED_SECONDS_MAX

__all__ = ["LimitedConnection"]

_UNFINISHED: Final = (h11.IDLE, h11.SEND_BODY)


class LimitedConnection(H11Protocol):
    """Closes a connection that comes when there are too many, one whose request does not become whole, and
    one that takes no bytes of its answer.
    """

    _timer: asyncio.TimerHandle | None = None
    _stalled: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Take a connection, or close it."""
        super().connection_made(transport)
        if len(self.connections) > CONSOLE_PEERS_MAX:
            transport.abort()
            return
        self._look()

    def data_received(self, data: bytes) -> None:
        """Take bytes."""
        super().data_received(data)
        self._look()

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget the connection."""
        self._stop()
        self._go_on()
        super().connection_lost(exc)

    def pause_writing(self) -> None:
        """Wait for the other side to take bytes, for a while."""
        super().pause_writing()
        if self._stalled is None:
            self._stalled = self.loop.call_later(CONSOLE_STALLED_SECONDS_MAX, self.transport.abort)

    def resume_writing(self) -> None:
        """Send more."""
        self._go_on()
        super().resume_writing()

    def _look(self) -> None:
        """Time the request from its first byte until it is whole; a new byte gives it no more time."""
        if self.conn.their_state not in _UNFINISHED:
            self._stop()
        elif self._timer is None:
            self._timer = self.loop.call_later(CONSOLE_REQUEST_SECONDS_MAX, self._give_up)

    def _give_up(self) -> None:
        self._timer = None
        if self.conn.their_state in _UNFINISHED:
            self.transport.abort()

    def _go_on(self) -> None:
        if self._stalled is not None:
            self._stalled.cancel()
            self._stalled = None

    def _stop(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
