"""Looking for the workers of a durable cluster that has started again: perhaps with another number of them.

If this program starts them, their `Keeper` knows where they are. Any other client asks the workers that it
still reaches where the others are: worker i has the address that worker i had before, if there is one. If a
client reaches none of the old addresses, it cannot find the cluster.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from ...errors import TimelyError
from ...wire.addresses import socket_address
from ...wire.requests import Hello, Reply
from ..installed import Keeper, Members, Requests, to_all
from .channel import Channel

__all__ = ["Search"]

_REACH_SECONDS: Final = 0.5
"""How long one look tries to reach workers."""


class Search:
    """One search. Call `look` until it finds all workers, and then `close`.

    Args:
        connect: makes connections to some addresses, for requests that are made for some workers.
        addresses: where the workers were.
        launcher: starts the workers again; None: another program does.
        incarnation: that was lost. Workers of an older one are about to end.
        cluster: its identity; empty: not known. Another cluster may have come to an address of this one.
    """

    def __init__(
        self,
        connect: Callable[[Sequence[str], Members], Channel],
        addresses: Sequence[str],
        launcher: Keeper | None,
        incarnation: int,
        cluster: str = "",
    ) -> None:
        self.cluster = cluster
        """The identity of the cluster that was looked for, or was found."""
        self._connect = connect
        self._addresses = list(addresses)
        self._launcher = launcher
        self._incarnation = incarnation
        self._channels: dict[tuple[str, ...], Channel] = {}

    def look(self, seconds: float) -> tuple[list[str], int] | None:
        """Return the addresses of all workers, in order, and their incarnation; None if there is none that
        all of them have. Each worker that is reached may take `seconds` to answer.

        Raise `RefusedError` if a worker does not admit this client, and any other `TimelyError` if the
        workers are not there yet.
        """
        if self._launcher is None:
            addresses = self._asked(seconds)
        else:
            addresses = [socket_address(each) for each in self._launcher.addresses if each]
        if not addresses:
            return None
        channel = self._channel(addresses)
        channel.join(_REACH_SECONDS)
        hellos = self._hellos(channel, to_all(Hello())(channel.members), seconds)
        clusters = {(hello.incarnation, hello.text("cluster")) for hello in hellos}
        are_all = all(
            (hello.integer("index"), hello.integer("workers")) == (worker, len(addresses))
            for worker, hello in enumerate(hellos)
        )
        if not are_all or len(clusters) != 1 or not self._may_be(hellos[0]):
            return None
        self.cluster = hellos[0].text("cluster")
        return addresses, hellos[0].incarnation

    def _may_be(self, hello: Reply) -> bool:
        """Return True if a worker is of the cluster that is looked for, and of no older incarnation."""
        return hello.incarnation >= self._incarnation and self.cluster in ("", hello.text("cluster"))

    def close(self) -> None:
        """Close all connections."""
        for channel in self._channels.values():
            channel.close()
        self._channels.clear()

    def _asked(self, seconds: float) -> list[str]:
        """Return where the workers are, as the first of those that answer says; nothing if none does."""
        channel = self._channel(self._addresses)
        for worker in channel.reached(_REACH_SECONDS):
            (hello,) = self._hellos(channel, [(worker, Hello(), None)], seconds)
            if self._may_be(hello) and hello.integer("index") == worker:
                return self._listed(worker, hello)
        return []

    def _hellos(self, channel: Channel, requests: Requests, seconds: float) -> list[Reply]:
        """Return the answers. If there are not all, the next look makes new connections."""
        try:
            return channel.ask(requests, seconds, float("inf"))
        except TimelyError:
            self._channels = {key: other for key, other in self._channels.items() if other is not channel}
            channel.close()
            raise

    def _listed(self, worker: int, hello: Reply) -> list[str]:
        """Return the addresses of all workers as this client reaches them; nothing if some are not known."""
        if hello.integer("workers") == len(self._addresses):
            return self._addresses
        listed = [str(address) for address in hello.items("addresses")]
        if len(listed) <= worker or not all(listed):
            return []
        return [
            self._addresses[at] if at == worker else socket_address(address)
            for at, address in enumerate(listed)
        ]

    def _channel(self, addresses: Sequence[str]) -> Channel:
        key = tuple(addresses)
        if key not in self._channels:
            self._channels[key] = self._connect(addresses, Members(len(addresses), 0))
        return self._channels[key]
