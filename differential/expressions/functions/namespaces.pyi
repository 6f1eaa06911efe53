"""Functions as methods of an expression: `col.name.str.upper()`, `col.t.dt.year()`, `col.x.list.get(0)`.

Each method is generated from the entry of its name in `catalogue.py`. Editors and mypy read them in
`namespaces.pyi`, which `./scripts/stubs` writes.
"""

from differential.expressions.expression import Expr, ExprLike
from differential.expressions.functions.signatures import Write

__all__ = ["ListMethods", "NumberMethods", "StringMethods", "TimeMethods"]

class NumberMethods:
    """Functions of numbers, and others that are methods of the expression itself: base of expressions."""

    def format_number(self, digits: int) -> Expr:
        """As text with `digits` digits behind the point and commas between thousands; halves go to the even
        digit.
        """

    def hex(self) -> Expr:
        """In hexadecimal digits, which are capitals: the bytes of a text, the 64 bits of a number."""

    def bin(self) -> Expr:
        """The 64 bits of a number, from the first that is 1."""

    def chr(self) -> Expr:
        """The character whose number the last 8 bits are; '' of a negative number."""

    def round(self, digits: int | None = None) -> Expr:
        """Rounded to `digits` digits behind the point (0; negative: before it), halves away from zero, as
        printed.
        """

    def floor(self) -> Expr:
        """The next whole number below; an int for a decimal that fits one."""

    def ceil(self) -> Expr:
        """The next whole number above; an int for a decimal that fits one."""

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

    def sin(self) -> Expr:
        """The sine of an angle in radians."""

    def cos(self) -> Expr:
        """The cosine of an angle in radians."""

    def tan(self) -> Expr:
        """The tangent of an angle in radians."""

    def asin(self) -> Expr:
        """The angle, in radians, with this sine."""

    def acos(self) -> Expr:
        """The angle, in radians, with this cosine."""

    def atan(self) -> Expr:
        """The angle, in radians, with this tangent."""

    def sinh(self) -> Expr:
        """The hyperbolic sine."""

    def cosh(self) -> Expr:
        """The hyperbolic cosine."""

    def tanh(self) -> Expr:
        """The hyperbolic tangent."""

    def degrees(self) -> Expr:
        """An angle of radians in degrees."""

    def radians(self) -> Expr:
        """An angle of degrees in radians."""

    def cbrt(self) -> Expr:
        """The cube root."""

    def expm1(self) -> Expr:
        """e to this power, less 1: exact for small numbers, too."""

    def log1p(self) -> Expr:
        """The logarithm of 1 more: exact for small numbers, too."""

    def bround(self, digits: int | None = None) -> Expr:
        """Rounded as by `round`, but halves go to the even digit."""

    def bit_count(self) -> Expr:
        """The number of bits that are 1, of 64."""

    def bitwise_not(self) -> Expr:
        """Each bit the other one."""

    def bitwise_and(self, other: ExprLike) -> Expr:
        """The bits that are 1 in both."""

    def bitwise_or(self, other: ExprLike) -> Expr:
        """The bits that are 1 in one or both."""

    def bitwise_xor(self, other: ExprLike) -> Expr:
        """The bits that are 1 in one of both."""

    def shiftleft(self, count: ExprLike) -> Expr:
        """The bits moved left by `count`."""

    def shiftright(self, count: ExprLike) -> Expr:
        """The bits moved right by `count`; a negative number stays negative."""

    def shiftrightunsigned(self, count: ExprLike) -> Expr:
        """The bits moved right by `count`, with zeros before them."""

    def item(self, key: ExprLike) -> Expr:
        """The element of an array at a place, from 0; of a map the value under a key, null if there is none;
        of a struct a field. The same as x[key].
        """

class TimeMethods:
    """Functions of dates and timestamps: the methods of `x.dt`."""

    def __init__(self, expr: Expr, write: Write) -> None: ...
    def year(self, zone: str | None = None) -> Expr:
        """The year."""

    def iso_year(self, zone: str | None = None) -> Expr:
        """The year that its week is in, by ISO 8601."""

    def quarter(self, zone: str | None = None) -> Expr:
        """1 to 4."""

    def month(self, zone: str | None = None) -> Expr:
        """1 to 12."""

    def week(self, zone: str | None = None) -> Expr:
        """The week of the year by ISO 8601, 1 to 53."""

    def day(self, zone: str | None = None) -> Expr:
        """The day of the month."""

    def day_of_year(self, zone: str | None = None) -> Expr:
        """1 to 366."""

    def day_of_week(self, zone: str | None = None) -> Expr:
        """1 (Monday) to 7 (Sunday)."""

    def hour(self, zone: str | None = None) -> Expr:
        """0 to 23."""

    def minute(self, zone: str | None = None) -> Expr:
        """0 to 59."""

    def second(self, zone: str | None = None) -> Expr:
        """0 to 59."""

    def microsecond(self, zone: str | None = None) -> Expr:
        """0 to 999,999: the part beyond the second."""

    def date_trunc(self, unit: str, zone: str | None = None) -> Expr:
        """The beginning of the year, quarter, month, week, day, hour, … that the time is in."""

    def date(self, zone: str | None = None) -> Expr:
        """The day."""

    def in_zone(self, zone: str) -> Expr:
        """What clocks in a zone as 'Europe/Rome' show then, as a timestamp."""

    def from_zone(self, zone: str) -> Expr:
        """The instant at which clocks in a zone show this; the first, if they do so twice."""

    def date_diff(self, start: ExprLike, unit: str | None = None) -> Expr:
        """The number of days (or other units) that begin after `start` and no later than it."""

    def add_days(self, count: ExprLike) -> Expr:
        """`count` days later."""

    def add_months(self, count: ExprLike) -> Expr:
        """`count` months later: the same day, or the last of the month."""

    def format(self, format: str, zone: str | None = None) -> Expr:
        """As text, in a form as '%Y-%m-%d %H:%M:%S'."""

    def last_day(self) -> Expr:
        """The last day of its month, a date."""

    def next_day(self, weekday: str) -> Expr:
        """The first day behind it that is this day of the week: 'Monday', 'Mon' or 'mo'."""

    def months_between(self, start: ExprLike) -> Expr:
        """The months since `start`: whole ones from a day to the same or from last to last; else of 31 days,
        to 8 digits.
        """

    def unix_seconds(self) -> Expr:
        """The whole seconds since 1970 in UTC, rounded down."""

    def strftime(self, format: str, zone: str | None = None) -> Expr:
        """The same as `format`."""

    def to_string(self, format: str, zone: str | None = None) -> Expr:
        """The same as `format`."""

    def weekday(self, zone: str | None = None) -> Expr:
        """The same as `day_of_week`."""

    def isoweekday(self, zone: str | None = None) -> Expr:
        """The same as `day_of_week`."""

    def ordinal_day(self, zone: str | None = None) -> Expr:
        """The same as `day_of_year`."""

    def dayofyear(self, zone: str | None = None) -> Expr:
        """The same as `day_of_year`."""

