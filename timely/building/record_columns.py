"""Numbers of many records at once: keys are taken out as columns, and NumPy numbers a column in one go.

The numbers are those of `record_hash.py`, record for record. A column of whole numbers, text or bytes
costs no line of Python for each value, and tuples are numbered entry by entry. Other values, such as floats,
and mixed ones are numbered one by one. What is no key raises the error that a single record raises: to find
it, functions of the user are called once more.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise, repeat
from operator import itemgetter
from typing import TypeAlias
from zlib import crc32

import numpy as np
import numpy.typing as npt

from progress.compiled.arrays import Int64s

from .record_hash import KeyNumber, RecordEntry, number_of_key
from .tables.column_hash import crc_of_words, numbers_of_integers, order_by_worker

__all__ = ["divided_records", "keys_numbered"]

_Numbers: TypeAlias = npt.NDArray[np.uint32]

_NO_COLUMN = (TypeError, LookupError, RecursionError, UnicodeError)
"""What is raised by a record without the key, or with a key that has no number."""


def keys_numbered(keys: KeyNumber, records: Sequence[object]) -> _Numbers | None:
    """Return the number of each record by its key; None if some record has no such key, or one that has no
    number: then `keys`, called for each record in turn, raises the error.
    """
    try:
        if keys.parts:
            columns = [list(map(_getter(part), records)) for part in keys.parts]
            numbers = [_numbers_of(column) for column in columns]
            return numbers[0] if len(numbers) == 1 else crc_of_words(numbers, len(records), 4)
        return _numbers_of(records)
    except _NO_COLUMN:
        return None


def divided_records(
    records: Sequence[object], numbers: _Numbers, owners: Int64s, workers: int
) -> list[list[object]]:
    """Return the records of each worker, in their order, by the owners of their buckets.

    Requires: two records at least.
    """
    order, bounds = order_by_worker(numbers, owners, workers)
    if len(records) in np.diff(bounds):
        return [list(records) if first < last else [] for first, last in pairwise(bounds.tolist())]
    sorted_records = itemgetter(*order.tolist())(records)
    return [list(sorted_records[first:last]) for first, last in pairwise(bounds.tolist())]


def _getter(part: Callable[[object], object]) -> Callable[[object], object]:
    """Return a function of a record that does what `part` does; in C, if that is to take an entry."""
    if not isinstance(part, RecordEntry):
        return part
    entry: Callable[[object], object] = itemgetter(part.place)  # type: ignore[assignment]  # as it may be
    return entry


def _numbers_of(column: Sequence[object]) -> _Numbers:
    """Return the number of each key. Raise TypeError for what is no key."""
    kinds = set(map(type, column))
    if len(kinds) == 1:
        (kind,) = kinds
        if kind is int or kind is bool:
            return _of_integers(column)
        if kind is str:
            return np.fromiter(map(crc32, map(str.encode, column)), np.uint32, len(column))  # type: ignore[arg-type]
        if kind is bytes:
            return np.fromiter(map(crc32, column, repeat(3)), np.uint32, len(column))  # type: ignore[arg-type]
        if kind is tuple or kind is list:
            return _of_tuples(column)  # type: ignore[arg-type]
    return np.fromiter(map(number_of_key, column), np.uint32, len(column))


def _of_integers(column: Sequence[object]) -> _Numbers:
    try:
        return numbers_of_integers(np.array(column, np.int64))
    except OverflowError:
        return numbers_of_integers(np.fromiter(map(hash, column), np.int64, len(column)))


def _of_tuples(column: Sequence[Sequence[object]]) -> _Numbers:
    """Number tuples, or lists, of one length entry by entry."""
    sizes = set(map(len, column))
    if len(sizes) > 1 or 0 in sizes:
        return np.fromiter(map(number_of_key, column), np.uint32, len(column))
    (size,) = sizes
    entries = [_numbers_of(list(map(itemgetter(place), column))) for place in range(size)]
    return crc_of_words(entries, len(column), 4)
