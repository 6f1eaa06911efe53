"""How deep may a value be nested, and is it one record or a list of them?

All code that walks through a value (msgpack, `repr`, hashing, comparison) recurses, each with a limit of its
own: one raises at 512 levels, another at 1,000, a third ends the process. So the receiver refuses a value
that is nested deeper than `NESTING_LEVELS_MAX` before anything else walks through it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from ..limits import NESTING_LEVELS_MAX

__all__ = ["is_one_record", "is_too_deep"]


_FLAT: Final = frozenset({int, str, float, bool, bytes, type(None)})


def is_too_deep(value: object, levels: int = NESTING_LEVELS_MAX) -> bool:
    """Return True if lists, tuples and mappings are nested in `value` more than `levels` deep.

    A container that contains itself is too deep.
    """
    if type(value) in _FLAT:  # fast path: nearly all values; the check for a mapping takes longer
        return False
    if isinstance(value, (list, tuple)):
        if levels == 0:
            return True
        for entry in value:
            if type(entry) not in _FLAT and is_too_deep(entry, levels - 1):
                return True
        return False
    if isinstance(value, Mapping):
        if levels == 0:
            return True
        for pair in value.items():
            for each in pair:
                if type(each) not in _FLAT and is_too_deep(each, levels - 1):
                    return True
    return False


def is_one_record(rows: object) -> bool:
    """Return True if `rows` is a single record, where a list of records should be: text, bytes, a mapping, or
    a tuple with an entry that is itself no tuple, list or mapping.

    Taken for a list, such a tuple would become one record for each of its entries.
    """
    if isinstance(rows, list):  # fast path: the check for a mapping takes longer
        return False
    if isinstance(rows, tuple):
        return not all(isinstance(entry, (tuple, list, Mapping)) for entry in rows)
    return isinstance(rows, (str, bytes, Mapping))
