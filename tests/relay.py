"""A link that can be slow, cut and mended, in this process: passes bytes on from whoever connects to a port.

Nothing that it has taken gets lost; while it is cut nothing passes, and nobody is told. Its own buffers are
small, so that who sends feels how slow it is.
"""

from __future__ import annotations

import contextlib
import socket
import threading
import time

__all__ = ["Relay"]

_PIECE_BYTES = 16_384


class Relay:
    """Listens at a port of its own, `port`; a context manager.

    Args:
        target: the port on this machine that it passes bytes on to. bytes_per_second: in each direction.
    """

    def __init__(self, target: int, bytes_per_second: float = 1e9) -> None:
        self.bytes_per_second = bytes_per_second
        self._target = target
        self._is_whole = threading.Event()
        self._is_whole.set()
        self._is_over = False
        self._ends: list[socket.socket] = []
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._listener.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, _PIECE_BYTES)
        self.port: int = self._listener.getsockname()[1]
        self._threads = [threading.Thread(target=self._accept)]
        self._threads[0].start()

    def __enter__(self) -> Relay:
        return self

    def __exit__(self, *_: object) -> None:
        self._is_over = True
        self._is_whole.set()
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self.break_off()
        for thread in self._threads:
            thread.join()
        for end in (self._listener, *self._ends):
            end.close()

    def cut(self) -> None:
        """From now on nothing passes."""
        self._is_whole.clear()

    def mend(self) -> None:
        """The inverse of `cut`."""
        self._is_whole.set()

    def break_off(self) -> None:
        """End each connection that there is; who connects again is let through."""
        for end in self._ends:
            with contextlib.suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)

    def _accept(self) -> None:
        while not self._is_over:
            try:
                near, _ = self._listener.accept()
            except OSError:
                return
            far = socket.create_connection(("127.0.0.1", self._target))
            self._ends += [near, far]
            for source, sink in ((near, far), (far, near)):
                thread = threading.Thread(target=self._pass_on, args=(source, sink))
                self._threads.append(thread)
                thread.start()

    def _pass_on(self, source: socket.socket, sink: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while piece := source.recv(_PIECE_BYTES):
                self._is_whole.wait()
                time.sleep(len(piece) / self.bytes_per_second)
                sink.sendall(piece)
            sink.shutdown(socket.SHUT_WR)
