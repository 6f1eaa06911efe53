"""Which sliding windows is a row in? A step that makes each row once for each of them, without Python per
row.

The first window begins at `origin`, and from there one begins every `every`, in both directions. A row at
time t is in the windows

    [start, start + size)   for each start = origin + k · every   with   start ≤ t < start + size

These are ⌈size / every⌉ windows, or one less where `every` does not divide `size`. If windows are shorter
than `every`, a t in the gap between two is in none.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

import numpy as np

from differential.columns.column_types import Bools, Int64s
from differential.columns.schema import Column, Schema
from differential.errors import FailingRows, RowError
from differential.expressions.projection import TRAILING_WORDS
from timely.user_code.call_site import CallSite

__all__ = ["TIME_MAX", "SlidingTransform"]

TIME_MAX: Final = 1 << 61
"""Bound of times, sizes and origins on either side of 0, so that no sum of three wraps."""


_DAY_MAX: Final = (1 << 31) - 1
"""The last day that a column of dates holds."""


@dataclass(frozen=True)
class SlidingTransform:
    """Rows of `schema_in` with two more columns, the start and the end of a window around their `time`.

    Rows whose time is null are in no window. `lengths`: size, every and origin, in units of the column.
    """

    schema_in: Schema
    time: str
    lengths: tuple[int, int, int]
    names: tuple[str, str]
    site: CallSite

    @property
    def schema_out(self) -> Schema:
        """The same columns and two more, of the type of the time without null."""
        kind = self.schema_in[self.time].type.not_null()
        return Schema((*self.schema_in.columns, *(Column(name, kind) for name in self.names)))

    @property
    def text(self) -> str:
        """The step as it would be written."""
        return f"window({self.time!r}, …)"

    def describe(self) -> str:
        """Return a stable text."""
        size, every, origin = self.lengths
        return f"windows of {self.time}: {size} every {every} from {origin} as {', '.join(self.names)}"

    def compile(self) -> Callable[[Int64s], Int64s | None]:
        """Return the function from rows of words to rows of words; None if no row is left.

        Costs a few passes over the result.
        """
        where = self.schema_in.words_of(self.time)
        is_nullable = len(where) == 2
        size, every, origin = self.lengths
        width = self.schema_in.width
        is_date = self.schema_in[self.time].type.kind == "date"
        limit = _DAY_MAX - size - every if is_date else TIME_MAX
        far = f"±{limit:,} days" if is_date else "±2^61 microseconds or units"

        def run(words: Int64s) -> Int64s | None:
            if is_nullable:
                words = words.compress(words[where[0]] != 0, 1)
            times = words[where[-1]]
            if times.size and (int(times.max()) > limit or int(times.min()) < -limit):
                raise self._beyond((times > limit) | (times < -limit), words, far)
            offsets = (times - origin) % every
            counts = -((offsets - size) // every)
            np.maximum(counts, 0, out=counts)
            total = int(counts.sum())
            if total == 0:
                return None
            out = np.empty((width + 2 + TRAILING_WORDS, total), dtype=np.int64)
            out[:width] = words[:width].repeat(counts, 1)
            number = np.arange(total) - (counts.cumsum() - counts).repeat(counts)
            np.subtract((times - offsets).repeat(counts), number * every, out=out[width])
            np.add(out[width], size, out=out[width + 1])
            out[-TRAILING_WORDS:] = words[-TRAILING_WORDS:].repeat(counts, 1)
            return out

        return run

    def _beyond(self, failing: Bools, words: Int64s, far: str) -> RowError:
        """Return the error about rows whose times no window can hold."""
        times = words[self.schema_in.words_of(self.time)[-1]]
        why = f"a time is beyond {far}, where windows cannot be told apart"
        error = RowError(f"{self.text} ({self.site}): {why}. Filter such rows out before.")
        error.failing = FailingRows(
            failing,
            self.text,
            lambda indices: [why] * len(indices),
            lambda indices: [f"{self.time}=#{time}" for time in times[indices].tolist()],
            lambda indices: words[:-TRAILING_WORDS, indices],
        )
        return error
