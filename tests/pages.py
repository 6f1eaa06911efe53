"""Asks a console as a browser would, and in ways in which none would."""

from __future__ import annotations

import json
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.client import HTTPConnection, HTTPResponse
from typing import NamedTuple
from urllib.parse import urlsplit

__all__ = ["Answer", "Events", "Visitor", "until"]

_SECONDS = 60.0
"""A machine with much else to do is slow: what takes longer than this has failed."""


class Answer(NamedTuple):
    """What a server says."""

    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def text(self) -> str:
        return self.body.decode()

    @property
    def value(self) -> object:
        return json.loads(self.body)


class Visitor:
    """A browser without a screen, which has opened the address of a console."""

    def __init__(self, address: str, *, enters: bool = True) -> None:
        parts = urlsplit(address)
        assert parts.hostname is not None and parts.port is not None
        self.host, self.port = parts.hostname, parts.port
        self.token = parts.query.removeprefix("token=")
        self.cookie = ""
        if enters:
            answer = self.get(f"/?token={self.token}")
            assert answer.status == 303, answer
            self.cookie = answer.headers["set-cookie"].partition(";")[0]

    def get(self, path: str, **headers: str) -> Answer:
        """Return the answer to GET. Names of headers have _ for -."""
        return self.ask("GET", path, None, **headers)

    def ask(self, method: str, path: str, body: bytes | None, **headers: str) -> Answer:
        """Return the answer to a request."""
        connection = HTTPConnection(self.host, self.port, timeout=_SECONDS)
        try:
            connection.putrequest(method, path, skip_host="Host" in headers)
            for name, value in ({"Cookie": self.cookie} if self.cookie else {}).items():
                connection.putheader(name, value)
            for name, value in headers.items():
                connection.putheader(name.replace("_", "-"), value)
            if body is not None:
                connection.putheader("Content-Length", str(len(body)))
            connection.endheaders(body)
            answer = connection.getresponse()
            return Answer(
                answer.status, {name.lower(): value for name, value in answer.getheaders()}, answer.read()
            )
        finally:
            connection.close()

    def query(self, text: str) -> Answer:
        """Return the answer to a query at the prompt."""
        return self.ask("POST", "/query", text.encode(), Content_Type="application/sql")

    @contextmanager
    def events(self, path: str = "/events") -> Iterator[Events]:
        """Hear events, as a page that is open does."""
        connection = HTTPConnection(self.host, self.port, timeout=_SECONDS)
        connection.request("GET", path, headers={"Cookie": self.cookie})
        answer = connection.getresponse()
        assert answer.status == 200, answer.read()
        events = Events(answer)
        try:
            yield events
        finally:
            taken = connection.sock
            if taken is not None:
                taken.shutdown(socket.SHUT_RDWR)
            events.thread.join()
            connection.close()


class Events:
    """The events that a server has sent, which a thread hears."""

    def __init__(self, answer: HTTPResponse) -> None:
        self.all: list[tuple[str, object]] = []
        self._answer = answer
        self._came = threading.Condition()
        self.thread = threading.Thread(target=self._hear)
        self.thread.start()

    def _hear(self) -> None:
        name = ""
        try:
            while line := self._answer.readline():
                word, _, rest = line.decode().rstrip("\n").partition(": ")
                if word == "event":
                    name = rest
                elif word == "data":
                    with self._came:
                        self.all.append((name, json.loads(rest)))
                        self._came.notify_all()
        except (OSError, ValueError, AttributeError):
            pass  # the connection was closed, in the middle of a line perhaps

    def first(self, name: str, wanted: Callable[[dict[str, object]], object] = bool) -> dict[str, object]:
        """Wait for an event with that name for which `wanted` returns True, and return it."""

        def there() -> Iterator[dict[str, object]]:
            for each, value in self.all:
                if each == name and isinstance(value, dict) and wanted(value):
                    yield value

        with self._came:
            assert self._came.wait_for(lambda: next(there(), None) is not None, _SECONDS), self.all[-3:]
            return next(there())


def until(holds: Callable[[], object], seconds: float = _SECONDS) -> None:
    """Wait until something holds."""
    end = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < end, "it does not come"
        time.sleep(0.02)
