"""One table of the names of PySpark, Polars, pandas and SQL for features that exist here, or do not.

There is a part for each kind of object: collections, groups, expressions, their accessors, functions of the
module. A name with the same meaning is `Same("method")`, and works; for any other the table says what to
write. Users meet it behind a dot (`of_collections.py`) and in `docs/spellings.md`.
"""

from __future__ import annotations

from typing import Final

from timely.user_code.spellings import Same, Spellings

from .dataflow_names import COLLECTIONS_OF_DATAFLOWS, FUNCTIONS_OF_DATAFLOWS

__all__ = ["ACCESSORS", "ALGORITHMS", "COLLECTIONS", "EXPRESSIONS", "FUNCTIONS", "GROUPS", "ORDERS"]

_GROUP: Final = "group_by('key').agg(n=dd.count(), total=dd.sum('x'))"
_ORDER: Final = "order_by(col.x.desc(), 'y').limit(10); a collection has no order"
_READ: Final = "a dataflow is built here, not run; name it by .output('name') and read flow.output('name')"
_CHANGES: Final = "a collection changes with its input by itself; nothing has to be kept or asked for anew"
_SUBTOTALS: Final = "rollup('a', 'b').agg(n=dd.count()) of the collection, or cube, or grouping_sets"
_WHOLE: Final = "agg(n=dd.count(), total=dd.sum('x')) of all rows, or group_by().reduce(function, schema)"
_NAMED: Final = "a name in Python: later = collection; dd.imported reads what another dataflow exports"
_PIVOT: Final = "group_by('key').agg(a=dd.sum(dd.when(col.p == 'a').then(col.x)), …)"
_SCHEMA: Final = "print(collection.schema), or collection.schema.names"
_COLLECTION_NAMES: Final[dict[str, str | Same]] = {
    # The same by other names: PySpark's, Polars', pandas' and SQL's.
    **dict.fromkeys(("where", "having"), Same("filter")),
    "dropna": Same("drop_nulls"),
    "fillna": Same("fill_null"),
    "transform": Same("pipe"),
    "withColumn": Same("_with_column"),
    "withColumns": Same("_with_columns"),
    "withColumnRenamed": Same("_with_column_renamed"),
    "withColumnsRenamed": Same("rename"),
    **dict.fromkeys(("union", "union_all", "unionAll"), Same("concat")),
    "unionByName": Same("_union_by_name"),
    **dict.fromkeys(("unique", "dropDuplicates"), Same("drop_duplicates")),
    "except_": Same("subtract"),
    "exceptAll": Same("except_all"),
    "intersectAll": Same("intersect_all"),
    "crossJoin": Same("cross_join"),
    **dict.fromkeys(("groupBy", "groupby"), Same("group_by")),
    **dict.fromkeys(("orderBy", "sort"), Same("order_by")),
    "aggregate": Same("agg"),
    "with_column": Same("_with_column"),
    "with_column_renamed": Same("_with_column_renamed"),
    "with_columns_renamed": Same("rename"),
    **dict.fromkeys(("assign", "with_columns_seq"), Same("with_columns")),
    "select_seq": Same("select"),
    **dict.fromkeys(("toDF", "to_df"), Same("_to_df")),
    **dict.fromkeys(("cast", "astype"), Same("_cast")),
    "na": Same("_na"),
    "columns": Same("schema.names"),
    "collect_schema": Same("_collect_schema"),
    "vstack": Same("concat"),
    "minus": Same("subtract"),
    "flatMap": Same("flat_map"),
    "join_where": Same("_join_where"),
    # What is written another way.
    "count": "agg(n=dd.count()) of all rows, or group_by('key').agg(n=dd.count())",
    **dict.fromkeys(("agg", "sum", "min", "max", "reduce", "nunique", "any", "all", "idxmax"), _GROUP),
    **dict.fromkeys(("mean", "avg", "median", "quantile", "std", "var", "describe", "summary"), _GROUP),
    "query": "filter(col.x > 1)",
    "remove": "filter(~(col.x > 1).fill_null(False)), which also leaves rows where the condition is null",
    **dict.fromkeys(("append", "merge_sorted", "extend"), "concat(other)"),
    **dict.fromkeys(("selectExpr", "select_expr"), Same("_select_expr")),
    "sql": "selectExpr('x AS y'); dd.sql takes a whole query as text",
    "to": "select('kept', name=col.x + 1)",
    "eval": "with_columns(name=col.x + 1)",
    **dict.fromkeys(
        ("fill_nan", "drop_nans", "interpolate"), "with_columns(x=dd.when(col.x.is_nan()).then(0))"
    ),
    "groupingSets": Same("grouping_sets"),
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
    "replace": "with_columns(x=dd.when(col.x == 1).then(2).otherwise(col.x))",
    "rank": "group_by('key').rank('place', by='x'), or order_by('x').rank('place')",
    "joinWith": "join(other, on='key')",
    **dict.fromkeys(("semi_join", "semijoin", "left_semi"), "join(other, on='key', how='semi')"),
    **dict.fromkeys(("anti_join", "antijoin", "left_anti"), "join(other, on='key', how='anti')"),
    **dict.fromkeys(("left_join", "outer_join"), "join(other, on='key', how='left'), or how='outer'"),
    **dict.fromkeys(("limit", "head", "loc", "iloc", "at", "iat", "index", "sort_index"), _ORDER),
    "sort_values": "order_by('x').limit(10): null is first in it if ascending, where pandas has it last",
    "nlargest": "top_k(3, by=col.x.desc())",
    "nsmallest": "top_k(3, by=col.x.asc(nulls_last=True))",
    **dict.fromkeys(("set_index", "reset_index", "reindex"), "group_by('key'): columns are no index here"),
    **dict.fromkeys(("cumsum", "cummax", "cummin", "cumcount", "diff", "pct_change"), _ORDER),
    **dict.fromkeys(("iterrows", "itertuples", "items", "to_dict", "values"), _READ),
    **dict.fromkeys(("apply", "applymap", "map_elements"), "map(function, schema)"),
    "value_counts": "group_by('key').count()",
    "duplicated": "group_by('key').count().filter(col.count > 1)",
    "pivot_table": _PIVOT,
    "info": _SCHEMA,
    "copy": _NAMED,
    "clip": "with_columns(x=dd.least(dd.greatest(col.x, 0), 5))",
    **dict.fromkeys(
        ("bottom_k", "tail", "take", "first", "last", "slice", "offset", "reverse", "shift"), _ORDER
    ),
    **dict.fromkeys(("with_row_index", "sortWithinPartitions", "gather_every"), _ORDER),
    **dict.fromkeys(("collect", "show", "to_pandas", "toPandas", "to_arrow", "write", "fetch"), _READ),
    **dict.fromkeys(("foreach", "isEmpty", "toLocalIterator", "writeStream", "sink_parquet", "lazy"), _READ),
    **dict.fromkeys(("cache", "persist", "unpersist", "checkpoint", "localCheckpoint"), _CHANGES),
    **dict.fromkeys(("repartition", "coalesce", "repartitionByRange", "hint"), _CHANGES),
    "merge": "join(other, on='key'), or with null_safe=True, if null keys are to meet as in pandas",
    "update": "concat(other), and group_by('key') with an aggregate that chooses",
    **dict.fromkeys(("mapInArrow", "mapInPandas", "map_rows"), "map_batches(fn, schema), or map(fn, schema)"),
    "alias": Same("_alias"),
    **dict.fromkeys(("createOrReplaceTempView", "lazyframe"), "a name in Python: later = collection"),
    **dict.fromkeys(("unpivot", "melt", "transpose", "unnest"), "flat_map(fn, schema), or select(…)"),
    "pivot": _PIVOT,
    "withWatermark": "split_late('time', allowed, clock=…), or last('time', size, clock=…)",
    **dict.fromkeys(
        ("group_by_dynamic", "rolling", "groupby_dynamic"),
        "window('time', dd.tumbling(minutes=5)).group_by('window_start')",
    ),
    "join_asof": "asof_join(other, on='key', left_time='time')",
    **dict.fromkeys(("stage", "feed"), "map(fn, schema), or dataflow.input('x').stage(…) on records by hand"),
    "sample": "filter(dd.hash(col.id) % 100 < 5), which takes the same rows again",
    **dict.fromkeys(("dtypes", "printSchema", "print_schema", "width"), _SCHEMA),
}

