"""The answers that a worker process sends to its clients."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection
from math import inf

from ...errors import TimelyError
from ...limits import POSTED_COUNT_MAX
from ...wire.batch import Frame
from ...wire.frames.messages import encode_error
from ...wire.transport.server_socket import ServerSocket

__all__ = ["Outbox"]


class Outbox:
    """Sends answers; those to posted insertions wait a moment. `clients`: the socket, which may change."""

    def __init__(self, clients: ServerSocket) -> None:
        self.clients = clients
        self._unsent: dict[bytes, list[list[Frame]]] = {}
        """By client, the answers that `send_unsent` sends later, oldest first."""
        self._held: dict[bytes, float] = {}
        """By client for whose next answer `hold` keeps these back: until when, by the monotonic clock."""

    @property
    def has_unsent(self) -> bool:
        """True if answers wait."""
        return bool(self._unsent)

    @property
    def has_posts_only(self) -> bool:
        """True if answers to posts wait, and no others."""
        return bool(self._unsent) and not self._held

    def send(self, client: bytes, frames: list[Frame]) -> None:
        """Send an answer, after those that wait for this client."""
        self.clients.send(client, *self._taken(client), frames)

    def refusing(self, client: bytes, number: int) -> Callable[[TimelyError], None]:
        """Return what answers a request with an error."""
        return lambda error: self.send(client, encode_error(number, error))

    def send_later(self, client: bytes, frames: list[Frame]) -> None:
        """Send an answer later (`send_unsent`). A well-behaved client never has more than `POSTED_COUNT_MAX`
        unanswered posts. Flush at that number, so that a misbehaving one fills its socket and not our memory.
        """
        unsent = self._unsent.setdefault(client, [])
        unsent.append(frames)
        if len(unsent) >= POSTED_COUNT_MAX:
            self.clients.send(client, *self._taken(client))

    def hold(self, client: bytes, frames: list[Frame], seconds: float) -> None:
        """Send an answer with the next one to this client, or when the time is over: to wake a client for
        each of two answers that it waits for takes a core from those who work on the second.
        """
        self._unsent.setdefault(client, []).append(frames)
        self._held.setdefault(client, time.monotonic() + seconds)

    @property
    def held_until(self) -> float:
        """The moment from which on `send_unsent` sends an answer that it keeps back now."""
        return min(self._held.values(), default=inf)

    def send_unsent(self, but: Collection[bytes] = ()) -> None:
        """Send the answers to posted insertions, except to the clients `but`. As far as the worker knows, a
        client does not wait for these: it inserts more, or seals, next. So they go with the next answer to
        the client; or when it asks nothing more at once, or this worker has other work.
        """
        now = time.monotonic() if self._held else 0.0
        for client in [client for client in self._unsent if client not in but]:
            if self._held.get(client, 0.0) <= now:
                self.clients.send(client, *self._taken(client))

    def _taken(self, client: bytes) -> list[list[Frame]]:
        self._held.pop(client, None)
        return self._unsent.pop(client, [])
