"""Functions over columns as PySpark has them: `upper(col.name)`, `year(col.t)`, under its names.

Each is generated from an entry of `functions/catalogue.py`, and writes what its method writes
(`col.name.str.upper()`). Editors and mypy read them in `catalogued.pyi`, which `./scripts/stubs` writes.
Functions that are written in terms of others are in `composed.py`.
"""

from differential.expressions.expression import Expr, ExprLike

__all__ = [
    "add_months",
    "array_contains",
    "array_join",
    "ceil",
    "concat",
    "contains",
    "date_add",
    "date_diff",
    "date_format",
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
    "initcap",
    "length",
    "like",
    "log",
    "log2",
    "log10",
    "lower",
    "lpad",
    "microsecond",
    "minute",
    "month",
    "power",
    "quarter",
    "regexp_extract",
    "regexp_replace",
    "replace",
    "reverse",
    "rlike",
    "round",
    "rpad",
    "second",
    "signum",
    "size",
    "split",
    "sqrt",
    "startswith",
    "to_date",
    "to_timestamp",
    "try_to_date",
    "try_to_timestamp",
    "upper",
    "weekofyear",
    "year",
]

def upper(text: ExprLike) -> Expr:
    """In capital letters."""

def lower(text: ExprLike) -> Expr:
    """In small letters."""

def initcap(text: ExprLike) -> Expr:
    """Each word with a capital letter; a word begins behind a space."""

def length(text: ExprLike) -> Expr:
    """The number of characters."""

def reverse(text: ExprLike) -> Expr:
    """From the end to the beginning."""

def replace(text: ExprLike, old: str, new: str) -> Expr:
    """With every `old` replaced by `new`."""

def regexp_replace(text: ExprLike, pattern: str, new: str) -> Expr:
    """With every match of `pattern` replaced by `new`."""

def contains(text: ExprLike, part: str) -> Expr:
    """True where `part` is somewhere in it."""

def startswith(text: ExprLike, part: str) -> Expr:
    """True where it begins with `part`."""

def endswith(text: ExprLike, part: str) -> Expr:
    """True where it ends with `part`."""

def like(text: ExprLike, pattern: str) -> Expr:
    """True where it is like `pattern`: % stands for any text, _ for one character."""

def rlike(text: ExprLike, pattern: str) -> Expr:
    """True where `pattern` matches somewhere."""

def regexp_extract(text: ExprLike, pattern: str, group: int | None = None) -> Expr:
    """The part of the first match of `pattern` in `group` (1; 0: all of it); null if there is none."""

def split(text: ExprLike, separator: str) -> Expr:
    """The list of the parts between separators."""

def lpad(text: ExprLike, width: int, fill: str | None = None) -> Expr:
    """Filled up to `width` characters at the beginning; never shortened."""

def rpad(text: ExprLike, width: int, fill: str | None = None) -> Expr:
    """Filled up to `width` characters at the end; never shortened."""

def concat(*values: ExprLike) -> Expr:
    """The texts one after another; null if one of them is."""

def round(x: ExprLike, digits: int | None = None) -> Expr:
    """Rounded to `digits` digits behind the point (0; negative: before it), halves away from zero, as
    printed.
    """

def floor(x: ExprLike) -> Expr:
    """The next whole number below; an int for a decimal."""

def ceil(x: ExprLike) -> Expr:
    """The next whole number above; an int for a decimal."""

def signum(x: ExprLike) -> Expr:
    """-1, 0 or 1."""

def sqrt(x: ExprLike) -> Expr:
    """The square root."""

def exp(x: ExprLike) -> Expr:
    """e to this power."""

def log(x: ExprLike, base: float | None = None) -> Expr:
    """The logarithm, to base e or another."""

def log2(x: ExprLike) -> Expr:
    """The logarithm to base 2."""

def log10(x: ExprLike) -> Expr:
    """The logarithm to base 10."""

def power(x: ExprLike, exponent: ExprLike) -> Expr:
    """To this power, as a float."""

def hash(*values: ExprLike) -> Expr:
    """64 bits of the values, the same in every process; null if one is null."""

def year(t: ExprLike) -> Expr:
    """The year."""

def quarter(t: ExprLike) -> Expr:
    """1 to 4."""

def month(t: ExprLike) -> Expr:
    """1 to 12."""

def weekofyear(t: ExprLike) -> Expr:
    """The week of the year by ISO 8601, 1 to 53."""

def dayofmonth(t: ExprLike) -> Expr:
    """The day of the month."""

def day(t: ExprLike) -> Expr:
    """The day of the month."""

def dayofyear(t: ExprLike) -> Expr:
    """1 to 366."""

def day_of_week(t: ExprLike) -> Expr:
    """1 (Monday) to 7 (Sunday)."""

def hour(t: ExprLike) -> Expr:
    """0 to 23."""

def minute(t: ExprLike) -> Expr:
    """0 to 59."""

def second(t: ExprLike) -> Expr:
    """0 to 59."""

def microsecond(t: ExprLike) -> Expr:
    """0 to 999,999: the part beyond the second."""

def date_diff(t: ExprLike, start: ExprLike, unit: str | None = None) -> Expr:
    """The number of days (or other units) that begin after `start` and no later than it."""

def date_add(t: ExprLike, count: ExprLike) -> Expr:
    """`count` days later."""

def add_months(t: ExprLike, count: ExprLike) -> Expr:
    """`count` months later: the same day, or the last of the month."""

def date_format(t: ExprLike, format: str) -> Expr:
    """As text, in a form as '%Y-%m-%d %H:%M:%S'."""

def to_date(text: ExprLike, format: str) -> Expr:
    """The date that is written in the form `format`, as '%Y-%m-%d'."""

def to_timestamp(text: ExprLike, format: str) -> Expr:
    """The time that is written in the form `format`."""

def try_to_date(text: ExprLike, format: str) -> Expr:
    """As `to_date`; null where the form is another."""

def try_to_timestamp(text: ExprLike, format: str) -> Expr:
    """As `to_timestamp`; null where the form is another."""

def size(x: ExprLike) -> Expr:
    """The number of values in a list or map."""

def get(x: ExprLike, index: int) -> Expr:
    """The value at `index` of a list, from 0, or from the end if negative; null if there is none."""

def array_contains(x: ExprLike, value: object) -> Expr:
    """True where a list holds `value`."""

def array_join(x: ExprLike, separator: str) -> Expr:
    """A list of texts as one text."""
