"""Consolidate: hold rows back until their times are complete, so that what cancels is never sent.

This is the logic alone: words and frontiers in, words out.
"""

from __future__ import annotations

import numpy as np

from differential.kernels.ready import lower_bounds, split_ready
from differential.kernels.sort import sort_parts
from progress._compile import Int64s

_NONE = np.empty(0, np.int64)


class WaitingRows:
    """Rows of `columns` columns (time and diff last) that wait for their times to be complete.

    Rows come in parts, and the minimal times of each are found once: what is asked at every step (is anything
    ready, what must be held) then costs nothing per row.
    """

    def __init__(self, columns: int, guards: int) -> None:
        self.columns = columns
        self.guards = guards
        self._parts: list[Int64s] = []
        self._bounds: list[Int64s] = []

    def add(self, words: Int64s) -> None:
        """Let rows wait; the array is kept, and not changed."""
        assert words.shape[0] == self.columns
        if words.shape[1]:
            self._parts.append(words)
            self._bounds.append(lower_bounds(words, self.columns - 2, _NONE, self.guards))

    def take_ready(self, frontier: Int64s) -> Int64s:
        """Remove and return the rows that are not beyond the frontier, sorted and consolidated."""
        parts, self._parts = self._parts, []
        bounds, self._bounds = self._bounds, []
        complete: list[Int64s] = []
        while parts:
            part, bound = parts.pop(), bounds.pop()
            if self._is_beyond(bound, frontier):
                self._parts.append(part)
                self._bounds.append(bound)
                continue
            ready, later = split_ready(part, self.columns - 2, frontier, self.guards)
            if ready.shape[1]:
                complete.append(ready)
            self.add(later)
        if not complete:
            return np.empty((self.columns, 0), np.int64)
        # Together with what `sort_parts` drops, this frees the memory of the rows before more is taken.
        del part, ready, later
        return sort_parts(complete)

    def consolidate(self) -> None:
        """Sum what waits, so that what cancels takes no memory."""
        if self._parts:
            parts, self._parts, self._bounds = self._parts, [], []
            self.add(sort_parts(parts))

    def times(self, bounds: Int64s) -> Int64s:
        """The minimal antichain of `bounds` and the waiting times, ascending."""
        for bound in self._bounds:
            is_first = bounds.shape[0] == 0
            bounds = bound if is_first else lower_bounds(bound.reshape(1, -1), 0, bounds, self.guards)
        return bounds

    @property
    def rows(self) -> int:
        """How many rows wait."""
        return sum(part.shape[1] for part in self._parts)

    def _is_beyond(self, bounds: Int64s, frontier: Int64s) -> bool:
        guards = self.guards
        times = frontier.tolist()
        return all(
            any(((word | guards) - time) & guards == guards for time in times) for word in bounds.tolist()
        )


class ConsolidateMachine:
    """Hands rows of `words` words on when their times are complete, sorted and consolidated."""

    def __init__(self, words: int, guards: int) -> None:
        self._waiting = WaitingRows(words + 2, guards)

    def recv(self, words: Int64s) -> None:
        """Let rows int64[words + 2, n] wait."""
        self._waiting.add(words)

    def advance(self, frontier: Int64s) -> Int64s:
        """The rows that are complete now: no time of the frontier is ≤ theirs."""
        return self._waiting.take_ready(frontier)

    def capabilities(self) -> Int64s:
        """The minimal times at which something will still be sent, ascending words."""
        return self._waiting.times(_NONE)
