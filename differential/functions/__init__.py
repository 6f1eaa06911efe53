"""`pyspark.sql.functions` for collections: `from differential import functions as F`.

Functions have PySpark's names, arguments and results. As there a text is a column, `F.upper("name")`, but
where PySpark takes a value, as in `F.lpad("name", 8, "-")`. Formats of dates are Spark's.

    calls.py   how a function is called; `relational/spark_functions` has which function of ours each is
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from timely.user_code.short_traces import short_lookup

from .. import aggregates, group_statistics, spelled
from ..collections.in_order import windows
from ..expressions.calls import composed
from ..expressions.expression import col, lit, when
from ..other_spellings.table import FUNCTIONS
from ..relational.spark_functions.by_name import BY_FORM, BY_TEXT
from ..relational.texts_of_expressions import expr
from .calls import ColumnFunction, function_of_columns, function_of_form, function_of_text

__all__ = ["col", "column", "expr", "lit", "when"]

column = col

_GROUPS: Final[dict[str, Callable[..., object]]] = {  # type: ignore[explicit-any]  # any arguments
    **{name: getattr(aggregates, name) for name in ("avg", "count", "count_if", "max", "min", "sum")},
    **{name: getattr(aggregates, name) for name in ("stddev", "variance", "collect_set", "first", "last")},
    **{
        name: getattr(group_statistics, name)
        for name in (
            "approx_count_distinct", "corr", "covar_pop", "covar_samp", "grouping", "grouping_id", "kurtosis",
            "median", "mode", "percentile", "skewness", "string_agg", "sum_distinct",
        )
    },
    **{
        name: getattr(windows, name)
        for name in (
            "cume_dist", "dense_rank", "first_value", "lag", "last_value", "lead", "nth_value", "ntile",
            "percent_rank", "rank", "row_number",
        )
    },
    **{
        name: getattr(spelled, name)
        for name in (
            "asc", "asc_nulls_first", "asc_nulls_last", "desc", "desc_nulls_first", "desc_nulls_last"
        )
    },
    "any_value": group_statistics.any_value_of,
    "approx_percentile": spelled.percentile_approx, "percentile_approx": spelled.percentile_approx,
    "array_agg": aggregates.collect, "collect_list": aggregates.collect,
    "bool_and": aggregates.all_of, "every": aggregates.all_of,
    "bool_or": aggregates.any_of, "some": aggregates.any_of,
    "count_distinct": aggregates.count_distinct, "countDistinct": aggregates.count_distinct,
    "listagg": group_statistics.string_agg, "listagg_distinct": spelled.string_agg_distinct,
    "string_agg_distinct": spelled.string_agg_distinct,
    "max_by": aggregates.argmax, "min_by": aggregates.argmin, "mean": aggregates.avg,
    "std": aggregates.stddev, "stddev_samp": aggregates.stddev, "stddev_pop": spelled.stddev_pop,
    "sumDistinct": group_statistics.sum_distinct,
    "var_samp": aggregates.variance, "var_pop": spelled.var_pop,
}  # fmt: skip
_OF_COLUMNS: Final[dict[str, Callable[..., object]]] = {  # type: ignore[explicit-any]  # any arguments
    name: getattr(composed, name) for name in ("from_json", "json_tuple", "struct", "extract", "date_part")
}

_functions: dict[str, Callable[..., object]] = {}  # type: ignore[explicit-any]  # those looked up so far


def _made(name: str) -> Callable[..., object] | None:  # type: ignore[explicit-any]  # any arguments
    if name in BY_TEXT:
        return function_of_text(name)
    if name in BY_FORM:
        return function_of_form(name, BY_FORM[name])
    if name in _OF_COLUMNS:
        return function_of_columns(name, _OF_COLUMNS[name])
    return _GROUPS.get(name)


if TYPE_CHECKING:

    def __getattr__(name: str) -> ColumnFunction:
        """An aggregate is no expression; both are called alike, and have an alias."""

else:

    @short_lookup
    def __getattr__(name: str) -> object:
        if name not in _functions:
            function = _made(name)
            if function is None:
                missing = f"differential.functions has no {name!r}"
                raise AttributeError(FUNCTIONS.message(missing, name, __dir__()))
            _functions[name] = function
        return _functions[name]


def __dir__() -> list[str]:
    return sorted([*__all__, *BY_TEXT, *BY_FORM, *_OF_COLUMNS, *_GROUPS])
