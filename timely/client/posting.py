"""Requests whose answers nobody waits for yet: insertions of few rows.

They are sent at once. Answers are taken up before anything else is asked of the dataflow: so nothing is
waited for before all that was inserted is known to have arrived; and an insertion that was refused is told of
by the next call, which then does nothing, with the line that it was made in.

What is asked of the same worker may go *behind* them, without waiting either: it names them, and is not done
unless they were.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from typing import NamedTuple, Protocol, TypeAlias

from ..errors import PeerError, TimelyError, WaitTimeoutError
from ..limits import POSTED_COUNT_MAX
from ..user_code.call_site import CallSite
from ..wire.requests import Reply, Request, Value

__all__ = ["Behind", "Poster", "Posts"]

Behind: TypeAlias = Callable[[list[Value]], Request]
"""Makes a request that is done only if those of these numbers were."""


class Poster(Protocol):
    """Who has posted, and hears of the answer. Several threads may call it."""

    def on_answer(self, reply: Reply) -> None:
        """It is done."""
        ...

    def on_refusal(self, error: TimelyError) -> None:
        """It is not done, and has changed nothing."""
        ...


class _Post(NamedTuple):
    worker: int
    number: int
    poster: Poster
    call: str
    site: CallSite


class Posts:
    """What one thread has posted.

    Args:
        send: takes (worker, request), returns the number of the request.
        gather: waits for the answer to one, by worker and number, or raises what came.

    Another thread may `settle`, as long as this one asks nothing: who asks has settled before.
    """

    def __init__(self, send: Callable[[int, Request], int], gather: Callable[[int, int], Reply]) -> None:
        self._send = send
        self._gather = gather
        self._waiting: deque[_Post] = deque()
        self._expected: set[tuple[int, int]] = set()
        self._answers: dict[tuple[int, int], Reply | TimelyError] = {}
        self._lock = threading.Lock()

    def __bool__(self) -> bool:
        """Whether any answer is outstanding."""
        return bool(self._waiting)

    def post(self, worker: int, request: Request, poster: Poster, call: str, site: CallSite) -> None:
        """Send a request; `call` and `site` say what the user has called, and where."""
        if len(self._waiting) >= POSTED_COUNT_MAX:
            self.settle()
        with self._lock:
            number = self._send(worker, request)
            self._waiting.append(_Post(worker, number, poster, call, site))
            self._expected.add((worker, number))

    def expects(self, worker: int, number: int) -> bool:
        """Whether an answer is to something posted."""
        return (worker, number) in self._expected

    def take(self, worker: int, number: int, answer: Reply | TimelyError) -> None:
        """One that is expected has come while another was waited for."""
        self._answers[worker, number] = answer

    def ask_behind(self, worker: int, poster: Poster, request: Behind) -> Reply:
        """Ask something of a worker behind all that `poster` has posted to it; then settle. Raises what was
        answered, or what ends the connection.
        """
        with self._lock:
            behind: list[Value] = [
                post.number for post in self._waiting if post.poster is poster and post.worker == worker
            ]
            number = self._send(worker, request(behind))
            try:
                answer = self._gather(worker, number)
            except (PeerError, WaitTimeoutError):
                raise
            except TimelyError:
                self._settle()
                raise
            self._settle()
            return answer

    def settle(self) -> None:
        """Wait for all answers, and tell who has posted. Raises only what ends the connection, or a timeout;
        then whatever has no answer is still outstanding.
        """
        with self._lock:
            self._settle()

    def _settle(self) -> None:
        while self._waiting:
            post = self._waiting[0]
            at = post.worker, post.number
            answer = self._answers.get(at)
            if answer is None:
                try:
                    answer = self._gather(*at)
                except (PeerError, WaitTimeoutError):
                    raise
                except TimelyError as error:
                    answer = error
            self._waiting.popleft()
            self._expected.discard(at)
            self._answers.pop(at, None)
            if isinstance(answer, Reply):
                post.poster.on_answer(answer)
            else:
                answer.add_note(f"this is the answer to {post.call} at {post.site}")
                post.poster.on_refusal(answer)
