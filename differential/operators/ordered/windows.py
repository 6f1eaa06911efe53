"""A window over the rows of a group, in terms of columns: which words of the layout its functions read."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Final

from differential.kernels.sums.accumulated import TOTAL, WIDE_TOTAL_LOW
from differential.operators.ordered.layout import InOrder, LayoutWord, rank_of
from differential.operators.reducing.window_parts import Frame, WindowFunctions, WindowPart

__all__ = ["WindowOrder"]

_MAY_TURN: Final = frozenset(("count", "sum", "avg", "min", "max", "last_value", "lag"))
"""Functions whose answers follow as well from the rows in the opposite order."""


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
        """True if frames end with the group, but do not begin with it: from the last row on, they begin with
        it, and a change is only seen by rows on one side.
        """
        kinds = {part.kind for part, _ in self.functions}
        ends = self.frame.start is not None and self.frame.stop is None
        return ends and kinds <= _MAY_TURN and kinds != {"lag"}

    def aggregate(self) -> WindowFunctions:
        """See `InOrder`."""
        parts = tuple(self._part(part, column) for part, column in self.functions)
        width, symbols, frame = len(self.layout), self.order_symbols, self.frame
        if self.is_turned:
            frame = Frame(frame.unit, None, -(frame.start or 0))
        return WindowFunctions(parts, frame, width, self.ordered, self._by(), symbols, rank_of)

    def _part(self, part: WindowPart, column: str | None) -> WindowPart:
        if self.is_turned and part.kind == "lag":
            part = replace(part, amount=-part.amount)
        if self.is_turned and part.kind == "last_value":
            part = replace(part, kind="first_value")
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
