"""The stage of a grouping: what it stores, and how it makes answers of that; one case for each kind of node.

`lowering.py` decides where its rows come from, and which other operators read what it stores.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple, TypeAlias, cast

from ...aggregates import PERCENTILES
from ...columns.column_types import integer
from ...columns.schema import Column, Schema
from ...linear.chain import COMPONENT
from ...operators.ordered.layout import InOrder
from ...operators.ordered.windows import WindowOrder
from ...operators.reduce import Accumulation, Aggregates, GroupFunction, Kind
from ...operators.reduce_stage import DisplaySchemas
from ...operators.reducing.group_functions import UserGroupFunction, on_words
from ...operators.reducing.group_values import CollectedValues, GroupAnswers, PercentileKind, Percentiles
from ...operators.reducing.window_parts import WindowPart
from ...operators.timed.sweep import SweepFunction
from ..nodes import (
    ALL_ROWS,
    Accumulate,
    Distinct,
    GroupValues,
    Keys,
    OverWindow,
    Reduce,
    ReduceFunction,
    Sweep,
    TopK,
    WindowCall,
)
from ..rules.sharing import SharedArrangement
from .accumulation import accumulation_of
from .terms import Lowered, Sites, Term, columns_as_read, narrowed

__all__ = ["GroupStage", "Grouping", "stage_of"]

Grouping: TypeAlias = (
    Accumulate | Reduce | ReduceFunction | GroupValues | Distinct | Keys | Sweep | TopK | OverWindow
)
"""Nodes that keep rows by key, and answers for each key."""


class GroupStage(NamedTuple):
    """The parts of a grouping's stage.

    source   its rows, with only the columns that it stores
    widths   the number of key words and of value words of these
    shown    the columns that messages show
    detail   text that tells it from other stages, for workers to compare
    """

    source: Lowered
    widths: tuple[int, int]
    aggregate: Aggregates | Accumulation | GroupFunction | SweepFunction | GroupAnswers | InOrder
    shown: DisplaySchemas
    detail: str


def stage_of(
    node: Grouping, sources: Sequence[Lowered], arrangement: SharedArrangement | None, sites: Sites
) -> GroupStage:
    """Return the stage of `node` over `sources`, or over what `arrangement` stores of the first of them."""
    source = sources[0]
    if isinstance(node, Accumulate):
        return _count(node, source, arrangement) if node.counts_only else _accumulate(node, sources)
    if isinstance(node, Reduce):
        return _reduce(node, source, arrangement)
    if isinstance(node, ReduceFunction):
        return _function(node, source, sites)
    if isinstance(node, Keys):
        return _keys(node, source, arrangement)
    if isinstance(node, TopK):
        return _top_k(node, source)
    if isinstance(node, Sweep):
        return _sweep(node, source)
    if isinstance(node, OverWindow):
        return _window(node, source)
    if isinstance(node, GroupValues):
        return _group_values(node, source)
    assert isinstance(node, Distinct), f"`stage_of` does not know {node}"
    return _distinct(source)


def _reduce(node: Reduce, source: Lowered, arrangement: SharedArrangement | None) -> GroupStage:
    if arrangement is None:
        columns = source.schema.picked(node.columns_read).reordered(node.keys)
        source = narrowed(source, columns)
    else:
        columns = columns_as_read(node, arrangement)
    key_words = sum(columns[key].words for key in node.keys)
    aggregates: list[tuple[Kind, int]] = []
    for _, aggregate in node.aggregates:
        assert aggregate.kind in ("min", "max") and aggregate.column is not None, "others are no reduces"
        aggregates.append((aggregate.kind, columns.offset(aggregate.column) - key_words))
    names = tuple(aggregate.describe() for _, aggregate in node.aggregates)
    shown = DisplaySchemas(columns.picked(node.keys), columns, node.schema, names)
    widths = (key_words, columns.width - key_words)
    return GroupStage(source, widths, Aggregates(tuple(aggregates)), shown, f"({columns}) → ({node.schema})")


def _count(node: Accumulate, source: Lowered, arrangement: SharedArrangement | None) -> GroupStage:
    """Return the stage of a count: numbers of rows are multiplicities of keys, and need no components."""
    if arrangement is None:
        columns = source.schema.picked(node.keys)
        source = narrowed(source, columns)
    else:  # its columns may have other names than those of the node
        columns = columns_as_read(node, arrangement)
    names = tuple(aggregate.describe() for _, _, aggregate in node.added)
    parts = Aggregates((("count", -1),) * len(names))
    shown = DisplaySchemas(columns, columns, node.schema, names)
    return GroupStage(source, (columns.width, 0), parts, shown, f"({columns}) → ({node.schema})")


def _accumulate(node: Accumulate, sources: Sequence[Lowered]) -> GroupStage:
    """Return the stage of sums: rows become components before they are sent to the worker of their key."""
    layouts = [source.schema.picked(node.columns_read(index)) for index, source in enumerate(sources)]
    plans = accumulation_of(node, layouts)
    terms: list[Term] = []
    for source, layout, makers in zip(sources, layouts, plans.makers, strict=True):
        terms += [
            Term(term.stream, term.chain.accumulate(node.keys, makers))
            for term in narrowed(source, layout).terms
        ]
    keys = layouts[0].picked(node.keys)
    components = Schema((*keys, Column(COMPONENT, integer)))
    together = replace(sources[0], schema=components, terms=tuple(terms))
    shown = DisplaySchemas(keys, components, node.schema, plans.names)
    column_texts = " and ".join(f"({layout})" for layout in layouts)
    detail = f"{column_texts} → ({node.schema}) {plans.makers} {plans.accumulation}"
    return GroupStage(together, (keys.width, 1), plans.accumulation, shown, detail)


def _function(node: ReduceFunction, source: Lowered, sites: Sites) -> GroupStage:
    over = source.schema.reordered(node.keys)
    keys = over.picked(node.keys)
    rest = Schema(tuple(column for column in over if column.name not in node.keys))
    site = str(sites[node.digest][0])
    call = cast("UserGroupFunction", node.function.function)
    stage = node.describe() if node.collects else None
    function = on_words(call, keys, rest, node.columns, site, stage)
    detail = f"({over}) → ({node.schema}) {node.function.digest}"
    return GroupStage(
        source, (keys.width, rest.width), function, DisplaySchemas(keys, over, node.schema), detail
    )


def _top_k(node: TopK, source: Lowered) -> GroupStage:
    """Return the stage of first rows; it stores all columns: rows that differ in any are different rows."""
    columns = node.rows
    source = narrowed(source, columns)
    directions = tuple(each.direction for each in node.order)
    kind = None if node.rank is None else node.rank[1]
    in_order = InOrder(columns, len(node.keys), directions, node.limit, node.offset, kind, node.ties)
    widths = (in_order.key_words, columns.width - in_order.key_words)
    shown = DisplaySchemas(columns.picked(node.keys), columns, node.schema)
    return GroupStage(source, widths, in_order, shown, in_order.describe())


def _window(node: OverWindow, source: Lowered) -> GroupStage:
    """Return the stage of a window; it stores all columns, as first rows do."""
    columns = node.rows
    source = narrowed(source, columns)
    directions = tuple(each.direction for each in node.order)
    functions = tuple(
        (_part_of(call, columns), None if call.column is None else call.column) for call in node.calls
    )
    in_order = WindowOrder(
        columns, len(node.keys), directions, ALL_ROWS, functions=functions, frame=node.frame
    )
    widths = (in_order.key_words, columns.width - in_order.key_words)
    names = tuple(call.describe() for call in node.calls)
    shown = DisplaySchemas(columns.picked(node.keys), columns, node.schema, names)
    return GroupStage(source, widths, in_order, shown, in_order.describe())


def _group_values(node: GroupValues, source: Lowered) -> GroupStage:
    """Return the stage of percentiles, a list or a text; it stores the keys, the order and the value."""
    columns = node.rows
    source = narrowed(source, columns)
    value = columns[node.column].type
    first = node.calls[0]
    function: GroupAnswers
    if first.kind in PERCENTILES:
        function = Percentiles(
            value,
            tuple((cast("PercentileKind", each.kind), cast("float", each.option)) for each in node.calls),
        )
    else:
        turns = ((columns[each.column].type, each.direction) for each in node.order)
        order = tuple((type_, turn.descending, turn.nulls_last) for type_, turn in turns)
        separator = first.option if isinstance(first.option, str) else None
        function = CollectedValues(value, order, first.kind in ("collect_set", "string_agg_set"), separator)
    keys = columns.picked(node.keys)
    shown = DisplaySchemas(keys, columns, node.schema)
    widths = (keys.width, columns.width - keys.width)
    return GroupStage(source, widths, function, shown, f"({columns}) → ({node.schema}) {function}")


def _part_of(call: WindowCall, columns: Schema) -> WindowPart:
    of = None if call.column is None else columns[call.column].type
    if of is None or of.kind != "decimal":
        return WindowPart(call.kind, is_float=of is not None and of.kind == "float", amount=call.amount)
    to = call.type_in(columns, "a window")
    return WindowPart(call.kind, amount=call.amount, of=of, to=to if to.kind == "decimal" else None)


def _sweep(node: Sweep, source: Lowered) -> GroupStage:
    over = source.schema.reordered(node.keys)
    keys = over.picked(node.keys)
    function = SweepFunction(node.rule, node.options, node.columns.width)
    detail = f"({over}) → ({node.schema}) {node.rule} {node.options}"
    return GroupStage(
        source,
        (keys.width, over.width - keys.width),
        function,
        DisplaySchemas(keys, over, node.schema),
        detail,
    )


def _distinct(source: Lowered) -> GroupStage:
    """Return the stage of a distinct: a reduce whose key is the whole row."""
    schema = source.schema
    shown = DisplaySchemas(schema, schema, schema)
    return GroupStage(source, (schema.width, 0), Aggregates(()), shown, f"({schema})")


def _keys(node: Keys, source: Lowered, arrangement: SharedArrangement | None) -> GroupStage:
    """Return the stage of `Keys`: a distinct of the key words, whatever values are stored beside them."""
    columns = node.schema if arrangement is None else arrangement.schema
    if arrangement is None:
        source = narrowed(source, columns)
    width = node.schema.width
    shown = DisplaySchemas(columns.picked(columns.names[: len(node.keys)]), columns, node.schema)
    return GroupStage(source, (width, columns.width - width), Aggregates(()), shown, f"({columns})")