_READS: Final = ((r"(sink|write|to|iter|rows)_\w+|toLocal\w+", _READ),)
"""Ways to carry the rows of a table elsewhere."""

COLLECTIONS: Final = Spellings({**COLLECTIONS_OF_DATAFLOWS, **_COLLECTION_NAMES}, _READS)

_REDUCE: Final = "reduce(function, schema), which sees the rows of a group"
_AGGREGATED: Final = "agg(n=dd.count(), total=dd.sum('x')), or reduce(fn, schema)"
_GROUP_NAMES: Final[dict[str, str | Same]] = {
    **dict.fromkeys(_COLLECTION_NAMES, _AGGREGATED),
    "mean": Same("avg"),
    "aggregate": Same("agg"),
    "len": Same("_len"),
    **dict.fromkeys(("orderBy", "sort"), Same("order_by")),
    **dict.fromkeys(("applyInPandas", "applyInArrow", "apply", "map_groups", "cogroup"), _REDUCE),
    "median": "agg(m=dd.median('x'))",
    "mode": "agg(m=dd.mode('x'))",
    "quantile": "agg(p=dd.percentile('x', 0.9)), or dd.percentile_disc for one of the values",
    **dict.fromkeys(("applyInPandasWithState", "transformWithState", "transformWithStateInPandas"), _REDUCE),
    **dict.fromkeys(("rollup", "cube", "groupingSets", "grouping_sets"), _SUBTOTALS),
    "pivot": _PIVOT.removeprefix("group_by('key')."),
    **dict.fromkeys(("having", "filter", "where"), "agg(n=dd.count()).having(col.n > 1)"),
    **dict.fromkeys(("head", "tail", "limit", "nth"), "top_k(n, by=col.x.desc())"),
    **dict.fromkeys(("n_unique", "nunique", "countDistinct"), "agg(n=dd.count_distinct('x'))"),
    "size": "count()",
    **dict.fromkeys(("all", "collect_list"), "agg(values=dd.collect('x'))"),
    **dict.fromkeys(("std", "var"), "agg(s=dd.stddev('x'), v=dd.variance('x'))"),
    **dict.fromkeys(("nlargest", "nsmallest"), "top_k(3, by=col.x.desc())"),
    **dict.fromkeys(("idxmax", "idxmin"), "agg(v=dd.argmax('x', by='y'))"),
    "transform": "rank('place', by='x'), or agg(n=dd.count()) and a join on the keys",
    **dict.fromkeys(
        ("cumsum", "cumcount", "shift", "diff"), "rank('place', by='x'), or asof_join with itself"
    ),
    **{
        name: f"agg(n=dd.count()).{name}(…): what groups have is a collection only once it is aggregated"
        for name in ("output", "export", "inspect", "select", "with_columns", "join", "concat", "distinct")
    },
}

