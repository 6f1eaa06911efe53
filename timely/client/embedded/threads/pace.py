"""Should a call begin with all workers taking turns in one thread, or with all of them at work at once?

A small change is mostly Python code, and only one thread runs Python at a time: to hand the change from
thread to thread costs more than it gains. A large change gains, and loses little by a millisecond in turn. In
between it depends on the dataflow and on the machine; so `Pace` tries both, and takes the one that took less
time lately.
"""

from __future__ import annotations

from typing import Final

__all__ = ["Pace"]

_OTHER_AFTER: Final = 64
"""After this number of calls `Pace` tries the other way once: things may have changed."""
_STEP: Final = 1.05
"""The factor by which the estimate for a way changes with each call that took longer, or less: so it tends to
the median. A mean would follow the few calls that take very long.
"""
_MUCH: Final = 0.9
"""`Pace` changes to the other way once that takes less than this share of the time."""


class Pace:
    """Estimates how long calls take that begin either way."""

    def __init__(self) -> None:
        self._took: dict[bool, float] = {}
        self._is_in_turn = True
        self._calls = 0

    def begins_in_turn(self) -> bool:
        """Return True if the next call is to begin with workers that take turns."""
        if len(self._took) < 2:
            return True not in self._took
        return self._is_in_turn != (self._calls % _OTHER_AFTER == 0)

    def note(self, in_turn: bool, seconds: float) -> None:
        """Note how long a call took that had something to do. `in_turn`: it began with workers taking
        turns.
        """
        self._calls += 1
        estimate = self._took.get(in_turn)
        if estimate is None:
            self._took[in_turn] = seconds
        else:
            self._took[in_turn] = estimate * _STEP if seconds > estimate else estimate / _STEP
        if len(self._took) == 2:
            mine, other = self._took[self._is_in_turn], self._took[not self._is_in_turn]
            if other < _MUCH * mine:
                self._is_in_turn = not self._is_in_turn
