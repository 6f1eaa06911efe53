"""Callbacks that are `async def`: one coroutine of a vertex after the other, each with its times held.

The runtime calls a callback as ever. In place of the coroutine function stands one that puts the call at the
end of a queue and holds the times at which it may act. The first call of the queue is a task in the event
loop of the worker; when it is over, its times are dropped and the next one begins. So

    order       callbacks of one vertex never overlap, and come in the order in which they would have come;
                `on_notify(time)` comes once, behind all calls that may act at that time or before
    time        no time is complete while a coroutine that may act there runs or waits for its turn
    errors      what a coroutine raises is raised in a turn of its vertex, which ends the dataflow
    the end     when a dataflow ends, the task is cancelled, and what waits is dropped
"""

from __future__ import annotations

import asyncio
from collections import Counter, deque
from collections.abc import Callable, Coroutine, Sequence
from heapq import heappop, heappush
from inspect import iscoroutinefunction
from typing import Final, NoReturn, Protocol, TypeAlias, Unpack, cast

from progress.errors import InternalError
from progress.times.timestamp import Timestamp

from ...user_code.vertex_calls import check_result
from ..capability import Capability
from ..vertex import Vertex
from .event_loop import CANCEL_ROUNDS, EventLoop
from .times_in_order import TimesInOrder

__all__ = ["ASYNC_CALLBACKS", "CallsInOrder", "HasLoop", "async_callbacks"]

ASYNC_CALLBACKS: Final = ("on_open", "on_recv", "on_notify", "on_activate")
"""The callbacks that may be coroutine functions."""

_Callback: TypeAlias = Callable[[Unpack[tuple[object, ...]]], object]
_Make: TypeAlias = Callable[[], Coroutine[object, object, None]]


class HasLoop(Protocol):
    """The worker of a vertex; `running/stages/rights.py` implements it."""

    loop: EventLoop | None
    has_alarms: bool


def async_callbacks(vertex: Vertex) -> list[str]:
    """Return the names of the callbacks of a vertex that are coroutine functions."""
    return [name for name in ASYNC_CALLBACKS if iscoroutinefunction(getattr(vertex, name))]


