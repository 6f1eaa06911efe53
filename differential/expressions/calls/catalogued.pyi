"""Functions over columns as PySpark has them: `upper(col.name)`, `year(col.t)`, under its names.

Each is generated from an entry of `functions/catalogue.py`, and writes what its method writes
(`col.name.str.upper()`). Editors and mypy read them in `catalogued.pyi`, which `./scripts/stubs` writes.
Functions that are written in terms of others are in `composed.py`.
"""

from differential.expressions.expression import Expr, ExprLike

__all__ = [
    "acos",
    "add_months",
    "array",
    "array_append",
    "array_compact",
    "array_contains",
    "array_distinct",
    "array_except",
    "array_intersect",
    "array_join",
    "array_max",
    "array_min",
    "array_position",
    "array_prepend",
    "array_remove",
    "array_repeat",
    "array_slice",
    "array_union",
    "arrays_overlap",
    "ascii",
    "asin",
    "atan",
    "atan2",
    "base64",
    "bin",
    "bit_count",
    "bitwise_and",
    "bitwise_not",
    "bitwise_or",
    "bitwise_xor",
    "bround",
    "cbrt",
    "ceil",
    "chr",
    "concat",
    "contains",
    "cos",
    "cosh",
    "crc32",
    "create_map",
    "date_add",
    "date_diff",
    "date_format",
    "day",
    "day_of_week",
    "dayofmonth",
    "dayofyear",
    "degrees",
    "element_at",
    "endswith",
    "exp",
    "expm1",
    "flatten",
    "floor",
    "format_number",
    "from_utc_timestamp",
    "get",
    "get_json_object",
    "hash",
    "hex",
    "hour",
    "hypot",
    "initcap",
    "instr",
    "last_day",
    "left",
    "length",
    "like",
    "log",
    "log1p",
    "log2",
    "log10",
    "lower",
    "lpad",
    "make_date",
    "map_concat",
    "map_contains_key",
    "map_entries",
    "map_from_arrays",
    "map_keys",
    "map_values",
    "md5",
    "microsecond",
    "minute",
    "month",
    "months_between",
    "named_struct",
    "next_day",
    "octet_length",
    "power",
    "quarter",
    "radians",
    "regexp_extract",
    "regexp_replace",
    "repeat",
    "replace",
    "reverse",
    "right",
    "rlike",
    "round",
    "rpad",
    "second",
    "sequence",
    "sha1",
    "sha2",
    "shiftleft",
    "shiftright",
    "shiftrightunsigned",
    "signum",
    "sin",
    "sinh",
    "size",
    "slice",
    "sort_array",
    "split",
    "split_part",
    "sqrt",
    "startswith",
    "substring_index",
    "tan",
    "tanh",
    "to_date",
    "to_json",
    "to_timestamp",
    "to_utc_timestamp",
    "translate",
    "try_element_at",
    "try_to_date",
    "try_to_timestamp",
    "unbase64",
    "unhex",
    "unix_seconds",
    "upper",
    "weekofyear",
    "xxhash64",
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

def reverse(x: ExprLike) -> Expr:
    """A text, or an array, from the end to the beginning."""

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
    """The texts, or arrays, one after another; null if one of them is."""

def left(text: ExprLike, count: int) -> Expr:
    """The first `count` characters."""

def right(text: ExprLike, count: int) -> Expr:
    """The last `count` characters."""

def instr(text: ExprLike, part: str, start: int | None = None) -> Expr:
    """Where `part` begins, at `start` or later, counted from 1; 0: nowhere."""

def split_part(text: ExprLike, separator: str, index: int) -> Expr:
    """The part between separators at `index`, counted from 1, or from the end if negative; '' if there is
    none.
    """

def substring_index(text: ExprLike, separator: str, count: int) -> Expr:
    """All before separator `count`, or behind the one from the end, if negative."""

def repeat(text: ExprLike, count: int) -> Expr:
    """`count` times one after another."""

def translate(text: ExprLike, old: str, new: str) -> Expr:
    """Each character of `old` replaced by the one of `new` at its place, or left out if there is none."""

def format_number(x: ExprLike, digits: int) -> Expr:
    """As text with `digits` digits behind the point and commas between thousands; halves go to the even
    digit.
    """

def md5(text: ExprLike) -> Expr:
    """The MD5 digest, in hexadecimal digits."""

def sha1(text: ExprLike) -> Expr:
    """The SHA-1 digest, in hexadecimal digits."""

def sha2(text: ExprLike, bits: int) -> Expr:
    """The SHA-2 digest of 224, 256, 384 or 512 bits, in hexadecimal digits; 0: 256."""

def crc32(text: ExprLike) -> Expr:
    """The checksum CRC-32."""

def base64(text: ExprLike) -> Expr:
    """The bytes as text of base64, in one line."""

def unbase64(text: ExprLike) -> Expr:
    """The bytes that a text of base64 stands for."""

def unhex(text: ExprLike) -> Expr:
    """The bytes that hexadecimal digits stand for; null if there are others."""

def ascii(text: ExprLike) -> Expr:
    """The number of the first character in Unicode; 0 of an empty text."""

def octet_length(text: ExprLike) -> Expr:
    """The number of bytes."""

def hex(x: ExprLike) -> Expr:
    """In hexadecimal digits, which are capitals: the bytes of a text, the 64 bits of a number."""

def bin(x: ExprLike) -> Expr:
    """The 64 bits of a number, from the first that is 1."""

def chr(x: ExprLike) -> Expr:
    """The character whose number the last 8 bits are; '' of a negative number."""

def round(x: ExprLike, digits: int | None = None) -> Expr:
    """Rounded to `digits` digits behind the point (0; negative: before it), halves away from zero, as
    printed.
    """

def floor(x: ExprLike) -> Expr:
    """The next whole number below; an int for a decimal that fits one."""

def ceil(x: ExprLike) -> Expr:
    """The next whole number above; an int for a decimal that fits one."""

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

def sin(x: ExprLike) -> Expr:
    """The sine of an angle in radians."""

def cos(x: ExprLike) -> Expr:
    """The cosine of an angle in radians."""

def tan(x: ExprLike) -> Expr:
    """The tangent of an angle in radians."""

def asin(x: ExprLike) -> Expr:
    """The angle, in radians, with this sine."""

def acos(x: ExprLike) -> Expr:
    """The angle, in radians, with this cosine."""

def atan(x: ExprLike) -> Expr:
    """The angle, in radians, with this tangent."""

def sinh(x: ExprLike) -> Expr:
    """The hyperbolic sine."""

def cosh(x: ExprLike) -> Expr:
    """The hyperbolic cosine."""

def tanh(x: ExprLike) -> Expr:
    """The hyperbolic tangent."""

def degrees(x: ExprLike) -> Expr:
    """An angle of radians in degrees."""

def radians(x: ExprLike) -> Expr:
    """An angle of degrees in radians."""

def cbrt(x: ExprLike) -> Expr:
    """The cube root."""

def expm1(x: ExprLike) -> Expr:
    """e to this power, less 1: exact for small numbers, too."""

def log1p(x: ExprLike) -> Expr:
    """The logarithm of 1 more: exact for small numbers, too."""

def atan2(y: ExprLike, x: ExprLike) -> Expr:
    """The angle, in radians, of the point (x, y), seen from (0, 0)."""

def hypot(y: ExprLike, x: ExprLike) -> Expr:
    """The distance of the point (x, y) from (0, 0)."""

def bround(x: ExprLike, digits: int | None = None) -> Expr:
    """Rounded as by `round`, but halves go to the even digit."""

def bit_count(x: ExprLike) -> Expr:
    """The number of bits that are 1, of 64."""

def bitwise_not(x: ExprLike) -> Expr:
    """Each bit the other one."""

def bitwise_and(x: ExprLike, other: ExprLike) -> Expr:
    """The bits that are 1 in both."""

def bitwise_or(x: ExprLike, other: ExprLike) -> Expr:
    """The bits that are 1 in one or both."""

def bitwise_xor(x: ExprLike, other: ExprLike) -> Expr:
    """The bits that are 1 in one of both."""

def shiftleft(x: ExprLike, count: ExprLike) -> Expr:
    """The bits moved left by `count`."""

def shiftright(x: ExprLike, count: ExprLike) -> Expr:
    """The bits moved right by `count`; a negative number stays negative."""

def shiftrightunsigned(x: ExprLike, count: ExprLike) -> Expr:
    """The bits moved right by `count`, with zeros before them."""

def year(t: ExprLike, zone: str | None = None) -> Expr:
    """The year."""

def quarter(t: ExprLike, zone: str | None = None) -> Expr:
    """1 to 4."""

def month(t: ExprLike, zone: str | None = None) -> Expr:
    """1 to 12."""

def weekofyear(t: ExprLike, zone: str | None = None) -> Expr:
    """The week of the year by ISO 8601, 1 to 53."""

def dayofmonth(t: ExprLike, zone: str | None = None) -> Expr:
    """The day of the month."""

def day(t: ExprLike, zone: str | None = None) -> Expr:
    """The day of the month."""

def dayofyear(t: ExprLike, zone: str | None = None) -> Expr:
    """1 to 366."""

def day_of_week(t: ExprLike, zone: str | None = None) -> Expr:
    """1 (Monday) to 7 (Sunday)."""

def hour(t: ExprLike, zone: str | None = None) -> Expr:
    """0 to 23."""

def minute(t: ExprLike, zone: str | None = None) -> Expr:
    """0 to 59."""

def second(t: ExprLike, zone: str | None = None) -> Expr:
    """0 to 59."""

def microsecond(t: ExprLike, zone: str | None = None) -> Expr:
    """0 to 999,999: the part beyond the second."""

def from_utc_timestamp(t: ExprLike, zone: str) -> Expr:
    """What clocks in a zone as 'Europe/Rome' show then, as a timestamp."""

def to_utc_timestamp(t: ExprLike, zone: str) -> Expr:
    """The instant at which clocks in a zone show this; the first, if they do so twice."""

def date_diff(t: ExprLike, start: ExprLike, unit: str | None = None) -> Expr:
    """The number of days (or other units) that begin after `start` and no later than it."""

def date_add(t: ExprLike, count: ExprLike) -> Expr:
    """`count` days later."""

def add_months(t: ExprLike, count: ExprLike) -> Expr:
    """`count` months later: the same day, or the last of the month."""

def date_format(t: ExprLike, format: str, zone: str | None = None) -> Expr:
    """As text, in a form as '%Y-%m-%d %H:%M:%S'."""

def to_date(text: ExprLike, format: str) -> Expr:
    """The date that is written in the form `format`, as '%Y-%m-%d'."""

def to_timestamp(text: ExprLike, format: str) -> Expr:
    """The time that is written in the form `format`."""

def try_to_date(text: ExprLike, format: str) -> Expr:
    """As `to_date`; null where the form is another."""

def try_to_timestamp(text: ExprLike, format: str) -> Expr:
    """As `to_timestamp`; null where the form is another."""

def last_day(t: ExprLike) -> Expr:
    """The last day of its month, a date."""

def next_day(t: ExprLike, weekday: str) -> Expr:
    """The first day behind it that is this day of the week: 'Monday', 'Mon' or 'mo'."""

def months_between(t: ExprLike, start: ExprLike) -> Expr:
    """The months since `start`: whole ones from a day to the same or from last to last; else of 31 days, to 8
    digits.
    """

def make_date(year: ExprLike, month: ExprLike, day: ExprLike) -> Expr:
    """The date of this year, month and day."""

def unix_seconds(t: ExprLike) -> Expr:
    """The whole seconds since 1970 in UTC, rounded down."""

def size(x: ExprLike) -> Expr:
    """The number of values in a list or map."""

def get(x: ExprLike, index: ExprLike) -> Expr:
    """The value at `index` of a list, from 0, or from the end if negative; null if there is none."""

def array_contains(x: ExprLike, value: ExprLike) -> Expr:
    """True where a list holds `value`; of an array null if it does not, and has nulls."""

def array_join(x: ExprLike, separator: str, null_replacement: str | None = None) -> Expr:
    """A list of texts as one text; nulls of an array are left out, or replaced."""

def sort_array(x: ExprLike, ascending: bool | None = None) -> Expr:
    """A list of numbers, or of texts, in order; null is least, NaN greatest."""

def map_keys(x: ExprLike) -> Expr:
    """The keys of a map, as a list."""

def map_values(x: ExprLike) -> Expr:
    """The values of a map, as a list."""

def array(*values: ExprLike) -> Expr:
    """The values as an array; nulls are elements."""

def array_distinct(x: ExprLike) -> Expr:
    """Each value of an array once, in the order of the first of each."""

def array_union(x: ExprLike, other: ExprLike) -> Expr:
    """The values of both arrays, each once."""

def array_intersect(x: ExprLike, other: ExprLike) -> Expr:
    """The values that are in both arrays, each once."""

def array_except(x: ExprLike, other: ExprLike) -> Expr:
    """The values of the first array that are not in the second, each once."""

def arrays_overlap(x: ExprLike, other: ExprLike) -> Expr:
    """True if both arrays have a value; the result is null if there is none, and the array has nulls."""

def array_position(x: ExprLike, value: ExprLike) -> Expr:
    """Where the value is first, counted from 1; 0: nowhere."""

def array_remove(x: ExprLike, value: ExprLike) -> Expr:
    """The array without all elements that are the value."""

def array_append(x: ExprLike, value: ExprLike) -> Expr:
    """The array with the value behind it."""

def array_prepend(x: ExprLike, value: ExprLike) -> Expr:
    """The array with the value in front."""

def array_compact(x: ExprLike) -> Expr:
    """The array without nulls."""

def array_repeat(value: ExprLike, count: ExprLike) -> Expr:
    """The value `count` times."""

def array_slice(x: ExprLike, start: ExprLike, length: ExprLike) -> Expr:
    """`length` elements from the place `start` on, counted from 1, or from the end if negative."""

def slice(x: ExprLike, start: ExprLike, length: ExprLike) -> Expr:
    """`length` elements from the place `start` on, counted from 1, or from the end if negative."""

def flatten(x: ExprLike) -> Expr:
    """The elements of all arrays in an array; null if one of them is."""

def array_min(x: ExprLike) -> Expr:
    """The least element that is not null."""

def array_max(x: ExprLike) -> Expr:
    """The greatest element that is not null; NaN is greatest."""

def sequence(start: ExprLike, stop: ExprLike, step: ExprLike | None = None) -> Expr:
    """The whole numbers from `start` to `stop`, both in it."""

def element_at(x: ExprLike, key: ExprLike) -> Expr:
    """The value of an array at a place, counted from 1, or from the end if negative; of a map under a key,
    null if there is none.
    """

def try_element_at(x: ExprLike, key: ExprLike) -> Expr:
    """As `element_at`, but null where an array has no such place."""

def named_struct(*names_and_values: ExprLike) -> Expr:
    """A struct of names of fields, each before its value."""

def create_map(*keys_and_values: ExprLike) -> Expr:
    """A map of keys, each before its value."""

def map_from_arrays(keys: ExprLike, values: ExprLike) -> Expr:
    """A map of an array of keys and one of their values."""

def map_entries(x: ExprLike) -> Expr:
    """The keys and values of a map, as an array of structs."""

def map_contains_key(x: ExprLike, key: ExprLike) -> Expr:
    """True if the map has the key."""

def map_concat(*x: ExprLike) -> Expr:
    """All maps as one."""

def get_json_object(text: ExprLike, path: str) -> Expr:
    """What is in a text of JSON at a path as '$.name[0]', as text; null if there is nothing."""

def to_json(x: ExprLike) -> Expr:
    """The value as a text of JSON; fields of structs that are null are left out."""

def xxhash64(*values: ExprLike) -> Expr:
    """One number for the values, the same as Spark's; whole numbers count as its bigint."""
