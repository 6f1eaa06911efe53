"""Differential dataflow: collections that change, over typed columns. Imports `timely` and `progress`.

    from differential import col
    import differential as dd

    def reachable(flow):
        edges = dd.input(flow, "edges", "src: int, dst: int")
        roots = dd.input(flow, "roots", "node: int")
        reached = roots.iterate(
            lambda r: r.join(edges, on={"node": "src"}).select(node=col.dst).concat(roots).distinct()
        )
        reached.output("reached")

The package is an ordinary client of `timely`: a vertex of a user can have all that is used here. Read
`collections/` first, which writes plans, and `plan/`, which makes stages of them; then `operators/`, `trace/`
and `kernels/`, from the top to the bottom of an operator.
"""

import sys as _sys
from typing import TYPE_CHECKING as _TYPE_CHECKING

from differential import other_packages as _other_packages  # noqa: F401  # first: whether `timely` is ours
from differential import spelled as _spelled  # noqa: F401  # which gives expressions their second spellings
from differential.aggregates import (
    Aggregate,
    all_of,
    any_of,
    argmax,
    argmin,
    avg,
    collect,
    collect_set,
    count,
    count_distinct,
    count_if,
    first,
    last,
    max,
    min,
    stddev,
    sum,
    variance,
)
from differential.collections.balanced.balancing import Routed
from differential.collections.balanced.counting import bucket_counts, key_counts, key_hash, loads
from differential.collections.balanced.theta import band
from differential.collections.collection import Collection
from differential.collections.groups import Grouped
from differential.collections.in_order.windows import (
    cume_dist,
    dense_rank,
    first_value,
    lag,
    last_value,
    lead,
    nth_value,
    ntile,
    percent_rank,
    rank,
    row_number,
)
from differential.collections.loops import iterate
from differential.collections.patterns.joins_of_many import join_all
from differential.collections.sources import (
    announcements,
    checked_input,
    collection,
    constant,
    from_stream,
    imported,
    input,
)
from differential.columns.client_tables import to_arrow, to_pandas, to_pylist
from differential.columns.column_types import (
    any_value,
    array_of,
    binary,
    boolean,
    date,
    decimal,
    floating,
    integer,
    map_of,
    string,
    struct_of,
    timestamp,
)
from differential.columns.schema import Column, Schema
from differential.errors import (
    ExpressionError,
    MultiplicityOverflowError,
    NotEmptyError,
    RowError,
    RuleError,
    SchemaError,
    SqlError,
    SumOverflowError,
    SymbolCollisionError,
    UnknownSymbolError,
    UserFunctionError,
)
from differential.expressions.calls.catalogued import (
    acos,
    add_months,
    array,
    array_append,
    array_compact,
    array_contains,
    array_distinct,
    array_except,
    array_intersect,
    array_join,
    array_max,
    array_min,
    array_position,
    array_prepend,
    array_remove,
    array_repeat,
    array_slice,
    array_union,
    arrays_overlap,
    ascii,
    asin,
    atan,
    atan2,
    base64,
    bin,
    bit_count,
    bitwise_and,
    bitwise_not,
    bitwise_or,
    bitwise_xor,
    bround,
    cbrt,
    ceil,
    chr,
    concat,
    contains,
    cos,
    cosh,
    crc32,
    create_map,
    date_add,
    date_diff,
    date_format,
    day,
    day_of_week,
    dayofmonth,
    dayofyear,
    degrees,
    element_at,
    endswith,
    exp,
    expm1,
    flatten,
    floor,
    format_number,
    from_utc_timestamp,
    get,
    get_json_object,
    hash,
    hex,
    hour,
    hypot,
    initcap,
    instr,
    last_day,
    left,
    length,
    like,
    log,
    log1p,
    log2,
    log10,
    lower,
    lpad,
    make_date,
    map_concat,
    map_contains_key,
    map_entries,
    map_from_arrays,
    map_keys,
    map_values,
    md5,
    microsecond,
    minute,
    month,
    months_between,
    named_struct,
    next_day,
    octet_length,
    power,
    quarter,
    radians,
    regexp_extract,
    regexp_replace,
    repeat,
    replace,
    reverse,
    right,
    rlike,
    round,
    rpad,
    second,
    sequence,
    sha1,
    sha2,
    shiftleft,
    shiftright,
    shiftrightunsigned,
    signum,
    sin,
    sinh,
    size,
    slice,
    sort_array,
    split,
    split_part,
    sqrt,
    startswith,
    substring_index,
    tan,
    tanh,
    to_date,
    to_json,
    to_timestamp,
    to_utc_timestamp,
    translate,
    try_element_at,
    try_to_date,
    try_to_timestamp,
    unbase64,
    unhex,
    unix_seconds,
    upper,
    weekofyear,
    xxhash64,
    year,
)
from differential.expressions.calls.composed import (
    abs,
    concat_ws,
    date_part,
    date_trunc,
    datediff,
    dayname,
    dayofweek,
    extract,
    format_string,
    from_json,
    from_unixtime,
    if_else,
    isnan,
    isnull,
    json_tuple,
    locate,
    ltrim,
    mod,
    monthname,
    nanvl,
    nullif,
    nvl2,
    position,
    rtrim,
    schema_of_json,
    struct,
    substring,
    timestamp_micros,
    timestamp_millis,
    timestamp_seconds,
    trim,
    trunc,
    unix_date,
    unix_micros,
    unix_millis,
    unix_timestamp,
    weekday,
    xxhash64_as,
)
from differential.expressions.expression import (
    Aliased,
    Expr,
    coalesce,
    col,
    greatest,
    least,
    lit,
    max_of,
    min_of,
    when,
)
from differential.expressions.orders import months
from differential.group_statistics import (
    any_value_of,
    approx_count_distinct,
    avg_distinct,
    corr,
    covar_pop,
    covar_samp,
    grouping,
    grouping_id,
    kurtosis,
    median,
    mode,
    percentile,
    percentile_disc,
    skewness,
    string_agg,
    sum_distinct,
)
from differential.linear.shapes import clock, session, sliding, tumbling
from differential.other_spellings.table import FUNCTIONS as _FUNCTIONS
from differential.plan.explaining import explain
from differential.relational.door import sql
from differential.relational.texts_of_expressions import expr
from differential.skew.balance import Balance
from differential.warming import warm
from timely.user_code.short_traces import short_lookup as _short_lookup

