"""A second way to a worker, for the question what it is at: a thread that sleeps until a client asks.

A worker answers clients between two steps. While a callback runs for minutes it cannot say so. So a thread of
its process listens at another address (`aside`), and answers `Why`, and nothing else: it reads the frames of
the worker's thread, and what the worker had when its call began. It takes no lock and changes nothing, and
as long as nobody asks it does not run.

It needs the lock of the interpreter to answer: in a call of C that keeps that, the worker does not answer
here, either.
"""

from __future__ import annotations

import logging
import socket
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Final, Protocol

from ...errors import InternalError, MisuseError, RefusedError, RequestError, TimelyError
from ...wire.addresses import aside, is_tcp
from ...wire.frames.messages import decode_request, encode_error, encode_reply, head_of
from ...wire.keys import ClusterKeys
from ...wire.requests import Reply, Why
from ...wire.transport.server_socket import ServerSocket
from ...wire.transport.socket_options import Poller
from .why import Reasons

__all__ = ["Lookout", "listen_beside"]

_log = logging.getLogger("timely")
_NAME: Final = "naiad-lookout"
_IPC: Final = "ipc://"
_LONG_SECONDS: Final = 3_600.0


class _Settings(Protocol):
    """Where a worker listens to clients; see `WorkerSettings`."""

    @property
    def client_listen(self) -> str:
        """Where a worker of its own listens."""
        ...

    @property
    def follows(self) -> str:
        """Where a worker listens that has followed another; empty: it has not."""
        ...

    @property
    def keys(self) -> str:
        """The keys of the cluster; empty: it has none."""
        ...

    @property
    def silence_seconds(self) -> float:
        """How long a client may be silent."""
        ...


def listen_beside(
    reasons: Reasons, settings: _Settings, address: str, looked_at: Callable[[], float]
) -> Lookout:
    """Listen beside `address`, where a worker listens to clients. `looked_at` returns when it last looked for
    clients, by the monotonic clock; 0: it has not yet.
    """

    def answer(request: Why) -> Reply:
        moment = looked_at()
        return reasons.answer_from_outside(request, max(0.0, time.monotonic() - moment) if moment else -1.0)

    listens = settings.follows or settings.client_listen
    keys = ClusterKeys.from_text(settings.keys) if settings.keys else None
    return Lookout(listens, address, keys, settings.silence_seconds, answer)


class Lookout:
    """Listens beside the address for clients.

    Args:
        listens: where the worker listens to clients, as its settings say.
        address: the same, with the port that it has got.
        keys, silence_seconds: as for clients.
        answer: answers a question from this thread.
    """

    def __init__(
        self,
        listens: str,
        address: str,
        keys: ClusterKeys | None,
        silence_seconds: float,
        answer: Callable[[Why], Reply],
    ) -> None:
        self._answer = answer
        self._socket: ServerSocket | None = None
        self._bell_in, self._bell_out = socket.socketpair()
        host = listens.rpartition(":")[0]
        self._address = aside(f"{host}:{address.rpartition(':')[2]}" if is_tcp(listens) else address)
        try:
            if self._address:
                self._socket = ServerSocket(self._address, "", keys, silence_seconds)
        except MisuseError as error:  # another program has the port: all else goes on without
            _log.info("what this worker is at in a long call cannot be asked: %s", error)
        self._thread = threading.Thread(target=self._run, name=_NAME, daemon=True)
        if self._socket is not None:
            self._thread.start()

    def close(self) -> None:
        """End the thread. May be called twice."""
        self._bell_in.close()
        if self._socket is not None:
            self._thread.join()
            self._socket.close()
            self._socket = None
            if self._address.startswith(_IPC):  # whoever bound it may have been killed
                Path(self._address.removeprefix(_IPC)).unlink(missing_ok=True)
        self._bell_out.close()

    def _run(self) -> None:
        assert self._socket is not None
        poller = Poller()
        for source in (*self._socket.sources, self._bell_out.fileno()):
            poller.add(source)
        while True:
            ready = poller.wait(_LONG_SECONDS)
            if self._bell_out.fileno() in ready:
                return
            self._socket.taken_away()
            for client, frames in self._socket.recv_nowait():
                number, head = head_of(frames)
                try:
                    if refusal := self._socket.refusal(client):
                        raise RefusedError(refusal)
                    request, _ = decode_request(frames, head)
                    if not isinstance(request, Why):
                        raise RequestError(
                            f"only 'why' is answered here, and not {type(request).__name__.lower()!r}: ask "
                            "at the address for clients"
                        )
                    answer = encode_reply(number, self._answer(request))
                except TimelyError as error:
                    answer = encode_error(number, error)
                except Exception as error:  # no question may end this thread
                    unexpected = InternalError(f"the question what a worker is at failed: {error!r}")
                    answer = encode_error(number, unexpected)
                with suppress(OSError):
                    self._socket.send(client, answer)
