"""Rounding of floats by their decimal digits: the digits that Python and Arrow print, halves away from zero.

Python prints a double with the fewest digits that read back as the same double: 2.675, though the double is a
little less. `round` rounds these digits, as Spark, Java's BigDecimal and calculators do, and returns the
double nearest to the result. So 2.675 to two digits is 2.68, and 105.99000000000001 is 105.99. There are
three cases, by n, the number of whole units of the last digit:

    n < 9e13    numpy alone. The midpoint between two results has at most 15 digits. Such a number is the
                printed form of the double nearest to it, so that a comparison with this double decides.
    n < 2e17    by the text, with kernels of Arrow: there the last digits of a double are printed and dropped.
    beyond      a double has 17 digits at most, so there are none behind the last one.

Powers of ten up to 10^22 are doubles: multiplying or dividing by one of them rounds once. With larger powers,
rows that neither become 0 nor stay as they are go one by one: numbers below 2e-4, or above 4e20, rounded to
the 21st digit or further.
"""

from __future__ import annotations

from decimal import ROUND_HALF_UP, Context, Decimal
from typing import Final

import numpy as np
import pyarrow as pa

from differential.columns.column_types import DECIMAL_DIGITS_MAX, Bools, Floats, Int64s
from differential.columns.wide.wide_words import are_small, halves_of
from timely.wire.arrow import number_array, numbers_of, pc

__all__ = ["quotients", "round_floats", "units_of"]

_DIGITS_USUAL: Final = 20
"""Up to this many digits all powers are exact, and the numbers fit Arrow's decimals of 38 digits."""

_NUMPY_BELOW: Final = 9e13
_TEXT_BELOW: Final = 2e17
_DIGITS_MAX: Final = 340
"""Below this power of ten no double has digits: the least, 5e-324, is printed with 17 of them at most."""

_EXACT: Final = Context(prec=800, Emin=-2000, Emax=2000)
_WHOLE_MAX: Final = 1 << 53

_EXACT_POWER_MAX: Final = 22
"""The largest power of ten that is a double."""


def round_floats(values: Floats, digits: int) -> Floats:
    """Return the values with `digits` digits behind the point (negative: before it).

    NaN and infinities stay. A value that would round beyond the largest double becomes infinite.
    """
    if digits > _DIGITS_MAX:
        return values
    if digits < -_DIGITS_MAX:
        return np.where(np.isfinite(values), np.copysign(0.0, values), values)
    sizes = np.abs(values)
    units = _times_power(sizes, digits)
    if abs(digits) > _DIGITS_USUAL:
        result = np.where(units < 0.4, 0.0, sizes)
        rest = (units >= 0.4) & (units < _TEXT_BELOW)
        if np.count_nonzero(rest):
            result[rest] = [_rounded_one(size, digits) for size in sizes[rest].tolist()]
        return np.copysign(result, values)
    is_short = units < _NUMPY_BELOW  # false for NaN
    if np.all(is_short):
        return np.copysign(_times_power(_nearest_units(sizes, units, digits), -digits), values)
    result = sizes.copy()
    result[is_short] = _times_power(_nearest_units(sizes[is_short], units[is_short], digits), -digits)
    is_long = (units >= _NUMPY_BELOW) & (units < _TEXT_BELOW)
    if np.count_nonzero(is_long):
        result[is_long] = _read(_text_decimals(sizes[is_long], digits).cast(pa.string()))
    return np.copysign(result, values)


def units_of(values: Floats, digits: int) -> tuple[Int64s, Bools]:
    """Return the values as whole numbers of 10^-digits, rounded alike, and where they are below 10^18.

    Requires: 0 ≤ digits ≤ 18. Where they are not, the number is 0.
    """
    assert 0 <= digits <= 18, digits
    sizes = np.abs(values)
    units = _times_power(sizes, digits)
    is_short = units < _NUMPY_BELOW
    result = np.zeros(len(values), np.int64)
    result[is_short] = _nearest_units(sizes[is_short], units[is_short], digits).astype(np.int64)
    is_long = (units >= _NUMPY_BELOW) & (units < 2e18)
    if np.count_nonzero(is_long):
        exact = _text_decimals(sizes[is_long], digits)
        halves = np.frombuffer(exact.buffers()[1], np.int64)[2 * exact.offset :][: 2 * len(exact)]
        result[is_long] = halves[::2]
    fits = (units < 2e18) & (result < 10**18)
    return np.where(fits, np.where(values < 0, -result, result), 0), fits


def quotients(words: Int64s, digits: int) -> Floats:
    """Return the doubles nearest to words / 10^digits, shaped like the words.

    Numbers of two words are int64[2, n], and become n doubles. Requires: 0 ≤ digits ≤ 38.
    """
    if words.ndim == 2:
        if are_small(words):
            return quotients(words[1], digits)
        exact = pa.decimal128(DECIMAL_DIGITS_MAX, digits)
        buffers = [None, pa.py_buffer(halves_of(words))]
        return _read(pa.Array.from_buffers(exact, words.shape[1], buffers).cast(pa.string()))
    floats = np.asarray(words.astype(np.float64))
    if not digits:
        return floats
    result = floats / 10.0**digits
    is_long = np.abs(floats) > (_WHOLE_MAX if digits <= _EXACT_POWER_MAX else 0)
    if np.count_nonzero(is_long):
        texts = number_array(words[is_long] if words.ndim else words.reshape(1)).cast(pa.string())
        nearest = _read(pc.binary_join_element_wise(texts, f"e-{digits}", ""))
        if not words.ndim:
            return nearest.reshape(())
        result[is_long] = nearest
    return np.asarray(result)


def _times_power(values: Floats, digits: int) -> Floats:
    """Return values · 10^digits, rounded once if |digits| ≤ 22; infinite beyond the largest double."""
    with np.errstate(all="ignore"):
        if 0 <= digits <= 300:
            return values * 10.0**digits
        if digits > 300:
            return values * 1e300 * 10.0 ** (digits - 300)
        if digits >= -300:
            return values / 10.0**-digits
        return values / 1e300 / 10.0 ** (-digits - 300)


def _nearest_units(sizes: Floats, units: Floats, digits: int) -> Floats:
    """Return the whole numbers of 10^-digits to which the positive `sizes`, about `units`, round.

    Requires: units < 9e13, |digits| ≤ 20. Corrects products that fell on the wrong side of a half.
    """
    nearest: Floats = np.rint(units)
    tenfold = 10.0 * nearest
    nearest += sizes >= _times_power(tenfold + 5.0, -digits - 1)
    nearest -= sizes < _times_power(tenfold - 5.0, -digits - 1)
    return nearest


def _text_decimals(sizes: Floats, digits: int) -> pa.Array:
    """Return decimals with `digits` digits behind the point.

    Requires: the numbers are positive, from 9e13 to 2e18 units, so that at most three digits are dropped.
    """
    texts = number_array(sizes).cast(pa.string())
    exact = texts.cast(pa.decimal128(38, digits + 3))
    return pc.round(exact, ndigits=digits, round_mode="half_towards_infinity").cast(pa.decimal128(38, digits))


def _read(texts: pa.Array) -> Floats:
    return numbers_of(texts.cast(pa.float64()), np.float64)


def _rounded_one(value: float, digits: int) -> float:
    unit = Decimal(1).scaleb(-digits, _EXACT)
    return float(Decimal(repr(value)).quantize(unit, ROUND_HALF_UP, _EXACT))
