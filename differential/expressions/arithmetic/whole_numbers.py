"""Arithmetic of whole numbers in expressions: results that leave 64 bits are detected, never wrapped.

One kernel call per operator computes and checks at once. Only if a result does not fit, Python's integers
find the rows.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Final

import numpy as np

from differential.columns.column_types import Bools, Int64s
from differential.expressions.compiled import Natural
from differential.kernels.arithmetic import ADD, MULTIPLY, SUBTRACT, combine

__all__ = ["beyond", "combined"]

_KERNELS: Final = {"+": ADD, "-": SUBTRACT, "*": MULTIPLY}
_PYTHON: Final[dict[str, Callable[[object, object], object]]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "//": operator.floordiv,
}
_MIN: Final = -(1 << 63)
_MAX: Final = (1 << 63) - 1


def combined(op: str, left: Natural, right: Natural) -> tuple[Int64s, bool]:
    """Return (left op right, whether all results fit); results that do not fit are wrong.

    Each operand has n elements, or no dimension.
    """
    first = left if left.ndim else left.reshape(1)
    second = right if right.ndim else right.reshape(1)
    out = np.empty((first if left.ndim else second).shape[0], np.int64)
    fits = combine(_KERNELS[op], first, second, out)  # type: ignore[arg-type]  # never floats or bools
    return (out if left.ndim or right.ndim else out.reshape(())), fits


def beyond(op: str, left: Natural, right: Natural) -> Bools:
    """Return where left op right leaves 64 bits; as many elements as the result has."""
    exact = _PYTHON[op](left.astype(object), right.astype(object))
    return np.asarray((exact < _MIN) | (exact > _MAX), dtype=np.bool_)  # type: ignore[operator]
