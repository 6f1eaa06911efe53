"""The catalogue of functions over columns, by name."""

from __future__ import annotations

from typing import Final

from differential.expressions.functions.families.arrays import ARRAYS
from differential.expressions.functions.families.bits import BITS
from differential.expressions.functions.families.codes import CODES
from differential.expressions.functions.families.days import DAYS
from differential.expressions.functions.families.formats import FORMATS
from differential.expressions.functions.families.hashes import HASHES
from differential.expressions.functions.families.json_texts import JSON
from differential.expressions.functions.families.nested import PARTS
from differential.expressions.functions.families.records import RECORDS
from differential.expressions.functions.families.texts import TEXTS
from differential.expressions.functions.function import Function
from differential.expressions.functions.lists import NESTED
from differential.expressions.functions.numbers import NUMERIC
from differential.expressions.functions.strings import STRINGS
from differential.expressions.functions.times import CALENDAR

__all__ = ["FUNCTIONS"]

_OF_TYPED: Final = (*ARRAYS, *RECORDS, *JSON, *FORMATS, *HASHES)
_ALL: Final = (*STRINGS, *TEXTS, *CODES, *NUMERIC, *BITS, *CALENDAR, *DAYS, *NESTED, *PARTS, *_OF_TYPED)

FUNCTIONS: Final[dict[str, Function]] = {function.name: function for function in _ALL}
"""All functions by name; operators and conditions are in `tree.py`."""

assert len(FUNCTIONS) == len(_ALL), "a name is there twice"
