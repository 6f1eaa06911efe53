"""Functions as methods of an expression: `col.name.str.upper()`, `col.t.dt.year()`, `col.x.list.get(0)`.

Each method is generated from the entry of its name in `catalogue.py`. Editors and mypy read them in
`namespaces.pyi`, which `./scripts/stubs` writes.
"""

from differential.expressions.expression import Expr, ExprLike
from differential.expressions.functions.signatures import Write

__all__ = ["ListMethods", "NumberMethods", "StringMethods", "TimeMethods"]

class NumberMethods:
    """Functions of numbers, and others that are methods of the expression itself: base of expressions."""

    def round(self, digits: int | None = None) -> Expr:
        """Rounded to `digits` digits behind the point (0; negative: before it), halves away from zero, as
        printed.
        """

    def floor(self) -> Expr:
        """The next whole number below; an int for a decimal."""

    def ceil(self) -> Expr:
        """The next whole number above; an int for a decimal."""

    def sign(self) -> Expr:
        """-1, 0 or 1."""

    def sqrt(self) -> Expr:
        """The square root."""

    def exp(self) -> Expr:
        """e to this power."""

    def log(self, base: float | None = None) -> Expr:
        """The logarithm, to base e or another."""

    def log2(self) -> Expr:
        """The logarithm to base 2."""

    def log10(self) -> Expr:
        """The logarithm to base 10."""

    def power(self, exponent: ExprLike) -> Expr:
        """To this power, as a float."""

    def is_nan(self) -> Expr:
        """True where it is not a number."""

class TimeMethods:
    """Functions of dates and timestamps: the methods of `x.dt`."""

    def __init__(self, expr: Expr, write: Write) -> None: ...
    def year(self) -> Expr:
        """The year."""

    def quarter(self) -> Expr:
        """1 to 4."""

    def month(self) -> Expr:
        """1 to 12."""

    def week(self) -> Expr:
        """The week of the year by ISO 8601, 1 to 53."""

    def day(self) -> Expr:
        """The day of the month."""

    def day_of_year(self) -> Expr:
        """1 to 366."""

    def day_of_week(self) -> Expr:
        """1 (Monday) to 7 (Sunday)."""

    def hour(self) -> Expr:
        """0 to 23."""

    def minute(self) -> Expr:
        """0 to 59."""

    def second(self) -> Expr:
        """0 to 59."""

    def microsecond(self) -> Expr:
        """0 to 999,999: the part beyond the second."""

    def date_trunc(self, unit: str) -> Expr:
        """The beginning of the year, quarter, month, week, day, hour, … that the time is in."""

    def date_diff(self, start: ExprLike, unit: str | None = None) -> Expr:
        """The number of days (or other units) that begin after `start` and no later than it."""

    def add_days(self, count: ExprLike) -> Expr:
        """`count` days later."""

    def add_months(self, count: ExprLike) -> Expr:
        """`count` months later: the same day, or the last of the month."""

    def format(self, format: str) -> Expr:
        """As text, in a form as '%Y-%m-%d %H:%M:%S'."""

    def strftime(self, format: str) -> Expr:
        """The same as `format`."""

    def to_string(self, format: str) -> Expr:
        """The same as `format`."""

    def weekday(self) -> Expr:
        """The same as `day_of_week`."""

    def isoweekday(self) -> Expr:
        """The same as `day_of_week`."""

    def ordinal_day(self) -> Expr:
        """The same as `day_of_year`."""

    def dayofyear(self) -> Expr:
        """The same as `day_of_year`."""

class ListMethods:
    """Functions of lists and maps: the methods of `x.list`."""

    def __init__(self, expr: Expr, write: Write) -> None: ...
    def size(self) -> Expr:
        """The number of values in a list or map."""

    def get(self, index: int) -> Expr:
        """The value at `index` of a list, from 0, or from the end if negative; null if there is none."""

    def field(self, key: str | int) -> Expr:
        """The value of a map, or struct, under `key`; null if there is none."""

    def has(self, value: object) -> Expr:
        """True where a list holds `value`."""

    def join(self, separator: str) -> Expr:
        """A list of texts as one text."""

    def len(self) -> Expr:
        """The same as `size`."""

    def lengths(self) -> Expr:
        """The same as `size`."""

    def length(self) -> Expr:
        """The same as `size`."""

    def contains(self, value: object) -> Expr:
        """The same as `has`."""

