"""Workers of one process that work at the same time, each in a thread, while a call waits.

The first worker works in the calling thread. Every other worker has a thread of its own, which sleeps while
no message comes for its worker. Between two calls no thread works, and the calling thread may look at all
workers and hand them requests: it holds the *turn* of each worker then, a lock without which a thread does
not touch its worker.

    WorkerThreads.work      gives the turns away, works, and takes them back once nothing is left to do

*Is nothing left?* A worker that has done all it could says that it rests, before it sleeps; only a message
changes that. Each worker counts the messages that it has sent and taken. The calling thread looks at all
counts, then whether all workers rest, then at all counts again. If the counts are the same as before, and as
many messages were taken as sent, then at one moment in between no worker was at work and no message under
way: nothing can begin again by itself. (Looking once would not do: counts are read one after another, and a
message may be sent after the first was read and taken before the last was.)

Kernels release the interpreter's lock, so they run at the same time; Python code takes turns.
"""

from __future__ import annotations

import threading
import time
import weakref
from collections.abc import Callable, Sequence
from math import inf
from typing import Final

from ....limits import IN_TURN_ROWS_MAX
from ....running.core import Worker
from .others_in_turn import Meeting, OthersInTurn
from .pace import Pace
from .thread_transport import ThreadNetwork, ThreadTransport

__all__ = ["WorkerThreads", "is_worker_thread"]

_NAME: Final = "naiad-worker-"
_IN_TURN_SECONDS: Final = 1e-3
"""How long workers go on taking turns before each gets a thread."""
_LOOK_SECONDS: Final = 1.0
"""How long a thread sleeps at most. Then it looks for work, though we know no case in which nothing wakes it.
"""
_END_SECONDS: Final = 0.2
"""How long closing waits for threads that were called off before."""


