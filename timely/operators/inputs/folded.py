"""Rows that wait at an input in less memory than they take in the dataflow.

Rows of an epoch wait until it is sealed (`handle.py`), and all rows of a first load are one epoch. So a
codec may make *folded* rows of many rows. Each enters as a batch of its own, made when its turn has come:
at most one of these batches exists at a time, beside the results of the earlier ones.

A newer version of the dataflow takes over rows that wait. Its input may have other columns: `rereading`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from typing import Protocol, TypeAlias, runtime_checkable

from ...dictionaries import Mark
from ...wire.batch import Batch

__all__ = ["Folded", "Reread", "RereadingCodec", "Waiting", "rereading", "without_folds"]


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


class _DescribedCodec(Protocol):
    def describe(self) -> str:
        """See `InputCodec`."""
        ...


@runtime_checkable
class RereadingCodec(_DescribedCodec, Protocol):
    """A codec that can read rows of an older version of its input, which has other columns."""

    def check_older(self, older: object) -> None:
        """Raise `MisuseError` if there are rows as the codec `older` makes them that this one cannot read."""
        ...

    def reread(self, older: object, batch: Batch) -> Batch:
        """Return a batch that `older` has made as this codec would have made it. Requires: `check_older`."""
        ...


Reread: TypeAlias = Callable[[int | None, Waiting], tuple[int | None, Waiting]]
"""Takes a batch and the time word of its rows (None: it is folded, and has none); returns both for the newer
version. A batch that changes is not folded any more."""


def rereading(codec: _DescribedCodec, older: _DescribedCodec) -> Reread:
    """Return the function that makes rows for `codec` of rows that wait as `older` has made them. Requires:
    `codec` can read them.
    """
    if not isinstance(codec, RereadingCodec) or codec.describe() == older.describe():
        return _as_it_is

    def reread(word: int | None, batch: Waiting) -> tuple[int | None, Waiting]:
        if isinstance(batch, Folded):
            word = 0 if word is None else word
            batch = batch.unfolded(word)
        return word, codec.reread(older, batch)

    return reread


def _as_it_is(word: int | None, batch: Waiting) -> tuple[int | None, Waiting]:
    return word, batch
