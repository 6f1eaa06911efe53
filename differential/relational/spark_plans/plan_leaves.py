"""The leaves of a plan: inputs, rows that the plan has itself, ranges, and the CTEs that it reads.

`Input` and `Rows` are not Spark's. A reader of plans in Spark writes them in place of its leaves: an
input by its name, with the column of the collection for each attribute, and constant rows with their values.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from timely.user_code.call_site import CallSite

from ...columns.schema import Schema
from ...errors import SqlError
from ...expressions.expression import Expr
from ..algebra.attributes import Attribute, AttributeNames
from ..algebra.relations import Scan, SingleRow, ValueRows
from .plan_nodes import PlanReadings, SparkNode
from .plan_scopes import PlanRows
from .plan_types import constant_of, type_of

__all__ = ["leaf_rows"]

_RANGE_LENGTH_MAX: Final = 10_000
"""The longest range whose rows are constants of the query."""


def leaf_rows(
    readings: PlanReadings,
    names: AttributeNames,
    site: CallSite,
    tables: Mapping[str, Schema],
    node: SparkNode,
) -> PlanRows | None:
    """Return the rows of a leaf; None for a node that is none."""
    if node.kind == "Input":
        return _input(names, site, tables, node)
    if node.kind == "Rows":
        return _constant_rows(names, site, node)
    if node.kind == "OneRowRelation":
        return PlanRows(SingleRow(names.attribute("(one)", type_of("long")), site=site), ())
    if node.kind == "Range":
        return _range(readings, names, site, node)
    return None


def _input(names: AttributeNames, site: CallSite, tables: Mapping[str, Schema], node: SparkNode) -> PlanRows:
    table = node.text("table")
    schema = tables[table]
    columns: list[tuple[int, Attribute]] = []
    read: dict[str, Attribute] = {}
    for attribute, column in zip(node.trees("output"), _texts(node, "columns"), strict=True):
        if column in schema.names:
            if column not in read:
                read[column] = names.attribute(column, schema[column].type)
            columns.append((attribute.id, read[column]))
    return PlanRows(Scan(table, tuple(read), tuple(read.values()), site=site), tuple(columns))


def _constant_rows(names: AttributeNames, site: CallSite, node: SparkNode) -> PlanRows:
    columns, types = [], []
    for attribute in node.trees("output"):
        spark_type = attribute.fields["dataType"]
        types.append(spark_type)
        columns.append((attribute.id, names.attribute(attribute.text("name"), type_of(spark_type).or_null())))
    listed = node.fields.get("rows")
    assert isinstance(listed, list), "the rows are read from Spark"
    rows: tuple[tuple[Expr, ...], ...] = tuple(
        tuple(constant_of(value, type_).expr for value, type_ in zip(row, types, strict=True))
        for row in listed
    )
    return PlanRows(ValueRows(tuple(each for _, each in columns), rows, site=site), tuple(columns))


def _range(readings: PlanReadings, names: AttributeNames, site: CallSite, node: SparkNode) -> PlanRows:
    numbers = [node.fields[name] for name in ("start", "end", "step")]
    start, end, step = (each if isinstance(each, int) else 0 for each in numbers)
    count = len(range(start, end, step))
    if count > _RANGE_LENGTH_MAX:
        raise _too_many(readings, node, count)
    (attribute,) = node.trees("output")
    column = names.attribute("id", type_of("long"))
    rows: tuple[tuple[Expr, ...], ...] = tuple(
        (constant_of(number, "long").expr,) for number in range(start, end, step)
    )
    return PlanRows(ValueRows((column,), rows, site=site), ((attribute.id, column),))


def _too_many(readings: PlanReadings, node: SparkNode, count: int) -> SqlError:
    return readings.error(
        node, f"{count:,} rows of a range are too many for constants: give them as an input"
    )


def _texts(node: SparkNode, name: str) -> list[str]:
    field = node.fields.get(name)
    return [str(each) for each in field] if isinstance(field, list) else []
