"""Which components an `Accumulate` keeps of each of its sources, and how its answers are made of them.

Component s counts the rows of source s. Others are given out as they are asked for, each once: a sum and a
mean of one column share its limbs. What components are: `kernels/sums/components.py`.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from ...aggregates import Aggregate, AggregateKind
from ...columns.schema import Schema
from ...kernels.sums import accumulated as a
from ...kernels.sums import components as c
from ...operators.reduce import Accumulation
from ..nodes import Accumulate

__all__ = ["Maker", "Plans", "accumulation_of"]

Maker = tuple[int, int, int, int]
"""What is made of a row: kind, word of the value, word that is 0 if it is null (-1: never), component."""

_SIZES: Final = {
    c.VALUES: 1,
    c.TRUE: 1,
    c.FALSE: 1,
    c.WHOLE: c.WHOLE_LIMBS,
    c.WHOLE_SQUARE: c.WHOLE_SQUARE_LIMBS,
    c.FLOAT: c.FLOAT_LIMBS + c.NOT_FINITE,
    c.FLOAT_SQUARE: c.FLOAT_SQUARE_LIMBS,
}
_SPREADS: Final[dict[AggregateKind, int]] = {
    "variance": a.SAMPLE_VARIANCE,
    "stddev": a.SAMPLE_DEVIATION,
    "variance_pop": a.VARIANCE,
    "stddev_pop": a.DEVIATION,
}


class Plans(NamedTuple):
    """What is made of the rows of each source, of the sums, and what messages call each word of these."""

    makers: list[list[Maker]]
    accumulation: Accumulation
    names: tuple[str, ...]


def accumulation_of(node: Accumulate, layouts: list[Schema]) -> Plans:
    """How `node` is computed of sources with these columns, keys first."""
    planner = _Planner(layouts)
    for _, source, aggregate in node.added:
        if (
            aggregate.kind in _SPREADS
        ):  # first, for squares come right behind the numbers that others use, too
            planner.asked(source, aggregate)
    asked: list[tuple[int, int, int, int, int]] = []
    names: list[str] = []
    for _, source, aggregate in node.added:
        words = planner.asked(source, aggregate)
        asked += words
        names += [aggregate.describe()] * len(words)
    return Plans(planner.makers, Accumulation(tuple(asked), planner.size, node.needed), tuple(names))


class _Planner:
    """Gives out components."""

    def __init__(self, layouts: list[Schema]) -> None:
        self.size = len(layouts)
        self.makers: list[list[Maker]] = [[(c.ROWS, 0, -1, source)] for source in range(len(layouts))]
        self._layouts = layouts
        self._known: dict[tuple[int, int, int], int] = {}

    def asked(self, source: int, aggregate: Aggregate) -> list[tuple[int, int, int, int, int]]:
        """(what, first component, gate, limbs, digits) of each word of an aggregate's answer."""
        if aggregate.column is None:
            return [(a.COUNT, source, -1, 0, 0)]
        column = self._layouts[source][aggregate.column]
        words = self._layouts[source].words_of(aggregate.column)
        flag, word = (words[0], words[1]) if column.type.nullable else (-1, words[0])
        if aggregate.kind == "only":
            return [(a.TOTAL, self._made(source, c.WHOLE, each, -1), -1, 0, 0) for each in words]
        if aggregate.kind == "count_if":
            return [(a.COUNT, self._made(source, c.TRUE, word, flag), -1, 0, 0)]
        gate = source if flag < 0 else self._made(source, c.VALUES, word, flag)
        if aggregate.kind == "count":
            return [(a.COUNT, gate, -1, 0, 0)]
        is_float, given = column.type.kind == "float", aggregate.type_in(self._layouts[source])
        limbs = c.FLOAT_LIMBS if is_float else c.WHOLE_LIMBS
        if aggregate.kind in ("any", "all"):
            kind, what = (c.TRUE, a.ANY) if aggregate.kind == "any" else (c.FALSE, a.ALL)
            found = (what, self._made(source, kind, word, flag), gate, 0, 0)
        elif aggregate.kind in _SPREADS:
            at = self._with_squares(source, is_float, word, flag)
            found = (_SPREADS[aggregate.kind], at, gate, limbs, column.type.scale)
        else:
            at = self._made(source, c.FLOAT if is_float else c.WHOLE, word, flag)
            is_decimal = column.type.kind == "decimal"
            if aggregate.kind == "avg":
                digits = given.scale - column.type.scale
                found = (a.DECIMAL_MEAN if is_decimal else a.MEAN, at, gate, limbs, digits)
            elif is_float:
                found = (a.FLOAT_TOTAL, at, gate, limbs, 0)
            else:
                found = (a.TOTAL, at, gate, int(is_decimal), 0)
        if not given.nullable:
            return [found]
        takes_two = aggregate.kind in ("variance", "stddev")
        return [(a.FLAG_OF_TWO if takes_two else a.FLAG, 0, gate, 0, 0), found]

    def _with_squares(self, source: int, is_float: bool, word: int, flag: int) -> int:
        """Where a number is whose square comes behind it."""
        kinds = (c.FLOAT, c.FLOAT_SQUARE) if is_float else (c.WHOLE, c.WHOLE_SQUARE)
        at = self._known.get((source, kinds[1], word))
        if at is None:
            assert (source, kinds[0], word) not in self._known, "squares come behind the numbers"
            at = self._made(source, kinds[0], word, flag)
            self._made(source, kinds[1], word, flag)
            self._known[source, kinds[1], word] = at
        return at

    def _made(self, source: int, kind: int, word: int, flag: int) -> int:
        known = (source, kind, word)
        if known not in self._known:
            self._known[known] = self.size
            self.makers[source].append((kind, word, flag, self.size))
            self.size += _SIZES[kind]
        return self._known[known]
