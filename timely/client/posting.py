"""Posts: insertions of few rows, or of a small table, which a client sends without waiting for the answer.

The client takes the answers before it asks the dataflow for anything else, so it waits for nothing before it
knows that all insertions have arrived. If one was refused, the next call of its thread raises that, with the
line of the insertion; or a seal of another thread does. That call then does nothing else.

If the disk of a durable cluster fails, the worker may have the rows or not, and answers with a `StoreError`.
That is no refusal: the call raises the error, and the next one sends the post again. It has a name, and so it
counts once.

A request to the same worker may go *behind* posts, without waiting either: it names them, and the worker
carries it out only if it has taken them.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from itertools import count
from types import TracebackType
from typing import Final, NamedTuple, NoReturn, Protocol, TypeAlias

from ..errors import StoreError, TimelyError, WaitTimeoutError
from ..limits import DIRECT_TABLE_BYTES_MAX, POSTED_COUNT_MAX, REPLY_SECONDS_MAX
from ..user_code.call_site import CallSite
from ..wire.batch import Frame
from ..wire.requests import Deliver, Reply, Request, Value

__all__ = ["Behind", "Poster", "Posts", "Refusals", "this_thread", "together"]

_LOOK_SECONDS: Final = 0.001
"""How often a thread that waits for another one looks again."""

Behind: TypeAlias = Callable[[list[Value]], Request]
"""Makes a request that the worker carries out only if it has taken the deliveries of these names, each
[input, writer, sequence].
"""


_threads = count()


class _Thread(threading.local):
    """The number of a thread; each thread makes its own."""

    def __init__(self) -> None:
        self.number = next(_threads)


_own = _Thread()


def this_thread() -> int:
    """Return the number of the calling thread, which no other thread ever has. The system reuses its numbers:
    with these, a new thread would get the refusals of an old one.
    """
    return _own.number


class Poster(Protocol):
    """The dataflow `index` of a client that posts, and hears of the answers. Several threads may call it."""

    index: int
    epoch: int
    """The open epoch, as far as this client knows; it never decreases."""

    def check_refused(self) -> None:
        """Raise the refusals of posts for this dataflow, of any thread."""
        ...

    def on_answer(self, reply: Reply) -> None:
        """Note that a post was taken."""
        ...

    def on_refusal(self, error: TimelyError, thread: int) -> None:
        """Note that a post of that thread was refused, and has changed nothing."""
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
    """The refused posts of one client that no call has raised yet."""

    def __init__(self) -> None:
        self.unraised: list[tuple[int, int, TimelyError]] = []
        """The dataflow, the thread and the error of each."""
        self._lock = threading.Lock()

    def add(self, dataflow: int, thread: int, error: TimelyError) -> None:
        """Add the refusal of a post of `thread` for a dataflow."""
        with self._lock:
            self.unraised.append((dataflow, thread, error))

    def concern(self, dataflow: int) -> bool:
        """Return True if there is a refusal of a post of this thread for a dataflow."""
        if not self.unraised:  # Fast path.
            return False
        thread = this_thread()
        return any((dataflow, thread) == (of, by) for of, by, _ in self.unraised)

    def __bool__(self) -> bool:
        """Return True if there is any refusal."""
        return bool(self.unraised)

    def take(self, dataflow: int | None = None, thread: int | None = None) -> list[TimelyError]:
        """Remove and return the refusals of posts of a thread for a dataflow; None: of all."""
        if not self.unraised:  # Fast path.
            return []
        with self._lock:
            taken = [
                (of, by, error)
                for of, by, error in self.unraised
                if dataflow in (None, of) and thread in (None, by)
            ]
            self.unraised = [each for each in self.unraised if each not in taken]
        return [error for _, _, error in taken]


def together(refused: Sequence[TimelyError]) -> TimelyError:
    """Return the first of some refusals, with notes about the others."""
    for error in refused[1:]:
        refused[0].add_note(f"and so was another: {error}; {' '.join(getattr(error, '__notes__', ()))}")
    return refused[0]


class _Doubt:
    """Marks posts as in doubt until its block ends without an interrupt, and without an error of the disk. A
    class: a generator takes 0.5 µs more.
    """

    __slots__ = ("_posts", "names_posts")

    def __init__(self, posts: Posts) -> None:
        self._posts = posts
        self.names_posts = False
        """True if a request is sent whose answer may be that to posts, too. If it does not come in time, it
        is thrown away later: the posts then stay in doubt after any error.
        """

    def __enter__(self) -> _Doubt:
        self._posts.is_in_doubt = True
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is None or (
            issubclass(kind, TimelyError) and not issubclass(kind, StoreError) and not self.names_posts
        ):
            self._posts.is_in_doubt = False


class Posts:
    """The unanswered posts of one thread: the one that makes this object.

    Args:
        send: takes (worker, request, rows), and returns the number of the request. Rows are a table as a
            frame, so that a repetition sends the same bytes.
        gather: takes (worker, number, seconds), waits for the answer to one request, and returns it, also if
            the answer is an error; raises if there is no answer.

    Another thread may call `settle`, as long as this one asks nothing: before it asks, it settles itself.
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
        self._taken: set[tuple[int, int]] = set()
        """The posts that the worker has taken, as it has answered a request behind them."""
        self._lock = threading.Lock()
        self.is_in_doubt = False
        """True if an answer may be lost, since an interrupt (Ctrl-C) came while this thread sent a post or
        took an answer: such an answer has come already, or never will. Also if the disk has failed, or if a
        seal that names posts has no answer in time, which would be theirs.
        """

    def __bool__(self) -> bool:
        """Return True if any answer is outstanding."""
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
        """Send a delivery; `call` and `site` are the user's call and its line, for messages."""
        # A small table in very many pieces goes by ZeroMQ, and rows go by a direct line: they could arrive in
        # another order.
        is_apart = rows is not None and memoryview(rows).nbytes > DIRECT_TABLE_BYTES_MAX
        if len(self._waiting) >= POSTED_COUNT_MAX or self.is_in_doubt or is_apart:
            self.settle()  # it may send posts again: these come before this one
        with self._lock:
            # An interrupt during `_send` may have closed the connection by which answers were to come.
            is_in_doubt, self.is_in_doubt = self.is_in_doubt, True
            number = self._send(worker, request, rows)
            self._waiting.append(_Post(worker, number, request, rows, poster, call, site))
            self._expected.add((worker, number))
            # Only now is an answer to this post expected; until then it would be thrown away.
            self.is_in_doubt = is_in_doubt
        if is_apart:
            self.settle()

    def expects(self, worker: int, number: int) -> bool:
        """Return True if an answer of this number belongs to a post."""
        return (worker, number) in self._expected

    def take(self, worker: int, number: int, answer: Reply | TimelyError) -> None:
        """Keep an expected answer that has come while this thread waited for another one."""
        self._answers[worker, number] = answer

    def ask_behind(
        self,
        worker: int,
        poster: Poster,
        request: Behind,
        on_sent: Callable[[], object] = bool,
        settles: bool = True,
    ) -> Reply:
        """Send a request to a worker behind all posts to it for the dataflow of `poster`, settle (unless
        `settles` is False), and return the answer. Call `on_sent` once the request is sent, before waiting
        for its answer. Raise the error if that is the answer, or what ends the connection.
        """
        deadline = time.monotonic() + REPLY_SECONDS_MAX
        with self._lock:
            if self.is_in_doubt:
                self._settle(deadline)
            behind = [
                post
                for post in self._waiting
                if post.worker == worker
                and post.poster.index == poster.index
                and (worker, post.number) not in self._taken
            ]
            after: list[Value] = [
                [post.request.input, post.request.writer, post.request.sequence] for post in behind
            ]
            with self._doubting() as doubt:  # as in `post`
                number = self._send(worker, request(after), None)
                doubt.names_posts = bool(behind)
                on_sent()
                answer = self._gather(worker, number, REPLY_SECONDS_MAX)
                if isinstance(answer, Reply) and answer.values.get("took"):
                    taken = Reply({"epoch": answer.integer("sealed")})
                    for post in behind:  # answers that are here by now may say more
                        self._answers.setdefault((worker, post.number), taken)
            if settles or not isinstance(answer, Reply):
                self._settle(deadline)
            else:
                self._taken.update((worker, post.number) for post in behind)
        if not isinstance(answer, Reply):
            raise answer
        return answer

    def settle(self, timeout_seconds: float = REPLY_SECONDS_MAX) -> None:
        """Wait for all answers, and pass them to the posters. Raise only what ends the connection, a timeout,
        or that the disk of the workers fails; then posts without an answer stay outstanding.
        """
        deadline = time.monotonic() + timeout_seconds
        # Not `acquire` with a limit: a thread interrupted (Ctrl-C) as that returns would hold it for ever.
        while self._lock.locked():
            if time.monotonic() >= deadline:
                raise WaitTimeoutError(
                    f"another thread has waited for {timeout_seconds:g} s for what becomes of rows"
                )
            time.sleep(_LOOK_SECONDS)
        with self._lock:
            self._settle(deadline)

    def renew(self, connect: Callable[[], None]) -> None:
        """Let `connect` make new connections, while no thread uses the old ones for posts. Posts without an
        answer are sent again before anything else.
        """
        with self._lock:
            self.is_in_doubt = True
            connect()

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
                elif _is_of_disk(answer):
                    self._keep(post, answer)
                else:
                    answer.add_note(f"this is the answer to {post.call} at {post.site}")
                    post.poster.on_refusal(answer, self._thread)
                # Only after the poster knows: another thread that sees nothing outstanding goes on.
                self._waiting.popleft()
                self._expected.discard(at)
                self._taken.discard(at)
                self._answers.pop(at, None)

    def _keep(self, post: _Post, error: TimelyError) -> NoReturn:
        """Raise that the disk has failed. All posts that have failed with it count as not answered."""
        for at in [at for at, answer in self._answers.items() if _is_of_disk(answer)]:
            del self._answers[at]
        error.add_note(
            f"this is the answer to {post.call} at {post.site}: the next call sends its rows again, and they "
            "count once, so do not insert them again"
        )
        raise error

    def _doubting(self) -> _Doubt:
        """Return a context for sending and for taking answers. An error is no interrupt, but after one of the
        disk the posts stay in doubt.
        """
        return _Doubt(self)

    def _send_again(self) -> None:
        """Send all posts again that have no answer. They have names, so each counts once."""
        for position, post in enumerate(self._waiting):
            at = post.worker, post.number
            if at not in self._answers:
                again = post._replace(number=self._send(post.worker, post.request, post.rows))
                self._expected.add((again.worker, again.number))
                self._waiting[position] = again
                self._expected.discard(at)


def _is_of_disk(answer: Reply | TimelyError) -> bool:
    """Return True if the worker cannot write at present, so that it has the rows in memory, or not at all."""
    return isinstance(answer, StoreError) and not answer.ends_dataflow
