"""Joins on any condition: equalities become keys, a band becomes bins, the rest filters pairs.

    equality    left column == right column: a key of the join
    band        |left - right| ≤ width: if numbers are cut into bins of at least the width, the bins of two
                numbers so close are the same or neighbours. So a row of the left is in its bin, a row of the
                right in its bin and both neighbours, bins are a key, and each pair is found once
    the rest    expressions over columns of both sides, and Python functions, are filters of the pairs

Without equality and band the join makes and tests all pairs. Spread over a matrix that is work for all units,
but as much of it.
"""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias, TypeVar

from timely.user_code.call_site import call_site

from ...errors import SchemaError
from ...expressions.calls.catalogued import floor
from ...expressions.calls.composed import abs as absolute
from ...expressions.expression import ColumnRef, Expr, Operation, col, lit, when
from ...linear.shapes import words_of_length
from ...plan.rules.filters import conjuncts
from ..sets import SetOperators

__all__ = ["Band", "Condition", "ConditionParts", "Predicate", "Width", "band", "binned", "parts_of"]

C = TypeVar("C", bound=SetOperators)

_INT_MAX: Final = (1 << 63) - 1
_INT_MIN: Final = -(1 << 63)
_BIN: Final = "(bin)"

Width: TypeAlias = int | float | dt.timedelta | str

Predicate: TypeAlias = Callable[..., object]  # type: ignore[explicit-any]  # of two records of any columns


@dataclass(frozen=True)
class Band:
    """|left - right| ≤ width, of a column of the left and one of the right; see `band`.

    is_time     both are dates or timestamps, and compared as the whole numbers that they are
    """

    left: str
    right: str
    width: Width
    is_time: bool = False

    def sides(self) -> tuple[Expr, Expr]:
        """Return both columns as numbers."""
        left, right = col(self.left), col(self.right)
        return (left.cast("int"), right.cast("int")) if self.is_time else (left, right)

    @property
    def number(self) -> int | float:
        """The width in units of the columns; only a band that was checked against them has one."""
        assert isinstance(self.width, int | float)
        return self.width


Condition: TypeAlias = Band | Expr | Predicate


def band(left: str | Expr, right: str | Expr, width: Width) -> Band:
    """A condition of `theta_join`: |left - right| ≤ `width`.

    `left` is a column of the left, of type int, float, date or timestamp; `right` is one of the right, of the
    same type. For dates and timestamps the width is a timedelta, or a text as "90 seconds". Whole numbers are
    compared up to the ends of 64 bits. Null, NaN and infinite values are near nothing.
    Raises SchemaError for a width that is negative, or neither a finite number nor a length of time.
    """
    names = [side.name if isinstance(side, ColumnRef) else side for side in (left, right)]
    if not all(isinstance(name, str) for name in names):
        raise SchemaError(f"band ({call_site()}): names of two columns are needed, not {names!r:.80}")
    if isinstance(width, dt.timedelta | str):
        if isinstance(width, dt.timedelta) and width < dt.timedelta():
            raise SchemaError(f"band ({call_site()}): a width is 0 or more, not {width}")
        return Band(str(names[0]), str(names[1]), width)
    if type(width) not in (int, float) or not math.isfinite(width):
        raise SchemaError(
            f"band ({call_site()}): a width is a number, or of times a timedelta, not {width!r:.80}"
        )
    if width < 0 or (isinstance(width, int) and width > _INT_MAX):
        raise SchemaError(f"band ({call_site()}): a width is 0 or more, and has 64 bits: {width!r}")
    return Band(str(names[0]), str(names[1]), width)


@dataclass(frozen=True)
class ConditionParts:
    """The parts of a condition.

    on           equal columns of the left and of the right
    band         the first band, by which rows are put into bins
    filters      expressions over pairs; predicates: Python functions of both records
    """

    on: tuple[tuple[str, str], ...]
    band: Band | None
    filters: tuple[Expr, ...]
    predicates: tuple[Predicate, ...]


def parts_of(left: SetOperators, right: SetOperators, conditions: Sequence[Condition]) -> ConditionParts:
    """Take conditions over two collections, without a name in common, apart.

    Raises SchemaError for a missing column, for a band on columns without distance, and if there is no
    condition.
    """
    on: dict[str, str] = {}
    bands: list[Band] = []
    filters: list[Expr] = []
    predicates: list[Predicate] = []
    for condition in conditions:
        if isinstance(condition, Band):
            bands.append(_checked(left, right, condition))
        elif isinstance(condition, Expr):
            for part in conjuncts(condition):
                pair = _equality(left, right, part)
                if pair is not None and pair[0] not in on and pair[1] not in on.values():
                    on[pair[0]] = pair[1]
                else:
                    filters.append(part)
        elif callable(condition):
            predicates.append(condition)
        else:
            raise SchemaError(
                f"theta_join ({call_site()}): {condition!r:.80} is no condition: write an expression over "
                "the columns of both sides, dd.band(…), or a function of two records"
            )
    if not conditions:
        raise SchemaError(f"theta_join ({call_site()}) needs a condition; for all pairs write cross_join")
    filters += [_within(one) for one in bands]
    return ConditionParts(tuple(on.items()), bands[0] if bands else None, tuple(filters), tuple(predicates))


