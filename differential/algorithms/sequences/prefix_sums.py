"""The sum of all values up to each position, while any of them may change.

It uses a binary tree over the positions, as in G. E. Blelloch, *Prefix sums and their applications*, 1990,
and in Rust's `algorithms::prefix_sum`. The *range* (level, place) covers the positions from place · 2^level
up to, not including, (place + 1) · 2^level.

    up      each range that holds a value gets the total of its two halves
    down    the sum before a left half is the sum before the whole range; the sum before a right half is that,
            plus the total of the left half

These are two loops, whose iterations are the levels. A value that changes is in one range of each level, so
it costs as many sums as there are levels, and the answers that it changes.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from differential.aggregates import sum as total_of
from differential.algorithms.graphs import check_collection, column_type, whole_number
from differential.collections.collection import Collection
from differential.errors import SchemaError
from differential.expressions.expression import Expr, col, lit
from progress.errors import MisuseError
from timely.user_code.call_site import call_site
from timely.user_code.short_traces import short

__all__ = ["prefix_sums"]

_NAME: Final = "prefix_sums"
_BITS_MAX: Final = 61
_LEAST: Final = -(2**63)
_GREATEST: Final = 2**63 - 1


@short
def prefix_sums(
    values: Collection,
    *,
    position: str = "position",
    value: str = "value",
    key: str | Sequence[str] = (),
    at: Collection | None = None,
    bits: int = 32,
) -> Collection:
    """For each position, the sum of the values there and before it: columns of `key`, `position`, `sum`.

    SQL: `sum(value) OVER (PARTITION BY key ORDER BY position RANGE UNBOUNDED PRECEDING)`, once a position.

    Args:
        values: `position` and `value`, both int; several values at one position are added up, and a row that
            is there twice counts twice.
        key: columns; there is one sequence for each of their values.
        at: positions to answer for, in columns named as those of `values`. By default all positions that have
            a value: then a change at the front changes every answer behind it.
        bits: positions are from 0 to 2^bits − 1; a row with another one fails, with a RowError that shows it.
            1 to 61. The loops take that many iterations, whatever the positions.

    Cost: `bits` steps up and down for a changed value or question, and every answer that changes. Memory: up
    to `bits` ranges for each position, fewer where positions lie close together.
    """
    keys = (key,) if isinstance(key, str) else tuple(key)
    if whole_number(_NAME, "bits", bits) > _BITS_MAX:
        raise MisuseError(f"{_NAME} ({call_site()}): bits is at most {_BITS_MAX}, not {bits}")
    check_collection(_NAME, "values", values)
    _check_int(values, "values", "value", value)
    positions = values if at is None else at
    check_collection(_NAME, "at", positions)
    for what, rows in (("values", values), ("at", positions)):
        _check_int(rows, what, "position", position)
        for name in keys:
            if column_type(_NAME, what, rows, "key", name) != values.schema[name].type:
                raise SchemaError(
                    f"{_NAME} ({call_site()}): {name!r} is {values.schema[name].type} in values and "
                    f"{rows.schema[name].type} in at. Cast one of them before"
                )
    tree = _RangeTree(keys, bits)
    place = _in_range(col(position), bits)
    leaves = values.select(**tree.keys_in, level=0, place=place, total=col(value))
    # The sum up to a position is the sum before the next one.
    questions = positions.select(**tree.keys_in, level=0, place=place + 1).distinct()
    before = tree.before(questions, tree.totals(leaves))
    return before.select(**tree.keys_out, **{position: col.place - 1, "sum": col.before})


class _RangeTree:
    """The ranges up to the one of level `bits` + 1, which covers all positions and the one behind."""

    def __init__(self, keys: tuple[str, ...], bits: int) -> None:
        self.top = bits + 1
        self.names = tuple(f"key {number}" for number in range(len(keys)))
        self.keys_in = {own: col(name) for own, name in zip(self.names, keys, strict=True)}
        self.keys_out = {name: col(own) for own, name in zip(self.names, keys, strict=True)}
        self.range = (*self.names, "level", "place")

    def totals(self, leaves: Collection) -> Collection:
        """Return every range that holds a value, and the `total` of its values."""
        lowest = leaves.group_by(*self.range).agg(total=total_of("total"))

        def upwards(ranges: Collection) -> Collection:
            halves = ranges.filter(col.level < self.top).select(
                *self.names, level=col.level + 1, place=col.place // 2, total=col.total
            )
            return halves.group_by(*self.range).agg(total=total_of("total")).concat(lowest)

        return lowest.iterate(upwards, name="totals of ranges")

    def before(self, questions: Collection, totals: Collection) -> Collection:
        """Return for ranges of level 0 the sum of all values `before` them."""
        needed = questions.iterate(
            lambda ranges: (
                ranges.filter(col.level < self.top)
                .select(*self.names, level=col.level + 1, place=col.place // 2)
                .concat(questions)
                .distinct()
            ),
            name="ranges on the way",
        )
        first = needed.filter(col.level == self.top).with_columns(before=0)
        steps = self._steps(needed, totals)

        def downwards(sums: Collection) -> Collection:
            halves = sums.join(steps, on=self.range).select(
                *self.names, level=col.level - 1, place=col.half, before=col.before + col.more
            )
            return halves.concat(first)

        return first.iterate(downwards, name="sums before ranges").filter(col.level == 0)

    def _steps(self, needed: Collection, totals: Collection) -> Collection:
        """Return for each range the halves that are `needed`: `half`, and how much `more` is before it."""
        whole = {**{name: col(name) for name in self.names}, "level": col.level + 1, "place": col.place // 2}
        halves = needed.filter(col.level < self.top).select(**whole, half=col.place)
        left = totals.filter(col.place % 2 == 0).select(**whole, more=col.total)
        behind = halves.filter(col.half % 2 == 1).join(left, on=self.range)
        none_yet = halves.with_columns(more=0)
        return none_yet.concat(behind).group_by(*self.range, "half").agg(more=total_of("more"))


def _in_range(position: Expr, bits: int) -> Expr:
    """Return `position`; the row fails where it is below 0 or needs more than `bits`: a sum overflows."""
    room = lit(_GREATEST - (2**bits - 1))
    return position + lit(_LEAST) - lit(_LEAST) + room - room


def _check_int(rows: Collection, what: str, role: str, name: str) -> None:
    type_ = column_type(_NAME, what, rows, role, name)
    if type_.kind != "int" or type_.nullable:
        raise SchemaError(
            f"{_NAME} ({call_site()}): {name!r} of {what} is int and never null, not {type_}. Cast it, or "
            f"fill it by with_columns({name}=col.{name}.fill_null(0))"
        )
