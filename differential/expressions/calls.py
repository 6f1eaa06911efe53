"""Functions over columns as PySpark has them: `upper(col.name)`, `year(col.t)`, under its names.

They write what the methods write (`col.name.str.upper()`); counted from 1 is what PySpark counts from 1.
`tests/differential/expressions/test_calls.py` holds them in step with the table.
"""

from __future__ import annotations

from differential.errors import ExpressionError
from differential.expressions.expression import (
    Expr,
    ExprLike,
    as_expr,
    call_function,
    check_columns,
    when,
)
from differential.other_spellings import written_as
from timely.user_code.call_site import call_site

__all__ = [
    "abs",
    "add_months",
    "array_contains",
    "array_join",
    "ceil",
    "concat",
    "concat_ws",
    "contains",
    "date_add",
    "date_diff",
    "date_format",
    "date_trunc",
    "datediff",
    "day",
    "day_of_week",
    "dayofmonth",
    "dayofyear",
    "endswith",
    "exp",
    "floor",
    "get",
    "hash",
    "hour",
    "if_else",
    "initcap",
    "isnan",
    "isnull",
    "length",
    "like",
    "log",
    "log2",
    "log10",
    "lower",
    "lpad",
    "ltrim",
    "microsecond",
    "minute",
    "mod",
    "month",
    "nullif",
    "power",
    "quarter",
    "regexp_extract",
    "regexp_replace",
    "replace",
    "reverse",
    "rlike",
    "round",
    "rpad",
    "rtrim",
    "second",
    "signum",
    "size",
    "split",
    "sqrt",
    "startswith",
    "substring",
    "to_date",
    "to_timestamp",
    "trim",
    "try_to_date",
    "try_to_timestamp",
    "upper",
    "weekofyear",
    "year",
]


def upper(text: ExprLike) -> Expr:
    """In capital letters."""
    return call_function("upper", text)


def lower(text: ExprLike) -> Expr:
    """In small letters."""
    return call_function("lower", text)


def initcap(text: ExprLike) -> Expr:
    """Each word with a capital letter; a word begins behind a space."""
    return call_function("initcap", text)


def length(text: ExprLike) -> Expr:
    """How many characters."""
    return call_function("length", text)


def reverse(text: ExprLike) -> Expr:
    """From the end to the beginning."""
    return call_function("reverse", text)


def trim(text: ExprLike, characters: str | None = None) -> Expr:
    """Without the spaces, or the characters, at both ends; `x.str.strip()` takes all white space off."""
    return call_function("strip", text, " " if characters is None else characters)


def ltrim(text: ExprLike, characters: str | None = None) -> Expr:
    """Without the spaces, or the characters, at the beginning."""
    return call_function("lstrip", text, " " if characters is None else characters)


def rtrim(text: ExprLike, characters: str | None = None) -> Expr:
    """Without the spaces, or the characters, at the end."""
    return call_function("rstrip", text, " " if characters is None else characters)


def replace(text: ExprLike, old: str, new: str) -> Expr:
    """With every `old` replaced by `new`."""
    return call_function("replace", text, old, new)


def regexp_replace(text: ExprLike, pattern: str, new: str) -> Expr:
    """With every match of `pattern` replaced by `new`."""
    return call_function("replace_regex", text, pattern, new)


def contains(text: ExprLike, part: str) -> Expr:
    """Whether `part` is somewhere in it."""
    return call_function("contains", text, part)


def startswith(text: ExprLike, part: str) -> Expr:
    """Whether it begins with `part`."""
    return call_function("startswith", text, part)


def endswith(text: ExprLike, part: str) -> Expr:
    """Whether it ends with `part`."""
    return call_function("endswith", text, part)


def like(text: ExprLike, pattern: str) -> Expr:
    """Whether it is like `pattern`, in which % stands for any text and _ for one character."""
    return call_function("like", text, pattern)


def rlike(text: ExprLike, pattern: str) -> Expr:
    """Whether `pattern` matches somewhere."""
    return call_function("matches", text, pattern)