class StringMethods:
    """Functions of strings: the methods of `x.str`."""

    def __init__(self, expr: Expr, write: Write) -> None: ...
    def upper(self) -> Expr:
        """In capital letters."""

    def lower(self) -> Expr:
        """In small letters."""

    def title(self) -> Expr:
        """Each word with a capital letter; a word is a run of letters."""

    def initcap(self) -> Expr:
        """Each word with a capital letter; a word begins behind a space."""

    def length(self) -> Expr:
        """The number of characters."""

    def reverse(self) -> Expr:
        """From the end to the beginning."""

    def strip(self, characters: str | None = None) -> Expr:
        """Without the white space, or the characters, at both ends."""

    def lstrip(self, characters: str | None = None) -> Expr:
        """Without the white space, or the characters, at the beginning."""

    def rstrip(self, characters: str | None = None) -> Expr:
        """Without the white space, or the characters, at the end."""

    def slice(self, offset: int, length: int | None = None) -> Expr:
        """`length` characters from `offset` on, counted from 0, or from the end if negative."""

    def replace(self, old: str, new: str) -> Expr:
        """With every `old` replaced by `new`."""

    def replace_regex(self, pattern: str, new: str) -> Expr:
        """With every match of `pattern` replaced by `new`."""

    def contains(self, part: str) -> Expr:
        """True where `part` is somewhere in it."""

    def startswith(self, part: str) -> Expr:
        """True where it begins with `part`."""

    def endswith(self, part: str) -> Expr:
        """True where it ends with `part`."""

    def like(self, pattern: str) -> Expr:
        """True where it is like `pattern`: % stands for any text, _ for one character."""

    def matches(self, pattern: str) -> Expr:
        """True where `pattern` matches somewhere."""

    def extract(self, pattern: str, group: int | None = None) -> Expr:
        """The part of the first match of `pattern` in `group` (1; 0: all of it); null if there is none."""

    def split(self, separator: str) -> Expr:
        """The list of the parts between separators."""

    def lpad(self, width: int, fill: str | None = None) -> Expr:
        """Filled up to `width` characters at the beginning; never shortened."""

    def rpad(self, width: int, fill: str | None = None) -> Expr:
        """Filled up to `width` characters at the end; never shortened."""

    def to_date(self, format: str) -> Expr:
        """The date that is written in the form `format`, as '%Y-%m-%d'."""

    def to_timestamp(self, format: str) -> Expr:
        """The time that is written in the form `format`."""

    def try_to_date(self, format: str) -> Expr:
        """As `to_date`; null where the form is another."""

    def try_to_timestamp(self, format: str) -> Expr:
        """As `to_timestamp`; null where the form is another."""

    def to_uppercase(self) -> Expr:
        """The same as `upper`."""

    def to_lowercase(self) -> Expr:
        """The same as `lower`."""

    def to_titlecase(self) -> Expr:
        """The same as `title`."""

    def len(self) -> Expr:
        """The same as `length`."""

    def len_chars(self) -> Expr:
        """The same as `length`."""

    def trim(self, characters: str | None = None) -> Expr:
        """The same as `strip`."""

    def strip_chars(self, characters: str | None = None) -> Expr:
        """The same as `strip`."""

    def ltrim(self, characters: str | None = None) -> Expr:
        """The same as `lstrip`."""

    def strip_chars_start(self, characters: str | None = None) -> Expr:
        """The same as `lstrip`."""

    def rtrim(self, characters: str | None = None) -> Expr:
        """The same as `rstrip`."""

    def strip_chars_end(self, characters: str | None = None) -> Expr:
        """The same as `rstrip`."""

    def starts_with(self, part: str) -> Expr:
        """The same as `startswith`."""

    def ends_with(self, part: str) -> Expr:
        """The same as `endswith`."""

    def pad_start(self, width: int, fill: str | None = None) -> Expr:
        """The same as `lpad`."""

    def rjust(self, width: int, fill: str | None = None) -> Expr:
        """The same as `lpad`."""

    def pad_end(self, width: int, fill: str | None = None) -> Expr:
        """The same as `rpad`."""

    def ljust(self, width: int, fill: str | None = None) -> Expr:
        """The same as `rpad`."""

    def to_datetime(self, format: str) -> Expr:
        """The same as `to_timestamp`."""

    def rlike(self, pattern: str) -> Expr:
        """The same as `matches`."""