class CallsInOrder:
    """The queue of one vertex that has such callbacks; `times` returns those at which it may act now."""

    def __init__(
        self, vertex: Vertex, names: Sequence[str], worker: HasLoop, times: Callable[[], list[Timestamp]]
    ) -> None:
        self._vertex = vertex
        self._worker = worker
        self._times = times
        self._waiting: deque[tuple[_Make, list[Capability]]] = deque()
        self._over: list[tuple[Timestamp, int, _Make, list[Capability]]] = []
        """The calls of `on_notify` that wait, a heap by time; behind the time is a number."""
        self._over_at: Counter[tuple[Timestamp, Timestamp]] = Counter()
        """Of these calls, the time and each at which they may act."""
        self._asked = TimesInOrder()
        """The times for which the vertex has asked, and that nobody has told it yet."""
        self._acting_at = TimesInOrder()
        """The times at which the calls in `_waiting` may act."""
        self._told = 0
        self._held: list[Capability] = []
        self._task: asyncio.Task[None] | None = None
        self._error: BaseException | None = None
        self._has_ended = False
        if worker.loop is None:
            worker.loop = EventLoop()
        worker.loop.users += 1
        worker.has_alarms = True
        self._resume = vertex.on_resume
        for name in ASYNC_CALLBACKS:
            # All of them: those that are plain functions wait for coroutines before them, too.
            if name in names or getattr(type(vertex), name) is not getattr(Vertex, name):
                stands = self._in_place_of_notify if name == "on_notify" else self._in_place_of
                setattr(vertex, name, stands(getattr(vertex, name), name in names))
        self._ask = vertex.notify_at
        if "on_notify" in vars(vertex):
            vertex.notify_at = self._notify_at  # type: ignore[method-assign]
        vertex.on_resume = self._on_resume  # type: ignore[method-assign]  # a turn in which errors are raised

    def _in_place_of(self, callback: _Callback, is_async: bool) -> _Callback:
        def called(*arguments: object) -> None:
            if not is_async and self._task is None:
                self._check(callback, callback(*arguments))
                return
            held = [self._vertex.hold(time) for time in self._times()]
            self._waiting.append((lambda: self._run(callback, is_async, arguments), held))
            for each in held:
                self._acting_at.add(each.time)
            if self._task is None:
                self._next()

        return called

    def _in_place_of_notify(self, callback: _Callback, is_async: bool) -> Callable[[Timestamp], None]:
        def called(time: Timestamp) -> None:
            self._asked.discard(time)
            if not is_async and self._task is None and not self._over:
                self._check(callback, callback(time))
                return
            held = [self._vertex.hold(each) for each in self._times()]
            self._told += 1
            heappush(self._over, (time, self._told, lambda: self._run(callback, is_async, (time,)), held))
            self._over_at.update((time, each.time) for each in held)
            if self._task is None:
                self._next()

        return called

    def _notify_at(self, time: Timestamp, *, at: Timestamp | None = None) -> None:
        """Ask for `on_notify(time)`, unless such a call waits already, and may act there."""
        if self._over_at[tuple(time), tuple(at or time)]:
            return
        self._ask(time, at=at)
        if (asked := tuple(time)) not in self._asked:
            self._asked.add(asked)

    def _may_be_told(self, time: Timestamp) -> bool:
        """Return True if no call may still act, or ask, at a time up to this one. The worker soon tells
        what the vertex has asked for up to a complete time.
        """
        is_before = self._vertex._runner.code.shape.less_equal
        return not (self._asked.has_up_to(time, is_before) or self._acting_at.has_up_to(time, is_before))

    async def _run(self, callback: _Callback, is_async: bool, arguments: tuple[object, ...]) -> None:
        result = callback(*arguments)
        if is_async:
            result = await cast("Coroutine[object, object, object]", result)
        self._check(callback, result)

    def _check(self, callback: _Callback, result: object) -> None:
        check_result(self._vertex, getattr(callback, "__name__", "a callback"), result)

    def _next(self) -> None:
        """Let the first call that waits begin."""
        assert self._worker.loop is not None
        if self._over and self._may_be_told(self._over[0][0]):
            told, _, make, self._held = heappop(self._over)
            for each in self._held:
                self._over_at[told, each.time] -= 1
                if not self._over_at[told, each.time]:
                    del self._over_at[told, each.time]
        elif self._waiting:
            make, self._held = self._waiting.popleft()
            for each in self._held:
                self._acting_at.discard(each.time)
        else:
            self._task = None
            return
        self._task = self._worker.loop.start(self._guarded(make))

    async def _guarded(self, make: _Make) -> None:
        """Run one call; then let its times go, and the next call begin."""
        try:
            await make()
        except BaseException as error:  # also of `sys.exit`, which would end the worker
            if self._has_ended:
                return
            self._error = error
            self._vertex._runner.resume()
        else:
            for each in self._held:
                each.drop()
            self._next()

    def _on_resume(self) -> None:
        """Raise what a coroutine has raised; else do what the vertex has asked for."""
        if self._error is not None:
            raise self._error
        self._resume()

    def __deepcopy__(self, memo: dict[int, object]) -> NoReturn:
        raise InternalError(
            f"{self._vertex!r} has coroutines as callbacks, so its worker cannot be copied: write plain "
            "functions to explore what it does"
        )

    @property
    def is_busy(self) -> bool:
        """True while a call runs, or waits for its turn."""
        return self._task is not None and not self._task.done()

    def end(self) -> None:
        """Cancel what runs, and drop what waits: the dataflow has ended."""
        loop, self._has_ended = self._worker.loop, True
        self._waiting.clear()
        self._over.clear()
        if loop is None:
            return
        if self._task is not None and not self._task.done():
            self._task.cancel()
            for _ in range(CANCEL_ROUNDS):
                if not self._task.done():
                    loop.run()
        loop.users -= 1
        if loop.users == 0:
            loop.close()
            self._worker.loop = None