GROUPS: Final = Spellings(_GROUP_NAMES, _READS)

_ORDER_NAMES: Final[dict[str, str | Same]] = {
    "head": Same("limit"),
    **dict.fromkeys(("slice", "offset"), "limit(10, offset=5)"),
    "tail": "limit(10) of the opposite order: order_by(col.x.desc()) for order_by('x')",
    **dict.fromkeys(("row_number", "with_row_index", "dense_rank", "ntile"), "rank('place')"),
}

ORDERS: Final = Spellings(_ORDER_NAMES)

_SAME_AGAIN: Final = (
    "a column of an input: what is computed is computed again for a removal, and must come out the same"
)
_WINDOW: Final = "over('key', by='time').with_columns(n=dd.row_number()), of a collection"
_FUNCTION_NAMES: Final[dict[str, str | Same]] = {
    # The same by other names: PySpark's and Polars'.
    "countDistinct": Same("count_distinct"),
    "mean": Same("avg"),
    **dict.fromkeys(("collect_list", "array_agg"), Same("collect")),
    "max_by": Same("argmax"),
    "min_by": Same("argmin"),
    **dict.fromkeys(("bool_and", "every"), Same("all_of")),
    **dict.fromkeys(("bool_or", "some"), Same("any_of")),
    **dict.fromkeys(("std", "stddev_samp"), Same("stddev")),
    **dict.fromkeys(("var", "var_samp"), Same("variance")),
    "stddev_pop": Same("spelled.stddev_pop"),
    "var_pop": Same("spelled.var_pop"),
    "len": Same("count"),
    "column": Same("col"),
    **{
        name: Same(f"spelled.{name}")
        for name in ("asc", "asc_nulls_first", "asc_nulls_last", "desc", "desc_nulls_first")
    },
    "desc_nulls_last": Same("spelled.desc_nulls_last"),
    "pow": Same("power"),
    "ceiling": Same("ceil"),
    "ln": Same("log"),
    "sign": Same("signum"),
    **dict.fromkeys(("negative", "negate"), Same("spelled.negate")),
    **dict.fromkeys(("ifnull", "nvl"), Same("coalesce")),
    "isnotnull": Same("spelled.isnotnull"),
    "min_horizontal": Same("least"),
    "max_horizontal": Same("greatest"),
    "ucase": Same("upper"),
    "lcase": Same("lower"),
    **dict.fromkeys(("char_length", "character_length"), Same("length")),
    "substr": Same("substring"),
    **dict.fromkeys(("regexp_like", "regexp"), Same("rlike")),
    "ilike": Same("spelled.ilike"),
    "date_sub": Same("spelled.date_sub"),
    "dateadd": Same("date_add"),
    **dict.fromkeys(("cardinality", "array_size"), Same("size")),
    "char": Same("chr"),
    "sha": Same("sha1"),
    "bitwiseNOT": Same("bitwise_not"),
    **{name: Same(name.lower()) for name in ("shiftLeft", "shiftRight", "shiftRightUnsigned")},
    **{f"arc{name}": Same(f"a{name}") for name in ("sin", "cos", "tan")},
    "arctan2": Same("atan2"),
    "toDegrees": Same("degrees"),
    "toRadians": Same("radians"),
    # What is written another way.
    "n_unique": "dd.count_distinct('x'), which leaves nulls out; Polars' n_unique counts null",
    "approxCountDistinct": Same("approx_count_distinct"),
    "approx_n_unique": Same("approx_count_distinct"),
    **dict.fromkeys(("listagg", "str_join"), Same("string_agg")),
    **dict.fromkeys(("listagg_distinct", "string_agg_distinct"), Same("spelled.string_agg_distinct")),
    **dict.fromkeys(("percentile_approx", "approx_percentile"), Same("spelled.percentile_approx")),
    "percentile_cont": Same("percentile"),
    "sumDistinct": Same("sum_distinct"),
    "countIf": Same("count_if"),
    "quantile": "dd.percentile('x', 0.9), or dd.percentile_disc for one of the values",
    "mean_horizontal": "(x + y) / 2",
    "implode": "dd.collect('x'), which leaves nulls out and has the values in order",
    "list_agg": "dd.collect('x')",
    "arg_max": "dd.argmax('x', by='y')",
    "arg_min": "dd.argmin('x', by='y')",
    **dict.fromkeys(("all", "all_horizontal"), "dd.all_of(col.x > 0) of a group; in a row x & y"),
    **dict.fromkeys(("any", "any_horizontal"), "dd.any_of(col.x > 0) of a group; in a row x | y"),
    **dict.fromkeys(("sum_horizontal",), "x + y; where null counts as 0, x.fill_null(0) + y.fill_null(0)"),
    "head": "dd.first('x', by='time')",
    "tail": "dd.last('x', by='time')",
    "Window": _WINDOW,
    "shift": "over('key', by='time').with_columns(before=dd.lag('x')), of a collection",
    "merge_asof": "left.asof_join(right, on='key', left_time='at', right_time='since')",
    **dict.fromkeys(
        ("timestampdiff", "timestamp_diff"),
        "(y - x) // 60_000_000, whole minutes: y - x of timestamps is microseconds",
    ),
    **dict.fromkeys(("make_interval", "make_dt_interval"), "col.x + datetime.timedelta(hours=1)"),
    "F": "from differential import functions as F, as in PySpark; or dd.sum('x'), dd.upper(col.x)",
    **dict.fromkeys(("sample",), "filter(dd.hash(col.id) % 100 < 5), of a collection"),
    **dict.fromkeys(("field", "element"), "dd.col.x"),
    **dict.fromkeys(("union", "unionAll", "union_all", "unionByName"), "a.concat(b, c), of a collection"),
    **dict.fromkeys(("merge", "join"), "a.join(b, on='key'), of a collection"),
    **dict.fromkeys(("explode", "explode_outer", "posexplode"), "explode('x', type), of a collection"),
    **dict.fromkeys(("udf", "pandas_udf", "map_batches"), "map_batches(function, schema), of a collection"),
    "window": "window('time', dd.tumbling('5 minutes')), of a collection, then group_by('window_start')",
    "session_window": "window('time', dd.session('30 minutes', by='key')), of a collection",
    "list": "dd.array(x, y)",
    "getItem": "x[0], or x['key']",
    "pmod": "x % y, if y is greater than 0",
    **dict.fromkeys(("cast", "astype"), "x.cast('int')"),
    "try_cast": "x.try_cast('int')",
    **dict.fromkeys(("to_uppercase",), "dd.upper(x)"),
    **dict.fromkeys(("to_lowercase",), "dd.lower(x)"),
    **dict.fromkeys(("len_chars",), "dd.length(x)"),
    **dict.fromkeys(("concat_str",), "dd.concat(x, y)"),
    **dict.fromkeys(("week",), "dd.weekofyear(t)"),
    "datepart": Same("date_part"),
    "to_unix_timestamp": Same("unix_timestamp"),
    "convert_timezone": "dd.to_utc_timestamp(t, 'Asia/Tokyo'), then dd.from_utc_timestamp(t, 'Europe/Rome')",
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
    "x[0], dd.array_contains(x, value), dd.size(x); of each element: explode('x'), of a collection, and "
    "collect it again, or map(function, schema)"
)
_EXACT: Final = (
    "dd.approx_count_distinct('x'), dd.percentile('x', 0.9), or reduce(function, schema) of groups"
)
_TIMES: Final = "x.dt.year(), x.dt.add_days(1), dd.date_format(x, '%d.%m.%Y'), x.cast('timestamp')"
_SIZES: Final = "window('time', dd.tumbling(minutes=5)), of a collection, or x.dt.date_trunc('month')"
_MATH: Final = r"a(cos|sin|tan)h|cot|csc|sec|"
_FUNCTION_FAMILIES: Final = (
    (r"(hll|kll|theta|tuple|count_min|bitmap|approx|histogram)_\w+", _EXACT),
    (r"regr_\w+|try_(avg|sum)|product|bit_(and|or|xor)|collect_union|counter_diff|max_by\w+", _REDUCE),
    (r"vector_(avg|sum)|schema_of_variant_agg", _REDUCE),
    (
        r"(try_)?(arrays?|map|variant|st|vector|xpath|json|transform|zip)_\w+|xpath|sort_array|slice|flatten",
        _LISTS,
    ),
    (
        r"aggregate|reduce|exists|forall|filter|transform|sequence|shuffle|cardinality|named_struct|stack",
        _LISTS,
    ),
    (r"inline(_outer)?|posexplode_outer|arrow_udt?f|udtf|call_\w+|unwrap_udt", "explode('x', type), or map"),
    (
        r"(current|session|input_file)_\w+|cur(date|time)|localtimestamp|user|version|rand(n|str)|uniform",
        _SAME_AGAIN,
    ),
    (
        r"(try_)?make_\w+|(from|to)_(utc_)?(timestamp|time|unix)\w*|from_unixtime|\w*unix_\w+|timestamp_\w+",
        _TIMES,
    ),
    (
        r"time_\w+|date_from\w+|to_time",
        _TIMES,
    ),
    (r"convert_timezone|try_to_time|window_time", _TIMES),
    (r"years|months|days|hours|bucket|partitioning", _SIZES),
    (r"try_(add|subtract|multiply|divide|mod)", "attempt(step), of a collection; try_cast gives null"),
    (r"(try_)?to_(number|char|varchar|binary)|cast|collat\w+|typeof", "x.cast('int'), or x.try_cast('int')"),
    (
        r"nullifzero|zeroifnull|elt|equal_null",
        "dd.when(c).then(x).otherwise(y), dd.coalesce(x, y)",
    ),
    (r"(asc|desc)_nulls_(first|last)", "x.asc(nulls_last=True), or x.desc(nulls_last=True)"),
    (r"assert_true|raise_error", "filter(col.x < 0).assert_empty('what is claimed'), of a collection"),
    (
        r"broadcast|spark_\w+|java_method|(try_)?reflect",
        "nothing: it has no counterpart here",
    ),
    (r"e|pi", "dd.lit(math.pi)"),
    (r"encode|decode", _MAP),
    (r"positive", "x"),
    (r"overlay|btrim|printf", _MAP),
    (_MATH + r"factorial|rint|conv|width_bucket", _MAP),
    (
        r"bit\w*|getbit|hmac|mask",
        _MAP,
    ),
    (
        r"(try_)?(aes|url|parse|validate|is)_\w+|(from|to|schema_of)_(csv|xml|base32|json|variant\w*)",
        _MAP,
    ),
    (
        r"regexp_\w+|char\w*|find_in_set|levenshtein|soundex|sentences|quote",
        _MAP,
    ),
    (r"jaro\w+|str_to_map|json\w*|make_valid_utf8|to_variant_object|randstr", _MAP),
)


