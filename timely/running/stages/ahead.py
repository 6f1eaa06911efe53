"""How far the inputs of a stage are, before progress tracking knows: on a worker that is alone."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, Protocol

import numpy as np

from progress.compiled.arrays import Int64s
from progress.times.anchor import Rebase

__all__ = ["Ahead", "Follower", "Opened"]

_NO_TIMES: Final[Int64s] = np.empty(0, np.int64)


class Follower(Protocol):
    """A stage, or compiled loop, that looks how far inputs are."""

    is_ahead: bool
    """True if it has looked since one of them last went on: frontier news of the tracker tell it nothing
    new."""


class Opened(Protocol):
    """A stage that stands for an input."""

    followers: list[Follower]

    @property
    def opened(self) -> int | None:
        """The word, perhaps a wide one, of the epoch at which it may let rows in, as counted; None: it lets
        none in any more.
        """
        ...


class Ahead:
    """How far the inputs are that lead to each port of a stage, before progress tracking knows.

    On a worker that is alone, a stage to which only inputs lead sees by itself how far they are. What an
    input lets in is in the inboxes behind it before its epoch goes on. So with an empty inbox nothing is
    under way. Rows and the end of their epoch are one turn then, and progress tracking hears of both as one:
    it never hears of what was held in between, or was on its way.

    Law: what is seen here is never before what progress tracking says, nor after the truth. The stage may go
    on only as inputs do, and they count that in the same step.
    """

    __slots__ = ("_limit", "_sources", "_words", "are_open", "first")

    def __init__(self, sources: Sequence[Sequence[Opened]], limit: int) -> None:
        """`limit`: words from here on are wide."""
        self._sources = sources
        self._limit = limit
        self._words: list[Int64s] = [_NO_TIMES] * len(sources)
        self.are_open = False
        """True if rows may still come from every one of the inputs."""
        self.first: int | None = None
        """The first word at which rows may still come in at any port; None: none do."""

    def look(self) -> None:
        """See how far the inputs are. Requires: the stage has taken up all rows that they have let in."""
        self.are_open, self.first = True, None
        for port, sources in enumerate(self._sources):
            least: int | None = None
            for source in sources:
                word = source.opened
                if word is None:
                    self.are_open = False
                elif least is None or word < least:
                    least = word
            if least is None:
                self._words[port] = _NO_TIMES
                continue
            least = least if least < self._limit else self._limit
            self._words[port] = np.array([least], np.int64)
            if self.first is None or least < self.first:
                self.first = least

    def frontier(self, port: int) -> Int64s:
        """Return the frontier of a port, as of the last `look`."""
        return self._words[port]

    def or_later(self, port: int, tracked: Int64s) -> Int64s:
        """Return the later of this frontier and that of progress tracking: inputs have gone on since."""
        words = self._words[port]
        return words if not words.size or (tracked.size and tracked[0] < words[0]) else tracked

    def rebase(self, by: Rebase) -> None:
        """Count words from a later anchor. Callers `look` again before they read `first`."""
        self._words = [by.early(words) for words in self._words]
