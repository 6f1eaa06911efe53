"""Filters that a reader of an output hands down.

A condition is a list [column, what, value], as it travels. A row stays only if the condition is true of it;
if the result is null, because the value is, the row goes, as in SQL. `not` in front of another word swaps
true and false, and leaves null null. NaN is greater than any number, as in Spark.

    =  <=>  >  >=  <  <=      value: a number, text, bytes or bool; times in microseconds, dates in days
    in                        value: a list of such
    null, set                 there is no value, or there is one; value: None
    begins, ends, holds       of texts; value: text
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import pyarrow as pa

from timely.wire.arrow import pc

from ...errors import RequestError
from ...wire.claims import shown

__all__ = ["CONDITIONS", "columns_of", "fulfilling"]

_COMPARISONS: Final = {
    "=": pc.equal,
    ">": pc.greater,
    ">=": pc.greater_equal,
    "<": pc.less,
    "<=": pc.less_equal,
}
_OF_TEXTS: Final = {"begins": pc.starts_with, "ends": pc.ends_with, "holds": pc.match_substring}
CONDITIONS: Final = (*_COMPARISONS, "<=>", "in", "null", "set", *_OF_TEXTS)


def columns_of(conditions: Sequence[object]) -> list[str]:
    """Return the columns of the conditions; raise `RequestError` for one that is malformed."""
    return [_parts(condition)[0] for condition in conditions]


def fulfilling(table: pa.Table, conditions: Sequence[object]) -> pa.Table:
    """Return the rows of `table` for which all conditions are true; raise `RequestError` for one that does
    not fit its column.
    """
    mask = None
    for condition in conditions:
        name, what, value = _parts(condition)
        try:
            is_true = _is_true(table.column(name), what, value)
        except (pa.ArrowException, KeyError, TypeError, ValueError, OverflowError) as error:
            raise RequestError(f"the condition {shown(condition)} cannot be evaluated: {error}") from error
        mask = is_true if mask is None else pc.and_kleene(mask, is_true)
    return table if mask is None else table.filter(mask)


def _parts(condition: object) -> tuple[str, str, object]:
    match condition:
        case [str(name), str(what), value] if what.removeprefix("not ") in CONDITIONS:
            return name, what, value
        case _:
            raise RequestError(f"a condition is [column, what, value], not {shown(condition)}")


def _is_true(column: pa.ChunkedArray, what: str, value: object) -> pa.ChunkedArray:
    if what.startswith("not "):
        return pc.invert(_is_true(column, what.removeprefix("not "), value))
    if what == "null":
        return pc.is_null(column)
    if what == "set":
        return pc.is_valid(column)
    if what in _OF_TEXTS:
        return _OF_TEXTS[what](column, pattern=value)
    if what == "in":
        if not isinstance(value, list):
            raise TypeError("its value is no list")
        if pa.types.is_floating(column.type):
            # `is_in` compares bits, so make -0.0 0.0.
            column = pc.add(column, 0.0)
            value = [each + 0.0 if isinstance(each, float) else each for each in value]
        is_in = pc.is_in(column, value_set=pa.concat_arrays([_as_array(each, column.type) for each in value]))
        return pc.if_else(pc.is_valid(column), is_in, pa.scalar(None, pa.bool_()))
    if what == "<=>":
        if value is None:
            return pc.is_null(column)
        return pc.fill_null(pc.equal(column, _as_array(value, column.type)[0]), False)
    is_true = _COMPARISONS[what](column, _as_array(value, column.type)[0])
    if what in (">", ">=") and pa.types.is_floating(column.type):
        return pc.or_(is_true, pc.is_nan(column))
    return is_true


def _as_array(value: object, kind: pa.DataType) -> pa.Array:
    """Return one value of a condition as an array, in the type of the column."""
    array = pa.array([value])
    if pa.types.is_timestamp(kind):
        return array.cast(pa.int64()).view(pa.timestamp("us")).cast(kind)
    if pa.types.is_date(kind):
        return array.cast(pa.int32()).view(pa.date32())
    return array.cast(kind)
