"""Copies of a compiled loop: a worker that is copied, to explore what it might do, takes its loops along.

Tables name memory by address. So each class that keeps such a table says in `__deepcopy__` how the copy's
table comes to name the copy's memory. Nothing here runs unless a worker is copied.
"""

from __future__ import annotations

import copy
from typing import TypeVar

__all__ = ["copied"]

_T = TypeVar("_T")


def copied(whole: _T, memo: dict[int, object], without: str = "") -> _T:
    """Return a copy of `whole` with copies of all its attributes but one, as `copy.deepcopy` makes them."""
    result = copy.copy(whole)
    memo[id(whole)] = result
    for name, value in vars(whole).items():
        if name != without:
            setattr(result, name, copy.deepcopy(value, memo))
    return result
