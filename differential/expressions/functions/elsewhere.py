"""What to write for methods that expressions of PySpark, Polars and pandas have, and ours have not."""

from __future__ import annotations

from typing import Final

from differential.other_spellings import told_of

__all__ = ["METHODS", "METHOD_FAMILIES", "OF_ACCESSORS", "explain_accessor", "explain_item", "explain_method"]

_PARTS: Final = "x.str.extract(pattern), x.str.split(separator)"
_ELEMENTS: Final = "explode('x', type).group_by('key').agg(n=dd.sum('x')), of a collection"
OF_ACCESSORS: Final = {
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
METHODS: Final = {
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
METHOD_FAMILIES: Final = (
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
    told = METHODS.get(name) or told_of(name, METHOD_FAMILIES)
    if told is None:
        return f"{written} has no {name!r}. Of a map or struct write {written}.list.field({name!r})"
    return f"{written} has no {name!r}. Write instead: {told}"


def explain_accessor(accessor: str, name: str) -> str:
    """The message of the `AttributeError` for `x.str.name`, and so on."""
    told = OF_ACCESSORS[accessor].get(name)
    if told is None:
        told = "map(function, schema), of a collection: a Python function of each record"
    return f"x.{accessor} has no {name!r}. Write instead: {told}"
