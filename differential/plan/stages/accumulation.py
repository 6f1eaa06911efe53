"""Choose the components that an `Accumulate` stores of each of its sources, and how its answers are made of
them.

Component s counts the rows of source s. Others are assigned when an aggregate needs them, each once: a sum
and a mean of one column share its limbs. `kernels/sums/components.py` defines components.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

from ...aggregates import Aggregate, AggregateKind
from ...columns.column_types import ColumnType
from ...columns.schema import Schema
from ...kernels.sums import accumulated as a
from ...kernels.sums import components as c
from ...kernels.sums.wide_totals import WIDE_DIGITS
from ...operators.reduce import Accumulation
from ..nodes import Accumulate

__all__ = ["Maker", "Plans", "accumulation_of"]

Maker = tuple[int, int, int, int]
"""A component of a row: kind, word of the value, word that is 0 if it is null (-1: never), component.

Of a product, the third is the word of the other value.
"""

_SIZES: Final = {
    c.VALUES: 1,
    c.TRUE: 1,
    c.FALSE: 1,
    c.WHOLE: c.WHOLE_LIMBS,
    c.WHOLE_SQUARE: c.WHOLE_SQUARE_LIMBS,
    c.FLOAT: c.FLOAT_LIMBS + c.NOT_FINITE,
    c.FLOAT_SQUARE: c.FLOAT_SQUARE_LIMBS,
    c.FLOAT_PRODUCT: c.FLOAT_SQUARE_LIMBS,
    c.FLOAT_CUBE: c.FLOAT_CUBE_LIMBS,
    c.FLOAT_FOURTH: c.FLOAT_FOURTH_LIMBS,
}
_WIDE: Final = -1
"""Stands for a kind of components: a whole number for each of two words."""

_SPREADS: Final[dict[AggregateKind, int]] = {
    "variance": a.SAMPLE_VARIANCE,
    "stddev": a.SAMPLE_DEVIATION,
    "variance_pop": a.VARIANCE,
    "stddev_pop": a.DEVIATION,
}


_COVARIANCES: Final[dict[AggregateKind, int]] = {
    "covar_pop": a.COVARIANCE,
    "covar_samp": a.SAMPLE_COVARIANCE,
}
_MOMENTS: Final[dict[AggregateKind, int]] = {"skewness": a.SKEWNESS, "kurtosis": a.KURTOSIS}


class Plans(NamedTuple):
    """Makers of components for each source's rows, the answers of sums, and the name of each answer word."""

    makers: list[list[Maker]]
    accumulation: Accumulation
    names: tuple[str, ...]


def accumulation_of(node: Accumulate, layouts: list[Schema]) -> Plans:
    """Return how to compute `node` from sources with these columns, keys first."""
    planner = _Planner(layouts)
    for _, source, aggregate in node.added:
        # First, since squares come right behind their numbers, which other aggregates use, too.
        if aggregate.kind in (*_SPREADS, *_MOMENTS):
            planner.words_of(source, aggregate)
    answer_words: list[tuple[int, int, int, int, int]] = []
    names: list[str] = []
    for _, source, aggregate in node.added:
        words = planner.words_of(source, aggregate)
        answer_words += words
        names += [aggregate.describe()] * len(words)
    symbols = any(
        aggregate.kind == "only" and aggregate.column and layouts[source][aggregate.column].type.is_symbol
        for _, source, aggregate in node.added
    )
    answers = Accumulation(tuple(answer_words), planner.size, node.needed, symbols)
    return Plans(planner.makers, answers, tuple(names))


