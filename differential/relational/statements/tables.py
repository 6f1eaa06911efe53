"""CREATE TABLE: columns and key of a table; and rows that INSERT writes out as constants."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from decimal import Decimal
from functools import lru_cache
from typing import Final

import numpy as np
import pyarrow as pa
from sqlglot import exp

from timely.building.dataflow import Dataflow

from ...collections.sources import input as input_of
from ...columns.client_tables import client_table
from ...columns.column_types import ColumnType
from ...columns.rows import Row, decode_rows
from ...columns.schema import Column, Schema
from ...columns.symbols.table import SymbolTable
from ...errors import ExpressionError, RowError, SchemaError
from ...expressions.expression import Expr, LiteralValue
from ...linear.chain import LinearChain
from ..algebra.attributes import AttributeNames
from ..algebra.relations import ProjectionOf, Relation
from ..reading.expressions.scopes import NameScope, same_name, value_of
from ..reading.expressions.special import SpecialReader
from ..reading.expressions.stages import Stage
from ..reading.expressions.types import column_type
from ..reading.expressions.values import Value, as_type
from ..reading.texts import SqlText, children_of
from ..reading.written_rows import WrittenRows, columns_of

__all__ = [
    "assigned",
    "constant_rows",
    "declaration_of",
    "declared_columns",
    "defaults_of",
    "listed_columns",
    "plain_rows",
]


def declared_columns(text: SqlText, schema: exp.Expression) -> tuple[Schema, tuple[str, ...]]:
    """Return the columns and the key of CREATE TABLE; raises SqlError."""
    text.parts_of(schema, "this", "expressions")
    columns: dict[str, ColumnType] = {}
    keys: list[str] = []
    defaults: list[tuple[str, exp.Expression]] = []
    for each in children_of(schema, "expressions"):
        if isinstance(each, exp.PrimaryKey):
            text.parts_of(each, "expressions", "include")
            keys += [_key_name(part) for part in children_of(each, "expressions")]
            continue
        if not isinstance(each, exp.ColumnDef) or each.args.get("kind") is None:
            raise text.error(each, f"{text.written(each)} is no column with a type, and no PRIMARY KEY")
        text.parts_of(each, "this", "kind", "constraints")
        type_ = column_type(text, each.args["kind"]).or_null()
        for constraint in children_of(each, "constraints"):
            kind = constraint.args.get("kind")
            if isinstance(kind, exp.PrimaryKeyColumnConstraint):
                keys.append(each.name)
            elif isinstance(kind, exp.DefaultColumnConstraint):
                text.parts_of(kind, "this")
                if any(name == each.name for name, _ in defaults):
                    raise text.error(each, f"the column {each.name} has two DEFAULTs")
                defaults.append((each.name, kind.this))
            elif not isinstance(kind, exp.NotNullColumnConstraint):
                raise text.error(
                    each, f"{text.written(constraint)} of the column {each.name} is not supported"
                )
            elif not kind.args.get("allow_null"):
                type_ = type_.not_null()
        if not each.name:
            raise text.error(each, "a column needs a name")
        if any(same_name(each.name, name) for name in columns):
            raise text.error(each, f"two columns are called {each.name}")
        columns[each.name] = type_
    if (
        sum(
            each.find(exp.PrimaryKeyColumnConstraint, exp.PrimaryKey) is not None
            for each in schema.expressions
        )
        > 1
    ):
        raise text.error(schema, f"there are several PRIMARY KEYs: write PRIMARY KEY ({', '.join(keys)})")
    if not columns:
        raise text.error(schema, "a table has one column at least")
    own_keys = []
    for key in keys:
        matches = [name for name in columns if same_name(name, key)]
        if not matches:
            raise text.error(schema, f"the key {key} is no column; there are {', '.join(columns)}")
        own_keys += matches
        columns[matches[0]] = columns[matches[0]].not_null()
    declared = Schema(tuple(Column(name, type_) for name, type_ in columns.items()))
    try:
        trial = Dataflow("tried")
        mode = "upsert" if own_keys else "append"
        input_of(trial, "tried", declared, key=own_keys, mode=mode)  # type: ignore[arg-type]  # one of both
    except SchemaError as error:
        raise text.error(schema, str(error).partition("\n")[0]) from None
    for name, node in defaults:
        _default(text, node, name, declared[name].type)
    return declared, tuple(own_keys)


_FLOAT_DIGITS: Final = 15
"""Digits of a decimal for which a float of it is the same, whoever makes it."""

_COMPUTED_AT_ONCE: Final = 200
"""So many values are computed as columns of one row."""

_WRITTEN: Final = {
    "int": "BIGINT", "float": "DOUBLE", "bool": "BOOLEAN", "string": "TEXT", "bytes": "VARBINARY",
    "timestamp": "TIMESTAMPTZ", "date": "DATE", "any": "ARRAY<BIGINT>",
}  # fmt: skip
"""A type of SQL for each kind of columns."""


def declaration_of(name: str, schema: Schema, dialect: str) -> str:
    """Return the CREATE TABLE of a table with these columns."""

    def quoted(label: str) -> str:
        return exp.to_identifier(label, quoted=True).sql(dialect=dialect)

    columns = []
    for each in schema:
        type_ = exp.DataType.build(_WRITTEN.get(each.type.kind, str(each.type.not_null())))
        not_null = "" if each.type.nullable else " NOT NULL"
        columns.append(f"{quoted(each.name)} {type_.sql(dialect=dialect)}{not_null}")
    return f"CREATE TABLE {quoted(name)} ({', '.join(columns)})"


@lru_cache(maxsize=256)
def defaults_of(statement: str, dialect: str) -> Mapping[str, object]:
    """Return the values of DEFAULT of the columns of a CREATE TABLE that was carried out."""
    text = SqlText(statement, dialect)
    defaults: dict[str, object] = {}
    for each in text.statement().find_all(exp.ColumnDef):
        for constraint in each.find_all(exp.DefaultColumnConstraint):
            type_ = column_type(text, each.args["kind"]).or_null()
            defaults[each.name] = _default(text, constraint.this, each.name, type_)
    return defaults


def _default(text: SqlText, node: exp.Expression, name: str, type_: ColumnType) -> object:
    """Return the constant of DEFAULT; raises SqlError for one that is none, or does not fit."""
    expressions = SpecialReader(text, AttributeNames(), _no_subquery(text)).expressions
    value = expressions.read(node, Stage("DEFAULT", NameScope()))
    constant = _stored(text, node, value, f"the column {name}", type_)
    if not isinstance(constant, LiteralValue):
        raise text.error(node, f"DEFAULT of the column {name} is a constant that needs no cast")
    return constant.value


def _key_name(part: exp.Expression) -> str:
    return part.this.name if isinstance(part, exp.Ordered) else part.name


def listed_columns(
    text: SqlText, target: exp.Expression, schema: Schema, defaults: Mapping[str, object], title: str
) -> list[str]:
    """Return the columns that INSERT names, or all; raises SqlError, which names the statement by `title`."""
    if not isinstance(target, exp.Schema):
        return list(schema.names)
    text.parts_of(target, "this", "expressions")
    listed: list[str] = []
    for each in children_of(target, "expressions"):
        match = [name for name in schema.names if same_name(name, each.name)]
        if not match:
            raise text.error(
                each, f"{title}: there is no column {each.name}; there are {', '.join(schema.names)}"
            )
        if match[0] in listed:
            raise text.error(each, f"{title}: the column {each.name} is named twice")
        listed += match
    for column in schema:
        has_value = column.name in listed or defaults.get(column.name) is not None
        if not has_value and not column.type.nullable:
            raise text.error(target, f"{title}: the column {column.name} is NOT NULL, and has no value")
    return listed


def constant_rows(
    text: SqlText,
    node: exp.Values,
    listed: Sequence[str],
    schema: Schema,
    defaults: Mapping[str, object],
    title: str,
) -> pa.Table:
    """Return the rows of VALUES as a table of all columns. Raises SqlError, which names the statement by
    `title`, for values that do not fit, or cannot be computed.
    """
    text.parts_of(node, "expressions")
    expressions = SpecialReader(text, AttributeNames(), _no_subquery(text)).expressions
    stage = Stage("VALUES", NameScope())
    rows: list[dict[str, object]] = []
    computed: list[tuple[dict[str, object], str, exp.Expression, Expr]] = []
    for each in children_of(node, "expressions"):
        parts = children_of(each, "expressions") if isinstance(each, exp.Tuple) else [each]
        if len(parts) != len(listed):
            raise text.error(each, f"{title}: this row has {len(parts)} values, and {len(listed)} would fit")
        row = {name: defaults.get(name) for name in schema.names}
        rows.append(row)
        for part, name in zip(parts, listed, strict=True):
            value = expressions.read(part, stage)
            typed = _stored(text, part, value, f"{title}: the column {name}", schema[name].type)
            if not isinstance(typed, LiteralValue):
                computed.append((row, name, part, typed))
                continue
            row[name] = typed.value
            if typed.value is None and not schema[name].type.nullable:
                raise text.error(part, f"{title}: the column {name} is NOT NULL")
    answers = _computed(
        text, [(part, f"{title}: the column {name}", value) for _, name, part, value in computed]
    )
    for (row, name, part, _), answer in zip(computed, answers, strict=True):
        row[name] = answer
        if answer is None and not schema[name].type.nullable:
            raise text.error(part, f"{title}: the column {name} is NOT NULL")
    try:
        return client_table([tuple(row.values()) for row in rows], schema.to_arrow(), "INSERT")
    except SchemaError as error:
        raise text.error(node, f"{title}: {str(error).partition(chr(10))[0]}") from None


def _computed(text: SqlText, values: Sequence[tuple[exp.Expression, str, Expr]]) -> list[object]:
    """Return what expressions without columns are, each with what it is for; raises SqlError for one that has
    no value.
    """
    answers: list[object] = []
    for first in range(0, len(values), _COMPUTED_AT_ONCE):
        part = values[first : first + _COMPUTED_AT_ONCE]
        try:
            answers += _computed_row([value for _, _, value in part])
        except RowError:  # of one of them
            for node, what, value in part:
                try:
                    answers += _computed_row([value])
                except RowError as error:
                    why = error.failing.why(np.zeros(1, np.int64))[0] if error.failing else str(error)
                    raise text.error(node, f"{what}: {text.written(node)} {why}") from None
    return answers


def _computed_row(values: Sequence[Expr]) -> Row:
    symbols = SymbolTable()
    chain = LinearChain.over("one: int").select({f"c{place}": each for place, each in enumerate(values)})
    words = chain.compile(symbols)(np.array([[1], [0], [1]], np.int64))
    assert words is not None, "one row becomes one row"
    return decode_rows(chain.schema_out, words, symbols)[0]


def plain_rows(
    text: SqlText, rows: WrittenRows, schema: Schema, defaults: Mapping[str, object]
) -> pa.Table | None:
    """Return the rows of a statement that are plain constants as a table of all columns; None if they need a
    tree to be read, or are wrong.
    """
    listed = [
        name for label in rows.columns or schema.names for name in schema.names if same_name(name, label)
    ]
    if len(listed) != len(rows.columns or schema.names) or len(set(listed)) != len(listed):
        return None
    if any(
        not each.type.nullable and defaults.get(each.name) is None
        for each in schema
        if each.name not in listed
    ):
        return None
    values = columns_of(text.text, rows, [schema[name].type for name in listed])
    if values is None:
        return None
    columns = dict(zip(listed, values, strict=True))
    others = {each: [defaults.get(each)] * len(values[0]) for each in schema.names if each not in columns}
    every = columns | others
    try:
        return client_table(
            list(zip(*(every[name] for name in schema.names), strict=True)), schema.to_arrow(), "INSERT"
        )
    except SchemaError:
        return None


def _no_subquery(text: SqlText):  # type: ignore[no-untyped-def]
    def refuse(node: exp.Expression, outer: NameScope | None) -> Relation:
        raise text.error(node, "a subquery cannot stand in VALUES: write INSERT INTO … SELECT")

    return refuse


def _stored(text: SqlText, node: exp.Expression, value: Value, what: str, type_: ColumnType) -> Expr:
    """Return a value as one of a column: a constant, if it needs no computing. Raises SqlError for a value
    that no column of this type has.
    """
    _check_range(text, node, value, what, type_)
    return (_plain(value, type_) or _typed(text, node, value, what, type_)).expr


def _plain(value: Value, type_: ColumnType) -> Value | None:
    """Return a constant that is a value of a column as it is written; None if it needs a cast."""
    constant = value.expr
    if not isinstance(constant, LiteralValue) or value.is_untyped:
        return None
    kinds = (value.type.kind, type_.kind)
    if kinds in (("int", "float"), ("int", "decimal")):
        return value
    if kinds == ("decimal", "decimal"):
        return value if value.type.scale <= type_.scale else None
    if kinds == ("decimal", "float") and isinstance(constant.value, Decimal):
        if value.type.precision <= _FLOAT_DIGITS:
            return Value(LiteralValue(float(constant.value), type_.not_null()), type_.not_null())
        return None
    return value if value.type.kind == type_.kind else None


def _check_range(text: SqlText, node: exp.Expression, value: Value, what: str, type_: ColumnType) -> None:
    """Raise SqlError for a constant that is out of the range of whole numbers."""
    number = value.expr.value if isinstance(value.expr, LiteralValue) else None
    if type_.kind == "int" and isinstance(number, Decimal) and not -(1 << 63) <= number < 1 << 63:
        raise text.error(node, f"{what}: {number} is no int, which has 64 bits")


def _typed(text: SqlText, node: exp.Expression, value: Value, what: str, type_: ColumnType) -> Value:
    """Return a value as one of a column; raises SqlError for one that can be none."""
    kinds = {value.type.kind, type_.kind}
    if not value.is_untyped and value.text is None and value.type.kind != type_.kind:
        if not kinds <= {"int", "float", "decimal"} and kinds != {"date", "timestamp"} and "any" not in kinds:
            raise text.error(node, f"{what} is {type_.not_null()}, and the value is {value.type.not_null()}")
    try:
        return as_type(value, type_)
    except ExpressionError as error:
        raise text.error(node, f"{what}: {str(error).partition(chr(10))[0]}") from None


def assigned(
    text: SqlText,
    node: exp.Expression,
    relation: Relation,
    names: AttributeNames,
    target: Sequence[Column],
    title: str,
    first: int = 0,
) -> Relation:
    """Return the columns of a relation, behind the first `kept`, as values of the columns `target`."""
    attributes = relation.attributes
    if len(attributes) - first != len(target):
        raise text.error(
            node, f"{title}: the query has {len(attributes) - first} columns, {len(target)} would fit"
        )
    outputs = [(each, value_of(each).expr) for each in attributes[:first]]
    for attribute, column in zip(attributes[first:], target, strict=True):
        value = _typed(text, node, value_of(attribute), f"{title}: the column {column.name}", column.type)
        outputs.append((names.attribute(attribute.label, value.type), value.expr))
    return ProjectionOf(relation, tuple(outputs), site=relation.site)
