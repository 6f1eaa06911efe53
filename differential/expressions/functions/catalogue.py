"""The catalogue of functions over columns, by name."""

from __future__ import annotations

from typing import Final

from differential.expressions.functions.function import Function
from differential.expressions.functions.lists import NESTED
from differential.expressions.functions.numbers import NUMERIC
from differential.expressions.functions.strings import STRINGS
from differential.expressions.functions.times import CALENDAR

__all__ = ["FUNCTIONS"]

FUNCTIONS: Final[dict[str, Function]] = {
    function.name: function for function in (*STRINGS, *NUMERIC, *CALENDAR, *NESTED)
}
"""All functions by name; operators and conditions are in `tree.py`."""

assert len(FUNCTIONS) == len(STRINGS) + len(NUMERIC) + len(CALENDAR) + len(NESTED), "a name is there twice"