class _Planner:
    """Assigns components."""

    def __init__(self, layouts: list[Schema]) -> None:
        self.size = len(layouts)
        self.makers: list[list[Maker]] = [[(c.ROWS, 0, -1, source)] for source in range(len(layouts))]
        self._layouts = layouts
        self._components: dict[tuple[int, ...], int] = {}

    def words_of(self, source: int, aggregate: Aggregate) -> list[tuple[int, int, int, int, int]]:
        """Return (what, first component, gate, limbs, digits) of each word of an aggregate's answer."""
        if aggregate.column is None:
            return [(a.COUNT, source, -1, 0, 0)]
        column = self._layouts[source][aggregate.column]
        words = self._layouts[source].words_of(aggregate.column)
        flag, word = words[0] if column.type.nullable else -1, words[-1]
        if aggregate.kind == "only":
            return [(a.TOTAL, self._component(source, c.WHOLE, each, -1), -1, 0, 0) for each in words]
        if aggregate.kind == "count_if":
            return [(a.COUNT, self._component(source, c.TRUE, word, flag), -1, 0, 0)]
        gate = source if flag < 0 else self._component(source, c.VALUES, word, flag)
        if aggregate.kind == "count":
            return [(a.COUNT, gate, -1, 0, 0)]
        if aggregate.kind in _COVARIANCES:
            return self._covariance(source, aggregate, (word, flag, gate))
        if aggregate.kind in _MOMENTS:
            return self._moment(source, aggregate.kind, (word, flag, gate))
        is_float, type_ = column.type.kind == "float", aggregate.type_in(self._layouts[source])
        limbs = c.FLOAT_LIMBS if is_float else c.WHOLE_LIMBS
        if column.type.kind == "decimal" and aggregate.kind in ("sum", "avg"):
            values = words[-column.type.value_words :]
            entries = self._of_decimals(
                source, aggregate.kind == "avg", (column.type, type_), values, (flag, gate)
            )
            return [(a.FLAG, 0, gate, 0, 0), *entries] if type_.nullable else entries
        if aggregate.kind in ("any", "all"):
            kind, what = (c.TRUE, a.ANY) if aggregate.kind == "any" else (c.FALSE, a.ALL)
            entry = (what, self._component(source, kind, word, flag), gate, 0, 0)
        elif aggregate.kind in _SPREADS:
            at = self._with_squares(source, is_float, word, flag)
            entry = (_SPREADS[aggregate.kind], at, gate, limbs, column.type.scale)
        else:
            at = self._component(source, c.FLOAT if is_float else c.WHOLE, word, flag)
            if aggregate.kind == "avg":
                entry = (a.MEAN, at, gate, limbs, 0)
            elif is_float:
                entry = (a.FLOAT_TOTAL, at, gate, limbs, 0)
            else:
                entry = (a.TOTAL, at, gate, 0, 0)
        if not type_.nullable:
            return [entry]
        takes_two = aggregate.kind in ("variance", "stddev")
        return [(a.FLAG_OF_TWO if takes_two else a.FLAG, 0, gate, 0, 0), entry]

    def _covariance(
        self, source: int, aggregate: Aggregate, where: tuple[int, int, int]
    ) -> list[tuple[int, int, int, int, int]]:
        """Return the words of a covariance; where: word, flag and gate of its first column."""
        word, flag, gate = where
        assert isinstance(aggregate.second, str)
        *other_flag, other = self._layouts[source].words_of(aggregate.second)
        x = self._component(source, c.FLOAT, word, flag)
        y = self._component(source, c.FLOAT, other, other_flag[0] if other_flag else -1)
        both = self._component(source, c.FLOAT_PRODUCT, word, other, (other,))
        what = a.FLAG if aggregate.kind == "covar_pop" else a.FLAG_OF_TWO
        return [(what, 0, gate, 0, 0), (_COVARIANCES[aggregate.kind], x, gate, y, both)]

    def _moment(
        self, source: int, kind: AggregateKind, where: tuple[int, int, int]
    ) -> list[tuple[int, int, int, int, int]]:
        """Return the words of a skewness or a kurtosis; where: word, flag and gate of its column."""
        word, flag, gate = where
        at = self._with_squares(source, True, word, flag)
        squares = at + _SIZES[c.FLOAT]
        cubes = self._component(source, c.FLOAT_CUBE, word, flag)
        fourths = self._component(source, c.FLOAT_FOURTH, word, flag)
        assert fourths == cubes + _SIZES[c.FLOAT_CUBE], "they are always planned together"
        places = (at, gate, squares, cubes)
        return [(a.FLAG_OF_SPREAD, *places), (_MOMENTS[kind], *places)]

    def _of_decimals(
        self,
        source: int,
        is_mean: bool,
        types: tuple[ColumnType, ColumnType],
        words: Sequence[int],
        checks: tuple[int, int],
    ) -> list[tuple[int, int, int, int, int]]:
        """Return the entries of the words of a sum or mean of decimals.

        types    of the column and of the answer
        words    of the values, without the flag
        checks   that flag, and the gate of the entries
        """
        (column, answer), (flag, gate) = types, checks
        if column.is_wide:
            at = self._of_two_words(source, words, flag)
        else:
            at = self._component(source, c.WHOLE, words[0], flag)
        limbs, more = c.WHOLE_LIMBS * column.value_words, answer.scale - column.scale
        if not answer.is_wide:
            what = a.DECIMAL_MEAN if is_mean else a.TOTAL
            return [(what, at, gate, 10**answer.precision - 1, more)]
        if not is_mean:
            parts, digits = (a.WIDE_TOTAL_HIGH, a.WIDE_TOTAL_LOW), answer.precision
        else:
            parts, digits = (a.WIDE_MEAN_HIGH, a.WIDE_MEAN_LOW), more + WIDE_DIGITS * answer.precision
        return [(part, at, gate, limbs, digits) for part in parts]

    def _of_two_words(self, source: int, words: Sequence[int], flag: int) -> int:
        """Return the first component of a wide number: the limbs of its low words, then of its high words."""
        at = self._components.get((source, _WIDE, words[0]))
        if at is None:
            at = self.size
            self._components[source, _WIDE, words[0]] = at
            for word in reversed(words):
                self.makers[source].append((c.WHOLE, word, flag, self.size))
                self.size += c.WHOLE_LIMBS
        return at

    def _with_squares(self, source: int, is_float: bool, word: int, flag: int) -> int:
        """Return the component of a number whose squares are in the components behind it."""
        kinds = (c.FLOAT, c.FLOAT_SQUARE) if is_float else (c.WHOLE, c.WHOLE_SQUARE)
        at = self._components.get((source, kinds[1], word))
        if at is None:
            assert (source, kinds[0], word) not in self._components, "squares come behind the numbers"
            at = self._component(source, kinds[0], word, flag)
            self._component(source, kinds[1], word, flag)
            self._components[source, kinds[1], word] = at
        return at

    def _component(self, source: int, kind: int, word: int, flag: int, others: tuple[int, ...] = ()) -> int:
        key = (source, kind, word, *others)
        if key not in self._components:
            self._components[key] = self.size
            self.makers[source].append((kind, word, flag, self.size))
            self.size += _SIZES[kind]
        return self._components[key]
