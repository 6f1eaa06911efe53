"""Workers of one process that work at the same time, each in a thread of its own, while somebody waits.

The first one works in the thread of who asks; each other has a thread, which sleeps while nothing comes for
its worker. Between two calls nobody works, and who asks may look at all workers and hand them requests: he
holds the *turn* of each then, a lock without which a thread does not touch its worker.

    Crew.work      gives the turns away, works, and takes them back once nothing is left to do

*Is nothing left?* A worker that has done all it could says that it rests, before it sleeps; only a message
changes that. Each counts the messages that it has sent and taken. Who asks looks at all counts, then whether
all rest, then at all counts again. If they are the same as before, and as many messages were taken as sent,
then at one moment between no worker was at work and no message under way: nothing can begin again by itself.
(Looking once would not do: counts are read one after another, and a message may be sent behind the first and
taken before the last.)

Kernels let go of the interpreter's lock, so that they run at the same time; what is Python takes turns.
"""

from __future__ import annotations

import threading
import time
import weakref
from collections.abc import Callable, Sequence
from math import inf
from typing import Final

from ...limits import IN_TURN_ROWS_MAX
from ...running.core import Worker
from .doors import Door, ThreadNetwork
from .pace import Pace

__all__ = ["Crew", "is_of_a_crew"]

_NAME: Final = "naiad-worker-"
_IN_TURN_SECONDS: Final = 1e-3
"""So long what begins in turn goes on so."""
_LOOK_SECONDS: Final = 1.0
"""Whoever sleeps looks around now and then, though there is no way known in which nobody would wake him."""


class Crew:
    """Threads for all of these workers but the first, whose turn is the caller's.

    Args:
        wants_pause: whether to stop for something that has to be done while nobody is at work.
        is_closing: a method of who has this, whom its threads do not hold: whether he is about to end them.
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
        self._doors = network.doors
        self._has_other_work = wants_pause
        self._is_closing = None if is_closing is None else weakref.WeakMethod(is_closing)
        self._turns = [threading.Lock() for _ in workers]
        self._rests = [True for _ in workers]
        self._pace = Pace()
        self._has_moved = False
        self._must_pause = False
        self._failure: BaseException | None = None
        self.is_over = False
        for turn, door in zip(self._turns, self._doors, strict=True):
            turn.acquire()
            door.is_held = door is not self._doors[0]
        myself = weakref.ref(self)
        self._threads = [
            threading.Thread(
                target=_serve,
                args=(myself, index, self._turns[index], self._doors[index]),
                name=f"{_NAME}{index}",
                daemon=True,
            )
            for index in range(1, len(workers))
        ]
        for thread in self._threads:
            thread.start()

    def has(self, thread: int) -> bool:
        """Whether a thread, by its number, is one of these."""
        return any(thread == each.ident for each in self._threads)

    @property
    def is_at_work(self) -> bool:
        """Whether somebody may still be in the step in which all was called off."""
        return self.is_over and any(thread.is_alive() for thread in self._threads)

    @property
    def has_paused(self) -> bool:
        """Whether something is left to do, for all that `work` has returned."""
        return self._must_pause

    def work(self, until: float = inf, rows: int = 0) -> bool:
        """Work until nothing is left to do, or until that moment of the monotonic clock, or until a pause is
        wanted; whether anything was done. Raises what has come out of a worker; then, and after an
        interrupt, all is over.

        `rows`: how many have come in. What is to be done for many begins at once: a step that has begun in
        turn is not left in its midst, and of many rows it may be half of all there is to do.
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
        """Let all workers take turns in this thread; whether nothing is left to do."""
        self._doors[0].is_held = True
        try:
            while True:
                moved = False
                for worker in self._workers:
                    moved = worker.step() or moved
                if not moved and not self._network.in_flight():
                    return True
                self._has_moved = True
                if self._wants_pause():
                    self._must_pause = True
                    return False
                if time.monotonic() > until:
                    return False
        finally:
            self._doors[0].is_held = False

    def _work_at_once(self, until: float) -> bool:
        """Let each thread work; whether nothing is left to do."""
        for index in range(1, len(self._workers)):
            self._let_go(index)
        is_done = self._work_until_all_rest(until)
        self._must_pause = True
        for turn, door in zip(self._turns[1:], self._doors[1:], strict=True):
            turn.acquire()
            door.is_held = True
        self._must_pause = not is_done
        return is_done

    def call_off(self) -> None:
        """End all threads, each after the step that it is in."""
        self.is_over = self._must_pause = True
        for door in self._doors[1:]:
            door.is_called, door.is_held = True, False
            door.wake()

    def close(self) -> None:
        """The same, by who has all turns, and wait until they have ended. Twice is once."""
        if self.is_over:
            return  # they end by themselves: one may be in a long step
        self.call_off()
        for turn in self._turns[1:]:
            turn.release()
        for thread in self._threads:
            thread.join()
        self._network.close()

    def _let_go(self, index: int) -> None:
        """Give a worker's turn away. Who has nothing to do is not woken for that."""
        door = self._doors[index]
        door.let_go()  # first: what comes from now on wakes it, what came before is found
        rests = self._rests[index] = self._workers[index].is_at_rest() and not door.has_come()
        door.is_called = not rests
        self._turns[index].release()
        if not rests:
            door.wake()

    def _work_until_all_rest(self, until: float) -> bool:
        """Work as the first worker; whether nothing is left to do."""
        worker, door = self._workers[0], self._doors[0]
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
            door.wait(min(_LOOK_SECONDS, left), self._is_news)

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
        """Whether nothing is left to do, if the first worker rests."""
        before = [(door.sent, door.taken) for door in self._doors]
        if not all(self._rests):
            return False
        if before != [(door.sent, door.taken) for door in self._doors]:
            return False
        return sum(sent for sent, _ in before) == sum(taken for _, taken in before)

    def work_at(self, index: int) -> None:
        """What a thread does when it is woken, and has its turn."""
        self._rests[index] = self._doors[index].is_called = False
        try:
            worker = self._workers[index]
            while not self._must_pause and worker.step():
                self._has_moved = True
                if self._wants_pause():
                    self._must_pause = True
        except BaseException as error:
            self.fail(error)
        self._rests[index] = not self._must_pause
        self._doors[0].wake()

    def fail(self, error: BaseException) -> None:
        """Something has come out of a thread: who asks, or is the next to ask, is told."""
        self._failure = self._failure or error
        self._must_pause = True
        self._doors[0].wake()


def is_of_a_crew(thread: threading.Thread) -> bool:
    """Whether a worker works in a thread, of this crew or of another one."""
    return thread.name.startswith(_NAME)


def _serve(crew: weakref.ref[Crew], index: int, turn: threading.Lock, door: Door) -> None:
    """Of one thread. It does not hold the crew while it waits: where nobody else has it, it ends."""
    while True:
        try:
            door.wait(_LOOK_SECONDS, lambda: door.is_called)
        except BaseException as error:  # of a kernel that cannot be compiled: nobody else would work here
            if (found := crew()) is not None:
                found.fail(error)
            return
        has_turn = turn.acquire(timeout=_LOOK_SECONDS)
        found = crew()
        if found is None:
            door.close()
            return
        if found.is_over:
            return
        if has_turn:
            found.work_at(index)
            turn.release()
        del found
