"""A window over the rows of a group, in terms of columns: which words of the layout its functions read."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Final

from differential.expressions.functions.times import DAY_MICROS
from differential.kernels.sums.accumulated import TOTAL, WIDE_TOTAL_LOW
from differential.operators.ordered.layout import InOrder, LayoutWord, rank_of
from differential.operators.reducing.window_parts import (
    Frame,
    WindowFunctions,
    WindowKind,
    WindowPart,
    is_read_backwards,
)

__all__ = ["WindowOrder"]

_TURNED: Final[dict[WindowKind, WindowKind]] = {"last_value": "first_value", "first_value": "last_value"}
"""What functions are called in the opposite order."""


@dataclass(frozen=True)
class WindowOrder(InOrder):
    """All rows of a group, each with the answers of functions behind it.

    functions   each with the column of its argument, or None; `WindowPart.value` and `flag` follow from that
    """

    functions: tuple[tuple[WindowPart, str | None], ...] = ()
    frame: Frame = Frame()

    @property
    def added(self) -> int:
        """See `InOrder`."""
        return sum(part.words for part, _ in self.functions)

    @property
    def may_overflow(self) -> bool:
        """True if a sum may not fit its column."""
        return any(part.may_fail for part, _ in self.functions)

    @property
    def formulas(self) -> list[tuple[int, int, int, int, int]]:
        """What `GroupFailures` reads of each function: how many digits it may have."""
        return [
            (TOTAL, 0, 0, 0, 0) if part.to is None else (WIDE_TOTAL_LOW, 0, 0, 0, part.to.precision)
            for part, _ in self.functions
        ]

    @cached_property
    def is_turned(self) -> bool:
        """True if the rows are stored from the last one to the first; see `is_read_backwards`."""
        return is_read_backwards({part.kind for part, _ in self.functions}, self.frame)

    def aggregate(self) -> WindowFunctions:
        """See `InOrder`."""
        parts = tuple(self._part(part, column) for part, column in self.functions)
        width, symbols, frame = len(self.layout), self.order_symbols, self.frame
        if self.is_turned:
            frame = Frame(frame.unit, None, -(frame.start or 0))
        by = self._by()
        if not frame.is_of_values:
            return WindowFunctions(parts, frame, width, self.ordered, by, symbols, rank_of)
        is_date = self.schema.columns[self.keys].type.kind == "date"
        return WindowFunctions(
            parts, frame, width, self.ordered, by, symbols, rank_of, self.layout[by[1]].inverted,
            1 if is_date else DAY_MICROS,
        )  # fmt: skip

    def _part(self, part: WindowPart, column: str | None) -> WindowPart:
        if self.is_turned:
            amount = -part.amount if part.kind == "lag" else part.amount
            part = replace(part, kind=_TURNED.get(part.kind, part.kind), amount=amount)
        if column is None:
            return part
        flag, value = self._places(column)
        inverted = self.layout[value].inverted and not self.layout[value].symbol
        return replace(part, flag=flag, value=value, inverted=inverted)

    def _by(self) -> tuple[int, int]:
        """Return the flag and the word of the column of the order, if there is just one."""
        if len(self.directions) != 1:
            return -1, -1
        return self._places(self.schema.columns[self.keys].name)

    def _places(self, column: str) -> tuple[int, int]:
        """Return where a column is in the layout: its flag, or -1, and its first value; -1, -1 for a key."""
        words = self.schema.words_of(column)
        places = {word.source: at for at, word in enumerate(self.layout) if _is_whole(word)}
        nullable = self.schema[column].type.nullable
        return places[words[0]] if nullable else -1, places[words[int(nullable)]]

    def describe(self) -> str:
        """See `InOrder`."""
        return f"{super().describe()} {self.frame} {self.functions}"


def _is_whole(word: LayoutWord) -> bool:
    """Return False for the beginning of a text, which is not the value."""
    return word.begins < 0
