"""Errors about a part name the part and the row of the whole value."""

from __future__ import annotations

from differential.columns.column_types import array_of, integer
from differential.columns.nested.locations import ValueLocation


def test_a_part_of_a_part_is_in_the_row_of_the_whole() -> None:
    whole = ValueLocation("i", "x", array_of(array_of(integer)))
    inner = whole.inside("element", array_of(integer), [0, 2, 2]).inside("element", integer, [1, 2])
    assert inner.row(0) == inner.row(1) == 2
    message = str(inner.error(1, 5, "is odd", "Mend it."))
    assert message.startswith("input 'i', column 'x', element, element (int), row 2: 5 is odd.\n")
    assert "row" not in str(ValueLocation("", "x", integer).error(0, 5, "is odd", ""))
