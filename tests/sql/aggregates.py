"""Aggregates in two forms: ours, and SQL. `aggregate` draws one over the columns of a query.

What DuckDB computes with roundings, or has no deterministic form of, is written out in SQL as it is defined:
the least of the most frequent values, covariances and moments by their sums, which are exact here.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from hypothesis import strategies as st
from sql.expressions import ORDERED, Said, expression

import differential as dd

__all__ = ["aggregate"]


@dataclass(frozen=True)
class Form:  # type: ignore[explicit-any]  # of its function's arguments
    """An aggregate of expressions of some kinds; in `sql` they are `{0}` and `{1}`."""

    kinds: tuple[str, ...]
    """Of its arguments: a kind, or `number`, `ordered` or `exact`."""
    ours: Callable[..., dd.Aggregate]  # type: ignore[explicit-any]  # of one argument, or of two
    sql: str


_CHOICES = {
    "number": ["int", "float"],
    "ordered": ["int", "float", "string", *ORDERED],
    "placed": ["int", "float", *(kind for kind in ORDERED if kind != "decimal")],  # not of 38 digits
    "summed": ["int", "float", "decimal"],
}
_BOTH = "({0}) IS NOT NULL AND ({1}) IS NOT NULL"
_N = f"count(*) FILTER (WHERE {_BOTH})"
_PRODUCTS = (
    f"(sum(({{0}}) * ({{1}})::DOUBLE) FILTER (WHERE {_BOTH}) * {_N} "
    f"- sum(({{0}})::DOUBLE) FILTER (WHERE {_BOTH}) * sum(({{1}})::DOUBLE) FILTER (WHERE {_BOTH}))"
)


def _sum(power: int) -> str:
    return f"sum(power(({{0}})::DOUBLE, {power}))"


_SPREAD = f"(count({{0}}) * {_sum(2)} - {_sum(1)} * {_sum(1)})"
_SECOND = f"3 * count({{0}}) * {_sum(1)} * {_sum(2)}"
_THIRD = f"(power(count({{0}}), 2) * {_sum(3)} - {_SECOND} + 2 * power({_sum(1)}, 3))"
_FOURTH = (
    f"(power(count({{0}}), 3) * {_sum(4)} - 4 * power(count({{0}}), 2) * {_sum(1)} * {_sum(3)} "
    f"+ 6 * count({{0}}) * power({_sum(1)}, 2) * {_sum(2)} - 3 * power({_sum(1)}, 4))"
)
_MODE = (
    "list_min(list_transform(list_filter(map_entries(histogram({0})), lambda e: e.value = "
    "list_max(map_values(histogram({0})))), lambda e: e.key))"
)

FORMS: dict[str, Form] = {
    "count": Form((), dd.count, "count(*)"),
    "count of": Form(("ordered",), dd.count, "count({0})"),
    "count_if": Form(("bool",), dd.count_if, "count(*) FILTER (WHERE {0})"),
    "count_distinct": Form(("ordered",), dd.count_distinct, "count(DISTINCT {0})"),
    "sum": Form(("summed",), dd.sum, "sum({0})"),
    "avg": Form(("number",), dd.avg, "avg({0})"),
    "variance": Form(("number",), dd.variance, "var_samp({0})"),
    "min": Form(("ordered",), dd.min, "min({0})"),
    "max": Form(("ordered",), dd.max, "max({0})"),
    "any": Form(("bool",), dd.any_of, "bool_or({0})"),
    "all": Form(("bool",), dd.all_of, "bool_and({0})"),
    "median": Form(("number",), dd.median, "median({0})::DOUBLE"),
    "percentile": Form(("number",), lambda x: dd.percentile(x, 0.25), "quantile_cont({0}, 0.25)::DOUBLE"),
    "percentile_disc": Form(("placed",), lambda x: dd.percentile_disc(x, 0.75), "quantile_disc({0}, 0.75)"),
    "any_value": Form(("ordered",), dd.any_value_of, "min({0})"),
    "mode": Form(("ordered",), dd.mode, _MODE),
    "string_agg": Form(("string",), lambda x: dd.string_agg(x, ","), "string_agg({0}, ',' ORDER BY {0})"),
    "string_agg by": Form(
        ("string", "int"),
        lambda x, y: dd.string_agg(x, "", by=y.desc(nulls_last=False)),
        "string_agg({0}, '' ORDER BY {1} DESC NULLS FIRST, {0})",
    ),
    "string_agg distinct": Form(
        ("string",),
        lambda x: dd.string_agg(x, "-", distinct=True),
        "string_agg(DISTINCT {0}, '-' ORDER BY {0})",
    ),
    "sum_distinct": Form(("summed",), dd.sum_distinct, "sum(DISTINCT {0})"),
    "avg_distinct": Form(("number",), dd.avg_distinct, "avg(DISTINCT {0})"),
    "covar_pop": Form(
        ("number", "number"), dd.covar_pop, f"CASE WHEN {_N} > 0 THEN {_PRODUCTS} / ({_N} * {_N}) END"
    ),
    "covar_samp": Form(
        ("number", "number"),
        dd.covar_samp,
        f"CASE WHEN {_N} > 1 THEN {_PRODUCTS} / ({_N} * ({_N} - 1)) END",
    ),
    "skewness": Form(
        ("number",), dd.skewness, f"CASE WHEN {_SPREAD} > 0 THEN {_THIRD} / power({_SPREAD}, 1.5) END"
    ),
    "kurtosis": Form(
        ("number",), dd.kurtosis, f"CASE WHEN {_SPREAD} > 0 THEN {_FOURTH} / power({_SPREAD}, 2) - 3 END"
    ),
    "argmax": Form(
        ("int", "ordered"),
        lambda x, y: dd.argmax(x, by=y),
        "first({0} ORDER BY {1} DESC NULLS LAST, {0} ASC NULLS LAST) FILTER (WHERE ({1}) IS NOT NULL)",
    ),
}


def aggregate(draw: st.DrawFn, columns: Mapping[str, str]) -> tuple[dd.Aggregate, str]:
    """One of all aggregates, of columns, of expressions, or of rows."""
    form = FORMS[draw(st.sampled_from(sorted(FORMS)))]
    arguments: list[Said] = []
    for kind in form.kinds:
        chosen = draw(st.sampled_from(_CHOICES[kind])) if kind in _CHOICES else kind
        arguments.append(expression(draw, columns, chosen, 1))
    return form.ours(*(each.ours for each in arguments)), form.sql.format(*arguments)