__all__ = [
    "Aggregate", "Aliased", "Balance", "Collection", "Column", "Expr", "ExpressionError", "Grouped",
    "MultiplicityOverflowError", "NotEmptyError", "Routed", "RowError", "RuleError", "Schema",
    "SchemaError", "SqlError", "SumOverflowError", "SymbolCollisionError", "UnknownSymbolError",
    "UserFunctionError",
    "abs", "acos", "add_months", "all_of", "announcements", "any_of", "any_value", "any_value_of",
    "approx_count_distinct",
    "argmax", "argmin", "array", "array_append", "array_compact", "array_contains", "array_distinct",
    "array_except", "array_intersect", "array_join", "array_max", "array_min", "array_of", "array_position",
    "array_prepend", "array_remove", "array_repeat", "array_slice", "array_union", "arrays_overlap",
    "ascii", "asin", "atan", "atan2", "avg", "avg_distinct", "band", "base64", "bin", "binary", "bit_count",
    "bitwise_and", "bitwise_not", "bitwise_or", "bitwise_xor", "boolean", "bround", "bucket_counts", "cbrt",
    "ceil", "checked_input", "chr", "clock", "coalesce", "col", "collect", "collect_set", "collection",
    "concat", "concat_ws", "constant", "contains", "corr", "cos", "cosh", "count", "count_distinct",
    "count_if", "covar_pop", "covar_samp", "crc32", "create_map", "cume_dist", "date", "date_add",
    "date_diff", "date_format", "date_part", "date_trunc", "datediff", "day", "day_of_week", "dayname",
    "dayofmonth", "dayofweek", "dayofyear", "decimal", "degrees", "dense_rank", "element_at", "endswith",
    "exp", "explain", "expm1", "expr", "extract", "first", "first_value", "flatten", "floating", "floor",
    "format_number", "format_string",
    "from_json", "from_stream", "from_unixtime", "from_utc_timestamp", "get",
    "get_json_object", "greatest", "grouping", "grouping_id", "hash", "hex", "hour", "hypot", "if_else",
    "imported", "initcap", "input", "instr", "integer", "isnan", "isnull", "iterate", "join_all",
    "json_tuple", "key_counts", "key_hash", "kurtosis", "lag", "last", "last_day", "last_value", "lead",
    "least", "left", "length", "like", "lit", "loads", "locate", "log", "log1p", "log2", "log10", "lower",
    "lpad", "ltrim", "make_date", "map_concat", "map_contains_key", "map_entries", "map_from_arrays",
    "map_keys", "map_of", "map_values", "max", "max_of", "md5", "median", "microsecond", "min", "min_of",
    "minute", "mod", "mode", "month", "monthname", "months",
    "months_between", "named_struct", "nanvl", "next_day",
    "nth_value", "ntile", "nullif", "nvl2", "octet_length", "percent_rank", "percentile", "percentile_disc",
    "position", "power", "quarter", "radians", "rank", "regexp_extract", "regexp_replace", "repeat",
    "replace", "reverse", "right", "rlike", "round", "row_number", "rpad", "rtrim", "schema_of_json",
    "second", "sequence", "session", "sha1", "sha2", "shiftleft", "shiftright", "shiftrightunsigned",
    "signum", "sin", "sinh", "size", "skewness", "slice", "sliding", "sort_array", "split", "split_part",
    "sql",
    "sqrt", "startswith", "stddev", "string", "string_agg", "struct", "struct_of", "substring",
    "substring_index", "sum", "sum_distinct", "tan", "tanh", "timestamp", "timestamp_micros",
    "timestamp_millis", "timestamp_seconds", "to_arrow", "to_date", "to_json", "to_pandas", "to_pylist",
    "to_timestamp", "to_utc_timestamp", "translate", "trim", "trunc", "try_element_at", "try_to_date",
    "try_to_timestamp", "tumbling", "unbase64", "unhex", "unix_date", "unix_micros", "unix_millis",
    "unix_seconds", "unix_timestamp", "upper", "variance", "warm", "weekday", "weekofyear", "when",
    "xxhash64", "xxhash64_as", "year",
]  # fmt: skip

_ROOMS = ("algorithms", "errors", "functions", "testing")
"""Modules that users import from here."""


def __dir__() -> list[str]:
    return sorted([*__all__, *_ROOMS])


if _TYPE_CHECKING:
    from differential.other_spellings.of_functions import *  # noqa: F403  # what the table answers below
else:

    @_short_lookup
    def __getattr__(name: str) -> object:
        same = _FUNCTIONS.same(_sys.modules[__name__], name)
        if same is None:
            missing = f"module 'differential' has no attribute {name!r}"
            raise AttributeError(_FUNCTIONS.message(missing, name, __all__))
        return same
