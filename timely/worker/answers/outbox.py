"""The answers that a worker process sends to its clients."""

from __future__ import annotations

from collections.abc import Collection

from ...limits import POSTED_COUNT_MAX
from ...wire.batch import Frame
from ...wire.transport.server_socket import ServerSocket

__all__ = ["Outbox"]


class Outbox:
    """Sends answers; those to posted insertions wait a moment. `clients`: the socket, which may change."""

    def __init__(self, clients: ServerSocket) -> None:
        self.clients = clients
        self._unsent: dict[bytes, list[list[Frame]]] = {}
        """By client, the answers that `send_unsent` sends later, oldest first."""

    @property
    def has_unsent(self) -> bool:
        """True if answers wait."""
        return bool(self._unsent)

    def send(self, client: bytes, frames: list[Frame]) -> None:
        """Send an answer, after those that wait for this client."""
        self.clients.send(client, *self._unsent.pop(client, ()), frames)

    def send_later(self, client: bytes, frames: list[Frame]) -> None:
        """Send an answer later (`send_unsent`). A well-behaved client never has more than `POSTED_COUNT_MAX`
        unanswered posts. Flush at that number, so that a misbehaving one fills its socket and not our memory.
        """
        unsent = self._unsent.setdefault(client, [])
        unsent.append(frames)
        if len(unsent) >= POSTED_COUNT_MAX:
            self.clients.send(client, *self._unsent.pop(client))

    def send_unsent(self, but: Collection[bytes] = ()) -> None:
        """Send the answers to posted insertions, except to the clients `but`. As far as the worker knows, a
        client does not wait for these: it inserts more, or seals, next. So they go with the next answer to
        the client; or when it asks nothing more at once, or this worker has other work.
        """
        for client in [client for client in self._unsent if client not in but]:
            self.clients.send(client, *self._unsent.pop(client))
