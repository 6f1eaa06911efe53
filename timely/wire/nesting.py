"""How deep may a value be nested?

Whatever walks through a value (msgpack, `repr`, hashing, comparison) does so by recursion, each with an end
of its own: one raises at 512 levels, another at 1,000, a third ends the process. So values that are nested
deeper than `NESTING_LEVELS_MAX` are refused where they come in, before anything walks through them.
"""

from __future__ import annotations

from collections.abc import Mapping

from ..limits import NESTING_LEVELS_MAX

__all__ = ["is_too_deep"]


def is_too_deep(value: object, levels: int = NESTING_LEVELS_MAX) -> bool:
    """Whether lists, tuples and mappings are nested in `value` more than `levels` deep. One that holds itself
    is.
    """
    if isinstance(value, list | tuple):
        return levels == 0 or any(is_too_deep(entry, levels - 1) for entry in value)
    if isinstance(value, Mapping):
        return levels == 0 or any(
            is_too_deep(key, levels - 1) or is_too_deep(entry, levels - 1) for key, entry in value.items()
        )
    return False
