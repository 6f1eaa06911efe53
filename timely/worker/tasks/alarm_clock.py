"""The alarms of the vertices of a worker process: who wakes it, and for how long it may sleep.

Sockets are waited for in whole milliseconds. So the worker sets a timer of the system (`timerfd`), whose
descriptor it waits for as for a socket: that wakes it within some 50 µs. Where there is no such timer it is
woken up to a millisecond late.
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Callable
from contextlib import suppress
from typing import Final, Protocol

from ...operators.alarms import seconds_to_alarm
from ...operators.awaiting.event_loop import EventLoop
from ...running.core import Worker

__all__ = ["AlarmClock", "Watches"]

_MONOTONIC: Final = 1
_NONBLOCK_CLOEXEC: Final = os.O_NONBLOCK | os.O_CLOEXEC


class _Timer(ctypes.Structure):
    _fields_ = tuple((name, ctypes.c_long) for name in ("every_seconds", "every_ns", "in_seconds", "in_ns"))


class Watches(Protocol):
    """The sockets that a worker waits for; `wire/transport/zeromq.py` implements it."""

    def watch(self, *sources: int) -> None:
        """Let the sleep also end when one of these descriptors becomes readable."""
        ...

    def unwatch(self, *sources: int) -> None:
        """The inverse of `watch`."""
        ...


class AlarmClock:
    """Says how long a worker may sleep until an alarm is due.

    Args:
        worker: the worker; alarms that other threads ring call `wake`.
        wake: ends the sleep of the worker.
        sleep: lets the sleep also end when a descriptor becomes readable.
    """

    def __init__(self, worker: Worker, wake: Callable[[], None], sleep: Watches) -> None:
        self._worker = worker
        worker.acting.on_wake = wake
        self._sleep = sleep
        self._loop: EventLoop | None = None
        self._loop_descriptor = -1
        self._timer = -1
        self._is_set = False

    def within(self, seconds: float) -> float:
        """Return for how long the worker may sleep that would sleep for `seconds`; see that it is woken in
        time.
        """
        if self._is_set:
            with suppress(BlockingIOError):
                os.read(self._timer, 8)  # it would end each sleep
            self._is_set = False
        loop = self._worker.acting.running_loop
        if loop is not self._loop:
            self._look_after(loop)
        left = seconds_to_alarm(self._worker.instances.values())
        left = left if loop is None else min(left, loop.seconds)
        if left >= seconds or left == 0.0:
            return min(seconds, left)
        self._set(left)
        return left

    def _look_after(self, loop: EventLoop | None) -> None:
        """Let the sleep end when something can go on in the event loop, and not in that of before."""
        if self._loop is not None:
            self._sleep.unwatch(self._loop_descriptor)
        self._loop = loop
        if loop is not None:
            self._loop_descriptor = loop.descriptor
            self._sleep.watch(self._loop_descriptor)

    def _set(self, seconds: float) -> None:
        create = getattr(ctypes.CDLL(None), "timerfd_create", None)
        if create is None:
            return
        if self._timer < 0:
            self._timer = create(_MONOTONIC, _NONBLOCK_CLOEXEC)
            if self._timer < 0:
                return
            self._sleep.watch(self._timer)
        nanoseconds = max(1, round(seconds * 1e9))
        timer = _Timer(0, 0, nanoseconds // 1_000_000_000, nanoseconds % 1_000_000_000)
        ctypes.CDLL(None).timerfd_settime(self._timer, 0, ctypes.byref(timer), None)
        self._is_set = True

    def close(self) -> None:
        """Close the timer."""
        if self._timer >= 0:
            os.close(self._timer)
            self._timer = -1
