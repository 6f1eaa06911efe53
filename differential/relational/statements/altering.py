"""ALTER TABLE: the CREATE TABLE that a table has afterwards, and which changes of columns there are.

A table is altered by a new version of its dataflow, which reads the rows that are there as its own
(`Cluster.replace`). So columns may come, with a default for those rows, go, and take more values than before.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from sqlglot import exp

from ...columns.schema import Schema
from ...errors import SchemaError, SqlError
from ...operators.between.evolution import check_evolution
from ..algebra.relations import DistinctRows, Recursion, Scan, SetOperation
from ..reading.expressions.scopes import same_name
from ..reading.texts import SqlText, children_of
from .catalogue import CatalogueEntry, note_of
from .queries import ReadQuery, parts_of
from .tables import declared_columns

__all__ = ["Altered", "altered_table", "read_columns"]

_INSTEAD: Final = "write CREATE TABLE … AS SELECT … of it, or a view over it"


@dataclass(frozen=True)
class Altered:
    """A table as ALTER TABLE leaves it; `dropped` are the columns that go."""

    schema: Schema
    note: str
    dropped: tuple[str, ...]


def altered_table(text: SqlText, tree: exp.Alter, table: CatalogueEntry) -> Altered:
    """Return a table with the changes of a statement; raises SqlError for what is not possible."""
    own = SqlText(table.statement, table.dialect, f"<table {table.name}>")
    create = own.statement()
    assert isinstance(create.this, exp.Schema), "the note of a table declares its columns"
    changes = _Changes(text, table, create.this)
    for action in children_of(tree, "actions"):
        changes.take(action)
    written = create.sql(dialect=table.dialect)
    schema, keys = declared_columns(SqlText(written, table.dialect, own.name), _declared(own, written))
    expected, _ = declared_columns(own, create.this)
    if schema != expected or keys != table.keys:
        raise text.error(tree, f"the table {table.name} cannot be declared with that in one statement")
    _check_rows(text, tree, table.schema, schema)
    dropped = tuple(name for name in table.schema.names if name not in schema)
    return Altered(schema, note_of("table", table.dialect, written), dropped)


def read_columns(query: ReadQuery, table: CatalogueEntry) -> set[str]:
    """Return the columns of a table that a query reads; `*` reads all."""
    relations = list(parts_of(query.relation))
    read = {*query.relation.names}
    for each in relations:
        read.update(name for expr in each.expressions for name in expr.columns())
        if isinstance(each, DistinctRows | SetOperation | Recursion):
            read.update(name for one in each.inputs for name in one.names)
    keys = {name for name, entry in query.reads.items() if entry.key == table.key}
    return {
        column
        for each in relations
        if isinstance(each, Scan) and each.table in keys
        for column, attribute in zip(each.columns, each.attributes, strict=True)
        if attribute.name in read
    }


def _declared(own: SqlText, written: str) -> exp.Expression:
    tree = SqlText(written, own.dialect, own.name).statement()
    assert isinstance(tree.this, exp.Schema), "what was written declares columns"
    return tree.this


def _check_rows(text: SqlText, tree: exp.Expression, old: Schema, new: Schema) -> None:
    """Raise SqlError unless each row that is there is a row of the new columns. Columns that come are null,
    or have a default, which was looked at before.
    """
    shared = Schema(tuple(column for column in new if column.name in old))
    try:
        check_evolution(old, shared, None)
    except SchemaError as error:
        raise text.error(tree, f"{str(error).partition(chr(10))[0]}: {_INSTEAD}") from None


class _Changes:
    """Carries actions out on the columns of a CREATE TABLE."""

    def __init__(self, text: SqlText, table: CatalogueEntry, columns: exp.Schema) -> None:
        self._text, self._table, self._columns = text, table, columns
        self._dropped: list[str] = []

    def take(self, action: exp.Expression) -> None:
        """Carry one action out; raises SqlError if there is no such action."""
        if isinstance(action, exp.ColumnDef):
            self._add(action)
        elif isinstance(action, exp.Schema):
            for each in children_of(action, "expressions"):
                if not isinstance(each, exp.ColumnDef):
                    raise self._text.error(each, f"{self._text.written(each)} is no column with a type")
                self._add(each)
        elif isinstance(action, exp.Drop):
            self._drop(action)
        elif isinstance(action, exp.AlterColumn):
            self._change(action)
        elif isinstance(action, exp.RenameColumn | exp.AlterRename):
            raise self._text.error(action, f"a table and its columns keep their names: {_INSTEAD}")
        elif isinstance(action, exp.Command):
            raise self._text.error(action, "this is not understood: write an ALTER TABLE for each change")
        else:
            raise self._text.error(
                action,
                f"{self._text.written(action)} is no change of a table: there are ADD COLUMN, DROP COLUMN, "
                "ALTER COLUMN … TYPE, DROP NOT NULL, SET DEFAULT and DROP DEFAULT",
            )

    def _there(self, name: str) -> exp.ColumnDef | None:
        return next(
            (
                each
                for each in children_of(self._columns, "expressions")
                if isinstance(each, exp.ColumnDef) and same_name(each.name, name)
            ),
            None,
        )

    def _of_name(self, node: exp.Expression) -> exp.ColumnDef:
        there = self._there(node.name)
        if there is None:
            raise self._missing(node)
        return there

    def _missing(self, node: exp.Expression) -> SqlError:
        names = [each.name for each in self._columns.expressions if isinstance(each, exp.ColumnDef)]
        return self._text.error(node, f"there is no column {node.name}; there are {', '.join(names)}")

    def _add(self, column: exp.ColumnDef) -> None:
        text = self._text
        text.parts_of(column, "this", "kind", "constraints", "exists")
        if self._there(column.name) is not None:
            if column.args.get("exists"):
                return
            raise text.error(column, f"two columns are called {column.name}")
        if any(same_name(column.name, name) for name in self._dropped):
            raise text.error(
                column,
                f"{column.name} is dropped and added in one statement, which would keep its values: write an "
                "ALTER TABLE for each",
            )
        if column.find(exp.PrimaryKeyColumnConstraint):
            raise text.error(column, "the PRIMARY KEY of a table is that of its CREATE TABLE")
        fresh = column.copy()
        fresh.set("exists", None)
        schema, _ = declared_columns(text, exp.Schema(expressions=[fresh]))
        (declared,) = schema
        if not declared.type.nullable and not _has_default(fresh):
            raise text.error(
                column,
                f"the column {column.name} is NOT NULL: give it a DEFAULT, for the rows that are there",
            )
        self._columns.append("expressions", fresh)

    def _drop(self, action: exp.Drop) -> None:
        text = self._text
        text.parts_of(action, "tables", "kind", "exists", "restrict")
        for target in children_of(action, "tables"):
            named = children_of(target, "expressions") if isinstance(target, exp.Schema) else [target]
            for node in named:
                there = self._there(node.name)
                if there is None and action.args.get("exists"):
                    continue
                if there is None:
                    raise self._missing(node)
                if any(same_name(node.name, key) for key in self._table.keys):
                    raise text.error(node, f"the column {node.name} is of the PRIMARY KEY, and stays")
                self._dropped.append(there.name)
                there.pop()
        if not any(isinstance(each, exp.ColumnDef) for each in self._columns.expressions):
            raise text.error(action, "a table has one column at least")

    def _change(self, action: exp.AlterColumn) -> None:
        text = self._text
        text.parts_of(action, "this", "dtype", "drop", "allow_null", "default", "rename_to", "comment")
        column = self._of_name(action.this)
        renamed = action.args.get("rename_to")
        if renamed is not None and not same_name(renamed.name, column.name):
            raise text.error(action, f"a table and its columns keep their names: {_INSTEAD}")
        kind = action.args.get("dtype")
        if kind is not None:
            column.set("kind", kind.copy())
        elif action.args.get("default") is not None:
            _without(column, exp.DefaultColumnConstraint)
            _constrain(column, exp.DefaultColumnConstraint(this=action.args["default"].copy()))
        elif action.args.get("allow_null"):
            if any(same_name(column.name, key) for key in self._table.keys):
                raise text.error(action, f"the column {column.name} is of the PRIMARY KEY, and never null")
            _without(column, exp.NotNullColumnConstraint)
        elif action.args.get("drop"):
            _without(column, exp.DefaultColumnConstraint)
        else:
            raise text.error(action, f"SET NOT NULL: rows that are there may have nulls: {_INSTEAD}")
        declared_columns(text, exp.Schema(expressions=[_without_key(column)]))


def _constrain(column: exp.ColumnDef, kind: exp.Expression) -> None:
    column.append("constraints", exp.ColumnConstraint(kind=kind))


def _without(column: exp.ColumnDef, kind: type[exp.Expression]) -> None:
    left = [each for each in column.args.get("constraints") or [] if not isinstance(each.args["kind"], kind)]
    column.set("constraints", left)


def _has_default(column: exp.ColumnDef) -> bool:
    default = column.find(exp.DefaultColumnConstraint)
    return default is not None and not isinstance(default.this, exp.Null)


def _without_key(column: exp.ColumnDef) -> exp.ColumnDef:
    alone = column.copy()
    _without(alone, exp.PrimaryKeyColumnConstraint)
    return alone