def binned(left: C, right: C, one: Band) -> tuple[C, C, str]:
    """Add a column for the bin to both sides; return them, and its name.

    For each pair within the band the column is equal exactly once.
    """
    name = _BIN
    while name in left.schema or name in right.schema:
        name += "_"
    is_float = left.schema[one.left].type.kind == "float"
    values, width = one.sides(), one.number
    sides: list[C] = []
    for side, column in ((left, one.left), (right, one.right)):
        present = side.drop_nulls(column)
        sides.append(present.filter(absolute(col(column)) < math.inf) if is_float else present)
    if is_float:
        # Bins of twice the width: rounding then moves no near value beyond the next bin. Adding 0.0 avoids
        # -0.0.
        size = 2.0 * width or 1.0
        of = [floor(value / size) + 0.0 for value in values]
        steps: list[Expr] = [lit(-1.0), lit(0.0), lit(1.0)]
    else:
        size = max(int(width), 2)  # so that the neighbour of a bin fits 64 bits
        of = [value // size for value in values]
        steps = [lit(-1), lit(0), lit(1)]
    copies = [sides[1].with_columns(**{name: of[1] + step}) for step in steps]
    if is_float:  # beyond 2**53 a bin is its own neighbour
        own = copies[1]
        copies = [copy.filter(col(name) != of[1]) for copy in (copies[0], copies[2])]
        copies.insert(0, own)
    return sides[0].with_columns(**{name: of[0]}), copies[0].concat(*copies[1:]), name


def _checked(left: SetOperators, right: SetOperators, one: Band) -> Band:
    for side, name, where in ((left, one.left, "left"), (right, one.right, "right")):
        if name not in side.schema:
            raise SchemaError(
                f"band ({call_site()}): the {where} has no column {name!r}; it has ({side.schema})"
            )
    kinds = [side.schema[name].type.not_null() for side, name in ((left, one.left), (right, one.right))]
    if kinds[0] != kinds[1] or kinds[0].kind not in ("int", "float", "date", "timestamp"):
        raise SchemaError(
            f"band ({call_site()}): {one.left!r} is {kinds[0]}, {one.right!r} is {kinds[1]}; both are int, "
            "or both float, date or timestamp. Others cast, as with_columns(x=col.x.cast('int'))"
        )
    if kinds[0].kind in ("date", "timestamp"):
        if not isinstance(one.width, dt.timedelta | str):
            raise SchemaError(
                f"band ({call_site()}): {one.left!r} is {kinds[0]}, so the width is a timedelta, or a text "
                f"as '2 days', not {one.width!r}"
            )
        return Band(one.left, one.right, words_of_length(one.width, kinds[0], "band"), is_time=True)
    if isinstance(one.width, dt.timedelta | str):
        raise SchemaError(f"band ({call_site()}): {one.left!r} is {kinds[0]}, so the width is a number")
    if kinds[0].kind == "int" and isinstance(one.width, float):
        if not one.width.is_integer():
            raise SchemaError(f"band ({call_site()}): of whole numbers the width is one, not {one.width!r}")
        return Band(one.left, one.right, int(one.width))
    return Band(one.left, one.right, float(one.width)) if kinds[0].kind == "float" else one


def _within(one: Band) -> Expr:
    """Return the condition of a band; a sum beyond 64 bits becomes the greatest or least whole number."""
    (left, right), width = one.sides(), one.number
    if isinstance(width, float):
        return absolute(left - right) <= width
    upper = when(right > _INT_MAX - width).then(lit(_INT_MAX)).otherwise(right + width)
    lower = when(right < _INT_MIN + width).then(lit(_INT_MIN)).otherwise(right - width)
    return (left <= upper) & (left >= lower)


def _equality(left: SetOperators, right: SetOperators, part: Expr) -> tuple[str, str] | None:
    """Return the columns of both sides if a condition says just that they are equal; None otherwise."""
    if not isinstance(part, Operation) or part.op != "==":
        return None
    names = [each.name if isinstance(each, ColumnRef) else None for each in part.operands]
    for one, other in (names, names[::-1]):
        if one is None or other is None or one not in left.schema or other not in right.schema:
            continue
        if left.schema[one].type.not_null() == right.schema[other].type.not_null():
            return one, other
    return None
