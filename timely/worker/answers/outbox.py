"""The answers that a worker process sends to its clients.

A client of few rows posts them, seals, and waits for the epoch: it needs no answer before the last one. So
answers to posts, and to a seal with a wait, stay here for a moment, as values. What they say goes into the
next answer if that is possible: a message less is 10 to 20 µs less of a small change, on either side.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection
from math import inf
from typing import NamedTuple

from ...errors import TimelyError
from ...limits import POSTED_COUNT_MAX
from ...wire.batch import Frame
from ...wire.frames.messages import encode_error, encode_reply
from ...wire.requests import Decide, Deliver, Reply
from ...wire.transport.server_socket import ServerSocket

__all__ = ["Outbox"]


class _Unsent(NamedTuple):
    """An answer that waits. `post`: the insertion that it answers; None: it answers a seal."""

    number: int
    reply: Reply
    post: Deliver | None

    def is_named_by(self, seal: Decide) -> bool:
        """Return True if it answers an insertion that a seal names, and says no more than that this one was
        taken.
        """
        post = self.post
        return (
            post is not None
            and post.dataflow == seal.dataflow
            and "open" not in self.reply.values
            and [post.input, post.writer, post.sequence] in seal.after
        )


class Outbox:
    """Sends answers; those to posted insertions wait a moment. `clients`: the socket, which may change."""

    def __init__(self, clients: ServerSocket) -> None:
        self.clients = clients
        self._unsent: dict[bytes, list[_Unsent]] = {}
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

    def answer(self, client: bytes, number: int, reply: Reply) -> None:
        """Send an answer, after those that wait for this client. If the last of them is that of the seal with
        which this wait came, one message says both.
        """
        if client in self._held and reply.table is None:
            last = self._unsent[client][-1]
            if last.post is None and last.number == number - 1:
                self._unsent[client].pop()
                number, reply = last.number, Reply({**reply.values, **last.reply.values})
        self.send(client, encode_reply(number, reply))

    def send(self, client: bytes, frames: list[Frame]) -> None:
        """Send an answer as it is, after those that wait for this client."""
        self.clients.send(client, *self._taken(client), frames)

    def refusing(self, client: bytes, number: int) -> Callable[[TimelyError], None]:
        """Return what answers a request with an error."""
        return lambda error: self.send(client, encode_error(number, error))

    def send_later(self, client: bytes, number: int, reply: Reply, post: Deliver) -> None:
        """Send an answer later (`send_unsent`). A well-behaved client never has more than `POSTED_COUNT_MAX`
        unanswered posts. Flush at that number, so that a misbehaving one fills its socket and not our memory.
        """
        unsent = self._unsent.setdefault(client, [])
        unsent.append(_Unsent(number, reply, post))
        if len(unsent) >= POSTED_COUNT_MAX:
            self.clients.send(client, *self._taken(client))

    def answer_named(self, client: bytes, seal: Decide, reply: Reply) -> None:
        """Let `reply`, to a seal of this client, also be the answer to the insertions that the seal names, if
        it was carried out: those that wait here are dropped.
        """
        if reply.integer("sealed") >= 0:
            reply.values["took"] = True
            if unsent := self._unsent.get(client):
                unsent[:] = [one for one in unsent if not one.is_named_by(seal)]
                if not unsent:
                    self._taken(client)

    def hold(self, client: bytes, number: int, reply: Reply, seconds: float) -> None:
        """Send an answer with the next one to this client, or when the time is over: to wake a client for
        each of two answers that it waits for takes a core from those who work on the second.
        """
        self._unsent.setdefault(client, []).append(_Unsent(number, reply, None))
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
        unsent = self._unsent.pop(client, None)
        return [] if unsent is None else [encode_reply(one.number, one.reply) for one in unsent]