class ListMethods:
    """Functions of lists and maps: the methods of `x.list`."""

    def __init__(self, expr: Expr, write: Write) -> None: ...
    def size(self) -> Expr:
        """The number of values in a list or map."""

    def get(self, index: ExprLike) -> Expr:
        """The value at `index` of a list, from 0, or from the end if negative; null if there is none."""

    def field(self, key: str | int) -> Expr:
        """The value of a struct or map under `key`; null if there is none."""

    def has(self, value: ExprLike) -> Expr:
        """True where a list holds `value`; of an array null if it does not, and has nulls."""

    def join(self, separator: str, null_replacement: str | None = None) -> Expr:
        """A list of texts as one text; nulls of an array are left out, or replaced."""

    def sort_array(self, ascending: bool | None = None) -> Expr:
        """A list of numbers, or of texts, in order; null is least, NaN greatest."""

    def map_keys(self) -> Expr:
        """The keys of a map, as a list."""

    def map_values(self) -> Expr:
        """The values of a map, as a list."""

    def element_at(self, key: ExprLike) -> Expr:
        """The value of an array at a place, counted from 1, or from the end if negative; of a map under a
        key, null if there is none.
        """

    def try_element_at(self, key: ExprLike) -> Expr:
        """As `element_at`, but null where an array has no such place."""

    def to_json(self) -> Expr:
        """The value as a text of JSON; fields of structs that are null are left out."""

    def len(self) -> Expr:
        """The same as `size`."""

    def lengths(self) -> Expr:
        """The same as `size`."""

    def length(self) -> Expr:
        """The same as `size`."""

    def contains(self, value: ExprLike) -> Expr:
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
        """A text, or an array, from the end to the beginning."""

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

    def left(self, count: int) -> Expr:
        """The first `count` characters."""

    def right(self, count: int) -> Expr:
        """The last `count` characters."""

    def instr(self, part: str, start: int | None = None) -> Expr:
        """Where `part` begins, at `start` or later, counted from 1; 0: nowhere."""

    def split_part(self, separator: str, index: int) -> Expr:
        """The part between separators at `index`, counted from 1, or from the end if negative; '' if there is
        none.
        """

    def substring_index(self, separator: str, count: int) -> Expr:
        """All before separator `count`, or behind the one from the end, if negative."""

    def repeat(self, count: int) -> Expr:
        """`count` times one after another."""

    def translate(self, old: str, new: str) -> Expr:
        """Each character of `old` replaced by the one of `new` at its place, or left out if there is none."""

    def md5(self) -> Expr:
        """The MD5 digest, in hexadecimal digits."""

    def sha1(self) -> Expr:
        """The SHA-1 digest, in hexadecimal digits."""

    def sha2(self, bits: int) -> Expr:
        """The SHA-2 digest of 224, 256, 384 or 512 bits, in hexadecimal digits; 0: 256."""

    def crc32(self) -> Expr:
        """The checksum CRC-32."""

    def base64(self) -> Expr:
        """The bytes as text of base64, in one line."""

    def unbase64(self) -> Expr:
        """The bytes that a text of base64 stands for."""

    def unhex(self) -> Expr:
        """The bytes that hexadecimal digits stand for; null if there are others."""

    def ascii(self) -> Expr:
        """The number of the first character in Unicode; 0 of an empty text."""

    def octet_length(self) -> Expr:
        """The number of bytes."""

    def to_date(self, format: str) -> Expr:
        """The date that is written in the form `format`, as '%Y-%m-%d'."""

    def to_timestamp(self, format: str) -> Expr:
        """The time that is written in the form `format`."""

    def try_to_date(self, format: str) -> Expr:
        """As `to_date`; null where the form is another."""

    def try_to_timestamp(self, format: str) -> Expr:
        """As `to_timestamp`; null where the form is another."""

    def get_json_object(self, path: str) -> Expr:
        """What is in a text of JSON at a path as '$.name[0]', as text; null if there is nothing."""

    def from_json(self, schema: str) -> Expr:
        """The value of a text of JSON, of a type as 'struct<a: int, b: array<string>>'; each part that does
        not fit is null.
        """

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
