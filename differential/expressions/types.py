"""Which type does an expression have over given columns, and is it well formed at all?

Int and float mix, to float; nothing else mixes. A result is nullable if an operand is, but for `is_null`,
`fill_null` with a value, and a `when` with an `otherwise`; casting never takes nullability away,
`fill_null` does.

    + -                         numbers; timestamp ± int (µs) → timestamp; timestamp - timestamp → int
    * // % negative abs         numbers
    /                           numbers, to float
    == != is_in                 values of one kind
    < <= > >= min_of max_of     values of one ordered kind
    & | ~                       bool

Every error names the operator in question, as the user wrote it, and the line that built it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from differential.columns.column_types import ColumnType, Kind, boolean, floating, integer, timestamp
from differential.columns.schema import Schema
from differential.errors import ExpressionError
from differential.expressions.text import text_of
from differential.expressions.tree import ColumnTree, LiteralTree, OperationTree, Tree
from timely.user_code.call_site import call_site

__all__ = ["check_condition", "type_of"]

_CASTS: Final[frozenset[tuple[Kind, Kind]]] = frozenset(
    {
        ("int", "float"),
        ("float", "int"),
        ("bool", "int"),
        ("bool", "float"),
        ("int", "bool"),
        ("int", "timestamp"),
        ("timestamp", "int"),
    }
)
_ORDERING: Final = frozenset(("<", "<=", ">", ">=", "min_of", "max_of"))


def type_of(expr: Tree, schema: Schema) -> ColumnType:
    """The type of `expr` over the columns of `schema`; raises ExpressionError if it has none."""
    if isinstance(expr, ColumnTree):
        if expr.name not in schema:
            raise ExpressionError(
                f"there is no column {expr.name!r} ({expr.site}); there are: {schema}."
                + _similar(expr.name, schema.names)
            )
        return schema[expr.name].type
    if isinstance(expr, LiteralTree):
        return expr.type
    assert isinstance(expr, OperationTree)
    types = [type_of(operand, schema) for operand in expr.operands]
    if expr.op in ("+", "-", "*", "/", "//", "%"):
        return _arithmetic(expr, types)
    if expr.op in ("==", "!=", "<", "<=", ">", ">=", "is_in"):
        return boolean.or_null(_common(expr, types).nullable)
    if expr.op in ("&", "|", "~"):
        return boolean.or_null(_all_of(expr, types, "bool"))
    if expr.op in ("negative", "abs"):
        if not types[0].is_number:
            raise _error(expr, types, "takes a number")
        return types[0]
    return _special(expr, types)


def check_condition(expr: Tree, schema: Schema) -> None:
    """Raises ExpressionError if `filter(expr)` has no meaning over the columns of `schema`."""
    type_ = type_of(expr, schema)
    if type_.kind != "bool":
        raise ExpressionError(
            f"filter({text_of(expr)}) ({call_site()}) needs a condition, but this is of type {type_}."
        )


def _special(expr: OperationTree, types: Sequence[ColumnType]) -> ColumnType:
    """The type of an operator with rules of its own."""
    if expr.op == "is_null":
        return boolean
    if expr.op == "fill_null":
        return ColumnType(_common(expr, types).kind, types[1].nullable)
    if expr.op == "cast":
        assert expr.to is not None
        if types[0].kind != expr.to.kind and (types[0].kind, expr.to.kind) not in _CASTS:
            possible = ", ".join(f"{source} → {target}" for source, target in sorted(_CASTS))
            raise _error(expr, types, f"is not possible; casts are: {possible}")
        return expr.to.or_null(types[0].nullable)
    if expr.op == "when":
        tests, values = list(types[:-1:2]), list(types[1::2])
        _all_of(expr, tests, "bool")
        if len(types) % 2:
            values.append(types[-1])
        return _common(expr, values).or_null(len(types) % 2 == 0)
    assert expr.op in ("min_of", "max_of")
    return _common(expr, types)


def _arithmetic(expr: OperationTree, types: Sequence[ColumnType]) -> ColumnType:
    left, right = types
    nullable = left.nullable or right.nullable
    kinds = (left.kind, right.kind)
    if left.is_number and right.is_number:
        return (floating if expr.op == "/" or "float" in kinds else integer).or_null(nullable)
    if kinds == ("timestamp", "timestamp") and expr.op == "-":
        return integer.or_null(nullable)
    if (kinds == ("timestamp", "int") and expr.op in ("+", "-")) or (
        kinds == ("int", "timestamp") and expr.op == "+"
    ):
        return timestamp.or_null(nullable)
    raise _error(expr, types, "takes numbers, or timestamps and microseconds")


def _common(expr: OperationTree, types: Sequence[ColumnType]) -> ColumnType:
    """The one type that all operands have; int and float together are float."""
    nullable = any(type_.nullable for type_ in types)
    kinds = {type_.kind for type_ in types}
    kind: Kind = types[0].kind if len(kinds) == 1 else "float"
    if len(kinds) > 1 and kinds != {"int", "float"}:
        raise _error(expr, types, "takes values of one type")
    if expr.op in _ORDERING and not ColumnType(kind).is_ordered:
        raise _error(
            expr,
            types,
            "needs an order; strings, bytes and any are stored as hashes and can only be tested for equality",
        )
    return ColumnType(kind, nullable)


def _all_of(expr: OperationTree, types: Sequence[ColumnType], kind: Kind) -> bool:
    """Whether one of `types` is nullable; raises unless all are of `kind`."""
    if any(type_.kind != kind for type_ in types):
        raise _error(expr, types, f"takes conditions, of type {kind}")
    return any(type_.nullable for type_ in types)


def _error(expr: OperationTree, types: Sequence[ColumnType], why: str) -> ExpressionError:
    parts = list(expr.operands[:-1:2]) if expr.op == "when" and "conditions" in why else list(expr.operands)
    if expr.op == "when" and "conditions" not in why:
        parts = [*expr.operands[1::2], *([expr.operands[-1]] if len(expr.operands) % 2 else [])]
    listed = ", ".join(f"{text_of(part)} is {type_}" for part, type_ in zip(parts, types, strict=True))
    op = "-" if expr.op == "negative" else expr.op
    return ExpressionError(f"in {text_of(expr)} ({expr.site}): {op} {why}; {listed}.")


def _similar(name: str, names: Sequence[str]) -> str:
    import difflib

    found = difflib.get_close_matches(name, names, n=1)
    return f" Did you mean {found[0]!r}?" if found else ""
