"""Numbers for keys of records: the same in every process, on every host, in every release.

Python's own `hash` will not do between processes: text hashes by a seed of the process, and `None` (before
Python 3.12), NaN, classes and functions hash by their addresses.

`number_of_key` compares keys as a Python dict does, and equal keys have equal numbers:

    numbers       1, 1.0, True and Decimal(1) are one key; so are 0.0 and -0.0. All NaNs have one number.
    text, bytes   by their contents; the text "a" and the bytes b"a" are two keys. A bytearray is its bytes.
    tuples        by their entries, in order. A list is the tuple of its entries, as which it arrives
                  elsewhere.
    dictionaries  by their entries, in any order
    dates, times  by their fields; those with a zone by the moment, whatever the zone
    None, UUIDs   by their values

Unequal keys may have equal numbers; then they go to one worker together.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Mapping
from numbers import Number
from typing import Final
from uuid import UUID
from zlib import crc32

import numpy as np

from progress.errors import MisuseError

from ..wire.claims import shown

__all__ = ["KeyNumber", "RecordEntry", "by", "number_of_key"]

_MOMENT_ZERO: Final = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
_MICROSECOND: Final = dt.timedelta(microseconds=1)


class KeyNumber:
    """A function of a record that returns the number of its key; made by `by`.

    `parts` return the key of a record, or each an entry of it if they are several; none: the record is the
    key. `name` is the function's name in errors and descriptions of a dataflow. `places`: the entries that
    are the key, none for all of them; None: it is made by a function.
    """

    def __init__(
        self,
        parts: tuple[Callable[[object], object], ...],
        name: str,
        places: tuple[str | int, ...] | None = None,
    ) -> None:
        self.parts = parts
        self.key = _whole if not parts else parts[0] if len(parts) == 1 else _Several(parts)
        self.places = places
        self.__qualname__ = name

    def __call__(self, record: object) -> int:
        """Return the number of the key of `record`."""
        key = self.key(record)
        try:
            return number_of_key(key)
        except (TypeError, RecursionError) as error:
            raise MisuseError(
                f"{self.__qualname__} cannot number the key {shown(key)} of the record {shown(record)}: "
                f"{error}. A key is None, a number, text, bytes, a date or time, a UUID, or a tuple or dict "
                "of these: write timely.by(lambda record: …) with a function that returns one"
            ) from None


def by(*keys: Callable[[object], object] | str | int) -> KeyNumber:
    """Return an exchange function by which records with equal keys meet: `exchange=timely.by("word")`.

    A key is a function of the record, or the index of one entry of it: an integer for a tuple, a text for a
    dict. Several keys form a tuple: `by("year", "month")`. Without any the whole record is the key. Rows of
    tables meet by names, or numbers, of columns, and go where records with these keys go.

    The numbers are the same in every process and release; 1, 1.0 and True are one key, as in a dict
    (`timely/building/record_hash.py` has the rules).
    """
    for key in keys:
        if not callable(key) and (isinstance(key, bool) or not isinstance(key, str | int)):
            raise MisuseError(
                f"timely.by({shown(key)}): a key is a function of the record, the name of an entry of a "
                "dict, or the number of an entry of a tuple: timely.by('word'), timely.by(0), "
                "timely.by(lambda record: …)"
            )
    name = f"by({', '.join(_shown_key(key) for key in keys)})"
    parts = tuple(key if callable(key) else RecordEntry(key) for key in keys)
    places = tuple(key for key in keys if not callable(key))
    return KeyNumber(parts, name, places if len(places) == len(keys) else None)


def number_of_key(key: object) -> int:
    """Return the number of `key`, of 32 bits. Raise TypeError if it is no key."""
    if type(key) is str:
        return crc32(key.encode("utf-8", "surrogatepass"))
    if type(key) is int:
        # Python specifies the hashes of numbers, for all kinds of numbers alike.
        return crc32(hash(key).to_bytes(8, "little", signed=True), 1)
    return _number_of_other(key)


def _number_of_other(key: object) -> int:
    if isinstance(key, str):
        return crc32(str.encode(key, "utf-8", "surrogatepass"))
    if key is None:
        return crc32(b"none", 2)
    if isinstance(key, np.generic) and not isinstance(key, Number | str | bytes):
        key = key.item()  # a truth value or a date of NumPy
    if isinstance(key, Number):
        if key != key:  # only a NaN differs from itself
            return crc32(b"nan", 13)
        return crc32(hash(key).to_bytes(8, "little", signed=True), 1)
    if isinstance(key, bytes | bytearray | memoryview):
        return crc32(key, 3)
    if isinstance(key, tuple | list):
        return crc32(b"".join([number_of_key(entry).to_bytes(4, "little") for entry in key]), 4)
    if isinstance(key, Mapping):
        entries = sorted(number_of_key(entry) for entry in key.items())
        return crc32(b"".join([entry.to_bytes(4, "little") for entry in entries]), 5)
    if isinstance(key, dt.datetime):
        if key.utcoffset() is None:
            return crc32(key.replace(fold=0).isoformat().encode(), 6)
        return _number_of_span(key - _MOMENT_ZERO, 7)
    if isinstance(key, dt.date):
        return crc32(key.isoformat().encode(), 8)
    if isinstance(key, dt.timedelta):
        return _number_of_span(key, 9)
    if isinstance(key, dt.time):
        offset = key.utcoffset()
        since = dt.timedelta(
            hours=key.hour, minutes=key.minute, seconds=key.second, microseconds=key.microsecond
        )
        return _number_of_span(since, 10) if offset is None else _number_of_span(since - offset, 11)
    if isinstance(key, UUID):
        return crc32(key.bytes, 12)
    raise TypeError(f"{type(key).__name__!r} has no number that is the same in every process")


def _number_of_span(span: dt.timedelta, kind: int) -> int:
    return crc32((span // _MICROSECOND).to_bytes(12, "little", signed=True), kind)


_OF_PAIRS: Final = ". aggregate and state_machine take pairs (key, value)"


class RecordEntry:
    """A function of a record that returns one entry of it."""

    def __init__(self, place: str | int) -> None:
        self.place = place

    def __call__(self, record: object) -> object:
        """Return the entry; raise `MisuseError` if the record has none."""
        try:
            return record[self.place]  # type: ignore[index]  # what cannot be indexed is told below
        except (TypeError, LookupError) as error:
            pairs = _OF_PAIRS if self.place == 0 else ""
            raise MisuseError(
                f"timely.by({self.place!r}): the record {shown(record)} has no entry {self.place!r}: name "
                f"one that all records have, or give a function: timely.by(lambda record: …){pairs}"
            ) from error


class _Several:
    """The keys that several functions return, as a tuple."""

    def __init__(self, parts: tuple[Callable[[object], object], ...]) -> None:
        self.parts = parts

    def __call__(self, record: object) -> object:
        return tuple([part(record) for part in self.parts])


def _whole(record: object) -> object:
    return record


def _shown_key(key: object) -> str:
    return str(getattr(key, "__qualname__", type(key).__name__)) if callable(key) else repr(key)
