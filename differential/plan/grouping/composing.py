"""Aggregates that are computed of others, and about how many different values there are.

    corr                    covariance / (deviation of x · deviation of y)
    approx_count_distinct   a HyperLogLog that stays right when rows go

A HyperLogLog divides the hashes of values among m registers. A register notes the greatest number of zeros at
the end of a hash that it has seen; a removal cannot be undone in it. Here the rows of a group become rows
(register, lowest bit that is 1), which add up to as many as there are different such pairs, and the greatest
bit of each register is kept right as any greatest value is. Ertl's estimate of the number ("New cardinality
estimation algorithms for HyperLogLog sketches", 2017, with `sigma` for registers without rows) needs no table
of corrections, for few values and for many.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from math import ceil, log, log2, nan
from typing import Final

from ...aggregates import Aggregate
from ...expressions.calls.catalogued import bitwise_and, bitwise_or, power, shiftrightunsigned
from ...expressions.calls.catalogued import hash as hash_of
from ...expressions.expression import ColumnRef, Expr, lit, max_of, min_of, when
from ..nodes import Filter, Node, Reduce, Select

__all__ = ["estimate", "flattened", "registers", "registers_bits"]

_Add = Callable[[Node], Node]
"""Enters a node into the plan, as written where the user's call is."""

_HIGHEST: Final = 40
"""The bits of a hash that count, behind those that choose the register."""

_OF_TWO_OF_THREE: Final = 1.04
"""The standard error of m registers is 1.04 / √m."""

_SIGMA_TERMS: Final = 6
"""More terms of `sigma` than there are bits in a register's number: then they are too small to matter."""


def flattened(named: Mapping[str, Aggregate]) -> tuple[dict[str, Aggregate], dict[str, Expr]]:
    """Return the aggregates that are stored, and by name the expressions of those computed from them."""
    flat: dict[str, Aggregate] = {}
    finals: dict[str, Expr] = {}
    for name, aggregate in named.items():
        if aggregate.kind != "corr":
            flat[name] = aggregate
            continue
        assert isinstance(aggregate.second, str)
        parts = {
            f"{name} (both)": replace(aggregate, kind="covar_samp"),
            f"{name} (x)": Aggregate("stddev", aggregate.column),
            f"{name} (y)": Aggregate("stddev", aggregate.second),
        }
        flat |= parts
        both, x, y = map(ColumnRef, parts)
        spreads = x * y
        divided = both / when(spreads != 0).then(spreads).otherwise(nan)
        within = min_of(max_of(divided, -1.0), 1.0)
        finals[name] = when(divided.is_nan()).then(divided).otherwise(within)  # NaN is above all numbers
    return flat, finals


def registers_bits(error: float) -> int:
    """Return the number of bits that choose a register, for this standard error."""
    return ceil(log2((_OF_TWO_OF_THREE / error) ** 2))


def registers(add: _Add, source: Node, keys: tuple[str, ...], column: str, error: float) -> tuple[Node, str]:
    """Return one row for each register that has rows, and the name of its column of weights: 2 ** 39 divided
    by the greatest bit.
    """
    if source.schema[column].type.nullable:
        source = add(Filter(source, ~ColumnRef(column).is_null()))
        hashed = hash_of(ColumnRef(column)).fill_null(0)  # which none is: the greatest bit is no null
    else:
        hashed = hash_of(ColumnRef(column))
    bits = registers_bits(error)
    rest = bitwise_or(shiftrightunsigned(hashed, bits), 1 << (_HIGHEST - 1))
    number, bit = f"{column} (register)", f"{column} (bit)"
    named = [(key, ColumnRef(key)) for key in keys]
    rows = add(
        Select(
            source,
            (*named, (number, bitwise_and(hashed, (1 << bits) - 1)), (bit, bitwise_and(rest, -rest))),
        )
    )
    greatest_bits = add(Reduce(rows, (*keys, number), ((bit, Aggregate("max", bit)),)))
    weight = f"{column} (weight)"
    weighed = (*named, (number, ColumnRef(number)), (weight, lit(1 << (_HIGHEST - 1)) // ColumnRef(bit)))
    return add(Select(greatest_bits, weighed)), weight


def estimate(filled: Expr, weights: Expr, error: float) -> Expr:
    """Return the number of different values, of the registers that have rows and the sum of their weights."""
    bits = registers_bits(error)
    count = float(1 << bits)
    empty = (lit(count) - filled.cast("float")) / count
    sigma = empty
    for term in range(1, bits + _SIGMA_TERMS):
        sigma = sigma + power(empty, float(1 << term)) * float(1 << (term - 1))
    below = sigma * count + weights.cast("float") / float(1 << _HIGHEST)
    number = (lit(count * count / (2 * log(2))) / below).round().cast("int")
    return when(filled > 0).then(number).otherwise(0)