ALGORITHMS: Final = frozenset((
    "bfs", "bidirectional_shortest_paths", "connected_components", "datalog",
    "edges_inside_components", "graph_colouring", "k_core", "label_propagation", "pagerank",
    "prefix_sums", "propagate", "strongly_connected_components", "transitive_closure", "triangles",
    "weighted_shortest_paths",
))  # fmt: skip
"""Names in `differential.algorithms`, which users look for in the module above it."""

FUNCTIONS: Final = Spellings(
    {
        **FUNCTIONS_OF_DATAFLOWS,
        **_FUNCTION_NAMES,
        **{name: f"from differential.algorithms import {name}" for name in ALGORITHMS},
    },
    _FUNCTION_FAMILIES,
)

_PARTS: Final = "x.str.extract(pattern), x.str.split(separator)"
_ELEMENTS: Final = "explode('x', type).group_by('key').agg(n=dd.sum('x')), of a collection"
_OF_ACCESSORS: Final[dict[str, dict[str, str | Same]]] = {
    "str": {
        # The same by other names: Polars' and pandas'.
        "to_uppercase": Same("upper"),
        "to_lowercase": Same("lower"),
        "to_titlecase": Same("title"),
        **dict.fromkeys(("len", "len_chars"), Same("length")),
        **dict.fromkeys(("trim", "strip_chars"), Same("strip")),
        **dict.fromkeys(("ltrim", "strip_chars_start"), Same("lstrip")),
        **dict.fromkeys(("rtrim", "strip_chars_end"), Same("rstrip")),
        "starts_with": Same("startswith"),
        "ends_with": Same("endswith"),
        **dict.fromkeys(("pad_start", "rjust"), Same("lpad")),
        **dict.fromkeys(("pad_end", "ljust"), Same("rpad")),
        "to_datetime": Same("to_timestamp"),
        "rlike": Same("matches"),
        # What is written another way.
        "casefold": "x.str.lower()",
        "capitalize": "x.str.title(), which begins each word with a capital letter",
        **dict.fromkeys(("len_bytes", "n_chars"), "x.str.length()"),
        **dict.fromkeys(("strip_prefix", "strip_suffix"), "x.str.replace_regex('^a', '')"),
        **dict.fromkeys(("replace_all", "replace_many"), "x.str.replace(old, new), or x.str.replace_regex"),
        "zfill": "x.str.lpad(width, '0')",
        "strptime": "x.str.to_timestamp('%Y-%m-%d %H:%M:%S')",
        **dict.fromkeys(("to_integer", "to_decimal", "to_float"), "x.cast('int'), or x.try_cast('int')"),
        **dict.fromkeys(("head", "get"), "x.str.slice(0, n)"),
        "tail": "x.str.slice(-n)",
        **dict.fromkeys(("extract_all", "extract_groups", "split_exact", "splitn", "find", "index"), _PARTS),
        **dict.fromkeys(("match", "fullmatch", "contains_any"), "x.str.matches(pattern)"),
        **dict.fromkeys(("concat", "join"), "dd.concat(a, b), or dd.concat_ws(separator, a, b)"),
    },
    "dt": {
        **dict.fromkeys(("truncate", "floor", "round"), "x.dt.date_trunc('hour')"),
        **dict.fromkeys(("strftime", "to_string"), Same("format")),
        **dict.fromkeys(("weekday", "isoweekday"), Same("day_of_week")),
        **dict.fromkeys(("ordinal_day", "dayofyear"), Same("day_of_year")),
        "dayofweek": "x.dt.day_of_week(), 1 for Monday to 7 for Sunday",
        **dict.fromkeys(("epoch", "timestamp", "to_physical"), "x.cast('int'): microseconds; of a date days"),
        **dict.fromkeys(("offset_by", "add_business_days"), "x.dt.add_days(1), x.dt.add_months(1)"),
        **dict.fromkeys(("total_seconds", "total_minutes", "total_hours"), "x // 1_000_000: microseconds"),
        **dict.fromkeys(("total_days", "days"), "x.dt.date_diff(start), of two dates or times"),
        "millisecond": "x.dt.microsecond() // 1_000",
        "month_start": "x.dt.date_trunc('month')",
        "month_end": "x.dt.last_day(), a date",
        **dict.fromkeys(
            ("convert_time_zone", "replace_time_zone", "tz_localize", "tz_convert"),
            "x.dt.in_zone('Europe/Rome'), what clocks show there, x.dt.from_zone('Europe/Rome') back; "
            "x.dt.hour('Europe/Rome')",
        ),
    },
    "list": {
        **dict.fromkeys(("len", "lengths", "length"), Same("size")),
        "contains": Same("has"),
        "first": "x.list.get(0)",
        "last": "x.list.get(-1)",
        **dict.fromkeys(("sum", "min", "max", "mean", "n_unique", "unique", "count_matches"), _ELEMENTS),
        **dict.fromkeys(("explode", "eval"), "explode('x', type), of a collection"),
    },
}
_METHODS: Final[dict[str, str | Same]] = {
    # The same by other names: PySpark's and pandas'; functions of texts as methods of the expression.
    "astype": Same("cast"),
    "isin": Same("is_in"),
    "isNull": Same("is_null"),
    "isNotNull": Same("is_not_null"),
    "eqNullSafe": Same("eq_null_safe"),
    "fillna": Same("fill_null"),
    **{name: Same(f"str.{name}") for name in ("contains", "startswith", "endswith", "like")},
    "rlike": Same("str.matches"),
    "starts_with": Same("str.startswith"),
    "ends_with": Same("str.endswith"),
    "ilike": Same("_ilike"),
    "is_between": Same("_is_between"),
    **dict.fromkeys(("isnull", "isna"), Same("is_null")),
    **dict.fromkeys(("notnull", "notna"), Same("is_not_null")),
    **dict.fromkeys(("isNaN", "isnan"), Same("is_nan")),
    "is_not_nan": Same("_is_not_nan"),
    "eq_missing": Same("eq_null_safe"),
    "ne_missing": Same("_ne_missing"),
    "getItem": Same("_get_item"),
    "getField": Same("list.field"),
    "pow": Same("power"),
    **{f"arc{name}": Same(f"a{name}") for name in ("sin", "cos", "tan")},
    **{f"bitwise{name}": Same(f"bitwise_{name.lower()}") for name in ("AND", "OR", "XOR")},
    "bitwise_count_ones": Same("bit_count"),
    **{name: Same(f"_{name}") for name in ("asc_nulls_first", "asc_nulls_last", "desc_nulls_first")},
    "desc_nulls_last": Same("_desc_nulls_last"),
    # Operators as methods.
    **{name: Same(f"__{name}__") for name in ("add", "sub", "mul", "truediv", "floordiv", "mod", "neg")},
    **{name: Same(f"__{name}__") for name in ("eq", "ne", "lt", "le", "gt", "ge")},
    "div": Same("__truediv__"),
    "and_": Same("__and__"),
    "or_": Same("__or__"),
    "not_": Same("__invert__"),
    # Aggregates as methods, as Polars has them in `agg`.
    **{name: Same(f"_{name}") for name in ("count", "sum", "mean", "min", "max", "min_by", "max_by")},
    **{name: Same(f"_{name}") for name in ("std", "var")},
    # What is written another way.
    **dict.fromkeys(("to_uppercase", "upper"), "x.str.upper()"),
    **dict.fromkeys(("to_lowercase", "lower"), "x.str.lower()"),
    **dict.fromkeys(("trim", "strip"), "x.str.strip()"),
    **dict.fromkeys(("substring", "slice"), "x.str.slice(offset, length), or x.substr(position, length)"),
    **dict.fromkeys(("concat", "concat_ws"), "dd.concat(a, b), or dd.concat_ws(separator, a, b)"),
    "get": "x.list.get(0), or x.list.field('key')",
    **dict.fromkeys(("year", "month", "day", "hour"), "x.dt.year(), x.dt.month(), …"),
    **dict.fromkeys(("name", "as_"), "x.alias('name')"),
    "isnotnull": "x.is_not_null()",
    "avg": "group_by('key').agg(n=dd.avg('x'))",
    "first": "group_by('key').agg(n=dd.first('x', by='time'))",
    "last": "group_by('key').agg(n=dd.last('x', by='time'))",
    "all": "group_by('key').agg(n=dd.all_of(col.x > 0))",
    "any": "group_by('key').agg(n=dd.any_of(col.x > 0))",
    "implode": "group_by('key').agg(n=dd.collect('x'))",
    "fill_nan": "dd.when(x.is_nan()).then(y).otherwise(x)",
    "map_elements": "map(function), an operator of collections",
    "apply": "map(function), an operator of collections",
    "over": "over('key', by='time').with_columns(total=dd.sum('x')), of the collection",
}


