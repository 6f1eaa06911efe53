"""How deep may a value be nested?

Whatever walks through a value (msgpack, `repr`, hashing, comparison) does so by recursion, each with an end
of its own: one raises at 512 levels, another at 1,000, a third ends the process. So values that are nested
deeper than `NESTING_LEVELS_MAX` are refused where they come in, before anything walks through them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from ..limits import NESTING_LEVELS_MAX

__all__ = ["is_too_deep"]


_FLAT: Final = frozenset({int, str, float, bool, bytes, type(None)})


def is_too_deep(value: object, levels: int = NESTING_LEVELS_MAX) -> bool:
    """Whether lists, tuples and mappings are nested in `value` more than `levels` deep. One that holds itself
    is.
    """
    if type(value) in _FLAT:  # as nearly all are: whether one is a mapping takes longer to find out
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
