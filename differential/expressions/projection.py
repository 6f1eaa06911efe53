"""How does a row become another by moving words only?

A *projection* tells for each word of the new row where it comes from, word i of the old row or a constant,
and whether the diff changes its sign. Renaming, reordering, dropping and repeating columns, adding constants,
negating, and any chain of these are projections. So together they cost one gather, or nothing at all: an
operator that makes rows (a join) can write them in the layout of its consumer.

    laws   p.then(q).apply(words) == q.apply(p.apply(words)) · identity(width).apply(words) is words
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from differential.columns.column_types import Int64s
from differential.columns.overflow import negate_diffs
from differential.thresholds import PICKED_ROWS_MAX

__all__ = ["CONSTANT", "TRAILING_WORDS", "Projection"]

CONSTANT: Final = -1
"""Marks a constant word in `Projection.sources`."""

# Words that follow the value words in a row: time, diff.
TRAILING_WORDS: Final = 2


@dataclass(frozen=True, slots=True)
class Projection:
    """Where each value word comes from; time and diff follow the value words and stay where they are.

    `sources[i]` is a word of the old row, or CONSTANT; then the word is `constants[i]` (0 elsewhere). The
    diff is multiplied by `sign`, +1 or -1.
    """

    sources: tuple[int, ...]
    constants: tuple[int, ...]
    sign: int = 1

    def __post_init__(self) -> None:
        assert len(self.sources) == len(self.constants)
        assert self.sign in (1, -1)
        assert all(source >= CONSTANT for source in self.sources)

    @classmethod
    def identity(cls, width: int) -> Projection:
        """Return the projection that changes nothing."""
        return cls(tuple(range(width)), (0,) * width)

    @classmethod
    def of(cls, sources: Sequence[int]) -> Projection:
        """Return the projection to the words `sources`, without constants."""
        return cls(tuple(sources), (0,) * len(sources))

    @property
    def width(self) -> int:
        """Number of value words of the new row."""
        return len(self.sources)

    def is_identity(self, width: int) -> bool:
        """Return True if it leaves rows of `width` value words as they are."""
        return self.sign == 1 and self.sources == tuple(range(width))

    def then(self, other: Projection) -> Projection:
        """Return the projection that does first this one, then `other`."""
        sources = []
        constants = []
        for source, constant in zip(other.sources, other.constants, strict=True):
            is_constant = source == CONSTANT
            sources.append(CONSTANT if is_constant else self.sources[source])
            constants.append(constant if is_constant else self.constants[source])
        return Projection(tuple(sources), tuple(constants), self.sign * other.sign)

    def negated(self) -> Projection:
        """Return the same with the other sign."""
        return Projection(self.sources, self.constants, -self.sign)

    def compile(self, width: int) -> Callable[[Int64s], Int64s]:
        """Return the function from rows of `width` value words to new rows.

        It maps int64[width + 2, n] to int64[self.width + 2, n]. The identity returns its argument; everything
        else a new C-contiguous array. It costs one gather, and one more call for each constant and for the
        sign.
        """
        if self.is_identity(width):
            return lambda words: words
        index = self._index(width)
        if CONSTANT not in self.sources and self.sign == 1:
            return lambda words: words.take(index, 0)
        finish = self._finisher()

        def project(words: Int64s) -> Int64s:
            out = words.take(index, 0)
            finish(out)
            return out

        return project

    def compile_picked(self, width: int) -> Callable[[Int64s, Int64s], Int64s]:
        """Return the function as `compile`, for the rows `keep` only (int64[m], ascending).

        It does not copy the other rows, unless there are few.
        """
        index = self._index(width)
        finish = self._finisher()

        def project(words: Int64s, keep: Int64s) -> Int64s:
            if words.shape[1] <= PICKED_ROWS_MAX:
                out = words.take(index, 0).take(keep, 1)
            else:
                out = np.empty((index.size, keep.size), dtype=np.int64)
                for row, source in enumerate(index.tolist()):
                    words[source].take(keep, out=out[row], mode="clip")  # "raise" would go through a buffer
            finish(out)
            return out

        return project

    def _index(self, width: int) -> Int64s:
        """Return the rows to gather.

        A constant's row is filled from the time word first, and then overwritten.
        """
        value_rows = [width if source == CONSTANT else source for source in self.sources]
        return np.array([*value_rows, width, width + 1], dtype=np.int64)

    def _finisher(self) -> Callable[[Int64s], None]:
        """Return the work that remains after the gather, in place: constants and the sign."""
        constants = [
            (row, constant)
            for row, (source, constant) in enumerate(zip(self.sources, self.constants, strict=True))
            if source == CONSTANT
        ]
        negate = self.sign == -1

        def finish(out: Int64s) -> None:
            for row, constant in constants:
                out[row] = constant
            if negate:
                negate_diffs(out)

        return finish

    def apply(self, words: Int64s) -> Int64s:
        """Return the new rows; see `compile`."""
        return self.compile(words.shape[0] - TRAILING_WORDS)(words)

    def describe(self) -> str:
        """Return a stable text, such as `[1, 0, =5] -`."""
        listed = ", ".join(
            f"={constant}" if source == CONSTANT else str(source)
            for source, constant in zip(self.sources, self.constants, strict=True)
        )
        return f"[{listed}]" + (" -" if self.sign < 0 else "")
