"""The rows of one input or output during a fold: what a form of rows can do.

The rows are divided by a hash, which depends on the row alone, into `BUCKETS` buckets, so that a fold can
take some of them at a time. For rows with keys the hash is that of the key.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator, Sequence
from typing import Final, NamedTuple, Protocol, cast

import pyarrow as pa

from progress.compiled.arrays import Int64s

from ...wire.batch import Batch
from .facts import InputFacts, OutputFacts

__all__ = ["BUCKETS", "BaseRows", "BucketRange", "RowsForm", "new_rows"]

BUCKETS: Final = 1 << 12


class BucketRange(NamedTuple):
    """The buckets `first` ≤ bucket < `stop`."""

    first: int
    stop: int


class BaseRows(NamedTuple):
    """Rows of a range of buckets, as a base has them: the columns, `epoch`, `diff`, and for rows whose order
    counts `order` and `place`; epochs ascending.
    """

    buckets: BucketRange
    table: pa.Table


class RowsForm(Protocol):
    """Takes rows of some buckets, and gives what a base has of them."""

    @property
    def rows(self) -> int:
        """The number of rows taken, less those that were summed up by now."""
        ...

    def take(self, epoch: int, batches: Sequence[Batch], order: int = 0, place: int | None = None) -> None:
        """Take the rows of a delivery in one epoch. With a `place`, they are a part, which gets its order."""
        ...

    def take_plain(self, epoch: int, rows: Sequence[Sequence[object]], diffs: Sequence[int]) -> None:
        """Take plain rows of one epoch."""
        ...

    def take_table(self, table: pa.Table) -> None:
        """Take rows of an earlier base, as `folded` has returned them."""
        ...

    def folded(self, ranges: Sequence[BucketRange], summed: int, first: int) -> Iterator[BaseRows]:
        """Yield the rows of each of these ranges that has any. Those up to the epoch `summed` are summed;
        `first` is the first epoch of their dataflow.
        """
        ...

    def empty(self) -> pa.Table:
        """Return no rows, with all the columns of those that `folded` yields."""
        ...

    def values(self, table: pa.Table) -> pa.Table:
        """Return a table of `folded` with the types of columns that readers of the output get."""
        ...

    def words(self) -> Iterator[Int64s]:
        """Yield the arrays of words that it keeps, in which there may be symbols."""
        ...


def new_rows(facts: InputFacts | OutputFacts, buckets: BucketRange) -> RowsForm:
    """Return the form for rows of these buckets of an input or output; there are none yet."""
    module, _, name = facts.form.partition(":")
    make = getattr(importlib.import_module(module), name)
    return cast("Callable[[Sequence[object], BucketRange], RowsForm]", make)(facts.details, buckets)
