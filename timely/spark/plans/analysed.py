"""The analysed plan of a DataFrame, with inputs and constant rows as its leaves.

A leaf is a stand-in for an input; or rows of the query's own, which are constants; or, in a view of the
session, a part that has the same rows as the DataFrame of an input, as Spark says.
"""

from __future__ import annotations

import datetime as dt
import json
from collections.abc import Mapping
from typing import Final, cast

from pyspark.sql import DataFrame, SparkSession

from timely.errors import MisuseError

from .left_out import (
    Fields,
    JavaTree,
    JsonNode,
    completed_expressions,
    expressions_of,
    flat,
    is_so,
    java_items,
    nested,
)
from .sites import note_places
from .stand_ins import INPUT_KEY

__all__ = ["PlanSource", "java_plan"]

_CONSTANT_ROWS: Final = 10_000
_OF_RDD: Final = "LogicalRDD"
_FOREIGN: Final = (_OF_RDD, "LogicalRelation", "HiveTableRelation", "DataSourceV2Relation")
"""Leaves with rows that are no input, until a part above is one."""
_WITHOUT_ROWS: Final = ("OneRow", "Range", "CTE", "UnionLoop")


def java_plan(frame: DataFrame) -> JavaTree:
    """Return the analysed plan of a DataFrame."""
    return cast("JavaTree", frame._jdf.queryExecution().analyzed())


class PlanSource:
    """Reads plans in a session, over these inputs; RDDs of the query have numbers above `rdds_before`.

    `place` is that of the query, for what Spark has noted none of.
    """

    def __init__(
        self, spark: SparkSession, inputs: Mapping[str, DataFrame], rdds_before: int, place: str
    ) -> None:
        self._spark, self._rdds_before, self._place = spark, rdds_before, place
        self._inputs = {name: (java_plan(each), each.columns) for name, each in inputs.items()}

    def nodes(self, plan: JavaTree) -> list[Fields]:
        """Return the nodes of a plan as JSON, completed, with its leaves replaced."""
        return flat(self._completed(nested(json.loads(str(plan.toJSON()))), plan))

    def _completed(self, node: JsonNode, java: JavaTree) -> JsonNode:
        if not node.children:
            return self._leaf(node, java)
        completed_expressions(node, java, self._completed)
        note_places(node, expressions_of(node), java, self._place)
        children = list(java_items(java.children()))
        node.children = [
            self._completed(child, other) for child, other in zip(node.children, children, strict=True)
        ]
        return (self._input_of(java) if node.has(*_FOREIGN) else None) or node

    def _leaf(self, node: JsonNode, java: JavaTree) -> JsonNode:
        if node.kind.startswith(_WITHOUT_ROWS):
            return node
        name = _stands_for(java) if node.kind == _OF_RDD else None
        if name is not None:
            return _input(name, node.fields["output"], [str(each["name"]) for each in _outputs(node)])
        same = self._input_of(java)
        if same is not None:
            return same
        is_own = node.kind == _OF_RDD and cast("int", java.rdd().id()) > self._rdds_before
        return self._constant(node, java) if is_own or node.kind == "LocalRelation" else node

    def _input_of(self, java: JavaTree) -> JsonNode | None:
        """Return the input whose DataFrame has the same rows as a plan, whatever they are."""
        for name, (plan, columns) in self._inputs.items():
            if is_so(java.sameResult(plan)):
                output = [json.loads(str(each.toJSON())) for each in java_items(java.output())]
                return _input(name, output, columns)
        return None

    def _constant(self, node: JsonNode, java: JavaTree) -> JsonNode:
        """Return rows that the query has itself, with their values."""
        java_session = self._spark._jsparkSession
        dataset = self._spark._jvm.org.apache.spark.sql.classic.Dataset  # type: ignore[union-attr]  # of py4j
        frame = DataFrame(dataset.ofRows(java_session, java), self._spark)
        rows = frame.limit(_CONSTANT_ROWS + 1).collect()
        if len(rows) > _CONSTANT_ROWS:
            raise MisuseError(
                f"more than {_CONSTANT_ROWS:,} rows are constants of the query: give them as an input"
            )
        values = [[_written(each) for each in row] for row in rows]
        return JsonNode({"class": "timely.Rows", "output": node.fields["output"], "rows": values})


def _input(name: str, output: object, columns: list[str]) -> JsonNode:
    return JsonNode({"class": "timely.Input", "table": name, "output": output, "columns": columns})


def _outputs(node: JsonNode) -> list[Fields]:
    return [cast("list[Fields]", each)[0] for each in cast("list[object]", node.fields.get("output") or [])]


def _stands_for(java: JavaTree) -> str | None:
    """Return the input that a leaf stands for: metadata of its first column say so."""
    first = next(java_items(java.output()), None)
    entry = None if first is None else json.loads(str(first.metadata().json())).get(INPUT_KEY)
    return None if entry is None else str(entry)


def _written(value: object) -> object:
    if value is None:
        return None
    if isinstance(value, dt.datetime):
        return value.astimezone(dt.UTC).isoformat()
    if isinstance(value, dt.date):
        return value.isoformat()
    return str(value)
