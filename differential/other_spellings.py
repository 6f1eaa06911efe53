"""What to write here for what other libraries have: methods of their tables, functions of their modules."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from functools import wraps
from typing import Final, ParamSpec, TypeVar

from timely.user_code.call_site import call_site

from .errors import SchemaError

__all__ = [
    "FUNCTIONS_ELSEWHERE",
    "condition_of",
    "explain",
    "explain_function",
    "explain_item",
    "written_as",
]

P = ParamSpec("P")
R = TypeVar("R")

_GROUP: Final = "group_by('key').agg(n=dd.count(), total=dd.sum('x'))"
_ORDER: Final = "order_by(col.x.desc(), 'y').limit(10); a collection has no order"
_READ: Final = "a dataflow is built here, not run; name it by .output('name') and read flow.output('name')"
_CHANGES: Final = "a collection changes with its input by itself; nothing has to be kept or asked for anew"
_PIVOT: Final = "group_by('key').agg(a=dd.sum(dd.when(col.p == 'a').then(col.x)), …)"
_SPELLINGS: Final = {
    **dict.fromkeys(("groupby",), "group_by('key')"),
    **dict.fromkeys(("agg", "count", "sum", "min", "max", "reduce", "aggregate"), _GROUP),
    **dict.fromkeys(("mean", "avg", "median", "quantile", "std", "var", "describe", "summary"), _GROUP),
    **dict.fromkeys(("query", "remove"), "filter(col.x > 1)"),
    **dict.fromkeys(("with_column", "assign", "with_columns_seq"), "with_columns(name=col.x + 1)"),
    **dict.fromkeys(("append", "vstack", "merge_sorted", "extend"), "concat(other)"),
    **dict.fromkeys(("select_seq", "selectExpr", "sql", "to", "toDF"), "select('kept', name=col.x + 1)"),
    **dict.fromkeys(("fillna", "fill_nan", "na"), "with_columns(x=col.x.fill_null(0))"),
    **dict.fromkeys(("cast", "replace"), "with_columns(x=col.x.cast('int'))"),
    **dict.fromkeys(("orderBy", "sort", "sort_values", "limit", "head", "nlargest"), _ORDER),
    **dict.fromkeys(
        ("bottom_k", "tail", "take", "first", "last", "slice", "offset", "reverse", "shift"), _ORDER
    ),
    **dict.fromkeys(("with_row_index", "sortWithinPartitions", "gather_every"), _ORDER),
    **dict.fromkeys(("collect", "show", "to_pandas", "toPandas", "to_arrow", "write", "fetch"), _READ),
    **dict.fromkeys(("foreach", "isEmpty", "toLocalIterator", "writeStream", "sink_parquet", "lazy"), _READ),
    **dict.fromkeys(("cache", "persist", "unpersist", "checkpoint", "localCheckpoint"), _CHANGES),
    **dict.fromkeys(("repartition", "coalesce", "repartitionByRange", "hint"), _CHANGES),
    "merge": "join(other, on='key', how='left')",
    "join_where": "cross_join(other).filter(col.x < col.y), or join(other, on='key', where=col.x < col.y)",
    "update": "concat(other), and group_by('key') with an aggregate that chooses",
    **dict.fromkeys(("mapInArrow", "mapInPandas", "map_rows"), "map_batches(fn, schema), or map(fn, schema)"),
    **dict.fromkeys(
        ("alias", "createOrReplaceTempView", "lazyframe"), "a name in Python: later = collection"
    ),
    **dict.fromkeys(("unpivot", "melt", "transpose", "unnest"), "flat_map(fn, schema), or select(…)"),
    "pivot": _PIVOT,
    "withWatermark": "split_late('time', allowed, clock=…), or last('time', size, clock=…)",
    **dict.fromkeys(
        ("group_by_dynamic", "rolling", "groupby_dynamic"),
        "window('time', dd.tumbling(minutes=5)).group_by('window_start')",
    ),
    "join_asof": "asof_join(other, on='key', left_time='time')",
    "sample": "filter(dd.hash(col.id) % 100 < 5), which takes the same rows again",
    "minus": "subtract(other)",
    "flatMap": "flat_map(fn, schema)",
    **dict.fromkeys(("columns", "dtypes", "printSchema", "collect_schema", "width"), "schema.names"),
}

_REDUCE: Final = "reduce(function, schema), which sees the rows of a group"
_OF_GROUPS: Final = {
    **dict.fromkeys(("applyInPandas", "applyInArrow", "apply", "map_groups", "cogroup"), _REDUCE),
    **dict.fromkeys(("median", "quantile", "mode"), _REDUCE),
    "pivot": _PIVOT.removeprefix("group_by('key')."),
    **dict.fromkeys(("having", "filter", "where"), "agg(n=dd.count()).having(col.n > 1)"),
    **dict.fromkeys(("head", "tail", "limit", "nth"), "top_k(n, by=col.x.desc())"),
    **dict.fromkeys(("n_unique", "countDistinct"), "agg(n=dd.count_distinct('x'))"),
    **dict.fromkeys(("len", "size"), "count()"),
    **dict.fromkeys(("all", "collect_list"), "agg(values=dd.collect('x'))"),
}

_SAME_AGAIN: Final = (
    "a column of an input: what is computed is computed again for a removal, and must come out the same"
)
_WINDOW: Final = "group_by('key').rank('place', by='time', method='row_number')"
_OF_FUNCTIONS: Final = {
    **dict.fromkeys(("countDistinct", "n_unique", "approx_count_distinct"), "dd.count_distinct('x')"),
    **dict.fromkeys(("mean", "mean_horizontal"), "dd.avg('x')"),
    **dict.fromkeys(("collect_list", "array_agg", "implode", "list_agg"), "dd.collect('x')"),
    **dict.fromkeys(("max_by", "arg_max"), "dd.argmax('x', by='y')"),
    **dict.fromkeys(("min_by", "arg_min"), "dd.argmin('x', by='y')"),
    **dict.fromkeys(("bool_and", "every", "all"), "dd.all_of(col.x > 0)"),
    **dict.fromkeys(("bool_or", "some", "any"), "dd.any_of(col.x > 0)"),
    **dict.fromkeys(("std", "stddev_samp", "stddev_pop"), "dd.stddev('x', sample=True)"),
    **dict.fromkeys(("var", "var_samp", "var_pop"), "dd.variance('x', sample=True)"),
    **dict.fromkeys(("first_value", "head"), "dd.first('x', by='time')"),
    **dict.fromkeys(("last_value", "tail"), "dd.last('x', by='time')"),
    **dict.fromkeys(("len", "size_of"), "dd.count()"),
    **dict.fromkeys(("median", "percentile", "percentile_approx", "quantile", "mode", "corr"), _REDUCE),
    **dict.fromkeys(("row_number", "rank", "dense_rank", "ntile", "Window"), _WINDOW),
    **dict.fromkeys(("lag", "lead", "shift"), "asof_join(…, exact=False) with the same collection"),
    **dict.fromkeys(("F", "functions"), "dd.sum('x'), dd.upper(col.x): functions are in the module itself"),
    **dict.fromkeys(("sample",), "filter(dd.hash(col.id) % 100 < 5), of a collection"),
    **dict.fromkeys(("column", "field", "expr", "sql", "element"), "dd.col.x"),
    **dict.fromkeys(("asc", "desc"), "col.x.asc() or col.x.desc()"),
    **dict.fromkeys(("explode", "explode_outer", "posexplode"), "explode('x', type), of a collection"),
    **dict.fromkeys(("udf", "pandas_udf", "map_batches"), "map_batches(function, schema), of a collection"),
    **dict.fromkeys(("window", "session_window"), "window('time', dd.tumbling(minutes=5)), of a collection"),
    **dict.fromkeys(
        ("struct", "array", "create_map", "list"), "dd.lit([1, 2], 'any') or map(function, schema)"
    ),
    **dict.fromkeys(("from_json", "to_json", "get_json_object"), "map(function, schema), of a collection"),
    **dict.fromkeys(("getItem", "element_at"), "dd.get(x, 0), or x.list.field('key')"),
    **dict.fromkeys(("pow", "pmod"), "dd.power(x, y), or x % y"),
    **dict.fromkeys(("ceiling",), "dd.ceil(x)"),
    **dict.fromkeys(("ln",), "dd.log(x)"),
    **dict.fromkeys(("sign",), "dd.signum(x)"),
    **dict.fromkeys(("negative", "negate"), "-x"),
    **dict.fromkeys(("ifnull", "nvl"), "dd.coalesce(x, y)"),
    **dict.fromkeys(("isnotnull",), "x.is_not_null()"),
    **dict.fromkeys(("min_horizontal",), "dd.least(x, y)"),
    **dict.fromkeys(("max_horizontal",), "dd.greatest(x, y)"),
    **dict.fromkeys(("cast", "astype"), "x.cast('int')"),
    **dict.fromkeys(("ucase", "to_uppercase"), "dd.upper(x)"),
    **dict.fromkeys(("lcase", "to_lowercase"), "dd.lower(x)"),
    **dict.fromkeys(("char_length", "len_chars"), "dd.length(x)"),
    **dict.fromkeys(("substr",), "dd.substring(x, 1, 3)"),
    **dict.fromkeys(("regexp_like", "regexp"), "dd.rlike(x, pattern)"),
    **dict.fromkeys(("ilike",), "dd.like(dd.lower(x), pattern)"),
    **dict.fromkeys(("concat_str", "format_string"), "dd.concat(x, y)"),
    **dict.fromkeys(("dayofweek", "weekday"), "dd.day_of_week(t), 1 for Monday to 7 for Sunday"),
    **dict.fromkeys(("week",), "dd.weekofyear(t)"),
    **dict.fromkeys(("date_sub",), "dd.date_add(t, -n)"),
    **dict.fromkeys(("trunc",), "dd.date_trunc('month', t)"),
    **dict.fromkeys(("months_between",), "dd.date_diff(t, start, 'month')"),
    **dict.fromkeys(("xxhash64", "md5", "sha2", "crc32"), "dd.hash(x)"),
    **dict.fromkeys(("current_date", "current_timestamp", "now", "rand", "uuid"), _SAME_AGAIN),
    **dict.fromkeys(("monotonically_increasing_id", "spark_partition_id"), _SAME_AGAIN),
    **dict.fromkeys(
        ("DataFrame", "LazyFrame", "table", "createDataFrame"), "dd.input(dataflow, 'name', schema)"
    ),
    **dict.fromkeys(
        ("from_arrow", "from_pandas", "read_csv", "read_parquet"), "flow.input('name').insert(table)"
    ),
    **dict.fromkeys(("Int64", "LongType", "IntegerType", "int64"), "dd.integer, or 'int'"),
    **dict.fromkeys(("Float64", "DoubleType", "float64"), "dd.floating, or 'float'"),
    **dict.fromkeys(("String", "Utf8", "StringType"), "dd.string, or 'string'"),
    **dict.fromkeys(("StructType", "StructField"), "dd.Schema.of('a: int, b: string?')"),
}
FUNCTIONS_ELSEWHERE: Final = frozenset(_OF_FUNCTIONS)
"""Names of PySpark's and Polars' functions and types for which there is something else here."""


def explain(kind: str, name: str, groups: bool = False) -> str:
    """The message of the `AttributeError` for `name`, which a `kind` of thing does not have."""
    if groups and name in _OF_GROUPS:
        return f"{kind} has no {name!r}. Write instead: {_OF_GROUPS[name]}"
    if groups and name in _SPELLINGS:
        return f"{kind} has no {name!r}. Write agg(n=dd.count(), total=dd.sum('x')) or reduce(fn, schema)"
    if name in _SPELLINGS:
        return f"{kind} has no {name!r}. Write instead: {_SPELLINGS[name]}"
    return f"{kind} has no {name!r}"


def explain_function(name: str) -> str:
    """The message of the `AttributeError` for `name`, which the module does not have."""
    missing = f"module 'differential' has no attribute {name!r}"
    return f"{missing}. Write instead: {_OF_FUNCTIONS[name]}" if name in _OF_FUNCTIONS else missing


def explain_item(key: object) -> str:
    """The message of the error for `collection[key]`."""
    if isinstance(key, str):
        return (
            f"a collection has no [{key!r}]. In an expression write col.{key}, for the column select({key!r})"
        )
    if isinstance(key, list | tuple):
        return f"a collection has no {list(key)!r:.80}. Write select({', '.join(map(repr, key))})"
    return f"a collection has no [{key!r:.80}]: it is no list. For some of its rows write filter(col.x > 1)"


def condition_of(text: str) -> str:
    """How a condition that is written as a text is written as an expression, if that is easily said."""
    found = re.fullmatch(
        r"\s*([A-Za-z]\w*)\s*(?:(==?|!=|<>|<=?|>=?)\s*([\w.]+|'[^']*'|\"[^\"]*\"))?\s*", text
    )
    if found is None:
        return "(col.x > 1) & (col.y == 'a')"
    name, operator, value = found.groups()
    if operator is None:
        return f"col.{name}"
    return f"col.{name} {'==' if operator == '=' else '!=' if operator == '<>' else operator} {value}"


def written_as(usage: str) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """A decorator of operators: arguments that they do not take, other libraries' among them, are answered
    by a SchemaError that says `usage`.
    """

    def decorated(function: Callable[P, R]) -> Callable[P, R]:
        signature = inspect.signature(function)

        @wraps(function)
        def checked(*args: P.args, **named: P.kwargs) -> R:
            try:
                signature.bind(*args, **named)
            except TypeError as error:
                raise SchemaError(
                    f"{function.__name__} ({call_site()}): {error}. Write instead: {usage}"
                ) from None
            return function(*args, **named)

        return checked

    return decorated
