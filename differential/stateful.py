"""Operators on whole rows that need a stage: consolidate, distinct, inspect."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from differential.linear.chain import LinearChain
from timely.user_code.code_digest import digest_of

from .collection import Collection, Row, Term
from .operators.inspect import InspectVertex
from .operators.vertices import ConsolidateVertex, DistinctVertex

__all__ = ["consolidate", "distinct", "inspect"]


def consolidate(source: Collection) -> Collection:
    """See `Collection.consolidate`: rows go to the worker of their hash, so that equal ones meet."""
    width = source.schema.width
    (stream,) = source.dataflow.stage(
        "consolidate",
        lambda: ConsolidateVertex(width, source.schema),
        source.feeds(0, source.schema.names),
        detail=f"({source.schema})",
    )
    return replace(source, terms=(Term(stream, LinearChain.over(source.schema)),), is_consolidated=True)


def distinct(source: Collection) -> Collection:
    """See `Collection.distinct`."""
    width = source.schema.width
    (stream,) = source.dataflow.stage(
        "distinct",
        lambda: DistinctVertex(width, source.schema),
        source.feeds(0, source.schema.names),
        detail=f"({source.schema})",
    )
    return replace(source, terms=(Term(stream, LinearChain.over(source.schema)),), is_consolidated=True)


def inspect(source: Collection, function: Callable[[Row, tuple[int, ...], int], None]) -> Collection:
    """See `Collection.inspect`."""
    schema = source.schema
    (stream,) = source.dataflow.stage(
        "inspect",
        lambda: InspectVertex(schema, function),
        source.feeds(0, None),
        detail=f"({schema}) {digest_of(function)}",
    )
    return replace(source, terms=(Term(stream, LinearChain.over(schema)),), is_consolidated=False)
