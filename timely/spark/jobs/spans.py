"""The windows over a column of times that `window=` takes.

    sliding("24 hours", every="1 hour", on="time")     a row stays for a day; an epoch is an hour
    tumbling("1 hour", on="time")                      a row stays for the epoch that it comes in
    growing(every="1 hour", on="time")                 a row stays for ever

Epoch k ends at T = first + (k + 1) · every, and its window is (T − length, T]: the rows that have come up to
T. `first` is the last multiple of `every` (counted from 1970 in UTC) before the first row, unless the caller
sets it. `timely/spark/windows.py` describes how rows become changes.

The column is a timestamp, a date, or whole numbers: seconds, if lengths are texts or timedeltas.
"""

from __future__ import annotations

import datetime as dt
import re
from dataclasses import dataclass

from timely.errors import MisuseError

__all__ = ["Length", "Time", "Window", "growing", "seconds_of", "sliding", "tumbling"]

Length = str | dt.timedelta | int
"""`"90 minutes"`, `timedelta(hours=1)`, or a number in the unit of a column of whole numbers."""

Time = dt.datetime | dt.date | int

_UNITS = {"second": 1, "sec": 1, "minute": 60, "min": 60, "hour": 3_600, "day": 86_400, "week": 604_800}
_PART = re.compile(r"(\d+)\s*([a-z]+?)s?\b")


@dataclass(frozen=True)
class Window:
    """A window, made by `sliding`, `tumbling` or `growing`; `length` is None if no row leaves."""

    kind: str
    length: Length | None
    every: Length
    on: str
    first: Time | None = None
    last: Time | None = None
    epochs: int | None = None

    def __post_init__(self) -> None:
        for length in (self.length, self.every):
            if length is not None and seconds_of(length) < 1:
                raise MisuseError(f"a window's length and step are 1 second or more, not {length!r}")
        if self.epochs is not None and self.epochs < 1:
            raise MisuseError(f"epochs is 1 or more, not {self.epochs}")

    def __str__(self) -> str:
        length = "" if self.length is None else f" of {seconds_of(self.length)}"
        return f"{self.kind}{length} every {seconds_of(self.every)} on {self.on}"


def sliding(
    length: Length,
    *,
    every: Length,
    on: str,
    first: Time | None = None,
    last: Time | None = None,
    epochs: int | None = None,
) -> Window:
    """Return a window of `length` that moves by `every` an epoch over the column `on`; rows leave it by
    themselves.

    `first`, `last`: the times from and up to which there are epochs; by default the last multiple of `every`
    before the first row, and the last row. The last epoch is the first one that ends at `last` or after it.
    `epochs`: the largest number of epochs. Raises MisuseError for lengths that are malformed or below 1
    second.
    """
    return Window("sliding", length, every, on, first, last, epochs)


def tumbling(
    length: Length,
    *,
    on: str,
    first: Time | None = None,
    last: Time | None = None,
    epochs: int | None = None,
) -> Window:
    """Return windows that follow one another: `sliding(length, every=length, …)`."""
    return Window("tumbling", length, length, on, first, last, epochs)


def growing(
    *, every: Length, on: str, first: Time | None = None, last: Time | None = None, epochs: int | None = None
) -> Window:
    """Return a window of all rows up to the end of each epoch; epochs are `every` apart. The rest as in
    `sliding`.
    """
    return Window("growing", None, every, on, first, last, epochs)


def seconds_of(length: Length) -> int:
    """Return a length in whole seconds; a number is returned as it is.

    Raises MisuseError for a text that is no length, and for fractions of a second.
    """
    if isinstance(length, int):
        return length
    if isinstance(length, dt.timedelta):
        if length % dt.timedelta(seconds=1):
            raise MisuseError(f"a window's length is in whole seconds, not {length}")
        return int(length.total_seconds())
    text = str(length).strip().lower()
    parts = _PART.findall(text)
    if not parts or _PART.sub("", text).strip() or any(unit not in _UNITS for _, unit in parts):
        raise MisuseError(
            f"{length!r} is no length of time: write '90 minutes', '1 hour 30 minutes', '7 days', or a "
            "timedelta"
        )
    return sum(int(number) * _UNITS[unit] for number, unit in parts)
