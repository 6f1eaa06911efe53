"""Rows that wait at an input in less memory than they take in the dataflow.

Rows of an epoch wait until it is sealed (`handle.py`), and all rows of a first load are one epoch. So a
codec may make *folded* rows of many rows. Each enters as a batch of its own, made when its turn has come:
at most one of these batches exists at a time, beside the results of the earlier ones.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable

from ...dictionaries import Mark
from ...wire.batch import Batch

__all__ = ["Folded", "Waiting", "without_folds"]


class Folded(ABC):
    """Some rows, at least one; their only time is the one at which they enter."""

    __slots__ = ()

    @property
    @abstractmethod
    def rows(self) -> int:
        """The number of rows."""

    @abstractmethod
    def unfolded(self, word: int) -> Batch:
        """Return the rows as a batch at the time `word`."""

    @abstractmethod
    def with_next(self, other: Folded) -> Folded | None:
        """Return these rows and those of `other`, behind them, as one; None if the batch would be too
        large.
        """

    @abstractmethod
    def symbols(self, mark: Mark) -> None:
        """Show all words in which there may be symbols; see `Batch.symbols`."""


Waiting = Batch | Folded
"""Rows that wait at an input."""


def without_folds(batches: Iterable[Waiting]) -> list[Batch]:
    """Return the batches that have rows, folded ones as batches; their time does not matter to a journal."""
    return [each.unfolded(0) if isinstance(each, Folded) else each for each in batches if each.rows]