_GROUPED: Final = "group_by('key').agg(n=dd.count(), total=dd.sum('x'))"
_GROUPS_REDUCED: Final = "group_by('key').reduce(function, schema)"
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
    (r"arg_(max|min)|idx(max|min)", "group_by('key').agg(v=dd.argmax('x', by='y'))"),
    (
        r"n_unique|nunique|approx_n_unique|unique_counts|arg_unique",
        "group_by('key').agg(n=dd.count_distinct('x')), which leaves nulls out; Polars counts null",
    ),
    (
        r"len|null_count|has_nulls|first|last|all|any|implode|item|is_unique|is_duplicated|is_empty",
        _GROUPED,
    ),
    (
        r"(approx_)?quantile|median|mode|kurtosis|skew",
        "group_by('key').agg(m=dd.median('x'), s=dd.skewness('x'), p=dd.percentile('x', 0.9))",
    ),
    (
        r"entropy|product|value_counts|hist|dot|q?cut|nan_m(ax|in)",
        _GROUPS_REDUCED,
    ),
    (r"bin_\w+", _GROUPS_REDUCED),
    (
        r"iloc|loc|head|tail|limit|(top|bottom)_k(_by)?|sort(_by)?|arg_(sort|true)|gather(_every)?|reverse|sample|shuffle",
        _ROWS,
    ),
    (r"filter|explode|drop_nulls|drop_nans|unique|append|extend_constant|reshape|repeat_by|flatten", _ROWS),
    (r"truncdiv", "x // y, which rounds down"),
    (r"xor", "of two conditions that differ x != y"),
    (r"is_close", "(x - y).abs() < 1e-9"),
    (r"is_(in)?finite", "x.is_nan(), or (x - x).is_nan() for what is not finite"),
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
    (r"where|mask", "dd.when(x > 1).then(x).otherwise(0)"),
    (
        r"map|map_batches|inspect|pipe(_with_dtype)?|register_plugin",
        "map(function, schema), of a collection",
    ),
    (r"truncate|round_sig_figs", "x.round(2), x.floor(), x.cast('int')"),
    (r"to_physical|reinterpret|cat|bin|ext|shrink_dtype", "x.cast('int'), x.cast('string')"),
    (r"exclude|meta|deserialize|outer", "select('x', 'y'), drop('x'), of a collection"),
    (r"bitwise\w+|a(rc)?(sin|cos|tan)h|cot|erfc?", _MAPPED),
)

EXPRESSIONS: Final = Spellings(_METHODS, _METHOD_FAMILIES)
ACCESSORS: Final = {accessor: Spellings(names) for accessor, names in _OF_ACCESSORS.items()}
"""Names that users look for behind `str`, `dt` and `list` of an expression, by these."""
