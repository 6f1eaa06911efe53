"""Functions that a text calls by Spark's names.

The name stands for one of our functions, with a form for each number of operands: `e` is any expression, `k`
a constant. Operands are read as written; those of SQL that only fit after a cast which Spark has, too, are
cast: NULL, a constant text that is a time, whole numbers and decimals beside floats.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Final

from sqlglot import exp

from ....columns.column_types import (
    DECIMAL_DIGITS_MAX,
    ColumnType,
    boolean,
    date,
    decimal,
    floating,
    integer,
    string,
    timestamp,
)
from ....columns.foreign.type_names import Kind
from ....errors import ExpressionError
from ....expressions.calls import catalogued, composed
from ....expressions.expression import Expr, LiteralValue, lit, when
from ...spark_functions.by_class import SparkFunction
from ...spark_functions.by_name import CASTS, IN_TEXTS, NAMED
from ..texts import SqlText, children_of
from .values import Value, alike, as_type, computed

__all__ = ["call_by_name", "element_of", "field_of", "list_of"]

_Read = Callable[[exp.Expression], Value]

_TEXT_OR_TIME: Final[tuple[Kind, ...]] = ("string", "date", "timestamp")
_TIME: Final[tuple[Kind, ...]] = ("date", "timestamp")
_TAKES: Final[Mapping[str, tuple[Kind, ...]]] = {
    **dict.fromkeys(("to_date", "to_timestamp", "date_trunc", "trunc"), _TEXT_OR_TIME),
    **dict.fromkeys(("unix_micros", "unix_millis", "unix_seconds", "unix_timestamp"), _TIME),
    "to_unix_timestamp": _TIME,
    "unix_date": ("date",),
    **dict.fromkeys(("timestamp_micros", "timestamp_millis", "timestamp_seconds", "from_unixtime"), ("int",)),
}
"""What the last expression among the operands may be, where ours would take others in another sense."""

_ALIKE: Final = ("array", "map", "array_repeat", "sequence")
"""Their elements keep their types."""

_NULLS: Final = (string, integer, floating, boolean, date, timestamp)
"""Types of a NULL, in the order in which they are tried."""


def call_by_name(text: SqlText, node: exp.Anonymous, name: str, read: _Read) -> Value | None:
    """Return the value of a function that the dialect has under Spark's name; None for another name."""
    if name not in NAMED[text.dialect]:
        return None
    nodes = children_of(node, "expressions")
    if name == "struct":
        return _struct(nodes, read)
    if name == "named_struct":
        return _named_struct(nodes, read)
    if name in CASTS:
        if len(nodes) != 1:
            raise ExpressionError(f"takes 1 operand, not {len(nodes)}")
        return read(exp.Cast(this=nodes[0].copy(), to=exp.DataType.build(name, dialect="spark")))
    functions = IN_TEXTS[name]
    function = next((each for each in functions if _takes(each, len(nodes))), None)
    if function is None:
        raise ExpressionError(f"takes {_counts(functions)}, not {len(nodes)}")
    form = function.form.replace("?", "")
    operands: list[Value] = []
    constants: dict[int, object] = {}
    for place, each in enumerate(nodes):
        value = read(each)
        if place < len(form) and form[place] == "k":
            constants[place] = _constant(text, each, value)
        else:
            operands.append(value)
    _check(name, len(nodes), operands)
    return _with_types(name, function, operands, constants)


def _takes(function: SparkFunction, count: int) -> bool:
    least = len(function.form.partition("?")[0].replace("*", ""))
    return least <= count and (count <= len(function.form.replace("?", "")) or "*" in function.form)


def _counts(functions: tuple[SparkFunction, ...]) -> str:
    counts = sorted({count for count in range(9) for each in functions if _takes(each, count)})
    many = any("*" in each.form for each in functions)
    told = f"{counts[0]} or more" if many else " or ".join(map(str, counts))
    return f"{told} operand{'' if told == '1' else 's'}"


def _constant(text: SqlText, node: exp.Expression, value: Value) -> object:
    if not isinstance(value.expr, LiteralValue) or value.is_untyped:
        raise text.error(node, f"{text.written(node)}: a constant is needed here")
    return value.expr.value


def _check(name: str, count: int, operands: list[Value]) -> None:
    takes = _TAKES.get(name)
    if name == "unix_timestamp" and count == 2:
        takes = ("string",)
    if takes is None or operands[-1].is_untyped or operands[-1].type.kind in takes:
        return
    is_time_as_text = operands[-1].text is not None and "timestamp" in takes
    if not is_time_as_text:
        raise ExpressionError(f"takes {' or '.join(takes)}; the operand is {operands[-1].type}: cast it")


def _with_types(
    name: str, function: SparkFunction, operands: list[Value], constants: Mapping[int, object]
) -> Value:
    """Return the value over the operands, with casts if it does not take them as they are."""
    count = len(operands) + len(constants)

    def built(*exprs: Expr) -> Expr:
        rest = iter(exprs)
        return function.make(*(constants[at] if at in constants else next(rest) for at in range(count)))

    if name == "map":
        if len(operands) % 2:
            raise ExpressionError("takes pairs of a key and a value")
        pairs = zip(alike(operands[::2]), alike(operands[1::2]), strict=True)
        operands = [_typed(each) for pair in pairs for each in pair]
    elif function.form == "*" and operands:
        operands = [_typed(each) for each in alike(operands)]
        if name == "array":
            operands = _of_one_scale(operands)
    elif name == "concat_ws":
        operands = [_as_text(each) for each in operands]
    elif name == "xxhash64" and any(_is_whole_constant(each) for each in operands):
        raise ExpressionError("hashes whole constants as 32 bits in Spark, and as 64 here: write bigint(1)")
    first: ExpressionError | None = None
    choices = [operands] if name in _ALIKE else _fitting(operands)
    for each in choices:
        try:
            value = computed(built, *each)
        except ExpressionError as error:
            first = first or error
        except (TypeError, ValueError, AttributeError, ArithmeticError):
            raise ExpressionError("takes constants of other types") from None
        else:
            return value
    assert first is not None, "the operands as they are come first"
    raise first