def regexp_extract(text: ExprLike, pattern: str, group: int | None = None) -> Expr:
    """What `group` of `pattern` matches first (1; 0: all of it); null if nothing does."""
    return call_function("extract", text, pattern, group)


def split(text: ExprLike, separator: str) -> Expr:
    """The list of the parts between separators."""
    return call_function("split", text, separator)


def lpad(text: ExprLike, width: int, fill: str | None = None) -> Expr:
    """Filled up to `width` characters at the beginning; never shortened."""
    return call_function("lpad", text, width, fill)


def rpad(text: ExprLike, width: int, fill: str | None = None) -> Expr:
    """Filled up to `width` characters at the end; never shortened."""
    return call_function("rpad", text, width, fill)


def concat(*values: ExprLike) -> Expr:
    """The texts one after another; null if one of them is."""
    return call_function("concat", *values)


def round(x: ExprLike, digits: int | None = None) -> Expr:
    """To so many digits behind the point (0; negative: before it), halves away from zero, as printed."""
    return call_function("round", x, digits)


def floor(x: ExprLike) -> Expr:
    """The next whole number below; an int for a decimal."""
    return call_function("floor", x)


def ceil(x: ExprLike) -> Expr:
    """The next whole number above; an int for a decimal."""
    return call_function("ceil", x)


def signum(x: ExprLike) -> Expr:
    """-1, 0 or 1."""
    return call_function("sign", x)


def sqrt(x: ExprLike) -> Expr:
    """The square root."""
    return call_function("sqrt", x)


def exp(x: ExprLike) -> Expr:
    """e to this power."""
    return call_function("exp", x)


def log(x: ExprLike, base: float | None = None) -> Expr:
    """The logarithm, to base e or another."""
    return call_function("log", x, base)


def log2(x: ExprLike) -> Expr:
    """The logarithm to base 2."""
    return call_function("log2", x)


def log10(x: ExprLike) -> Expr:
    """The logarithm to base 10."""
    return call_function("log10", x)


def power(x: ExprLike, exponent: ExprLike) -> Expr:
    """To this power, as a float."""
    return call_function("power", x, exponent)


def isnan(x: ExprLike) -> Expr:
    """Whether it is not a number; false for null, as in Spark. `x.is_nan()` is null there."""
    return call_function("is_nan", x).fill_null(False)


def hash(*values: ExprLike) -> Expr:
    """64 bits of the values, the same in every process; null if one is null."""
    return call_function("hash", *values)


def year(t: ExprLike) -> Expr:
    """The year."""
    return call_function("year", t)


def quarter(t: ExprLike) -> Expr:
    """1 to 4."""
    return call_function("quarter", t)


def month(t: ExprLike) -> Expr:
    """1 to 12."""
    return call_function("month", t)


def weekofyear(t: ExprLike) -> Expr:
    """The week of the year by ISO 8601, 1 to 53."""
    return call_function("week", t)


def dayofmonth(t: ExprLike) -> Expr:
    """The day of the month."""
    return call_function("day", t)


def dayofyear(t: ExprLike) -> Expr:
    """1 to 366."""
    return call_function("day_of_year", t)


def day_of_week(t: ExprLike) -> Expr:
    """1 (Monday) to 7 (Sunday)."""
    return call_function("day_of_week", t)


def hour(t: ExprLike) -> Expr:
    """0 to 23."""
    return call_function("hour", t)


def minute(t: ExprLike) -> Expr:
    """0 to 59."""
    return call_function("minute", t)


def second(t: ExprLike) -> Expr:
    """0 to 59."""
    return call_function("second", t)


def microsecond(t: ExprLike) -> Expr:
    """0 to 999,999: what is beyond the second."""
    return call_function("microsecond", t)


def date_diff(t: ExprLike, start: ExprLike, unit: str | None = None) -> Expr:
    """How many days (or other units) begin after `start` and no later than it."""
    return call_function("date_diff", t, start, unit)


def date_add(t: ExprLike, count: ExprLike) -> Expr:
    """So many days later."""
    return call_function("add_days", t, count)


