"""Many rows that come to a join while their epoch is not complete, kept until it is.

A load comes to a worker in several messages: its own rows at once, those of other workers block by block.
Taken up one by one, each message is a run of its own, which is looked up in the runs of the other side, and
merged with those of its own. Taken up together they are one run, and one pass through two runs makes all
pairs.

Parts wait as they came, mostly packed, up to `GATHERED_ROWS_MAX` rows and `GATHERED_BYTES_MAX` bytes: a join
that has more does not wait for the rest.
"""

from __future__ import annotations

from collections.abc import Sequence

from differential.columns.packed.parts import Part, bytes_in, changed, rows_in, symbols_in
from progress.times.anchor import Rebase
from timely.dictionaries import Mark
from timely.limits import GATHERED_BYTES_MAX, GATHERED_ROWS_MAX

__all__ = ["Gathered"]


class Gathered:
    """Rows that wait, by port, and the times at which they came in."""

    __slots__ = ("_parts", "bytes", "rows", "words")

    def __init__(self) -> None:
        self._parts: dict[int, list[Part]] = {}
        self.rows = 0
        self.bytes = 0
        self.words: set[int] = set()
        """Time words of the messages: every row is at or after one of them."""

    def __bool__(self) -> bool:
        """True if rows wait."""
        return bool(self._parts)

    def add(self, port: int, parts: Sequence[Part]) -> None:
        """Let rows wait. The arrays are kept, and not changed."""
        self._parts.setdefault(port, []).extend(parts)
        self.rows += rows_in(parts)
        self.bytes += bytes_in(parts)

    @property
    def are_enough(self) -> bool:
        """True if so many rows wait that they are to be taken up."""
        return self.rows >= GATHERED_ROWS_MAX or self.bytes >= GATHERED_BYTES_MAX

    def sizes(self) -> dict[int, int]:
        """Return the number of rows that wait, by port."""
        return {port: rows_in(parts) for port, parts in self._parts.items()}

    def take(self, port: int) -> list[Part]:
        """Remove and return the rows of a port."""
        parts = self._parts.pop(port)
        if not self._parts:
            self.rows = self.bytes = 0
            self.words.clear()
        return parts

    def rebase(self, by: Rebase) -> None:
        """Count words from a later epoch."""
        self.words = {by.word(word) for word in self.words}
        for parts in self._parts.values():
            parts[:] = [changed(part, by.rows) for part in parts]

    def symbols(self, mark: Mark) -> None:
        """Show all words of the rows."""
        for parts in self._parts.values():
            symbols_in(parts, mark)
