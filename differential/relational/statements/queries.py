"""Queries of statements: what they read of the catalogue, and in which order their rows are shown."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from copy import deepcopy
from dataclasses import dataclass, replace

from sqlglot import exp

from timely.building.dataflow import Dataflow
from timely.errors import GraphError, MisuseError

from ...collections.collection import Collection
from ...collections.sources import imported
from ...columns.schema import Schema
from ...errors import SqlError
from ...expressions.expression import ColumnRef, Expr, col
from ..algebra.attributes import AttributeNames
from ..algebra.relations import FirstRowsOf, ProjectionOf, Relation, Scan
from ..lowering.lowerer import RelationLowering
from ..reading.queries import read_query
from ..reading.texts import SqlText
from .catalogue import Catalogue, CatalogueEntry

__all__ = ["ReadQuery", "SortedBy", "parts_of", "read_ordered", "read_relation"]

_ALL_ROWS = 1 << 62


@dataclass(frozen=True)
class SortedBy:
    """A column by which the rows of an answer are sorted before they are shown."""

    column: str
    descending: bool
    nulls_last: bool


@dataclass(frozen=True)
class ReadQuery:
    """A query that was read: its relation, the entries that it reads, the columns of the answer as (label,
    expression), and its order, which may be by columns behind the answer's own.
    """

    text: SqlText
    node: exp.Expression
    names: AttributeNames
    relation: Relation
    reads: Mapping[str, CatalogueEntry]
    columns: tuple[tuple[str, Expr], ...]
    order: tuple[SortedBy, ...] = ()
    hidden: int = 0

    def build(self, flow: Dataflow, owners: Mapping[str, tuple[int, Schema]]) -> Collection:
        """Return the answer as a collection of a dataflow. `owners` has the dataflow and the columns of each
        entry, by key. Raises SqlError, in one line.
        """
        try:
            tables = {}
            for name, entry in self.reads.items():
                owner, schema = owners[entry.key]
                tables[name] = imported(flow, owner, entry.name, schema)
            # Each worker of this process builds it anew, and makes the same names.
            rows = RelationLowering(flow, tables, deepcopy(self.names)).rows(self.relation)
            return rows.select(**dict(self.columns))
        except SqlError:
            raise
        except RecursionError:
            raise self.text.error(self.node, "is nested too deeply") from None
        except (MisuseError, GraphError) as error:
            raise self.text.error(self.node, str(error).partition("\n")[0]) from None

    def tried(self) -> Schema:
        """Return the columns of the answer; raises SqlError for what cannot be computed."""
        owners = {entry.key: (0, entry.schema) for entry in self.reads.values()}
        return self.build(Dataflow("tried"), owners).schema


def read_relation(
    text: SqlText, tree: exp.Expression, catalogue: Catalogue, *, by_place: bool = False
) -> ReadQuery:
    """Return a query over the catalogue; raises SqlError. With `by_place` its columns may share labels."""
    _resolve(text, tree, catalogue)
    names = AttributeNames()
    tables = catalogue.tables()
    relation = read_query(text, tree, tables, names, by_place=by_place)
    reads = {name: catalogue.named(name)[0] for name in sorted(_scanned(relation))}
    columns = tuple((each.label, col[each.name]) for each in relation.attributes)
    return ReadQuery(text, tree, names, relation, reads, columns)


def read_ordered(text: SqlText, tree: exp.Expression, catalogue: Catalogue) -> ReadQuery:
    """Return a query whose answer is shown in its order; raises SqlError."""
    is_ordered = tree.args.get("order") is not None
    is_cut = tree.args.get("limit") is not None or tree.args.get("offset") is not None
    if is_ordered and not is_cut:
        # So that the reader makes the columns of the order; the cut itself is taken away again.
        tree.set("limit", exp.Limit(expression=exp.Literal.number(_ALL_ROWS)))
    query = read_relation(text, tree, catalogue)
    if not is_ordered:
        return query
    top = query.relation
    labels = {each.name: each.label for each in top.attributes}
    outputs: list[tuple[str, Expr]] = [(each.label, col[each.name]) for each in top.attributes]
    if isinstance(top, ProjectionOf):
        outputs = [(labels[attribute.name], expr) for attribute, expr in top.outputs]
        top = top.input
    assert isinstance(top, FirstRowsOf), "a query with a limit ends with it"
    by_column = {expr.name: label for label, expr in outputs if isinstance(expr, ColumnRef)}
    hidden: list[tuple[str, Expr]] = []
    order: list[SortedBy] = []
    for key in top.order:
        assert isinstance(key.expr, ColumnRef), "an order names columns of the rows below"
        label = by_column.get(key.expr.name)
        if label is None:
            label = by_column[key.expr.name] = f"(order {len(hidden)})"
            hidden.append((label, key.expr))
        order.append(SortedBy(label, key.descending, key.nulls_last))
    rows = top if is_cut else top.input
    return replace(query, relation=rows, columns=(*outputs, *hidden), order=tuple(order), hidden=len(hidden))


def _resolve(text: SqlText, tree: exp.Expression, catalogue: Catalogue) -> None:
    """Give tables that are written as dataflow.name the name that the catalogue has for them."""
    local = {each.alias.lower() for each in tree.find_all(exp.CTE)}
    for node in tree.find_all(exp.Table):
        if not isinstance(node.this, exp.Identifier):
            continue
        name = f"{node.text('db')}.{node.name}" if node.text("db") else node.name
        if node.text("catalog"):
            raise text.error(node, f"{text.written(node)}: a name has two parts at most, dataflow.name")
        if not node.text("db") and name.lower() in local:
            continue
        matches = catalogue.named(name)
        if len(matches) > 1:
            which = ", ".join(each.key for each in matches)
            raise text.error(node, f"several dataflows export {node.name}: write one of {which}")
        if not node.text("db"):
            continue
        if not matches or matches[0].kind != "export":
            there = ", ".join(each.key for each in catalogue.entries.values() if each.kind == "export")
            raise text.error(node, f"no dataflow exports {name}; there are: {there or 'none'}")
        label = node.name
        node.set("db", None)
        node.this.set("this", matches[0].key)
        if node.args.get("alias") is None:
            node.set("alias", exp.TableAlias(this=exp.to_identifier(label)))


def _scanned(relation: Relation) -> set[str]:
    """Return the names of the tables that a relation reads."""
    return {each.table for each in parts_of(relation) if isinstance(each, Scan)}


def parts_of(relation: Relation) -> Iterator[Relation]:
    """Yield a relation and all beneath it, each once."""
    seen: set[int] = set()
    waiting = [relation]
    while waiting:
        part = waiting.pop()
        if id(part) not in seen:
            seen.add(id(part))
            yield part
            waiting += part.inputs
