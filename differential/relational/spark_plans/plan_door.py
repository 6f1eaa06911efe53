"""A plan of Spark's over collections becomes a collection."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from timely.user_code.call_site import CallSite, at_site

from ...collections.collection import Collection
from ...errors import SqlError
from ...expressions.expression import col
from ..algebra.attributes import AttributeNames
from ..lowering.lowerer import RelationLowering
from .plan_nodes import PlanReadings, spark_tree
from .plan_relations import PlanRelations

__all__ = ["collection_of_plan"]


def collection_of_plan(
    plan: Sequence[Mapping[str, object]],
    collections: Mapping[str, Collection],
    site: tuple[str, int],
    where: Callable[[str], str],
    zone: str,
) -> Collection:
    """Return the answer of a plan, kept current.

    plan         the nodes of an analysed plan as Spark's `toJSON` has them, with nodes `Input` and `Rows` in
                 place of its leaves (see `plan_leaves.py`)
    collections  the inputs, by name
    site         the file and the line that explain and errors name
    where        returns the place of the first expression or node of a class
    zone         the time zone of the session

    Raises SqlError for what is not supported.
    """
    names = AttributeNames()
    schemas = {name: each.schema for name, each in collections.items()}
    reader = PlanRelations(PlanReadings(where, zone), names, schemas)
    with at_site([CallSite(*site)]):
        rows = reader.read(spark_tree(list(plan)), None)
        labels = [attribute.label for _, attribute in rows.columns]
        for label in labels:
            if labels.count(label) > 1:
                raise SqlError(
                    f"{where('')}: two columns of the answer are called {label}: rename one by alias"
                )
        relation = reader.by_place(rows)
        flow = next(iter(collections.values())).dataflow
        answer = RelationLowering(flow, collections, names).rows(relation)
        outputs = zip(labels, relation.names, strict=True)
        return answer.select(**{label: col[name] for label, name in outputs})
