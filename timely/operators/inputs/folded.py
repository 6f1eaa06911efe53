"""Rows that wait at an input in less memory than they take in the dataflow.

Rows of an epoch wait until it is sealed (`handle.py`), and all that are loaded at first are one epoch. What a
codec makes of many rows may therefore be *folded*: it enters as a batch of its own, made when its turn has
come, so that no more than one of these is there at a time beside what has become of those before it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod

from ...dictionaries import Mark
from ...wire.batch import Batch

__all__ = ["Folded", "Waiting"]


class Folded(ABC):
    """Some rows, at least one; they have no times of their own but that at which they enter."""

    __slots__ = ()

    @property
    @abstractmethod
    def rows(self) -> int:
        """How many."""

    @abstractmethod
    def unfolded(self, word: int) -> Batch:
        """The rows as they enter at the time `word`."""

    @abstractmethod
    def with_next(self, other: Folded) -> Folded | None:
        """These rows and those behind them as one, if that is not too large a batch."""

    @abstractmethod
    def symbols(self, mark: Mark) -> None:
        """Show all words in which there may be symbols; see `Batch.symbols`."""


Waiting = Batch | Folded
"""What waits at an input."""
