"""Many rows that come to a join while their epoch is not complete, kept until it is.

What is loaded comes to a worker in several messages: its own rows at once, those of others block by block.
Taken up one by one each is a run of its own, which is looked up in the runs of the other side, and merged
with those of its own. Taken up together they are one run, and all pairs are found in one pass through two.

Parts wait as they came, mostly packed, up to `GATHERED_ROWS_MAX` rows and `GATHERED_BYTES_MAX` bytes: who has
more is not to wait for all of it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from differential.columns.packed.block import Block
from differential.columns.packed.parts import Part, rows_in
from progress.times.anchor import Rebase
from timely.dictionaries import Mark

__all__ = ["GATHERED_BYTES_MAX", "GATHERED_ROWS_MAX", "GATHERED_ROWS_MIN", "Gathered"]

GATHERED_ROWS_MIN: Final = 1 << 16
"""Fewer that come together are taken up at once: to wait for the end of their epoch would take longer."""

GATHERED_ROWS_MAX: Final = 1 << 21
"""So many are taken up, however many are still to come."""

GATHERED_BYTES_MAX: Final = 1 << 26
"""The same of their memory."""


class Gathered:
    """Rows that wait, by port, and the times at which they came in."""

    __slots__ = ("_parts", "bytes", "rows", "words")

    def __init__(self) -> None:
        self._parts: dict[int, list[Part]] = {}
        self.rows = 0
        self.bytes = 0
        self.words: set[int] = set()
        """Time words of the messages: no row is earlier than one of them."""

    def __bool__(self) -> bool:
        """Whether any wait."""
        return bool(self._parts)

    def add(self, port: int, parts: Sequence[Part]) -> None:
        """Let rows wait; arrays are kept, and not changed."""
        self._parts.setdefault(port, []).extend(parts)
        self.rows += rows_in(parts)
        self.bytes += sum(part.bytes if isinstance(part, Block) else part.nbytes for part in parts)

    @property
    def are_enough(self) -> bool:
        """Whether no more are to wait."""
        return self.rows >= GATHERED_ROWS_MAX or self.bytes >= GATHERED_BYTES_MAX

    def sizes(self) -> dict[int, int]:
        """How many rows wait at each port."""
        return {port: rows_in(parts) for port, parts in self._parts.items()}

    def take(self, port: int) -> list[Part]:
        """Those of a port, which wait no more."""
        parts = self._parts.pop(port)
        if not self._parts:
            self.rows = self.bytes = 0
            self.words.clear()
        return parts

    def rebase(self, by: Rebase) -> None:
        """Words count from a later epoch."""
        self.words = {by.word(word) for word in self.words}
        for parts in self._parts.values():
            parts[:] = [
                Block(by.rows(part.words())) if isinstance(part, Block) else by.rows(part) for part in parts
            ]

    def symbols(self, mark: Mark) -> None:
        """Show all words of the rows."""
        for parts in self._parts.values():
            for part in parts:
                if isinstance(part, Block):
                    part.symbols(mark, range(part.columns - 2))
                else:
                    mark.words(part[:-2])
