"""The line between a task and the driver: tcp, one message of JSON a line.

The driver listens, and tasks come; each shows the other that it knows the job's token, without saying it.
Who does not is hung up on, and learns nothing. When the line breaks without a last word, whoever is at its
other end is gone: that is how a driver hears at once of a task that was killed, and the reverse. A host that
falls silent is found by probes of tcp.

Travels as code, so it imports the standard library alone.
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

__all__ = ["LINE_BYTES_MAX", "Line", "called", "is_proof", "proof"]

LINE_BYTES_MAX = 1 << 20
"""Of one message, from who is known."""
_CALL_SECONDS_MAX = 5.0
_ANSWER_SECONDS_MAX = 20.0
"""The driver may be at work, and its machine busy; that it is gone shows at once."""
_PROBE_SECONDS = 2
_PROBES = 2


class Line:
    """One end. `hear` and `say` are for one thread each."""

    def __init__(self, stream: socket.socket, bytes_max: int = LINE_BYTES_MAX) -> None:
        self._stream = stream
        self.bytes_max = bytes_max
        self._unread = b""
        _probe(stream)
        stream.settimeout(_CALL_SECONDS_MAX)

    def fileno(self) -> int:
        """For `select`."""
        return self._stream.fileno()

    def say(self, **values: object) -> None:
        """Send one message; `OSError` if the other end is gone."""
        self._stream.sendall(json.dumps(values).encode() + b"\n")

    def hear(self) -> list[dict[str, object]]:
        """The messages that have come, perhaps none; waits for a part of one. `EOFError` when the other end
        has hung up, or sends what is no message.
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
        """The next message; `EOFError` also if none comes in time."""
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            self._stream.settimeout(max(0.01, deadline - time.monotonic()))
            try:
                heard = self.hear()
            finally:
                self._stream.settimeout(_CALL_SECONDS_MAX)
            if heard:
                return heard[0]  # each end waits for its answer before it says more
        raise EOFError(f"no word within {seconds:g} s")

    def close(self) -> None:
        """Hang up."""
        with contextlib.suppress(OSError):
            self._stream.close()


def called(driver: tuple[str, int], token: str, hello: Mapping[str, object]) -> Line:
    """A line to the driver at that host and port, which is told `hello`; `OSError` if there is none,
    `EOFError` if it is not the one that has the token.
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
    """What only who knows `token` can say of these nonces."""
    told = " ".join((who, *nonces)).encode(errors="replace")
    return hmac.new(token.encode(), told, hashlib.sha256).hexdigest()


def is_proof(said: object, token: str, who: str, *nonces: object) -> bool:
    """Whether somebody has said that. Whatever a stranger says instead is no error, but no proof."""
    texts = [one for one in nonces if isinstance(one, str)]
    if not isinstance(said, str) or len(texts) < len(nonces):
        return False
    return hmac.compare_digest(said.encode(errors="replace"), proof(token, who, *texts).encode())


def _message(line: bytes) -> dict[str, object]:
    try:
        values: object = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise EOFError("no message") from error
    if not isinstance(values, dict):
        raise EOFError("no message")
    return values


def _probe(stream: socket.socket) -> None:
    """A host that is gone without a word counts as gone after some six seconds."""
    stream.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for name, value in (
        ("TCP_KEEPIDLE", _PROBE_SECONDS),
        ("TCP_KEEPINTVL", _PROBE_SECONDS),
        ("TCP_KEEPCNT", _PROBES),
    ):
        if hasattr(socket, name):  # not on every system
            stream.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)
