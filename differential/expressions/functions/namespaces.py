"""Functions as methods of what they are of: `col.name.str.upper()`, `col.t.dt.year()`, `col.x.list.get(0)`.

Each method writes the function of its name in `catalogue.py`, whose docstring it has.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Generic, NoReturn, Protocol, TypeVar

from differential.other_spellings import told_of
from timely.user_code.short_traces import short_lookup

__all__ = ["ListMethods", "StringMethods", "TimeMethods", "explain_item", "explain_method"]

E = TypeVar("E")
E_co = TypeVar("E_co", covariant=True)


class _Call(Protocol[E_co]):
    """Writes the function of a name over operands."""

    def __call__(self, name: str, *operands: object) -> E_co: ...


@dataclass(frozen=True, eq=False)
class StringMethods(Generic[E]):
    """Functions of strings: what `x.str` has."""

    _expr: E
    _call: _Call[E]

    if not TYPE_CHECKING:

        @short_lookup
        def __getattr__(self, name: str) -> NoReturn:
            raise AttributeError(name if name.startswith("_") else _explain_accessor("str", name))

    def upper(self) -> E:
        """In capital letters."""
        return self._call("upper", self._expr)

    def lower(self) -> E:
        """In small letters."""
        return self._call("lower", self._expr)

    def initcap(self) -> E:
        """Each word with a capital letter; a word begins behind a space."""
        return self._call("initcap", self._expr)

    def title(self) -> E:
        """Each word with a capital letter; a word is a run of letters."""
        return self._call("title", self._expr)

    def length(self) -> E:
        """How many characters."""
        return self._call("length", self._expr)

    def reverse(self) -> E:
        """From the end to the beginning."""
        return self._call("reverse", self._expr)

    def strip(self, characters: str | None = None) -> E:
        """Without the white space, or the characters, at both ends."""
        return self._call("strip", self._expr, characters)

    def lstrip(self, characters: str | None = None) -> E:
        """Without the white space, or the characters, at the beginning."""
        return self._call("lstrip", self._expr, characters)

    def rstrip(self, characters: str | None = None) -> E:
        """Without the white space, or the characters, at the end."""
        return self._call("rstrip", self._expr, characters)

    def slice(self, offset: int, length: int | None = None) -> E:
        """`length` characters from `offset` on, counted from 0, or from the end if negative."""
        return self._call("slice", self._expr, offset, length)

    def replace(self, old: str, new: str) -> E:
        """With every `old` replaced by `new`."""
        return self._call("replace", self._expr, old, new)

    def replace_regex(self, pattern: str, new: str) -> E:
        """With every match of `pattern` replaced by `new`."""
        return self._call("replace_regex", self._expr, pattern, new)

    def contains(self, part: str) -> E:
        """Whether `part` is somewhere in it."""
        return self._call("contains", self._expr, part)

    def startswith(self, part: str) -> E:
        """Whether it begins with `part`."""
        return self._call("startswith", self._expr, part)

    def endswith(self, part: str) -> E:
        """Whether it ends with `part`."""
        return self._call("endswith", self._expr, part)

    def like(self, pattern: str) -> E:
        """Whether it is like `pattern`, in which % stands for any text and _ for one character."""
        return self._call("like", self._expr, pattern)

    def matches(self, pattern: str) -> E:
        """Whether `pattern` matches somewhere."""
        return self._call("matches", self._expr, pattern)

    def extract(self, pattern: str, group: int | None = None) -> E:
        """What `group` of `pattern` matches first (1; 0: all of it); null if nothing does."""
        return self._call("extract", self._expr, pattern, group)

    def split(self, separator: str) -> E:
        """The list of the parts between separators."""
        return self._call("split", self._expr, separator)

    def lpad(self, width: int, fill: str | None = None) -> E:
        """Filled up to `width` characters at the beginning; never shortened."""
        return self._call("lpad", self._expr, width, fill)

    def rpad(self, width: int, fill: str | None = None) -> E:
        """Filled up to `width` characters at the end; never shortened."""
        return self._call("rpad", self._expr, width, fill)

    def to_date(self, format: str) -> E:
        """The date that is written in the form `format`, as '%Y-%m-%d'."""
        return self._call("to_date", self._expr, format)

    def to_timestamp(self, format: str) -> E:
        """The time that is written in the form `format`."""
        return self._call("to_timestamp", self._expr, format)

    def try_to_date(self, format: str) -> E:
        """As `to_date`; null where the form is another."""
        return self._call("try_to_date", self._expr, format)

    def try_to_timestamp(self, format: str) -> E:
        """As `to_timestamp`; null where the form is another."""
        return self._call("try_to_timestamp", self._expr, format)


@dataclass(frozen=True, eq=False)
class TimeMethods(Generic[E]):
    """Functions of dates and timestamps: what `x.dt` has."""

    _expr: E
    _call: _Call[E]

    if not TYPE_CHECKING:

        @short_lookup
        def __getattr__(self, name: str) -> NoReturn:
            raise AttributeError(name if name.startswith("_") else _explain_accessor("dt", name))

    def year(self) -> E:
        """The year."""
        return self._call("year", self._expr)

    def quarter(self) -> E:
        """1 to 4."""
        return self._call("quarter", self._expr)

    def month(self) -> E:
        """1 to 12."""
        return self._call("month", self._expr)

    def week(self) -> E:
        """The week of the year by ISO 8601, 1 to 53."""
        return self._call("week", self._expr)

    def day(self) -> E:
        """The day of the month."""
        return self._call("day", self._expr)

    def day_of_year(self) -> E:
        """1 to 366."""
        return self._call("day_of_year", self._expr)

    def day_of_week(self) -> E:
        """1 (Monday) to 7 (Sunday)."""
        return self._call("day_of_week", self._expr)

    def hour(self) -> E:
        """0 to 23."""
        return self._call("hour", self._expr)

    def minute(self) -> E:
        """0 to 59."""
        return self._call("minute", self._expr)

    def second(self) -> E:
        """0 to 59."""
        return self._call("second", self._expr)

    def microsecond(self) -> E:
        """0 to 999,999: what is beyond the second."""
        return self._call("microsecond", self._expr)

    def date_trunc(self, unit: str) -> E:
        """The beginning of the year, quarter, month, week, day, hour, … that it is in."""
        return self._call("date_trunc", self._expr, unit)

    def date_diff(self, start: object, unit: str | None = None) -> E:
        """How many days (or other units) begin after `start` and no later than it."""
        return self._call("date_diff", self._expr, start, unit)

    def add_days(self, count: object) -> E:
        """So many days later."""
        return self._call("add_days", self._expr, count)

    def add_months(self, count: object) -> E:
        """So many months later: the same day, or the last of the month."""
        return self._call("add_months", self._expr, count)

    def format(self, format: str) -> E:
        """As text, in a form as '%Y-%m-%d %H:%M:%S'."""
        return self._call("format", self._expr, format)


@dataclass(frozen=True, eq=False)
class ListMethods(Generic[E]):
    """Functions of lists and maps: what `x.list` has."""

    _expr: E
    _call: _Call[E]

    if not TYPE_CHECKING:

        @short_lookup
        def __getattr__(self, name: str) -> NoReturn:
            raise AttributeError(name if name.startswith("_") else _explain_accessor("list", name))

    def size(self) -> E:
        """How many values a list or map has."""
        return self._call("size", self._expr)

    def get(self, index: int) -> E:
        """The value at `index` of a list, from 0, or from the end if negative; null if there is none."""
        return self._call("get", self._expr, index)

    def field(self, key: str | int) -> E:
        """The value of a map, or struct, under `key`; null if there is none."""
        return self._call("field", self._expr, key)

    def has(self, value: object) -> E:
        """Whether a list holds `value`."""
        return self._call("has", self._expr, value)

    def join(self, separator: str) -> E:
        """A list of texts as one text."""
        return self._call("join", self._expr, separator)


_PARTS: Final = "x.str.extract(pattern), x.str.split(separator)"
_ELEMENTS: Final = "explode('x', type).group_by('key').agg(n=dd.sum('x')), of a collection"
_OF_ACCESSORS: Final = {
    "str": {
        **dict.fromkeys(("to_uppercase", "capitalize"), "x.str.upper(), or x.str.title()"),
        **dict.fromkeys(("to_lowercase", "casefold"), "x.str.lower()"),
        **dict.fromkeys(("to_titlecase",), "x.str.title()"),
        **dict.fromkeys(("len", "len_chars", "len_bytes", "n_chars"), "x.str.length()"),
        **dict.fromkeys(("trim", "strip_chars", "strip_prefix", "strip_suffix"), "x.str.strip('characters')"),
        **dict.fromkeys(("strip_chars_start", "ltrim"), "x.str.lstrip('characters')"),
        **dict.fromkeys(("strip_chars_end", "rtrim"), "x.str.rstrip('characters')"),
        **dict.fromkeys(("starts_with", "ends_with"), "x.str.startswith('a'), or x.str.endswith('a')"),
        **dict.fromkeys(("replace_all", "replace_many"), "x.str.replace(old, new), or x.str.replace_regex"),
        **dict.fromkeys(("pad_start", "zfill", "rjust"), "x.str.lpad(width, '0')"),
        **dict.fromkeys(("pad_end", "ljust"), "x.str.rpad(width)"),
        **dict.fromkeys(("to_datetime", "strptime"), "x.str.to_timestamp('%Y-%m-%d %H:%M:%S')"),
        **dict.fromkeys(("to_integer", "to_decimal", "to_float"), "x.cast('int'), or x.try_cast('int')"),
        **dict.fromkeys(("head", "get"), "x.str.slice(0, n)"),
        "tail": "x.str.slice(-n)",
        **dict.fromkeys(("extract_all", "extract_groups", "split_exact", "splitn", "find", "index"), _PARTS),
        **dict.fromkeys(("match", "fullmatch", "contains_any", "rlike"), "x.str.matches(pattern)"),
        **dict.fromkeys(("concat", "join"), "dd.concat(a, b), or dd.concat_ws(separator, a, b)"),
    },
    "dt": {
        "date": "x.cast('date')",
        **dict.fromkeys(("truncate", "floor", "round"), "x.dt.date_trunc('hour')"),
        **dict.fromkeys(("strftime", "to_string"), "x.dt.format('%Y-%m-%d')"),
        **dict.fromkeys(("weekday", "dayofweek", "isoweekday"), "x.dt.day_of_week(), 1 for Monday to 7"),
        **dict.fromkeys(("ordinal_day", "dayofyear"), "x.dt.day_of_year()"),
        **dict.fromkeys(("epoch", "timestamp", "to_physical"), "x.cast('int'): microseconds; of a date days"),
        **dict.fromkeys(("offset_by", "add_business_days"), "x.dt.add_days(1), x.dt.add_months(1)"),
        **dict.fromkeys(("total_seconds", "total_minutes", "total_hours"), "x // 1_000_000: microseconds"),
        **dict.fromkeys(("total_days", "days"), "x.dt.date_diff(start), of two dates or times"),
        "millisecond": "x.dt.microsecond() // 1_000",
        "month_start": "x.dt.date_trunc('month')",
        "month_end": "x.dt.date_trunc('month').dt.add_months(1).dt.add_days(-1)",
        **dict.fromkeys(
            ("convert_time_zone", "replace_time_zone", "tz_localize", "tz_convert"),
            "x + datetime.timedelta(hours=1) for a fixed distance: times are in UTC. For a zone with summer "
            "time map(function, schema), of a collection",
        ),
    },
    "list": {
        **dict.fromkeys(("len", "lengths", "length"), "x.list.size()"),
        "first": "x.list.get(0)",
        "last": "x.list.get(-1)",
        "contains": "x.list.has(value)",
        **dict.fromkeys(("sum", "min", "max", "mean", "n_unique", "unique", "count_matches"), _ELEMENTS),
        **dict.fromkeys(("explode", "eval"), "explode('x', type), of a collection"),
    },
}
_METHODS: Final = {
    **dict.fromkeys(("to_uppercase", "upper"), "x.str.upper()"),
    **dict.fromkeys(("to_lowercase", "lower"), "x.str.lower()"),
    **dict.fromkeys(("trim", "strip"), "x.str.strip()"),
    **dict.fromkeys(("substring", "slice"), "x.str.slice(offset, length), or x.substr(position, length)"),
    **dict.fromkeys(("concat", "concat_ws"), "dd.concat(a, b), or dd.concat_ws(separator, a, b)"),
    **dict.fromkeys(("getItem", "getField", "get"), "x.list.get(0), or x.list.field('key')"),
    **dict.fromkeys(("year", "month", "day", "hour"), "x.dt.year(), x.dt.month(), …"),
    **dict.fromkeys(("name", "as_"), "x.alias('name')"),
    **dict.fromkeys(("isnull", "isna"), "x.is_null()"),
    **dict.fromkeys(("notnull", "notna", "isnotnull"), "x.is_not_null()"),
    **{name: f"group_by('key').agg(n=dd.{name}('x'))" for name in ("sum", "count", "min", "max", "avg")},
    "mean": "group_by('key').agg(n=dd.avg('x'))",
    "first": "group_by('key').agg(n=dd.first('x', by='time'))",
    "last": "group_by('key').agg(n=dd.last('x', by='time'))",
    "std": "group_by('key').agg(n=dd.stddev('x'))",
    "var": "group_by('key').agg(n=dd.variance('x'))",
    "all": "group_by('key').agg(n=dd.all_of(col.x > 0))",
    "any": "group_by('key').agg(n=dd.any_of(col.x > 0))",
    "implode": "group_by('key').agg(n=dd.collect('x'))",
    **dict.fromkeys(("desc_nulls_last", "desc_nulls_first"), "x.desc(nulls_last=True), or …=False"),
    **dict.fromkeys(("asc_nulls_last", "asc_nulls_first"), "x.asc(nulls_last=True), or …=False"),
    "ilike": "x.str.lower().like(pattern)",
    "fill_nan": "dd.when(x.is_nan()).then(y).otherwise(x)",
    "map_elements": "map(function), an operator of collections",
    "apply": "map(function), an operator of collections",
    "over": "group_by('key').rank('place', by='time'), or an aggregate and a join",
}


_GROUPS: Final = "group_by('key').agg(n=dd.count(), total=dd.sum('x'))"
_REDUCE: Final = "group_by('key').reduce(function, schema)"
_ORDERS: Final = (
    "group_by('key').rank('place', by='time'), or asof_join with itself; rows have no order of their own"
)
_ROWS: Final = (
    "filter(…), order_by(…).limit(n), explode(…), drop_nulls(…): what is done with rows is of collections"
)
_MAPPED: Final = "map(function, schema), of a collection: a Python function of each record"
_METHOD_FAMILIES: Final = (
    (
        r"(rolling|cum|ewm|cumulative|peak)_\w+|rolling|diff|shift|pct_change|rank|rle(_id)?|(for|back)ward_fill",
        _ORDERS,
    ),
    (
        r"(is|arg)_(first|last)_distinct|interpolate(_by)?|is_sorted|set_sorted|index_of|search_sorted",
        _ORDERS,
    ),
    (r"arg_(max|min)|(max|min)_by", "group_by('key').agg(v=dd.argmax('x', by='y'))"),
    (r"n_unique|approx_n_unique|unique_counts|arg_unique", "group_by('key').agg(n=dd.count_distinct('x'))"),
    (
        r"len|null_count|has_nulls|first|last|all|any|std|var|implode|item|is_unique|is_duplicated|is_empty",
        _GROUPS,
    ),
    (
        r"median|mode|(approx_)?quantile|kurtosis|skew|entropy|product|value_counts|hist|dot|q?cut|nan_m(ax|in)",
        _REDUCE,
    ),
    (r"bin_\w+|bitwise_(and|or|xor)", _REDUCE),
    (
        r"head|tail|limit|(top|bottom)_k(_by)?|sort(_by)?|arg_(sort|true)|gather(_every)?|reverse|sample|shuffle",
        _ROWS,
    ),
    (r"filter|explode|drop_nulls|drop_nans|unique|append|extend_constant|reshape|repeat_by|flatten", _ROWS),
    (r"add|sub|mul|truediv|floordiv|truncdiv|mod|neg", "x + y, x - y, x * y, x / y, x // y, x % y, -x"),
    (r"pow", "x ** y"),
    (r"eq|ne|lt|le|gt|ge", "x == y, x != y, x < y, x <= y, x > y, x >= y"),
    (r"and_|or_|not_|xor", "x & y, x | y, ~x; of two conditions that differ x != y"),
    (r"eq_missing|ne_missing", "x.eq_null_safe(y), or ~x.eq_null_safe(y)"),
    (r"is_between", "x.between(a, b)"),
    (r"is_close", "(x - y).abs() < 1e-9"),
    (r"isNaN|is_not_nan|is_(in)?finite", "x.is_nan(), or (x - x).is_nan() for what is not finite"),
    (r"otherwise|when", "dd.when(c).then(x).otherwise(y)"),
    (
        r"replace(_strict)?|clip|lower_bound|upper_bound",
        "dd.when(x == 1).then(2).otherwise(x), dd.least(x, 5)",
    ),
    (
        r"withField|dropFields|struct|arr|transform|dict",
        "x.list.field('key'); a new one by map(function, schema)",
    ),
    (r"hash", "dd.hash(x)"),
    (r"map|map_batches|inspect|pipe(_with_dtype)?|register_plugin", "map(function, schema), of a collection"),
    (r"truncate|round_sig_figs", "x.round(2), x.floor(), x.cast('int')"),
    (r"to_physical|reinterpret|cat|bin|ext|shrink_dtype", "x.cast('int'), x.cast('string')"),
    (r"exclude|meta|deserialize|outer", "select('x', 'y'), drop('x'), of a collection"),
    (r"bitwise\w+|(arc)?(sin|cos|tan)h?|cot|cbrt|log1p|erfc?|degrees|radians", _MAPPED),
)


def explain_item(written: str, key: object) -> str:
    """The message of the error for `x[key]`, where `written` is `x`."""
    if isinstance(key, slice):
        return f"{written}[a:b] is no expression. Write instead: {written}.str.slice(offset, length)"
    part = f"field({key!r})" if isinstance(key, str) else f"get({key!r})"
    return f"{written}[{key!r}] is no expression. Write instead: {written}.list.{part}"


def explain_method(written: str, name: str) -> str:
    """The message of the `AttributeError` for `name`, which the expression `written` does not have."""
    told = _METHODS.get(name) or told_of(name, _METHOD_FAMILIES)
    if told is None:
        return f"{written} has no {name!r}. Of a map or struct write {written}.list.field({name!r})"
    return f"{written} has no {name!r}. Write instead: {told}"


def _explain_accessor(accessor: str, name: str) -> str:
    """The message of the `AttributeError` for `x.str.name`, and so on."""
    told = _OF_ACCESSORS[accessor].get(name)
    if told is None:
        told = "map(function, schema), of a collection: a Python function of each record"
    return f"x.{accessor} has no {name!r}. Write instead: {told}"