def _fitting(operands: list[Value]) -> Iterator[list[Value]]:
    """Yield the operands as they are, and then with casts that Spark has, too."""
    if any(each.is_untyped for each in operands):
        typed = [each for each in operands if not each.is_untyped]
        types: list[ColumnType] = [*({each.type.not_null() for each in typed} if typed else ()), *_NULLS]
        for type_ in types:
            yield [as_type(each, type_) if each.is_untyped else each for each in operands]
        return
    yield operands
    kinds = {each.type.kind for each in operands}
    if kinds <= {"int", "float", "decimal"}:
        yield [as_type(each, floating) for each in operands]
    if any(each.text is not None for each in operands):
        for type_ in (date, timestamp):
            try:
                yield [as_type(each, type_) if each.text is not None else each for each in operands]
            except ExpressionError:
                return


def _is_whole_constant(value: Value) -> bool:
    return isinstance(value.expr, LiteralValue) and value.type.kind == "int" and not value.is_untyped


def _as_text(value: Value) -> Value:
    if value.is_untyped:
        return as_type(value, string)
    if value.type.kind in ("int", "decimal", "bool", "date"):
        return computed(lambda expr: expr.cast("string"), value)
    return value


def _of_one_scale(values: list[Value]) -> list[Value]:
    """Return values of a list, a decimal among them, as decimals with equal digits."""
    types = [each.type for each in values]
    if {each.kind for each in types} - {"int"} != {"decimal"} or len(
        {each.not_null() for each in types}
    ) == 1:
        return values
    exact = decimal(DECIMAL_DIGITS_MAX, max(each.scale for each in types))
    return [computed(lambda expr: expr.cast(exact), each) for each in values]


def _typed(value: Value) -> Value:
    return Value(lit(None, value.type), value.type) if value.is_untyped else value


def _struct(nodes: list[exp.Expression], read: _Read) -> Value:
    """Return a struct; a field without a name has that of its place, as in Spark."""
    fields: dict[str, Value] = {}
    for place, each in enumerate(nodes, 1):
        is_named = isinstance(each, exp.Alias)
        name = each.alias if is_named else each.name if isinstance(each, exp.Column) else f"col{place}"
        _enter(fields, str(name), read(each.this if is_named else each))
    return _of_fields(fields)


def _named_struct(nodes: list[exp.Expression], read: _Read) -> Value:
    fields: dict[str, Value] = {}
    if len(nodes) % 2:
        raise ExpressionError("takes pairs of a name and a value")
    for name, value in zip(nodes[::2], nodes[1::2], strict=True):
        written = read(name).text
        if written is None:
            raise ExpressionError("takes names that are constant texts")
        _enter(fields, written, read(value))
    return _of_fields(fields)


def _enter(fields: dict[str, Value], name: str, value: Value) -> None:
    if name in fields:
        raise ExpressionError(f"has two fields {name}")
    fields[name] = _typed(value)


def _of_fields(fields: dict[str, Value]) -> Value:
    if not fields:
        raise ExpressionError("takes fields")
    return computed(lambda *exprs: composed.struct(**dict(zip(fields, exprs, strict=True))), *fields.values())


def list_of(text: SqlText, node: exp.Expression, read: _Read) -> Value:
    """Return `[a, b]` of DuckDB, or `ARRAY[a, b]`: the same as Spark's `array(a, b)`."""
    text.parts_of(node, "expressions")
    (function,) = IN_TEXTS["array"]
    return _with_types("array", function, [read(each) for each in children_of(node, "expressions")], {})


def element_of(text: SqlText, node: exp.Expression, read: _Read) -> Value:
    """Return `list[i]`, counted from 0, or `map[key]`, as Spark has them."""
    text.parts_of(node, "this", "expressions")
    nodes = children_of(node, "expressions")
    if text.dialect != "spark" or len(nodes) != 1:
        raise ExpressionError("is read in texts of the dialect spark only, with one place or key")
    value, key = read(node.this), read(nodes[0])
    if value.type.kind == "map":
        return computed(catalogued.try_element_at, value, key)
    if value.type.kind != "array" or key.type.kind != "int" or key.is_untyped:
        raise ExpressionError(f"takes a place of an array, or a key of a map; it is {value.type}[{key.type}]")
    if isinstance(key.expr, LiteralValue) and isinstance(key.expr.value, int) and key.expr.value >= 0:
        place = key.expr.value + 1
        return computed(lambda list_: catalogued.element_at(list_, place), value)
    return computed(
        lambda list_, at: catalogued.element_at(list_, when(at >= 0).then(at + 1).otherwise(0)), value, key
    )


def field_of(struct: Value, name: str) -> Value | None:
    """Return a field of a struct; None if there is none of this name, in any case of letters."""
    names = [each for each in struct.type.names if each.lower() == name.lower()]
    if struct.type.kind != "struct" or len(names) != 1:
        return None
    return computed(lambda expr: expr.list.field(names[0]), struct)
