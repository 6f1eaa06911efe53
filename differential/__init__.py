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
from differential.collections.loops import iterate
from differential.collections.patterns.joins_of_many import join_all
from differential.collections.sources import announcements, checked_input, from_stream, imported, input
from differential.columns.client_tables import to_arrow, to_pandas, to_pylist
from differential.columns.column_types import (
    any_value,
    binary,
    boolean,
    date,
    decimal,
    floating,
    integer,
    string,
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
    SumOverflowError,
    SymbolCollisionError,
    UnknownSymbolError,
    UserFunctionError,
)
from differential.expressions.calls.catalogued import (
    add_months,
    array_contains,
    array_join,
    ceil,
    concat,
    contains,
    date_add,
    date_diff,
    date_format,
    day,
    day_of_week,
    dayofmonth,
    dayofyear,
    endswith,
    exp,
    floor,
    get,
    hash,
    hour,
    initcap,
    length,
    like,
    log,
    log2,
    log10,
    lower,
    lpad,
    microsecond,
    minute,
    month,
    power,
    quarter,
    regexp_extract,
    regexp_replace,
    replace,
    reverse,
    rlike,
    round,
    rpad,
    second,
    signum,
    size,
    split,
    sqrt,
    startswith,
    to_date,
    to_timestamp,
    try_to_date,
    try_to_timestamp,
    upper,
    weekofyear,
    year,
)
from differential.expressions.calls.composed import (
    abs,
    concat_ws,
    date_trunc,
    datediff,
    if_else,
    isnan,
    isnull,
    ltrim,
    mod,
    nullif,
    rtrim,
    substring,
    trim,
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
from differential.linear.shapes import clock, session, sliding, tumbling
from differential.other_spellings.table import FUNCTIONS as _FUNCTIONS
from differential.plan.explaining import explain
from differential.skew.balance import Balance
from differential.warming import warm
from timely.user_code.short_traces import short_lookup as _short_lookup

__all__ = [
    "Aggregate",
    "Aliased",
    "Balance",
    "Collection",
    "Column",
    "Expr",
    "ExpressionError",
    "Grouped",
    "MultiplicityOverflowError",
    "NotEmptyError",
    "Routed",
    "RowError",
    "RuleError",
    "Schema",
    "SchemaError",
    "SumOverflowError",
    "SymbolCollisionError",
    "UnknownSymbolError",
    "UserFunctionError",
    "abs",
    "add_months",
    "all_of",
    "announcements",
    "any_of",
    "any_value",
    "argmax",
    "argmin",
    "array_contains",
    "array_join",
    "avg",
    "band",
    "binary",
    "boolean",
    "bucket_counts",
    "ceil",
    "checked_input",
    "clock",
    "coalesce",
    "col",
    "collect",
    "collect_set",
    "concat",
    "concat_ws",
    "contains",
    "count",
    "count_distinct",
    "count_if",
    "date",
    "date_add",
    "date_diff",
    "date_format",
    "date_trunc",
    "datediff",
    "day",
    "day_of_week",
    "dayofmonth",
    "dayofyear",
    "decimal",
    "endswith",
    "exp",
    "explain",
    "first",
    "floating",
    "floor",
    "from_stream",
    "get",
    "greatest",
    "hash",
    "hour",
    "if_else",
    "imported",
    "initcap",
    "input",
    "integer",
    "isnan",
    "isnull",
    "iterate",
    "join_all",
    "key_counts",
    "key_hash",
    "last",
    "least",
    "length",
    "like",
    "lit",
    "loads",
    "log",
    "log2",
    "log10",
    "lower",
    "lpad",
    "ltrim",
    "max",
    "max_of",
    "microsecond",
    "min",
    "min_of",
    "minute",
    "mod",
    "month",
    "nullif",
    "power",
    "quarter",
    "regexp_extract",
    "regexp_replace",
    "replace",
    "reverse",
    "rlike",
    "round",
    "rpad",
    "rtrim",
    "second",
    "session",
    "signum",
    "size",
    "sliding",
    "split",
    "sqrt",
    "startswith",
    "stddev",
    "string",
    "substring",
    "sum",
    "timestamp",
    "to_arrow",
    "to_date",
    "to_pandas",
    "to_pylist",
    "to_timestamp",
    "trim",
    "try_to_date",
    "try_to_timestamp",
    "tumbling",
    "upper",
    "variance",
    "warm",
    "weekofyear",
    "when",
    "year",
]

_ROOMS = ("algorithms", "errors", "testing")
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
