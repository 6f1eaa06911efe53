"""What to write here for what other libraries have: methods of their tables, functions of their modules."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterable, Sequence
from functools import wraps
from typing import Final, ParamSpec, TypeVar

from timely.user_code.call_site import call_site
from timely.user_code.short_traces import short

from .errors import SchemaError

__all__ = [
    "ALGORITHMS",
    "FUNCTIONS_ELSEWHERE",
    "condition_of",
    "explain",
    "explain_function",
    "explain_item",
    "explain_operator",
    "meant",
    "of_another_library",
    "told_of",
    "written_as",
]

P = ParamSpec("P")
R = TypeVar("R")

_LIBRARIES: Final = {"pyspark": "PySpark", "polars": "Polars"}
_EXPRESSIONS: Final = ("Column", "Expr", "Then")
_GROUP: Final = "group_by('key').agg(n=dd.count(), total=dd.sum('x'))"
_ORDER: Final = "order_by(col.x.desc(), 'y').limit(10); a collection has no order"
_READ: Final = "a dataflow is built here, not run; name it by .output('name') and read flow.output('name')"
_CHANGES: Final = "a collection changes with its input by itself; nothing has to be kept or asked for anew"
_SUBTOTALS: Final = (
    "group_by('a', 'b').agg(n=dd.count()) and group_by('a').agg(n=dd.count()).with_columns(b=dd.lit(None, "
    "'string')), together by concat: a group_by for each set of keys"
)
_WHOLE: Final = "agg(n=dd.count(), total=dd.sum('x')) of all rows, or group_by().reduce(function, schema)"
_OPERATORS: Final = {
    "+": "a.concat(b)",
    "-": "a.subtract(b), each row once, or a.except_all(b), which counts them",
    "|": "a.concat(b).distinct()",
    "&": "a.intersect(b)",
    "len()": "agg(n=dd.count()), which is kept up to date",
}
_NAMED: Final = "a name in Python: later = collection; dd.imported reads what another dataflow exports"
_PIVOT: Final = "group_by('key').agg(a=dd.sum(dd.when(col.p == 'a').then(col.x)), …)"
_SCHEMA: Final = "print(collection.schema), or collection.schema.names"
_SPELLINGS: Final = {
    **dict.fromkeys(("groupby",), "group_by('key')"),
    "count": "agg(n=dd.count()) of all rows, or group_by('key').agg(n=dd.count())",
    **dict.fromkeys(("agg", "sum", "min", "max", "reduce", "aggregate"), _GROUP),
    **dict.fromkeys(("mean", "avg", "median", "quantile", "std", "var", "describe", "summary"), _GROUP),
    **dict.fromkeys(("query", "remove"), "filter(col.x > 1)"),
    **dict.fromkeys(("with_column", "assign", "with_columns_seq"), "with_columns(name=col.x + 1)"),
    **dict.fromkeys(("append", "vstack", "merge_sorted", "extend"), "concat(other)"),
    **dict.fromkeys(("select_seq", "selectExpr", "sql", "to", "toDF"), "select('kept', name=col.x + 1)"),
    "na": "drop_nulls('x') for na.drop, fill_null({'x': 0}) for na.fill, with_columns(x=…) for na.replace",
    **dict.fromkeys(
        ("fill_nan", "drop_nans", "interpolate"), "with_columns(x=dd.when(col.x.is_nan()).then(0))"
    ),
    **dict.fromkeys(("rollup", "cube", "groupingSets", "grouping_sets"), _SUBTOTALS),
    **dict.fromkeys(("crosstab", "unstack", "to_dummies"), _PIVOT),
    **dict.fromkeys(("approxQuantile", "corr", "cov", "freqItems", "stat", "null_count", "product"), _WHOLE),
    **dict.fromkeys(("n_unique", "max_horizontal", "min_horizontal", "mean_horizontal", "fold"), _WHOLE),
    **dict.fromkeys(
        ("sampleBy", "randomSplit"), "filter(dd.hash(col.id) % 100 < 5), the same rows each time"
    ),
    **dict.fromkeys(("zipWithIndex", "zip", "gather", "row", "get_column_index"), _ORDER),
    **dict.fromkeys(("exists", "lateralJoin", "scalar"), "join(other, on='key', how='semi'), or how='left'"),
    **dict.fromkeys(("nearestByJoin", "upsample"), "asof_join(other, on='key', left_time='time')"),
    "dropDuplicatesWithinWatermark": "group_by('key').first(by='time'), behind last('time', size, clock=…)",
    "mergeInto": "an input of mode='upsert' with key='id', which keeps the last row of each key",
    **dict.fromkeys(("rdd", "foreachPartition", "pandas_api", "pipe_with_schema"), "map_batches(fn, schema)"),
    **dict.fromkeys(("toJSON", "replace_column", "insert_column"), "with_columns(name=col.x + 1)"),
    **dict.fromkeys(("colRegex", "withMetadata", "metadataColumn", "get_column"), "select('x'), or col.x"),
    **dict.fromkeys(("get_columns", "iter_columns", "match_to_schema"), "select('x'), or col.x"),
    **dict.fromkeys(
        ("observe", "glimpse", "show_graph", "plot", "from_lazyframe_resolver"),
        "inspect(function), or explain()",
    ),
    **dict.fromkeys(("createTempView", "createGlobalTempView", "registerTempTable", "asTable"), _NAMED),
    **dict.fromkeys(("createOrReplaceGlobalTempView", "clone", "serialize", "deserialize"), _NAMED),
    **dict.fromkeys(("sameSemantics", "semanticHash", "equals"), "assert_equal(other)"),
    **dict.fromkeys(("is_duplicated", "is_unique"), "group_by('key').count().filter(col.count > 1)"),
    **dict.fromkeys(("storageLevel", "repartitionById", "rechunk", "set_sorted", "is_sorted"), _CHANGES),
    **dict.fromkeys(("shrink_to_fit", "flags", "executionInfo"), _CHANGES),
    **dict.fromkeys(("inputFiles", "isLocal", "isStreaming", "sparkSession"), _READ),
    **dict.fromkeys(("writeTo", "toArrow", "collect_async", "collect_batches", "execute", "remote"), _READ),
    **dict.fromkeys(("clear", "shape", "height", "item", "rows", "is_empty", "estimated_size"), _READ),
    "cast": "with_columns(x=col.x.cast('int'))",
    "replace": "with_columns(x=dd.when(col.x == 1).then(2).otherwise(col.x))",
    "rank": "group_by('key').rank('place', by='x'), or order_by('x').rank('place')",
    "joinWith": "join(other, on='key')",
    **dict.fromkeys(("semi_join", "semijoin", "left_semi"), "join(other, on='key', how='semi')"),
    **dict.fromkeys(("anti_join", "antijoin", "left_anti"), "join(other, on='key', how='anti')"),
    **dict.fromkeys(("left_join", "outer_join"), "join(other, on='key', how='left'), or how='outer'"),
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
    **dict.fromkeys(("columns", "dtypes", "printSchema", "collect_schema", "width"), _SCHEMA),
}

_READS: Final = re.compile(r"(sink|write|to|iter|rows)_\w+|toLocal\w+")
"""Ways to carry the rows of a table elsewhere."""

_REDUCE: Final = "reduce(function, schema), which sees the rows of a group"
_OF_GROUPS: Final = {
    **dict.fromkeys(("applyInPandas", "applyInArrow", "apply", "map_groups", "cogroup"), _REDUCE),
    **dict.fromkeys(("median", "quantile", "mode"), _REDUCE),
    **dict.fromkeys(("applyInPandasWithState", "transformWithState", "transformWithStateInPandas"), _REDUCE),
    **dict.fromkeys(("rollup", "cube", "groupingSets", "grouping_sets"), _SUBTOTALS),
    "pivot": _PIVOT.removeprefix("group_by('key')."),
    **dict.fromkeys(("having", "filter", "where"), "agg(n=dd.count()).having(col.n > 1)"),
    **dict.fromkeys(("head", "tail", "limit", "nth"), "top_k(n, by=col.x.desc())"),
    **dict.fromkeys(("n_unique", "countDistinct"), "agg(n=dd.count_distinct('x'))"),
    **dict.fromkeys(("len", "size"), "count()"),
    **dict.fromkeys(("all", "collect_list"), "agg(values=dd.collect('x'))"),
    **{
        name: f"agg(n=dd.count()).{name}(…): what groups have is a collection only once it is aggregated"
        for name in ("output", "export", "inspect", "select", "with_columns", "join", "concat", "distinct")
    },
}

_SAME_AGAIN: Final = (
    "a column of an input: what is computed is computed again for a removal, and must come out the same"
)
_UTC: Final = (
    "t + datetime.timedelta(hours=1) for a fixed distance: times are in UTC. For a zone with summer time "
    "map(function, schema), of a collection, where row.t.astimezone(zoneinfo.ZoneInfo('Europe/Rome')) is "
    "local"
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
    **dict.fromkeys(("std", "stddev_samp"), "dd.stddev('x')"),
    **dict.fromkeys(("var", "var_samp"), "dd.variance('x')"),
    "stddev_pop": "dd.stddev('x', sample=False)",
    "var_pop": "dd.variance('x', sample=False)",
    **dict.fromkeys(("first_value", "head"), "dd.first('x', by='time')"),
    **dict.fromkeys(("last_value", "tail"), "dd.last('x', by='time')"),
    **dict.fromkeys(("len", "size_of"), "dd.count()"),
    **dict.fromkeys(("median", "percentile", "percentile_approx", "quantile", "mode", "corr"), _REDUCE),
    **dict.fromkeys(("row_number", "rank", "dense_rank", "ntile", "Window"), _WINDOW),
    **dict.fromkeys(("lag", "lead", "shift"), "asof_join(…, exact=False) with the same collection"),
    **dict.fromkeys(("F", "functions"), "dd.sum('x'), dd.upper(col.x): functions are in the module itself"),
    **dict.fromkeys(("sample",), "filter(dd.hash(col.id) % 100 < 5), of a collection"),
    **dict.fromkeys(("column", "field", "element"), "dd.col.x"),
    **dict.fromkeys(
        ("expr", "sql"), "col.x + 1, dd.when(col.x > 1).then('a').otherwise('b'): no texts of SQL"
    ),
    **dict.fromkeys(("union", "unionAll", "union_all", "unionByName"), "a.concat(b, c), of a collection"),
    **dict.fromkeys(("merge", "join"), "a.join(b, on='key'), of a collection"),
    **dict.fromkeys(("asc", "desc"), "col.x.asc() or col.x.desc()"),
    **dict.fromkeys(("explode", "explode_outer", "posexplode"), "explode('x', type), of a collection"),
    **dict.fromkeys(("udf", "pandas_udf", "map_batches"), "map_batches(function, schema), of a collection"),
    "window": "window('time', dd.tumbling('5 minutes')), of a collection, then group_by('window_start')",
    "session_window": "window('time', dd.session('30 minutes', by='key')), of a collection",
    **dict.fromkeys(
        ("struct", "array", "create_map", "list"), "dd.lit([1, 2], 'any') or map(function, schema)"
    ),
    **dict.fromkeys(("from_json", "to_json", "get_json_object"), "map(function, schema), of a collection"),
    **dict.fromkeys(("getItem", "element_at"), "dd.get(x, 0), or x.list.field('key')"),
    "pow": "dd.power(x, y), or x ** y",
    "pmod": "x % y",
    **dict.fromkeys(("ceiling",), "dd.ceil(x)"),
    **dict.fromkeys(("ln",), "dd.log(x)"),
    **dict.fromkeys(("sign",), "dd.signum(x)"),
    **dict.fromkeys(("negative", "negate"), "-x"),
    **dict.fromkeys(("ifnull", "nvl"), "dd.coalesce(x, y)"),
    **dict.fromkeys(("isnotnull",), "x.is_not_null()"),
    **dict.fromkeys(("min_horizontal",), "dd.least(x, y)"),
    **dict.fromkeys(("max_horizontal",), "dd.greatest(x, y)"),
    **dict.fromkeys(("cast", "astype"), "x.cast('int')"),
    "try_cast": "x.try_cast('int')",
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
    "last_day": "dd.date_add(dd.add_months(dd.date_trunc('month', t), 1), -1)",
    "next_day": "dd.date_add(t, (n - dd.day_of_week(t) - 1) % 7 + 1), n = 1 for Monday to 7 for Sunday",
    "make_date": "dd.to_date(text, '%Y-%m-%d') of dd.concat(y.cast('string'), dd.lit('-'), …)",
    **dict.fromkeys(("unix_timestamp", "unix_seconds", "to_unix_timestamp"), "t.cast('int') // 1_000_000"),
    "unix_millis": "t.cast('int') // 1_000",
    "unix_micros": "t.cast('int')",
    "unix_date": "d.cast('int')",
    **dict.fromkeys(("from_unixtime", "timestamp_seconds"), "(seconds * 1_000_000).cast('timestamp')"),
    "timestamp_millis": "(milliseconds * 1_000).cast('timestamp')",
    "timestamp_micros": "microseconds.cast('timestamp')",
    **dict.fromkeys(("from_utc_timestamp", "to_utc_timestamp", "convert_timezone"), _UTC),
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
_MAP: Final = "map(function, schema), of a collection: a Python function of each record"
_LISTS: Final = (
    "x.list.get(0), x.list.has(value), dd.size(x); the rest by map(function, schema), of a collection"
)
_EXACT: Final = "dd.count_distinct('x'), or reduce(function, schema) of groups: answers here are exact"
_TIMES: Final = "x.dt.year(), x.dt.add_days(1), dd.date_format(x, '%d.%m.%Y'), x.cast('timestamp')"
_SIZES: Final = "window('time', dd.tumbling(minutes=5)), of a collection, or x.dt.date_trunc('month')"
_MATH: Final = r"a?(cos|sin|tan)h?|atan2|cot|csc|sec|cbrt|degrees|radians|expm1|log1p|"
_FAMILIES: Final = (
    (r"(hll|kll|theta|tuple|count_min|bitmap|approx|histogram)_\w+|approxCountDistinct", _EXACT),
    (r"regr_\w+|covar_\w+|(try_)?(avg|sum)(_distinct|Distinct)?|sum_?[dD]istinct|kurtosis|skewness", _REDUCE),
    (
        r"(listagg|string_agg)(_distinct)?|product|bit_(and|or|xor)|collect_union|counter_diff|max_by\w+",
        _REDUCE,
    ),
    (r"vector_(avg|sum)|grouping(_id)?|schema_of_variant_agg", _REDUCE),
    (
        r"(try_)?(arrays?|map|variant|st|vector|xpath|json|transform|zip)_\w+|xpath|sort_array|slice|flatten",
        _LISTS,
    ),
    (
        r"aggregate|reduce|exists|forall|filter|transform|sequence|shuffle|cardinality|named_struct|stack",
        _LISTS,
    ),
    (r"inline(_outer)?|posexplode_outer|arrow_udt?f|udtf|call_\w+|unwrap_udt", "explode('x', type), or map"),
    (r"cume_dist|percent_rank|nth_value", _WINDOW),
    (
        r"(current|session|input_file)_\w+|cur(date|time)|localtimestamp|user|version|rand(n|str)|uniform",
        _SAME_AGAIN,
    ),
    (
        r"(try_)?make_\w+|(from|to)_(utc_)?(timestamp|time|unix)\w*|from_unixtime|\w*unix_\w+|timestamp_\w+",
        _TIMES,
    ),
    (
        r"time_\w+|date_(part|from\w+)|datepart|dateadd|dayname|monthname|(last|next)_day|extract|to_time",
        _TIMES,
    ),
    (r"convert_timezone|try_to_time|window_time", _TIMES),
    (r"years|months|days|hours|bucket|partitioning", _SIZES),
    (r"try_(add|subtract|multiply|divide|mod)", "attempt(step), of a collection; try_cast gives null"),
    (r"(try_)?to_(number|char|varchar|binary)|cast|collat\w+|typeof", "x.cast('int'), or x.try_cast('int')"),
    (
        r"nvl2|ifnull|nanvl|nullifzero|zeroifnull|elt|equal_null",
        "dd.when(c).then(x).otherwise(y), dd.coalesce(x, y)",
    ),
    (r"(asc|desc)_nulls_(first|last)", "x.asc(nulls_last=True), or x.desc(nulls_last=True)"),
    (r"assert_true|raise_error", "filter(col.x < 0).assert_empty('what is claimed'), of a collection"),
    (
        r"broadcast|spark_\w+|java_method|(try_)?reflect",
        "nothing: there is no such thing to be asked for here",
    ),
    (r"e|pi", "dd.lit(math.pi)"),
    (r"encode|decode", _MAP),
    (r"positive", "x"),
    (
        r"position|locate|instr|left|right|substring_index|split_part|translate|overlay|btrim|repeat|printf",
        _MAP,
    ),
    (_MATH + r"hypot|factorial|rint|bround|conv|bin|hex|unhex|width_bucket|toDegrees|toRadians", _MAP),
    (
        r"bit\w*|getbit|shift(left|right|rightunsigned|Left|Right|RightUnsigned)|sha1?|hmac|mask|(un)?base64",
        _MAP,
    ),
    (
        r"(try_)?(aes|url|parse|validate|is)_\w+|(from|to|schema_of)_(csv|xml|base32|json|variant\w*)",
        _MAP,
    ),
    (
        r"regexp_\w+|ascii|char\w*|chr|octet_length|format_number|find_in_set|levenshtein|soundex|sentences|quote",
        _MAP,
    ),
    (r"jaro\w+|str_to_map|json\w*|make_valid_utf8|try_element_at|to_variant_object|randstr", _MAP),
)
ALGORITHMS: Final = frozenset((
    "bfs", "bidirectional_shortest_paths", "connected_components", "datalog",
    "edges_inside_components", "graph_colouring", "k_core", "label_propagation", "pagerank",
    "prefix_sums", "propagate", "strongly_connected_components", "transitive_closure", "triangles",
    "weighted_shortest_paths",
))  # fmt: skip
"""What `differential.algorithms` has, which is asked of the module above it."""
FUNCTIONS_ELSEWHERE: Final = frozenset(_OF_FUNCTIONS)
"""Names of PySpark's and Polars' functions and types for which there is something else here."""


def explain(kind: str, name: str, groups: bool = False, has: Iterable[str] = ()) -> str:
    """Return the message of the `AttributeError` for `name`, which a `kind` of thing does not have.

    It `has` these attributes.
    """
    if groups and name in _OF_GROUPS:
        return f"{kind} has no {name!r}. Write instead: {_OF_GROUPS[name]}"
    if groups and name in _SPELLINGS:
        return f"{kind} has no {name!r}. Write agg(n=dd.count(), total=dd.sum('x')) or reduce(fn, schema)"
    if name in _SPELLINGS:
        return f"{kind} has no {name!r}. Write instead: {_SPELLINGS[name]}"
    if _READS.fullmatch(name):
        return f"{kind} has no {name!r}. Write instead: {_READ}"
    return f"{kind} has no {name!r}{_meant_by(name, has)}"


def _meant_by(name: str, has: Iterable[str]) -> str:
    """The attribute that may be meant by `name`, as the end of a message; "" if nothing is like it."""
    if name.startswith("_"):  # IPython and copy ask for many of these
        return ""
    told = meant(name, [each for each in has if not each.startswith("_")])
    return f".{told}" if told else ""


def explain_function(name: str, has: Iterable[str] = ()) -> str:
    """The message of the `AttributeError` for `name`, which the module does not have. It `has` these."""
    missing = f"module 'differential' has no attribute {name!r}"
    told = _OF_FUNCTIONS.get(name) or told_of(name, _FAMILIES)
    if name in ALGORITHMS:
        told = f"from differential.algorithms import {name}"
    return f"{missing}. Write instead: {told}" if told else missing + _meant_by(name, has)


def told_of(name: str, families: Iterable[tuple[str, str]]) -> str | None:
    """What is said of the first family, a pattern of names, that `name` is of; None if it is of none."""
    return next((told for pattern, told in families if re.fullmatch(pattern, name)), None)


def explain_item(key: object) -> str:
    """The message of the error for `collection[key]`."""
    if isinstance(key, str):
        return (
            f"a collection has no [{key!r}]. In an expression write col.{key}, for the column select({key!r})"
        )
    if isinstance(key, list | tuple):
        return f"a collection has no {list(key)!r:.80}. Write select({', '.join(map(repr, key))})"
    return f"a collection has no [{key!r:.80}]: it is no list. For some of its rows write filter(col.x > 1)"


def meant(name: object, names: Sequence[str]) -> str:
    """What to write in place of a column that is not among `names`, as a sentence with a space before it; ""
    if nothing is like it.
    """
    if not isinstance(name, str):  # as users write it
        return ""
    if name == "*":
        return " For all columns write select('*'), for all rows dd.count()."
    if name == "window" and {"window_start", "window_end"} <= set(names):
        return " Spark's window is two columns here: 'window_start' and 'window_end'."
    import difflib

    # Spark takes 'K' for 'k', which by their letters are not close.
    found = [each for each in names if each.casefold() == name.casefold()]
    found = found or difflib.get_close_matches(name, names, n=1)
    return f" Did you mean {found[0]!r}?" if found else ""


def explain_operator(operator: str) -> str:
    """The message of the error for `a + b` of collections, and the like."""
    return f"collections have no {operator}. Write {_OPERATORS[operator]}"


def condition_of(text: str) -> str:
    """How a condition that is written as a text is written as an expression, if that is easily said."""
    if re.fullmatch(r"\s*[A-Za-z]\w*\s*", text):
        return f"col.{text.strip()}"
    parts = re.split(r"\s+(and|or)\s+(?=(?:[^']*'[^']*')*[^']*$)", text.strip(), flags=re.IGNORECASE)
    said = [_part_of(part) for part in parts[::2]]
    if None in said or any(" between " in part.lower() for part in parts[::2]):
        return "(col.x > 1) & (col.y == 'a')"
    if len(said) == 1:
        return str(said[0])
    joined = [f"({each})" if re.match(r"col\.\w+ ", str(each)) else str(each) for each in said]
    for place, word in enumerate(parts[1::2]):
        joined[place] += " & " if word.lower() == "and" else " | "
    return "".join(joined)


def _part_of(text: str) -> str | None:
    found = re.fullmatch(
        r"\s*([A-Za-z]\w*)\s*(?:(==?|!=|<>|<=?|>=?)\s*([\w.]+|'[^']*'|\"[^\"]*\"))?\s*", text
    )
    if found is not None:
        name, operator, value = found.groups()
        if operator is None:
            return f"col.{name}"
        if value.lower() in ("true", "false"):
            value = value.capitalize()
        elif re.match(r"[A-Za-z]", value):
            value = f"col.{value}"
        return f"col.{name} {'==' if operator == '=' else '!=' if operator == '<>' else operator} {value}"
    found = re.fullmatch(r"\s*([A-Za-z]\w*)\s+is\s+(not\s+)?null\s*", text, re.IGNORECASE)
    if found is not None:
        return f"col.{found[1]}.is_{'not_' if found[2] else ''}null()"
    found = re.fullmatch(r"\s*([A-Za-z]\w*)\s+(not\s+)?(in|r?like)\s+(.*)", text, re.IGNORECASE)
    if found is not None:
        name, negated, kind, value = found.groups()
        value = f"[{value.strip().strip('()')}]" if kind.lower() == "in" else value.strip()
        method = {"in": "is_in", "like": "like", "rlike": "rlike"}[kind.lower()]
        return f"{'~' if negated else ''}col.{name}.{method}({value})"
    return None


def of_another_library(value: object) -> str | None:
    """The sentence for a column or expression of PySpark or Polars; None for everything else."""
    library = _LIBRARIES.get(type(value).__module__.partition(".")[0])
    if library is None or type(value).__name__ not in _EXPRESSIONS:
        return None
    kind = type(value).__name__
    return (
        f"is {'an' if kind == 'Expr' else 'a'} {kind} of {library}, and no expression of a query. Write it "
        "with differential: col.x is the column, dd.sum('x') or dd.upper(col.x) what is made of it"
    )


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

        return short(checked)

    return decorated
