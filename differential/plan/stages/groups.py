"""What the stage of a grouping keeps, and how it makes answers of that: one case for each kind of node.

Where its rows come from, and who else reads what it keeps, is decided in `lowering.py`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple, TypeAlias, cast

from ...columns.column_types import integer
from ...columns.schema import Column, Schema
from ...linear.chain import COMPONENT
from ...operators.ordered.layout import InOrder
from ...operators.reduce import Accumulation, Aggregates, GroupFunction, Kind
from ...operators.reduce_stage import DisplaySchemas
from ...operators.reducing.group_functions import UserGroupFunction, on_words
from ...operators.timed.sweep import SweepFunction
from ..nodes import Accumulate, Distinct, Keys, Reduce, ReduceFunction, Sweep, TopK
from ..rules.sharing import SharedArrangement
from .accumulation import accumulation_of
from .terms import Lowered, Sites, Term, columns_as_read, narrowed

__all__ = ["GroupStage", "Grouping", "stage_of"]

Grouping: TypeAlias = Accumulate | Reduce | ReduceFunction | Distinct | Keys | Sweep | TopK
"""Nodes that keep rows by key, and answers for each key."""


class GroupStage(NamedTuple):
    """What a grouping becomes.

    source   its rows, with the columns that it keeps and no others
    widths   key words and value words of these
    shown    the columns that messages show
    detail   what tells it from other stages, for workers to compare
    """

    source: Lowered
    widths: tuple[int, int]
    aggregate: Aggregates | Accumulation | GroupFunction | SweepFunction | InOrder
    shown: DisplaySchemas
    detail: str


def stage_of(
    node: Grouping, sources: Sequence[Lowered], arrangement: SharedArrangement | None, sites: Sites
) -> GroupStage:
    """The stage for `node`, of the collections `sources`, or of what `arrangement` keeps of the first."""
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
    return _distinct(source)


def _reduce(node: Reduce, source: Lowered, arrangement: SharedArrangement | None) -> GroupStage:
    if arrangement is None:
        kept = source.schema.picked(node.columns_read).reordered(node.keys)
        source = narrowed(source, kept)
    else:
        kept = columns_as_read(node, arrangement)
    key_words = sum(kept[key].words for key in node.keys)
    wanted: list[tuple[Kind, int]] = []
    for _, aggregate in node.aggregates:
        assert aggregate.kind in ("min", "max") and aggregate.column is not None, "others are no reduces"
        wanted.append((aggregate.kind, kept.offset(aggregate.column) - key_words))
    names = tuple(aggregate.describe() for _, aggregate in node.aggregates)
    shown = DisplaySchemas(kept.picked(node.keys), kept, node.schema, names)
    widths = (key_words, kept.width - key_words)
    return GroupStage(source, widths, Aggregates(tuple(wanted)), shown, f"({kept}) → ({node.schema})")


def _count(node: Accumulate, source: Lowered, arrangement: SharedArrangement | None) -> GroupStage:
    """Numbers of rows are multiplicities of keys: nothing needs to be made for them."""
    if arrangement is None:
        kept = source.schema.picked(node.keys)
        source = narrowed(source, kept)
    else:  # its columns may have other names than those of the node
        kept = columns_as_read(node, arrangement)
    names = tuple(aggregate.describe() for _, _, aggregate in node.added)
    parts = Aggregates((("count", -1),) * len(names))
    shown = DisplaySchemas(kept, kept, node.schema, names)
    return GroupStage(source, (kept.width, 0), parts, shown, f"({kept}) → ({node.schema})")


def _accumulate(node: Accumulate, sources: Sequence[Lowered]) -> GroupStage:
    """Rows of all sources become components on their way, before they are sent to the worker of their key."""
    layouts = [source.schema.picked(node.columns_read(index)) for index, source in enumerate(sources)]
    plans = accumulation_of(node, layouts)
    terms: list[Term] = []
    for source, layout, makers in zip(sources, layouts, plans.makers, strict=True):
        terms += [
            Term(term.stream, term.chain.accumulate(node.keys, makers))
            for term in narrowed(source, layout).terms
        ]
    keys = layouts[0].picked(node.keys)
    kept = Schema((*keys, Column(COMPONENT, integer)))
    together = replace(sources[0], schema=kept, terms=tuple(terms))
    shown = DisplaySchemas(keys, kept, node.schema, plans.names)
    given = " and ".join(f"({layout})" for layout in layouts)
    detail = f"{given} → ({node.schema}) {plans.makers} {plans.accumulation}"
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
    """All columns are kept: rows that differ in one of them are different rows."""
    kept = node.rows
    source = narrowed(source, kept)
    turns = tuple(each.turn for each in node.order)
    kind = None if node.rank is None else node.rank[1]
    in_order = InOrder(kept, len(node.keys), turns, node.limit, node.offset, kind)
    widths = (in_order.key_words, kept.width - in_order.key_words)
    shown = DisplaySchemas(kept.picked(node.keys), kept, node.schema)
    return GroupStage(source, widths, in_order, shown, in_order.describe())


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
    """A distinct is a reduce whose key is the whole row."""
    schema = source.schema
    shown = DisplaySchemas(schema, schema, schema)
    return GroupStage(source, (schema.width, 0), Aggregates(()), shown, f"({schema})")


def _keys(node: Keys, source: Lowered, arrangement: SharedArrangement | None) -> GroupStage:
    """A distinct by the key words, whatever values an arrangement has beside them."""
    kept = node.schema if arrangement is None else arrangement.schema
    if arrangement is None:
        source = narrowed(source, kept)
    width = node.schema.width
    shown = DisplaySchemas(kept.picked(kept.names[: len(node.keys)]), kept, node.schema)
    return GroupStage(source, (width, kept.width - width), Aggregates(()), shown, f"({kept})")
