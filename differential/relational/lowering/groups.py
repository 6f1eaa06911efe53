"""Groups, windows and first rows; within a subquery each of its outer rows has groups of its own."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import differential.aggregates as dd

from ... import group_statistics as statistics
from ...aggregates import Aggregate
from ...collections.collection import Collection
from ...collections.in_order import windows
from ...errors import SchemaError
from ...expressions.expression import ColumnRef, Expr, Ordering, col, lit, when
from ..algebra.relations import (
    AggregateCall,
    Aggregation,
    FirstRowsOf,
    SortKey,
    WindowAnswer,
    WindowOf,
)
from .domains import Domain, Lowers

__all__ = ["aggregate_of", "aggregated", "first_rows", "is_apart", "windowed"]

_NO_LIMIT = 1 << 40
"""A limit that no collection reaches, for OFFSET without LIMIT."""

_CHOSEN = frozenset(("min", "max", "any", "all", "collect_set", "argmin", "argmax", "first", "any_value"))
"""Aggregates whose result is the same for different values and for all values."""
_WITH_DISTINCT = frozenset(("count", "sum", "avg", "string_agg"))
"""Aggregates that collections have of different values, too."""


def aggregated(lower: Lowers, relation: Aggregation, domain: Domain | None, *, fills: bool) -> Collection:
    """Return the groups, with the columns of `domain` if there is one."""
    rows = lower.carrying(relation.input, domain)
    outer = () if domain is None else domain.names
    keys: list[str] = []
    for attribute, expr in relation.keys:
        if not (isinstance(expr, ColumnRef) and expr.name == attribute.name):
            rows = rows.with_columns(**{attribute.name: expr})
        keys.append(attribute.name)
    if relation.sets is None:
        return _grouped(lower, rows, relation, (*outer, *keys), domain if fills and not keys else None)
    parts = []
    for grouping in relation.sets:
        there = [keys[place] for place in grouping]
        part = _grouped(lower, rows, relation, (*outer, *there), domain if not there else None)
        columns: dict[str, Expr] = {name: col[name] for name in outer}
        for attribute, _ in relation.keys:
            type_ = rows.schema[attribute.name].type.or_null()
            entry = attribute.name in there
            columns[attribute.name] = col[attribute.name].cast(type_) if entry else lit(None, type_)
        columns |= {call.attribute.name: col[call.attribute.name] for call in relation.calls}
        for attribute, about in relation.grouping:
            bits = [int(place not in grouping) for place in about]
            columns[attribute.name] = lit(int("".join(map(str, bits)) or "0", 2))
        parts.append(part.select(**columns))
    if len(parts) == 1:
        return parts[0]
    types = {
        name: parts[0].schema[name].type.or_null(any(part.schema[name].type.nullable for part in parts))
        for name in parts[0].schema.names
    }
    same = [part.select(**{name: col[name].cast(type_) for name, type_ in types.items()}) for part in parts]
    return same[0].concat(*same[1:])


def _grouped(
    lower: Lowers, rows: Collection, relation: Aggregation, keys: Sequence[str], domain: Domain | None
) -> Collection:
    """Return one grouping; with `domain` a row for each of its rows, even of nothing."""
    plain = {call.attribute.name: aggregate_of(call) for call in relation.calls if not is_apart(call)}
    apart = [call for call in relation.calls if is_apart(call)]
    if not plain and not apart and domain is not None:
        return domain.rows
    if not plain and not apart:
        return rows.select(*keys).distinct() if keys else rows.agg(**{lower.fresh("rows"): dd.count()})
    parts = [rows.group_by(*keys).agg(**plain)] if plain else []
    for call in apart:
        value = lower.fresh("value")
        assert call.argument is not None
        values = rows.select(*keys, **{value: _where(call.condition, call.argument)}).distinct()
        alone = replace(call, argument=col[value], is_distinct=False, condition=None)
        parts.append(values.group_by(*keys).agg(**{call.attribute.name: aggregate_of(alone)}))
    outcome = parts[0]
    for part in parts[1:]:
        outcome = outcome.join(part, on=[(key, key) for key in keys], null_safe=True)
    if domain is not None:
        names = [call.attribute.name for call in relation.calls]
        outcome = domain.rows.join(outcome, on=[(key, key) for key in keys], how="left", null_safe=True)
        empty = {
            call.attribute.name: col[call.attribute.name].fill_null(0)
            for call in relation.calls
            if call.kind in ("count", "count_if", "approx_count_distinct")
        }
        outcome = outcome.with_columns(**empty) if empty else outcome
        outcome = outcome.select(*keys, *names)
    return outcome


def is_apart(call: AggregateCall) -> bool:
    """Return True for an aggregate of different values that needs a group_by of its own."""
    return call.is_distinct and call.kind not in _CHOSEN | _WITH_DISTINCT


def _where(condition: Expr | None, value: Expr) -> Expr:
    return value if condition is None else when(condition).then(value)


def aggregate_of(call: AggregateCall) -> Aggregate:
    """Return an aggregate as collections take it."""
    condition = call.condition
    if call.kind == "count" and call.argument is None:
        return dd.count() if condition is None else dd.count_if(condition)
    assert call.argument is not None
    argument = _where(condition, call.argument)
    if call.kind == "count":
        return dd.count_distinct(argument) if call.is_distinct else dd.count(argument)
    if call.kind in ("argmin", "argmax"):
        by = _where(condition, call.by[0].expr)
        return (dd.argmin if call.kind == "argmin" else dd.argmax)(argument, by)
    if call.kind in ("variance_pop", "stddev_pop"):
        return (dd.variance if call.kind == "variance_pop" else dd.stddev)(argument, sample=False)
    if call.kind in ("sum", "avg") and call.is_distinct:
        return (statistics.sum_distinct if call.kind == "sum" else statistics.avg_distinct)(argument)
    return _statistic_of(call, argument) or _PLAIN[call.kind](argument)


def _statistic_of(call: AggregateCall, argument: Expr) -> Aggregate | None:
    """Return an aggregate that takes more than one column: an option, an order, a second column."""
    if call.kind in _OF_TWO:
        assert call.second is not None
        return _OF_TWO[call.kind](argument, call.second)
    if call.kind == "string_agg":
        by = _orderings(call.by) or None
        return statistics.string_agg(argument, str(call.option), by, distinct=call.is_distinct)
    if call.kind in ("percentile", "percentile_disc"):
        assert isinstance(call.option, float)
        make = statistics.percentile if call.kind == "percentile" else statistics.percentile_disc
        return make(argument, call.option)
    if call.kind == "collect" and call.by:
        return dd.collect(argument, _orderings(call.by))
    if call.kind == "first":
        by = _orderings(call.by)
        if call.condition is not None:  # rows that do not count come last, and are null
            by = [Ordering(when(call.condition).then(lit(1)), False, True), *by]
        return dd.first(argument, by)
    return None


_OF_TWO = {"covar_pop": statistics.covar_pop, "covar_samp": statistics.covar_samp, "corr": statistics.corr}


_PLAIN = {
    "sum": dd.sum, "avg": dd.avg, "min": dd.min, "max": dd.max, "any": dd.any_of, "all": dd.all_of,
    "count_if": dd.count_if, "variance": dd.variance, "stddev": dd.stddev,
    "collect": dd.collect, "collect_set": dd.collect_set, "mode": statistics.mode,
    "any_value": statistics.any_value_of,
    "skewness": statistics.skewness, "kurtosis": statistics.kurtosis,
    "approx_count_distinct": statistics.approx_count_distinct,
}  # fmt: skip


def _orderings(order: Sequence[SortKey]) -> list[Ordering]:
    return [Ordering(key.expr, key.descending, key.nulls_last) for key in order]


def _with_keys(lower: Lowers, rows: Collection, keys: Sequence[Expr]) -> tuple[Collection, list[str]]:
    """Return the rows with a column for each key, and the names of the keys."""
    names: list[str] = []
    for key in keys:
        if isinstance(key, ColumnRef):
            names.append(key.name)
        else:
            names.append(lower.fresh("key"))
            rows = rows.with_columns(**{names[-1]: key})
    return rows, list(dict.fromkeys(names))


def first_rows(lower: Lowers, relation: FirstRowsOf, domain: Domain | None) -> Collection:
    """Return the first rows of an order, of each group."""
    rows = lower.carrying(relation.input, domain)
    outer = () if domain is None else domain.names
    rows = rows.select(*outer, *relation.names)
    rows, keys = _with_keys(lower, rows, relation.keys)
    order = _orderings(relation.order)
    if not order:
        order = [Ordering(col[name]) for name in relation.names if rows.schema[name].type.has_order]
        if not order:
            raise SchemaError(f"LIMIT ({relation.site}) needs an ORDER BY: no column here has an order")
    limit = _NO_LIMIT if relation.limit is None else relation.limit
    if limit == 0:
        return rows.filter(lit(False)).select(*outer, *relation.names)
    outcome = rows.top_k(limit, by=order, keys=[*outer, *keys], offset=relation.offset)
    return outcome.select(*outer, *relation.names)


def windowed(lower: Lowers, relation: WindowOf, domain: Domain | None) -> Collection:
    """Return all rows with the answers of window functions."""
    rows = lower.carrying(relation.input, domain)
    outer = () if domain is None else domain.names
    names = rows.schema.names
    rows, keys = _with_keys(lower, rows, relation.keys)
    whole = [
        each
        for each in relation.answers
        if not relation.order
        and relation.frame is None
        and each.kind not in _WINDOWS
        and not _is_of_windows(rows, each)
    ]
    if whole:
        rows = _with_groups(lower, rows, [*outer, *keys], whole)
    rest = [each for each in relation.answers if each not in whole]
    added = [each.attribute.name for each in whole]
    if not rest:
        return rows.select(*names, *added)
    texts = [each for each in rest if _is_least_text(rows, each)]
    rows, places = _with_places(lower, rows, [*outer, *keys], texts)
    window = rows.over(*outer, *keys, by=_orderings(relation.order) or None)
    if relation.frame is not None:
        window = replace(window, frame=relation.frame)
    answers = {
        each.attribute.name: _window_function(places[each.attribute.name].placed if each in texts else each)
        for each in rest
    }
    outcome = window.with_columns(**answers)
    for name, place in places.items():
        outcome = place.answered(outcome, name)
    return outcome.select(*names, *added, *answers)


def _is_least_text(rows: Collection, answer: WindowAnswer) -> bool:
    """Return True for min and max of texts, which windows of collections do not have."""
    if answer.kind not in ("min", "max") or answer.argument is None:
        return False
    return answer.argument.type_in(rows.schema).is_symbol


@dataclass(frozen=True)
class _Places:
    """The places of texts among those of their partition: the least place is that of the least text."""

    placed: WindowAnswer
    """The answer, of places instead of texts."""
    texts: Collection
    keys: list[tuple[str, str]]
    place: str
    text: str

    def answered(self, rows: Collection, name: str) -> Collection:
        """Return the rows with the text at the place that is in column `name`, in that column."""
        rows = rows.join(self.texts, on=[*self.keys, (name, self.place)], how="left", null_safe=True)
        return rows.with_columns(**{name: col[self.text]}).drop(self.text)


def _with_places(
    lower: Lowers, rows: Collection, keys: list[str], answers: list[WindowAnswer]
) -> tuple[Collection, dict[str, _Places]]:
    """Return the rows with the places of texts, and these by the name of the answer that needs them."""
    places: dict[str, _Places] = {}
    for answer in answers:
        assert answer.argument is not None
        text, place = lower.fresh("text"), lower.fresh("place")
        least, rank = lower.fresh("text"), lower.fresh("place")
        rows = rows.with_columns(**{text: answer.argument})
        rows = rows.over(*keys, by=[Ordering(col[text], False, True)]).with_columns(
            **{place: windows.dense_rank()}
        )
        theirs = {key: lower.fresh(key) for key in keys}
        texts = rows.filter(col[text].is_not_null()).select(
            **{other: col[key] for key, other in theirs.items()}, **{rank: col[place], least: col[text]}
        )
        placed = when(col[text].is_not_null()).then(col[place])
        places[answer.attribute.name] = _Places(
            replace(answer, argument=placed), texts.distinct(), [*theirs.items()], rank, least
        )
    return rows, places


_WINDOWS = frozenset((
    "row_number", "rank", "dense_rank", "percent_rank", "cume_dist", "ntile", "lag", "first_value",
    "last_value", "nth_value",
))  # fmt: skip


def _is_of_windows(rows: Collection, answer: WindowAnswer) -> bool:
    """Return True for an aggregate that windows of collections have, of a type that they take."""
    if answer.kind not in ("count", "sum", "avg", "min", "max"):
        return False
    return (
        answer.argument is None
        or not answer.argument.type_in(rows.schema).is_symbol
        or answer.kind == "count"
    )


def _with_groups(lower: Lowers, rows: Collection, keys: list[str], answers: list[WindowAnswer]) -> Collection:
    """Return all rows with aggregates of their whole groups, which are joined back."""
    calls = {
        each.attribute.name: aggregate_of(AggregateCall(each.attribute, each.kind, each.argument))
        for each in answers
    }
    groups = rows.group_by(*keys).agg(**calls)
    if not keys:
        return rows.cross_join(groups)
    return rows.join(groups, on=[(key, key) for key in keys], null_safe=True)


def _window_function(answer: WindowAnswer) -> windows.WindowFunction | Aggregate:
    argument, amount = answer.argument, answer.amount
    if answer.kind == "count":
        return dd.count() if argument is None else dd.count(argument)
    if answer.kind in ("sum", "avg", "min", "max"):
        assert argument is not None
        return _PLAIN[answer.kind](argument)
    if answer.kind == "ntile":
        return windows.ntile(amount)
    if argument is None:
        return _RANKS[answer.kind]()
    if answer.kind == "lag":
        return windows.lag(argument, amount, answer.default)
    if answer.kind == "nth_value":
        return windows.nth_value(argument, amount)
    return (windows.first_value if answer.kind == "first_value" else windows.last_value)(argument)


_RANKS = {
    "row_number": windows.row_number, "rank": windows.rank, "dense_rank": windows.dense_rank,
    "percent_rank": windows.percent_rank, "cume_dist": windows.cume_dist,
}  # fmt: skip
