"""The event loop of one worker: coroutines of its vertices run in it, between two steps.

It is a loop of asyncio whose selector never sleeps: `run` lets everything go on that can, and returns. So
coroutines run in the thread of the worker, as all other callbacks do, and only one of them at a time. The
worker sleeps for them: until `wake_at`, or until `descriptor` is readable, which also covers what other
threads hand to the loop.
"""

from __future__ import annotations

import asyncio
import selectors
import time
from collections.abc import Callable, Coroutine, Generator
from contextlib import contextmanager
from math import inf
from typing import Final

__all__ = ["CANCEL_ROUNDS", "EventLoop"]

_ROUNDS_MAX: Final = 64
"""How often a loop goes round before others have their turn."""


CANCEL_ROUNDS: Final = 4
"""How often a loop runs for coroutines that were cancelled; they should not wait for anything then."""


class _Restless(selectors.DefaultSelector):
    """Returns at once. Where a loop would sleep it stops it, and notes for how long it would have slept."""

    def __init__(self) -> None:
        super().__init__()
        self.loop: asyncio.AbstractEventLoop | None = None
        self.rounds = 0
        self.sleeps = 0.0

    def select(  # type: ignore[explicit-any]  # keys have data of any kind
        self, timeout: float | None = None
    ) -> list[tuple[selectors.SelectorKey, int]]:
        """Return what is ready now."""
        assert self.loop is not None
        ready = super().select(0)
        self.rounds += 1
        is_idle = not ready and (timeout is None or timeout > 0)
        if is_idle or self.rounds >= _ROUNDS_MAX:
            self.sleeps = 0.0 if not is_idle else inf if timeout is None else timeout
            self.loop.stop()
        return ready


class _Loop(asyncio.SelectorEventLoop):
    """Goes without a warning if its worker does so without being closed, such as that of an embedded cluster
    that nothing refers to any more.
    """

    def __init__(self, selector: selectors.BaseSelector, clock: Callable[[], float]) -> None:
        super().__init__(selector)
        self._clock = clock

    def time(self) -> float:
        """Return the moment by its clock."""
        return self._clock()

    def __del__(self) -> None:
        if not self.is_closed():
            self.close()


class EventLoop:
    """The loop of one worker; `users` counts the vertices that have callbacks in it. `clock`: another clock
    than the monotonic one, for a simulation in which nothing sleeps.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._selector = _Restless()
        self._clock = clock
        self._loop = self._selector.loop = _Loop(self._selector, clock)
        self.users = 0
        self.wake_at = inf
        """When something goes on by itself, on its clock."""

    @property
    def descriptor(self) -> int:
        """Readable if something can go on before `wake_at`."""
        return self._selector.fileno()

    @property
    def seconds(self) -> float:
        """For how many seconds the worker may sleep at most."""
        return self.wake_at if self.wake_at == inf else max(0.0, self.wake_at - self._clock())

    def start(self, coroutine: Coroutine[object, object, None]) -> asyncio.Task[None]:
        """Let a coroutine run from the next `run` on."""
        self.wake_at = 0.0
        return self._loop.create_task(coroutine)

    def run(self) -> bool:
        """Let go on whatever can, without waiting; return True if more is left."""
        if self._loop.is_running():
            return False  # one of its coroutines ends the dataflow that another one belongs to
        self._selector.rounds = 0
        with _no_other_loop():
            self._loop.run_forever()
        sleeps = self._selector.sleeps
        self.wake_at = inf if sleeps == inf else self._clock() + sleeps
        return sleeps == 0.0

    def close(self) -> None:
        """Cancel what still runs in it, such as tasks that a vertex has begun; release its descriptors."""
        for _ in range(CANCEL_ROUNDS):
            for task in asyncio.all_tasks(self._loop):
                task.cancel()
            self.run()
        self._loop.close()


@contextmanager
def _no_other_loop() -> Generator[None]:
    """Let a loop run in a thread in which another one is running, such as that of a notebook, whose cell has
    called an embedded cluster.
    """
    other = asyncio._get_running_loop()
    asyncio._set_running_loop(None)
    try:
        yield
    finally:
        asyncio._set_running_loop(other)
