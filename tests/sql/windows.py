"""Functions of ordered windows in two forms: ours, and SQL."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from hypothesis import strategies as st
from sql.expressions import Said

import differential as dd
from differential import col
from differential.aggregates import Aggregate
from differential.collections.in_order.windows import WindowFunction

__all__ = ["FRAMES", "Windowed", "window_function"]

Windowed = WindowFunction | Aggregate

_PLAIN: dict[str, tuple[Windowed, str]] = {
    "row_number": (dd.row_number(), "row_number()"),
    "rank": (dd.rank(), "rank()"),
    "dense_rank": (dd.dense_rank(), "dense_rank()"),
    "percent_rank": (dd.percent_rank(), "percent_rank()"),
    "cume_dist": (dd.cume_dist(), "cume_dist()"),
    "ntile": (dd.ntile(3), "ntile(3)"),
    "count": (dd.count(), "count(*)"),
}
_PICKED: dict[str, tuple[Callable[[str], Windowed], str]] = {
    "lag": (dd.lag, "lag({0})"),
    "lead": (lambda name: dd.lead(name, 2), "lead({0}, 2)"),
    "first_value": (dd.first_value, "first_value({0})"),
    "last_value": (dd.last_value, "last_value({0})"),
    "nth_value": (lambda name: dd.nth_value(name, 2), "nth_value({0}, 2)"),
    "count of": (dd.count, "count({0})"),
}
_SUMMED: dict[str, tuple[Callable[[str], Windowed], str]] = {
    "sum": (dd.sum, "sum({0})"),
    "avg": (dd.avg, "avg({0})"),
    "min": (dd.min, "min({0})"),
    "max": (dd.max, "max({0})"),
}

FRAMES: dict[str, tuple[str, int | None, int | None]] = {
    "": ("", None, None),
    "ROWS BETWEEN 1 PRECEDING AND 1 FOLLOWING": ("rows", -1, 1),
    "ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW": ("rows", None, 0),
    "ROWS BETWEEN 1 FOLLOWING AND 2 FOLLOWING": ("rows", 1, 2),
    "ROWS BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING": ("rows", 0, None),
    "GROUPS BETWEEN 1 PRECEDING AND CURRENT ROW": ("groups", -1, 0),
    "RANGE BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING": ("range", None, None),
    "RANGE BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING": ("range", 0, None),
}


def window_function(draw: st.DrawFn, columns: Mapping[str, str]) -> tuple[Windowed, Said]:
    """One of all functions; in SQL without its OVER. The second is named so that it prints."""
    numbers = [name for name, kind in columns.items() if kind in ("int", "float")]
    kinds = ["plain", "picked", "picked", *(["summed"] * 2 if numbers else [])]
    kind = draw(st.sampled_from(kinds))
    if kind == "plain":
        ours, sql = _PLAIN[draw(st.sampled_from(sorted(_PLAIN)))]
        return ours, Said(col("x"), sql)
    forms, names = (_PICKED, sorted(columns)) if kind == "picked" else (_SUMMED, sorted(numbers))
    make, sql = forms[draw(st.sampled_from(sorted(forms)))]
    name = draw(st.sampled_from(names))
    return make(name), Said(col(name), sql.format(name))