class WorkerThreads:
    """Threads for all workers but the first, which works in the calling thread.

    Args:
        wants_pause: returns True if all shall stop, for something that must be done while no thread works.
        is_closing: a method of the owner; returns True if it is about to end the threads. The threads do not
            keep the owner alive.
    """

    def __init__(
        self,
        workers: Sequence[Worker],
        network: ThreadNetwork,
        wants_pause: Callable[[], bool],
        is_closing: Callable[[], bool] | None = None,
    ) -> None:
        self._workers = workers
        self._network = network
        self._transports = network.transports
        self._has_other_work = wants_pause
        self._is_closing = None if is_closing is None else weakref.WeakMethod(is_closing)
        self._turns = [threading.Lock() for _ in workers]
        self._rests = [True for _ in workers]
        self._meeting = Meeting(workers)
        for index, each in enumerate(self._transports):
            each.others = OthersInTurn(self._meeting, index)
            workers[index].shares_thread = True
        self._pace = Pace()
        self._has_moved = False
        self._must_pause = False
        self._failure: BaseException | None = None
        self.is_over = False
        for turn, transport in zip(self._turns, self._transports, strict=True):
            turn.acquire()
            transport.is_held = transport is not self._transports[0]
        myself = weakref.ref(self)
        self._threads = [
            threading.Thread(
                target=_serve,
                args=(myself, index, self._turns[index], self._transports[index]),
                name=f"{_NAME}{index}",
                daemon=True,
            )
            for index in range(1, len(workers))
        ]
        for thread in self._threads:
            thread.start()
        self._numbers = frozenset(thread.ident for thread in self._threads)

    def has(self, thread: int) -> bool:
        """Return True if a thread, by its number, is one of these."""
        return thread in self._numbers

    @property
    def is_at_work(self) -> bool:
        """True if a thread may still be in a step although `call_off` was called."""
        return self.is_over and any(thread.is_alive() for thread in self._threads)

    @property
    def has_paused(self) -> bool:
        """True if something is left to do, although `work` has returned."""
        return self._must_pause

    def work(self, until: float = inf, rows: int = 0) -> bool:
        """Work until nothing is left to do, or until a moment of the monotonic clock, or until `wants_pause`
        returns True; return True if there was anything to do. Raise what a worker raises; after that, and
        after an interrupt, all threads end.

        `rows`: how many have come in. The work for many rows begins in all threads: workers that take turns
        finish a step before they change to threads, and for many rows a step may be half of all the work.
        """
        self._has_moved = self._must_pause = False
        began = time.monotonic()
        is_much = rows > IN_TURN_ROWS_MAX
        in_turn = not is_much and self._pace.begins_in_turn()
        try:
            is_done = in_turn and self._work_in_turn(min(until, began + _IN_TURN_SECONDS))
            if not is_done and not self._must_pause:
                is_done = self._work_at_once(until)
        except BaseException:
            self.call_off()
            raise
        if self._failure is not None:
            self.call_off()
            raise self._failure
        if self._has_moved and not is_much:
            self._pace.note(in_turn, time.monotonic() - began)
        return self._has_moved

    def _work_in_turn(self, until: float) -> bool:
        """Let all workers take turns in this thread; return True if nothing is left to do."""
        in_flight = self._network.in_flight
        self._meeting.until = until
        for transport in self._transports:
            transport.neighbours.wake_up(False)  # no thread sleeps that would have to be woken
        self._transports[0].is_held = True
        try:
            while True:
                moved = False
                for worker in self._workers:
                    if in_flight() or worker.may_step():
                        moved = worker.step() or moved
                if not moved and not in_flight():
                    return True
                self._has_moved = True
                if self._wants_pause():
                    self._must_pause = True
                    return False
                if time.monotonic() > until:
                    return False
        finally:
            self._transports[0].is_held = False

    def _work_at_once(self, until: float) -> bool:
        """Let each thread work; return True if nothing is left to do."""
        for index in range(1, len(self._workers)):
            self._let_go(index)
        is_done = self._work_until_all_rest(until)
        self._must_pause = True
        for turn, transport in zip(self._turns[1:], self._transports[1:], strict=True):
            turn.acquire()
            transport.is_held = True
        self._must_pause = not is_done
        return is_done

    def call_off(self) -> None:
        """End all threads, each after its current step."""
        self.is_over = self._must_pause = True
        for transport in self._transports[1:]:
            transport.is_called, transport.is_held = True, False
            transport.wake()

    def close(self) -> list[Worker]:
        """End all threads, and wait until they have ended; the caller has all turns. Twice is once.

        Return the workers that no thread is in any more.
        """
        if self.is_over:  # they end by themselves, and mostly at once; one may be in a long step
            until = time.monotonic() + _END_SECONDS
            for thread in self._threads:
                thread.join(max(0.0, until - time.monotonic()))
            ended = [not thread.is_alive() for thread in self._threads]
            return [worker for worker, is_free in zip(self._workers, (True, *ended), strict=True) if is_free]
        self.call_off()
        for turn in self._turns[1:]:
            turn.release()
        for thread in self._threads:
            thread.join()
        self._network.close()
        return list(self._workers)

    def _let_go(self, index: int) -> None:
        """Give a worker's turn to its thread. Wake the thread only if the worker has something to do."""
        transport = self._transports[index]
        transport.let_go()  # first: messages from now on wake it, `has_come` sees earlier ones
        rests = self._rests[index] = self._workers[index].is_at_rest() and not transport.has_come()
        transport.is_called = not rests
        self._turns[index].release()
        if not rests:
            transport.wake()

    def _work_until_all_rest(self, until: float) -> bool:
        """Work as the first worker; return True if nothing is left to do."""
        worker, transport = self._workers[0], self._transports[0]
        while True:
            while worker.step():
                self._has_moved = True
                if self._is_called_off() or self._wants_pause() or time.monotonic() > until:
                    return False
            if self._all_rest():
                return True
            left = until - time.monotonic()
            if left <= 0 or self._is_called_off():
                return False
            transport.wait(min(_LOOK_SECONDS, left), self._is_news)

    def _wants_pause(self) -> bool:
        if self._has_other_work():
            return True
        is_closing = None if self._is_closing is None else self._is_closing()
        return is_closing is not None and is_closing()

    def _is_called_off(self) -> bool:
        return self._must_pause or self._failure is not None

    def _is_news(self) -> bool:
        return self._is_called_off() or self._all_rest()

    def _all_rest(self) -> bool:
        """Return True if nothing is left to do. Requires: the first worker rests."""
        before = [(transport.sent, transport.taken) for transport in self._transports]
        if not all(self._rests):
            return False
        if before != [(transport.sent, transport.taken) for transport in self._transports]:
            return False
        return sum(sent for sent, _ in before) == sum(taken for _, taken in before)

    def work_at(self, index: int) -> None:
        """Work as one worker; its thread calls this when it is woken, and has the turn."""
        self._rests[index] = self._transports[index].is_called = False
        try:
            worker = self._workers[index]
            while not self._must_pause and worker.step():
                self._has_moved = True
                if self._wants_pause():
                    self._must_pause = True
        except BaseException as error:
            self.fail(error)
        self._rests[index] = not self._must_pause
        self._transports[0].wake()

    def fail(self, error: BaseException) -> None:
        """Note an error of a thread: the call that works, or the next one, raises it."""
        self._failure = self._failure or error
        self._must_pause = True
        self._transports[0].wake()


def is_worker_thread(thread: threading.Thread) -> bool:
    """Return True if a worker works in a thread, of this cluster or of another one."""
    return thread.name.startswith(_NAME)


def _serve(
    owner: weakref.ref[WorkerThreads], index: int, turn: threading.Lock, transport: ThreadTransport
) -> None:
    """Run one thread. While it waits it does not keep its owner alive, and it ends once the owner is gone."""
    while True:
        try:
            transport.wait(_LOOK_SECONDS, lambda: transport.is_called)
        except BaseException as error:  # a kernel cannot be compiled: no other thread would do this work
            if (threads := owner()) is not None:
                threads.fail(error)
            return
        has_turn = turn.acquire(timeout=_LOOK_SECONDS)
        threads = owner()
        if threads is None:
            transport.close()
            return
        if threads.is_over:
            return
        if has_turn:
            threads.work_at(index)
            turn.release()
        del threads
