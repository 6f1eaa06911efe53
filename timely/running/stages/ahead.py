"""What does a stage know of inputs before progress tracking is told?

On a worker that is alone, a stage to which only inputs lead sees by itself how far they are: what an input
lets in is in the inboxes behind it before its epoch goes on, so with an empty inbox nothing is under way.
Rows and the end of their epoch are one turn then, and progress tracking hears of both as one: what was held
in between, or on its way, is not told at all.

What is seen here is never before what progress tracking says, nor after the truth. It may go on only as
inputs do, and they count that in the same step.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, Protocol

import numpy as np

from progress.compiled.arrays import Int64s
from progress.times.anchor import Rebase

__all__ = ["Ahead", "Follower", "Opened"]

_NO_TIMES: Final[Int64s] = np.empty(0, np.int64)


class Follower(Protocol):
    """Who looks how far inputs are."""

    is_ahead: bool
    """Whether it has, since one of them last went on: no news of frontiers are news to it."""


class Opened(Protocol):
    """A stage that stands for an input."""

    followers: list[Follower]

    @property
    def opened(self) -> int | None:
        """The word, perhaps a wide one, of the epoch at which it may let rows in, as it has counted that;
        None: it lets none in any more.
        """
        ...


class Ahead:
    """How far the inputs are that lead to each port of a stage. `limit`: words from here on are wide."""

    __slots__ = ("_limit", "_sources", "_words", "are_open", "first")

    def __init__(self, sources: Sequence[Sequence[Opened]], limit: int) -> None:
        self._sources = sources
        self._limit = limit
        self._words: list[Int64s] = [_NO_TIMES] * len(sources)
        self.are_open = False
        """Whether rows may still come from every one of the inputs."""
        self.first: int | None = None
        """The first word of what may still come in at any port; None: nothing does."""

    def look(self) -> None:
        """See how far they are. Requires: all that they have let in is taken up."""
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
        """What may still come in at a port, as it was when this last looked."""
        return self._words[port]

    def or_later(self, port: int, told: Int64s) -> Int64s:
        """The later of this and what progress tracking says: inputs have gone on since."""
        words = self._words[port]
        return words if not words.size or (told.size and told[0] < words[0]) else told

    def rebase(self, by: Rebase) -> None:
        """Words count from a later anchor. Who asks for `first` looks again before."""
        self._words = [by.early(words) for words in self._words]