def add_months(t: ExprLike, count: ExprLike) -> Expr:
    """So many months later: the same day, or the last of the month."""
    return call_function("add_months", t, count)


def date_format(t: ExprLike, format: str) -> Expr:
    """As text, in a form as '%Y-%m-%d %H:%M:%S'."""
    return call_function("format", t, format)


@written_as("to_date(x, '%Y-%m-%d'), or x.cast('date')")
def to_date(text: ExprLike, format: str) -> Expr:
    """The date that is written in the form `format`, as '%Y-%m-%d'."""
    return call_function("to_date", text, format)


@written_as("to_timestamp(x, '%Y-%m-%d %H:%M:%S'), or x.cast('timestamp')")
def to_timestamp(text: ExprLike, format: str) -> Expr:
    """The time that is written in the form `format`."""
    return call_function("to_timestamp", text, format)


@written_as("try_to_date(x, '%Y-%m-%d'), or x.try_cast('date')")
def try_to_date(text: ExprLike, format: str) -> Expr:
    """As `to_date`; null where the form is another."""
    return call_function("try_to_date", text, format)


@written_as("try_to_timestamp(x, '%Y-%m-%d %H:%M:%S'), or x.try_cast('timestamp')")
def try_to_timestamp(text: ExprLike, format: str) -> Expr:
    """As `to_timestamp`; null where the form is another."""
    return call_function("try_to_timestamp", text, format)


def size(x: ExprLike) -> Expr:
    """How many values a list or map has."""
    return call_function("size", x)


def get(x: ExprLike, index: int) -> Expr:
    """The value at `index` of a list, from 0, or from the end if negative; null if there is none."""
    return call_function("get", x, index)


def array_contains(x: ExprLike, value: object) -> Expr:
    """Whether a list holds `value`."""
    return call_function("has", x, value)


def array_join(x: ExprLike, separator: str) -> Expr:
    """A list of texts as one text."""
    return call_function("join", x, separator)


def concat_ws(separator: str, *values: ExprLike) -> Expr:
    """The texts with a separator between them; nulls are left out."""
    check_columns("concat_ws", values)
    return call_function("concat_ws", separator, *values)


def date_trunc(unit: str | Expr, t: ExprLike) -> Expr:
    """The beginning of the year, quarter, month, week, day, hour, … that it is in."""
    if isinstance(unit, Expr) and isinstance(t, str):
        raise ExpressionError(
            f"date_trunc({unit!r}, {t!r}) ({call_site()}): the unit comes first. "
            f"Write date_trunc({t!r}, {unit!r})"
        )
    return call_function("date_trunc", t, unit)


def substring(text: ExprLike, position: int, length: int) -> Expr:
    """`length` characters from `position` on, counted from 1, or from the end if negative."""
    return _column("substring", text).substr(position, length)


def day(t: ExprLike) -> Expr:
    """The day of the month."""
    return call_function("day", t)


def datediff(end: ExprLike, start: ExprLike) -> Expr:
    """How many days begin after `start` and no later than `end`."""
    return call_function("date_diff", end, start)


def mod(x: ExprLike, divisor: ExprLike) -> Expr:
    """What is left of a division that rounds down, as `%`: it has the sign of the divisor."""
    return _column("mod", x) % divisor


def abs(x: ExprLike) -> Expr:
    """The value without its sign."""
    return _column("abs", x).abs()


def isnull(x: ExprLike) -> Expr:
    """True where the value is null."""
    return _column("isnull", x).is_null()


def nullif(value: ExprLike, unwanted: ExprLike) -> Expr:
    """`value`, but null where it equals `unwanted`."""
    check_columns("nullif", [value])
    given = as_expr(value)
    return when((given != unwanted).fill_null(True)).then(given)


def if_else(condition: ExprLike, value: ExprLike, otherwise: ExprLike) -> Expr:
    """`value` where `condition` is true, else `otherwise`."""
    return when(condition).then(value).otherwise(otherwise)


def _column(name: str, operand: ExprLike) -> Expr:
    """The operand of the function `name`, which is no bare text."""
    check_columns(name, [operand])
    return as_expr(operand)
