"""Requests whose answers nobody waits for yet: insertions of few rows, or of a small table.

They are sent at once. Answers are taken up before anything else is asked of the dataflow: so nothing is
waited for before all that was inserted is known to have arrived; and an insertion that was refused is told of
by the next call of its thread, or by whoever seals, with the line that it was made in: that call does nothing
else.

What is asked of the same worker may go *behind* them, without waiting either: it names them, and is not done
unless they were taken.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from itertools import count
from types import TracebackType
from typing import Final, NamedTuple, Protocol, TypeAlias

from ..errors import TimelyError, WaitTimeoutError
from ..limits import DIRECT_TABLE_BYTES_MAX, POSTED_COUNT_MAX, REPLY_SECONDS_MAX
from ..user_code.call_site import CallSite
from ..wire.batch import Frame
from ..wire.requests import Deliver, Reply, Request, Value

__all__ = ["Behind", "Poster", "Posts", "Refusals", "this_thread", "together"]

_LOOK_SECONDS: Final = 0.001
"""So often who waits for another thread looks whether that is done."""

Behind: TypeAlias = Callable[[list[Value]], Request]
"""Makes a request that is done only if the deliveries of these names, [input, writer, sequence], were taken.
"""


_threads = count()


class _Thread(threading.local):
    """Made anew in each thread that asks for it."""

    def __init__(self) -> None:
        self.number = next(_threads)


_own = _Thread()


def this_thread() -> int:
    """The number of the thread that asks, which no other ever has: that of the system goes to the next one
    that begins, and with it would what was refused to the first.
    """
    return _own.number


class Poster(Protocol):
    """Who has posted for the dataflow `index`, and hears of the answer. Several threads may call it."""

    index: int
    epoch: int
    """The open one, as far as this client knows: it never goes back."""

    def check_refused(self) -> None:
        """Raise what is refused of what any thread has posted for this dataflow."""
        ...

    def on_answer(self, reply: Reply) -> None:
        """It is done."""
        ...

    def on_refusal(self, error: TimelyError, thread: int) -> None:
        """What that thread has posted is not done, and has changed nothing."""
        ...


class _Post(NamedTuple):
    worker: int
    number: int
    request: Deliver
    rows: Frame | None
    poster: Poster
    call: str
    site: CallSite


class Refusals:
    """What one client has posted and was not done, as long as no call has told of it."""

    def __init__(self) -> None:
        self.found: list[tuple[int, int, TimelyError]] = []
        """The dataflow, the thread and the error of each."""
        self._lock = threading.Lock()

    def add(self, dataflow: int, thread: int, error: TimelyError) -> None:
        """What `thread` has posted for a dataflow is refused."""
        with self._lock:
            self.found.append((dataflow, thread, error))

    def concern(self, dataflow: int) -> bool:
        """Whether anything is to be told of what this thread has posted for a dataflow."""
        if not self.found:  # as nearly always
            return False
        thread = this_thread()
        return any((dataflow, thread) == (of, by) for of, by, _ in self.found)

    def __bool__(self) -> bool:
        """Whether anything is to be told at all."""
        return bool(self.found)

    def take(self, dataflow: int | None = None, thread: int | None = None) -> list[TimelyError]:
        """What is to be told of what a thread has posted for a dataflow, which is told then; None: any."""
        if not self.found:  # as nearly always
            return []
        with self._lock:
            taken = [
                (of, by, error)
                for of, by, error in self.found
                if dataflow in (None, of) and thread in (None, by)
            ]
            self.found = [each for each in self.found if each not in taken]
        return [error for _, _, error in taken]


def together(refused: Sequence[TimelyError]) -> TimelyError:
    """The first of some refusals, which tells of the others, too."""
    for error in refused[1:]:
        refused[0].add_note(f"and so was another: {error}; {' '.join(getattr(error, '__notes__', ()))}")
    return refused[0]


class _Doubt:
    """While something is done that may be interrupted. A class: a generator takes 0.5 µs more."""

    __slots__ = ("_posts",)

    def __init__(self, posts: Posts) -> None:
        self._posts = posts

    def __enter__(self) -> None:
        self._posts.is_in_doubt = True

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is None or issubclass(kind, TimelyError):
            self._posts.is_in_doubt = False


class Posts:
    """What one thread has posted: the one that makes this.

    Args:
        send: takes (worker, request, rows), returns the number of the request. Rows are those of a table,
            as they go, so that they are the same if they go again.
        gather: waits for the answer to one, by worker, number and for how long, and returns it, an error if
            that is what the worker has answered; raises where there is no answer.

    Another thread may `settle`, as long as this one asks nothing: who asks has settled before.
    """

    def __init__(
        self,
        send: Callable[[int, Request, Frame | None], int],
        gather: Callable[[int, int, float], Reply | TimelyError],
    ) -> None:
        self._thread = this_thread()
        self._send = send
        self._gather = gather
        self._waiting: deque[_Post] = deque()
        self._expected: set[tuple[int, int]] = set()
        self._answers: dict[tuple[int, int], Reply | TimelyError] = {}
        self._lock = threading.Lock()
        self.is_in_doubt = False
        """Whether an answer may be lost, which has come or never will, since who sent something or took an
        answer was interrupted (Ctrl-C).
        """

    def __bool__(self) -> bool:
        """Whether any answer is outstanding."""
        return bool(self._waiting)

    def post(
        self,
        worker: int,
        request: Deliver,
        rows: Frame | None,
        poster: Poster,
        call: str,
        site: CallSite,
    ) -> None:
        """Send a delivery; `call` and `site` say what the user has called, and where."""
        # In very many pieces a small table goes another way than rows, and might change places with them.
        is_apart = rows is not None and memoryview(rows).nbytes > DIRECT_TABLE_BYTES_MAX
        if len(self._waiting) >= POSTED_COUNT_MAX or self.is_in_doubt or is_apart:
            self.settle()  # what is sent again is before what comes now
        with self._lock:
            # Who is interrupted as it sends may have lost the connection by which answers were to come.
            is_in_doubt, self.is_in_doubt = self.is_in_doubt, True
            number = self._send(worker, request, rows)
            self._waiting.append(_Post(worker, number, request, rows, poster, call, site))
            self._expected.add((worker, number))
            # Not before it is known that an answer to it is one: until then that would be thrown away.
            self.is_in_doubt = is_in_doubt
        if is_apart:
            self.settle()

    def expects(self, worker: int, number: int) -> bool:
        """Whether an answer is to something posted."""
        return (worker, number) in self._expected

    def take(self, worker: int, number: int, answer: Reply | TimelyError) -> None:
        """One that is expected has come while another was waited for."""
        self._answers[worker, number] = answer

    def ask_behind(
        self, worker: int, poster: Poster, request: Behind, on_sent: Callable[[], object] = bool
    ) -> Reply:
        """Ask something of a worker behind all that was posted to it for the dataflow of `poster`, and
        settle. `on_sent` is called once the request is sent, before its answer is waited for. Raises what was
        answered, or what ends the connection.
        """
        deadline = time.monotonic() + REPLY_SECONDS_MAX
        with self._lock:
            if self.is_in_doubt:
                self._settle(deadline)
            after: list[Value] = [
                [post.request.input, post.request.writer, post.request.sequence]
                for post in self._waiting
                if post.worker == worker and post.poster.index == poster.index
            ]
            with self._doubting():  # as in `post`
                number = self._send(worker, request(after), None)
                on_sent()
                answer = self._gather(worker, number, REPLY_SECONDS_MAX)
            self._settle(deadline)
        if not isinstance(answer, Reply):
            raise answer
        return answer

    def settle(self, timeout_seconds: float = REPLY_SECONDS_MAX) -> None:
        """Wait for all answers, and tell who has posted. Raises only what ends the connection, or a timeout;
        then whatever has no answer is still outstanding.
        """
        deadline = time.monotonic() + timeout_seconds
        # Not `acquire` with a limit: whoever is interrupted (Ctrl-C) as that returns would hold it for ever.
        while self._lock.locked():
            if time.monotonic() >= deadline:
                raise WaitTimeoutError(
                    f"another thread has waited for {timeout_seconds:g} s for what becomes of rows"
                )
            time.sleep(_LOOK_SECONDS)
        with self._lock:
            self._settle(deadline)

    def _settle(self, deadline: float) -> None:
        if self.is_in_doubt:
            self._send_again()
        with self._doubting():
            while self._waiting:
                post = self._waiting[0]
                at = post.worker, post.number
                answer = self._answers.get(at)
                if answer is None:
                    answer = self._gather(*at, max(0.0, deadline - time.monotonic()))
                if isinstance(answer, Reply):
                    post.poster.on_answer(answer)
                else:
                    answer.add_note(f"this is the answer to {post.call} at {post.site}")
                    post.poster.on_refusal(answer, self._thread)
                # Not before it is told: another thread that finds nothing outstanding goes on.
                self._waiting.popleft()
                self._expected.discard(at)
                self._answers.pop(at, None)

    def _doubting(self) -> _Doubt:
        """While something is sent, or answers are taken; an error is no interrupt."""
        return _Doubt(self)

    def _send_again(self) -> None:
        """All that no answer is known to. It has names, so that it counts once."""
        for place, post in enumerate(self._waiting):
            at = post.worker, post.number
            if at not in self._answers:
                again = post._replace(number=self._send(post.worker, post.request, post.rows))
                self._expected.add((again.worker, again.number))
                self._waiting[place] = again
                self._expected.discard(at)
