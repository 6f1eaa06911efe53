"""The line between a task and the driver: tcp, with one JSON message on each line of text.

The driver listens, and tasks connect. Each side proves to the other that it knows the job's token, without
sending it. A side hangs up on a peer that cannot prove it, and reveals nothing. If the line breaks without a
last message, the other end is gone: so a driver learns at once of a task that was killed, and the reverse.
Probes of tcp detect a host that falls silent.

Spark sends this module as code, so it imports the standard library alone.
"""

from __future__ import annotations

import contextlib
import hashlib
import hmac
import json
import secrets
import socket
import time
from collections.abc import Mapping

__all__ = ["LINE_BYTES_MAX", "Line", "connected", "is_proof", "proof"]

LINE_BYTES_MAX = 1 << 20
"""The largest message of a peer that has proved its token."""
_CALL_SECONDS_MAX = 5.0
_ANSWER_SECONDS_MAX = 20.0
"""How long a task waits for the driver, which may be at work on a busy machine; if it is gone, the line
breaks at once.
"""
_PROBE_SECONDS = 2
_PROBES = 2


class Line:
    """One end of a line. Only one thread may call `hear`, and only one `say`."""

    def __init__(self, stream: socket.socket, bytes_max: int = LINE_BYTES_MAX) -> None:
        self._stream = stream
        self.bytes_max = bytes_max
        self._unread = b""
        _probe(stream)
        stream.settimeout(_CALL_SECONDS_MAX)

    def fileno(self) -> int:
        """Return the file descriptor, for `select`."""
        return self._stream.fileno()

    def say(self, **values: object) -> None:
        """Send one message; `OSError` if the other end is gone."""
        self._stream.sendall(json.dumps(values).encode() + b"\n")

    def hear(self) -> list[dict[str, object]]:
        """Wait for some bytes, and return the messages that are complete, perhaps none.

        Raises `EOFError` when the other end has hung up, or has sent anything but messages.
        """
        try:
            piece = self._stream.recv(65_536)
        except TimeoutError:
            return []
        except OSError as error:
            raise EOFError(str(error)) from error
        self._unread += piece
        *lines, self._unread = self._unread.split(b"\n")
        if not piece or len(self._unread) > self.bytes_max:
            raise EOFError("hung up")
        return [_message(line) for line in lines]

    def wait(self, seconds: float) -> dict[str, object]:
        """Return the next message; raises `EOFError` also if none comes in time."""
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            self._stream.settimeout(max(0.01, deadline - time.monotonic()))
            try:
                heard = self.hear()
            finally:
                self._stream.settimeout(_CALL_SECONDS_MAX)
            if heard:
                return heard[0]  # there is only one: each end waits for the answer before it sends more
        raise EOFError(f"no word within {seconds:g} s")

    def close(self) -> None:
        """Hang up."""
        with contextlib.suppress(OSError):
            self._stream.close()


def connected(driver: tuple[str, int], token: str, hello: Mapping[str, object]) -> Line:
    """Connect to the driver at that host and port, send it `hello`, and return the line.

    Raises `OSError` if nothing listens there, and `EOFError` if the program there does not have the token.
    """
    line = Line(socket.create_connection(driver, timeout=_CALL_SECONDS_MAX))
    try:
        theirs = str(line.wait(_ANSWER_SECONDS_MAX).get("nonce"))
        mine = secrets.token_hex(16)
        line.say(nonce=mine, proof=proof(token, "task", theirs, mine), **hello)
        answer = line.wait(_ANSWER_SECONDS_MAX).get("proof")
        if not is_proof(answer, token, "driver", mine, theirs):
            raise EOFError("another program listens there")
    except BaseException:
        line.close()
        raise
    return line


def proof(token: str, who: str, *nonces: str) -> str:
    """Return a code of `who` and these nonces that only a holder of `token` can compute."""
    text = " ".join((who, *nonces)).encode(errors="replace")
    return hmac.new(token.encode(), text, hashlib.sha256).hexdigest()


def is_proof(value: object, token: str, who: str, *nonces: object) -> bool:
    """Return True if `value` is that code; False for any other value that a stranger may send."""
    texts = [one for one in nonces if isinstance(one, str)]
    if not isinstance(value, str) or len(texts) < len(nonces):
        return False
    return hmac.compare_digest(value.encode(errors="replace"), proof(token, who, *texts).encode())


def _message(line: bytes) -> dict[str, object]:
    try:
        values: object = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise EOFError("no message") from error
    if not isinstance(values, dict):
        raise EOFError("no message")
    return values


def _probe(stream: socket.socket) -> None:
    """Set probes by which a host that falls silent counts as gone after some six seconds."""
    stream.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for name, value in (
        ("TCP_KEEPIDLE", _PROBE_SECONDS),
        ("TCP_KEEPINTVL", _PROBE_SECONDS),
        ("TCP_KEEPCNT", _PROBES),
    ):
        if hasattr(socket, name):  # missing on some systems
            stream.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)
