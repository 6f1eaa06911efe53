"""Should a call begin with all workers taking turns in one thread, or with all of them at work at once?

A small change is Python for the most part, of which only one thread runs at a time: to hand it from thread to
thread costs more than it gains. What is large gains, and loses little by a millisecond in turn. In between it
depends on the dataflow and on the machine; so both are tried, and the one is taken that took less of late.
"""

from __future__ import annotations

from typing import Final

__all__ = ["Pace"]

_OTHER_AFTER: Final = 64
"""After so many calls the other way is tried once: things may have changed."""
_STEP: Final = 1.05
"""By how much what is known of a way changes with each call that took longer, or less: so it comes to be what
half of the calls take. A mean would follow the few that take very long."""
_MUCH: Final = 0.9
"""The other way is taken once it takes so much less."""


class Pace:
    """Knows how long calls took that began either way."""

    def __init__(self) -> None:
        self._took: dict[bool, float] = {}
        self._is_in_turn = True
        self._calls = 0

    def begins_in_turn(self) -> bool:
        """How the next call is to begin."""
        if len(self._took) < 2:
            return True not in self._took
        return self._is_in_turn != (self._calls % _OTHER_AFTER == 0)

    def note(self, in_turn: bool, seconds: float) -> None:
        """One that began so, and had something to do, has taken so long."""
        self._calls += 1
        known = self._took.get(in_turn)
        if known is None:
            self._took[in_turn] = seconds
        else:
            self._took[in_turn] = known * _STEP if seconds > known else known / _STEP
        if len(self._took) == 2:
            mine, other = self._took[self._is_in_turn], self._took[not self._is_in_turn]
            if other < _MUCH * mine:
                self._is_in_turn = not self._is_in_turn
