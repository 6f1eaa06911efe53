"""What the programs on all workers say to each other, and the order in which all of them hear it.

    say       a program has something for all others: a value for a sequencer, that it is at a barrier, or its
              result
    take      the source on its worker sends that, at the epoch that it holds
    hear      everything of one epoch, of all workers, in the order of workers: the same on each of them
    end       no more will be heard

Two threads use it: that of the program, and that of its worker. Pure but for that.
"""

from __future__ import annotations

import threading
import time
from collections import defaultdict, deque
from collections.abc import Callable, Sequence

from ...errors import MisuseError, TimelyError, WaitTimeoutError
from ...failure import fresh_copy
from ...wire.frames.record_values import VALUES, pack_value

__all__ = ["AT_BARRIER", "FINISHED", "SEQUENCED", "CommonOrder", "Word"]

AT_BARRIER = "barrier"
FINISHED = "finished"
SEQUENCED = "value"

_WHAT = {AT_BARRIER: "the barrier", FINISHED: "the result", SEQUENCED: "the value"}

Word = tuple[int, int, str, str, object]
"""What a program says: its worker, the number of the word on that worker, a kind, a name, and a value."""


class CommonOrder:
    """What the program on one worker says, and what it has heard."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._said: deque[tuple[str, str, object]] = deque()
        self._count = 0
        self._heard: defaultdict[str, deque[tuple[int, object]]] = defaultdict(deque)
        self._at: defaultdict[int, int] = defaultdict(int)
        """At how many barriers each worker was."""
        self._barriers = 0
        self._heard_own = 0
        """How many words of this worker were heard here."""
        self._finished: set[int] = set()
        self._end: TimelyError | None = None
        self.failure: BaseException | None = None
        """What the program has raised."""
        self.used_before = 0
        """The first epoch at which nobody has said anything, as far as this worker has heard."""
        self.worker = self.workers = 0
        self.activate: Callable[[], object] = bool
        """Wakes the source; `begin` sets it."""

    def begin(self, activate: Callable[[], object], worker: int, workers: int) -> None:
        """Know the source, before the program says anything."""
        self.activate, self.worker, self.workers = activate, worker, workers

    # In the thread of the program.

    def say(self, kind: str, name: str, value: object) -> None:
        """Tell all workers something. Raise why nobody will hear it, if so."""
        try:
            pack_value(value)
        except (TypeError, ValueError, OverflowError) as error:
            raise MisuseError(
                f"worker {self.worker}: {_WHAT[kind]} {value!r:.80} cannot travel ({error}). It may be "
                f"{VALUES}"
            ) from error
        with self._changed:
            if self._end is not None:
                raise fresh_copy(self._end)
            self._said.append((kind, name, value))
        self.activate()

    def fail(self, error: BaseException) -> None:
        """Let the source raise an error of the program."""
        with self._changed:
            if self._end is not None:
                return  # the program has heard why it cannot go on
            self.failure = error
        self.activate()

    def meet(self, timeout: float | None) -> None:
        """Return once all workers have come here as often."""
        self._barriers += 1
        wanted = self._barriers
        self.say(AT_BARRIER, "", None)

        def are_all_here() -> bool:
            missing = [worker for worker in range(self.workers) if self._at[worker] < wanted]
            if gone := self._finished.intersection(missing):
                raise MisuseError(
                    f"worker {self.worker} waits at its barrier number {wanted}, and the program on worker "
                    f"{min(gone)} has returned without coming there: call barrier() as often on each worker"
                )
            return not missing

        self._wait(are_all_here, timeout, f"other workers at barrier number {wanted}")

    def next_value(self, name: str, timeout: float | None) -> tuple[int, object]:
        """Return the worker of the next value of a sequencer, and the value."""
        heard = self._heard[name]

        def has_value() -> bool:
            if not heard and len(self._finished) >= self.workers - 1 and self._said_all():
                raise MisuseError(
                    f"worker {self.worker} waits for a value of sequencer {name!r}, and the programs on all "
                    "other workers have returned: let one of them push a value that says that it was the last"
                )
            return bool(heard)

        self._wait(has_value, timeout, f"the next value of sequencer {name!r}")
        return heard.popleft()

    def _said_all(self) -> bool:
        return not self._said and self._heard_own == self._count

    def _wait(self, holds: Callable[[], bool], timeout: float | None, what: str) -> None:
        until = None if timeout is None else time.monotonic() + timeout
        with self._changed:
            while not holds():
                if self._end is not None:
                    raise fresh_copy(self._end)
                left = None if until is None else until - time.monotonic()
                if left is not None and left <= 0:
                    raise WaitTimeoutError(
                        f"worker {self.worker} has waited {timeout:g} s for {what}: give more time, or look "
                        "what the others do"
                    )
                self._changed.wait(left)

    # In the thread of the worker.

    def take(self) -> list[Word]:
        """Return what the program has said since the last call."""
        with self._changed:
            first, self._count = self._count, self._count + len(self._said)
            said = [(self.worker, first + at, *word) for at, word in enumerate(self._said)]
            self._said.clear()
        return said

    def use(self, epoch: int) -> None:
        """Know that somebody has said something at an epoch, and let the source go past it."""
        if epoch >= self.used_before:
            self.used_before = epoch + 1
            self.activate()

    def hear(self, words: Sequence[Word]) -> None:
        """Take in the words of one epoch, in order."""
        with self._changed:
            for worker, _, kind, name, value in words:
                self._heard_own += worker == self.worker
                if kind == AT_BARRIER:
                    self._at[worker] += 1
                elif kind == FINISHED:
                    self._finished.add(worker)
                else:
                    self._heard[name].append((worker, value))
            self._changed.notify_all()

    def end(self, error: TimelyError) -> None:
        """Let the program hear why nothing will be heard any more, unless it has heard another reason."""
        with self._changed:
            self._end = self._end or error
            self._changed.notify_all()
