"""What happens to the connection of a socket, as its monitor tells it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import zmq
from zmq.utils.monitor import parse_monitor_message

from .socket_options import has_come

__all__ = ["MonitorEvents"]

_FRAMES: Final = 2


class MonitorEvents:
    """The kinds and values of the events that a monitor tells, in order. `socket` is that of the monitor.

    If Ctrl-C comes between the two frames of an event, the next call goes on with the second one.
    """

    def __init__(self, socket: zmq.Socket[bytes]) -> None:
        self.socket = socket
        self._frames: list[bytes] = []

    def take(self) -> Iterator[tuple[int, int]]:
        """Yield all events that have come."""
        while has_come(self.socket):
            self._frames.append(self.socket.recv(zmq.NOBLOCK))
            if len(self._frames) == _FRAMES:
                frames, self._frames = self._frames, []
                event = parse_monitor_message(frames)
                yield event["event"], event["value"]
            elif not self.socket.get(zmq.RCVMORE):  # Ctrl-C came as the first frame was taken
                self._frames.clear()
