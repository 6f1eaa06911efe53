"""Expressions of SQL: operators, CASE, IN and their like. Functions are in `functions.py`, subqueries and
aggregates come in by the readers of `Expressions`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from decimal import Decimal
from functools import partial
from typing import Protocol

from sqlglot import exp

from timely.user_code.call_site import at_site

from ....columns.column_types import boolean, integer
from ....errors import ExpressionError, SchemaError, SqlError
from ....expressions.calls.catalogued import bround, unix_seconds
from ....expressions.calls.composed import timestamp_seconds
from ....expressions.expression import Expr, LiteralValue, lit, when
from ...algebra.attributes import AttributeNames
from ..texts import SqlText, children_of
from .arithmetic import divided, minus, plus, remainder, times, whole_quotient
from .functions import FUNCTIONS, called, named_function
from .moments import is_now, misplaced
from .named import element_of, field_of, list_of
from .scopes import AmbiguousName
from .stages import Stage
from .types import column_type, interval_of, later
from .values import Value, alike, as_type, computed, met, truth

__all__ = ["Expressions", "Special", "chosen"]


class Special(Protocol):
    """Reads what an expression may have in it beside values: subqueries, aggregates, windows."""

    def special(self, node: exp.Expression, stage: Stage) -> Value | None:
        """Return the value of such a node; None for a node of another kind."""


class Expressions:
    """Reads expressions of one text."""

    def __init__(self, text: SqlText, names: AttributeNames, special: Special) -> None:
        self.text, self.names = text, names
        self._special = special

    def read(self, node: exp.Expression, stage: Stage) -> Value:
        """Return an expression; raises SqlError, with its place, for what has no meaning."""
        with at_site([self.text.site(node)]):
            return self._read(node, stage)

    def _read(self, node: exp.Expression, stage: Stage) -> Value:
        reader = _READERS.get(type(node))
        try:
            outcome = self._special.special(node, stage)
            if outcome is not None:
                return outcome
            if reader is not None:
                return reader(self, node, stage)
            if type(node) in FUNCTIONS:
                return called(self.text, node, partial(self.read, stage=stage))
            if is_now(node):
                raise misplaced(self.text, node)
            if isinstance(node, exp.Anonymous):
                return named_function(self.text, node, partial(self.read, stage=stage))
        except (ExpressionError, SchemaError) as error:
            raise self._misfit(node, error) from None
        except RecursionError:
            raise self.text.error(node, "is nested too deeply") from None
        if isinstance(node, exp.Explode | exp.Posexplode | exp.Unnest):
            raise self.text.error(
                node,
                f"{self.text.written(node)} makes rows: it stands alone in SELECT, or in FROM: FROM t, "
                "UNNEST(t.x) AS u (y), or Spark's FROM t LATERAL VIEW EXPLODE(t.x) u AS y",
            )
        if isinstance(node, exp.Func):
            raise self.text.error(node, f"{self.text.written(node)}: there is no function {node.sql_name()}")
        raise self.text.error(node, f"{self.text.written(node)} is not supported")

    def truth(self, node: exp.Expression, stage: Stage) -> Value:
        """Return an expression that is a condition."""
        value = self.read(node, stage)
        try:
            return truth(value)
        except ExpressionError as error:
            raise self.text.error(node, f"{self.text.written(node)} {error}") from None

    def _misfit(self, node: exp.Expression, error: Exception) -> SqlError:
        message = str(error).partition("\n")[0]
        return self.text.error(node, f"{self.text.written(node)}: {message}")

    def column(self, node: exp.Expression, stage: Stage) -> Value:
        """Return what the name of a column means."""
        self.text.parts_of(node, "this", "table")
        if isinstance(node.this, exp.Star):
            raise self.text.error(node, "* stands for columns of SELECT, and for rows in count(*)")
        label, table = node.name, node.text("table") or None
        try:
            outcome = stage.scope.own(label, table)
            if outcome is None and table is None:
                outcome = next(
                    (value for name, value in stage.aliases.items() if name == label.lower()), None
                )
            outcome = outcome or stage.scope.column(label, table)
        except AmbiguousName:
            told = f"{label} is a column of more than one table here: write which, as in t.{label}"
            raise self.text.error(node, told) from None
        if outcome is not None:
            return outcome
        if table is not None and not stage.scope.has_table(table):
            try:
                struct = stage.scope.column(table, None)
            except AmbiguousName:
                struct = None
            field = None if struct is None else field_of(struct, label)
            if field is not None:
                return field
            raise self.text.error(node, f"{table}.{label}: there is no table {table} in FROM")
        there = ", ".join(stage.scope.labels()[:20]) or "none"
        raise self.text.error(node, f"there is no column {self.text.written(node)}; there are: {there}")


_Reader = Callable[[Expressions, exp.Expression, Stage], Value]


def _literal(reader: Expressions, node: exp.Expression, stage: Stage) -> Value:
    text = str(node.this)
    if node.args.get("is_string"):
        return _constant(lit(text))
    try:
        if text.isdigit():
            # A whole number of more than 63 bits is a decimal, as in the three dialects.
            is_int = int(text) < 1 << 63
            return _constant(lit(int(text) if is_int else Decimal(text)))
        if "e" in text.lower():
            if math.isinf(float(text)):
                raise ExpressionError
            return _constant(lit(float(text)))
        return _constant(lit(Decimal(text)))
    except (ExpressionError, ValueError, ArithmeticError):
        raise reader.text.error(node, f"{text:.40} is no number that a column holds") from None


def _constant(value: LiteralValue) -> Value:
    return Value(value, value.type)


def _both(reader: Expressions, node: exp.Expression, stage: Stage) -> list[Value]:
    reader.text.parts_of(node, "this", "expression")
    return [reader.read(node.this, stage), reader.read(node.args["expression"], stage)]


def _compared(make: Callable[[Expr, Expr], Expr]) -> _Reader:
    def read(reader: Expressions, node: exp.Expression, stage: Stage) -> Value:
        left, right = _both(reader, node, stage)
        if isinstance(node.this, exp.Tuple) or isinstance(node.args["expression"], exp.Tuple):
            raise reader.text.error(node, f"{reader.text.written(node)}: compare the columns one by one")
        return computed(make, *_typed(met([left, right])))

    return read


def _typed(values: list[Value]) -> list[Value]:
    """Return the values with a type for each NULL."""
    return [Value(lit(None, each.type), each.type) if each.is_untyped else each for each in values]


def _junction(op: type[exp.Expression], make: Callable[[Expr, Expr], Expr]) -> _Reader:
    """Return the reader of a chain of AND or OR: a balanced tree, since chains may be long."""

    def read(reader: Expressions, node: exp.Expression, stage: Stage) -> Value:
        parts: list[exp.Expression] = []
        waiting = [node]
        while waiting:
            top = waiting.pop()
            if type(top) is op:
                reader.text.parts_of(top, "this", "expression")
                waiting += [top.args["expression"], top.this]
            else:
                parts.append(top)
        values = [reader.truth(part, stage) for part in parts]
        return _balanced(make, values)

    return read


def _balanced(make: Callable[[Expr, Expr], Expr], values: list[Value]) -> Value:
    """Return a chain of an operator as a balanced tree."""
    while len(values) > 1:
        pairs = [values[at : at + 2] for at in range(0, len(values), 2)]
        values = [pair[0] if len(pair) == 1 else computed(make, *pair) for pair in pairs]
    return values[0]


def _not(reader: Expressions, node: exp.Expression, stage: Stage) -> Value:
    reader.text.parts_of(node, "this")
    return computed(lambda value: ~value, reader.truth(node.this, stage))


def _paren(reader: Expressions, node: exp.Expression, stage: Stage) -> Value:
    reader.text.parts_of(node, "this")
    return reader.read(node.this, stage)


def _arithmetic(make: Callable[[str, Value, Value], Value]) -> _Reader:
    def read(reader: Expressions, node: exp.Expression, stage: Stage) -> Value:
        reader.text.parts_of(node, "this", "expression", "typed", "safe")
        left, right = reader.read(node.this, stage), reader.read(node.args["expression"], stage)
        return make(reader.text.dialect, left, right)

    return read


def _sum(sign: int) -> _Reader:
    def read(reader: Expressions, node: exp.Expression, stage: Stage) -> Value:
        reader.text.parts_of(node, "this", "expression")
        left, right = node.this, node.args["expression"]
        if isinstance(left, exp.Interval) and sign > 0:
            left, right = right, left
        if isinstance(right, exp.Interval):
            return later(reader.read(left, stage), interval_of(reader.text, right), sign)
        make = plus if sign > 0 else minus
        return make(reader.text.dialect, reader.read(left, stage), reader.read(right, stage))

    return read


def _negative(reader: Expressions, node: exp.Expression, stage: Stage) -> Value:
    reader.text.parts_of(node, "this")
    value = reader.read(node.this, stage)
    if isinstance(value.expr, LiteralValue) and isinstance(value.expr.value, int | float | Decimal):
        return _constant(lit(_opposite(value.expr.value)))
    return computed(lambda expr: -expr, _number(value))


def _opposite(number: float | Decimal) -> float | Decimal:
    """Return -number, exactly: a minus before a Decimal rounds to 28 digits. -2⁶³ is an int."""
    if not isinstance(number, Decimal):
        return -number
    return -(1 << 63) if number == 1 << 63 else number.copy_negate()


def _number(value: Value) -> Value:
    return as_type(value, integer) if value.is_untyped else value


def _boolean(reader: Expressions, node: exp.Expression, stage: Stage) -> Value:
    return _constant(lit(bool(node.this)))


def _null(reader: Expressions, node: exp.Expression, stage: Stage) -> Value:
    value = lit(None, "int")
    return Value(value, value.type, is_untyped=True)


def _cast(reader: Expressions, node: exp.Expression, stage: Stage) -> Value:
    reader.text.parts_of(node, "this", "to", "safe")
    value = reader.read(node.this, stage)
    type_ = column_type(reader.text, node.args["to"])
    is_list = value.is_untyped or value.type.kind in ("any", "array")
    if isinstance(node.args["to"], exp.DataType) and node.args["to"].this.value == "ARRAY" and not is_list:
        raise reader.text.error(node, f"{reader.text.written(node)}: {value.type} is no list")
    tries = isinstance(node, exp.TryCast) and (reader.text.dialect != "spark" or bool(node.args.get("safe")))
    if not tries and value.text is not None and type_.kind in ("date", "timestamp"):
        return as_type(value, type_)
    if value.is_untyped:
        return as_type(value, type_)
    if {value.type.kind, type_.kind} == {"timestamp", "int"}:
        return _seconds(reader, node, value)
    if type_.kind == "int" and reader.text.dialect != "spark" and value.type.kind in ("float", "decimal"):
        value = computed(lambda expr: bround(expr) if value.type.kind == "float" else expr.round(0), value)
    return computed(lambda expr: expr.try_cast(type_) if tries else expr.cast(type_), value)


def _seconds(reader: Expressions, node: exp.Expression, value: Value) -> Value:
    """Return a time as its seconds since 1970, or such seconds as a time: our own cast has microseconds."""
    if reader.text.dialect != "spark":
        written, dialect = reader.text.written(node), reader.text.dialect
        raise reader.text.error(
            node,
            f"{written}: a time is no number in {dialect}. The dialect spark has unix_seconds(time) and "
            "timestamp_seconds(number)",
        )
    return computed(unix_seconds if value.type.kind == "timestamp" else timestamp_seconds, value)


def _between(reader: Expressions, node: exp.Expression, stage: Stage) -> Value:
    reader.text.parts_of(node, "this", "low", "high")
    parts = [reader.read(part, stage) for part in (node.this, node.args["low"], node.args["high"])]
    value, low, high = _typed(met(parts))
    return computed(
        lambda a, b: a & b, computed(lambda a, b: a >= b, value, low), computed(_at_most, value, high)
    )


def _at_most(one: Expr, other: Expr) -> Expr:
    return one <= other


def _in(reader: Expressions, node: exp.Expression, stage: Stage) -> Value:
    reader.text.parts_of(node, "this", "expressions")
    value, *others = met(
        [reader.read(each, stage) for each in (node.this, *children_of(node, "expressions"))]
    )
    if not others:
        raise reader.text.error(node, f"{reader.text.written(node)}: there is nothing in the list")
    if value.is_untyped:
        return Value(lit(None, "bool"), boolean.or_null())
    entry = [each for each in others if not _is_null(each)]
    constants = [each.expr.value for each in entry if isinstance(each.expr, LiteralValue)]
    if entry and len(constants) == len(entry) and len({each.type.kind for each in (value, *entry)}) == 1:
        outcome = computed(lambda expr: expr.is_in(constants), value)
    else:
        pairs = [computed(lambda a, b: a == b, value, each) for each in entry]
        pairs = pairs or [computed(lambda expr: expr.is_null() & lit(False), value)]
        outcome = _balanced(lambda a, b: a | b, pairs)
    if len(entry) < len(others):
        outcome = computed(lambda a, b: a | b, outcome, Value(lit(None, "bool"), boolean.or_null()))
    return outcome


def _is_null(value: Value) -> bool:
    return value.is_untyped or (isinstance(value.expr, LiteralValue) and value.expr.value is None)


def _like(reader: Expressions, node: exp.Expression, stage: Stage) -> Value:
    reader.text.parts_of(node, "this", "expression", "negate")
    value, pattern = (reader.read(node.args[name], stage) for name in ("this", "expression"))
    wanted = pattern.text
    if wanted is None or value.type.kind != "string" or value.is_untyped:
        raise reader.text.error(node, f"{reader.text.written(node)} takes a text, and a constant pattern")
    if isinstance(node, exp.RegexpLike):
        outcome = computed(lambda expr: expr.str.rlike(wanted), value)
    elif isinstance(node, exp.ILike):
        outcome = computed(lambda expr: expr.str.lower().str.like(wanted.lower()), value)
    else:
        outcome = computed(lambda expr: expr.str.like(wanted), value)
    return computed(lambda expr: ~expr, outcome) if node.args.get("negate") else outcome


def _is(reader: Expressions, node: exp.Expression, stage: Stage) -> Value:
    reader.text.parts_of(node, "this", "expression", "negate")
    value, what = reader.read(node.this, stage), node.args["expression"]
    if isinstance(what, exp.Null):
        outcome = computed(lambda expr: expr.is_null(), value)
    elif isinstance(what, exp.Boolean):
        wanted = bool(what.this)
        outcome = computed(lambda expr: (expr == wanted).fill_null(False), truth(value))
    else:
        raise reader.text.error(
            node, f"{reader.text.written(node)}: write IS NULL, IS TRUE or IS DISTINCT FROM"
        )
    return computed(lambda expr: ~expr, outcome) if node.args.get("negate") else outcome


def _same(negated: bool) -> _Reader:
    def read(reader: Expressions, node: exp.Expression, stage: Stage) -> Value:
        left, right = _typed(met(_both(reader, node, stage)))
        same = computed(lambda a, b: a.eq_null_safe(b), left, right)
        return computed(lambda expr: ~expr, same) if negated else same

    return read


def _case(reader: Expressions, node: exp.Expression, stage: Stage) -> Value:
    reader.text.parts_of(node, "this", "ifs", "default")
    tests: list[Value] = []
    results: list[Value] = []
    for branch in children_of(node, "ifs"):
        reader.text.parts_of(branch, "this", "true")
        if node.args.get("this") is None:
            tests.append(reader.truth(branch.this, stage))
        else:
            pair = _typed(met([reader.read(node.this, stage), reader.read(branch.this, stage)]))
            tests.append(computed(lambda a, b: a == b, *pair))
        results.append(reader.read(branch.args["true"], stage))
    default = node.args.get("default")
    results.append(_null(reader, node, stage) if default is None else reader.read(default, stage))
    return chosen(tests, results)


def _if(reader: Expressions, node: exp.Expression, stage: Stage) -> Value:
    reader.text.parts_of(node, "this", "true", "false")
    otherwise = node.args.get("false")
    other = _null(reader, node, stage) if otherwise is None else reader.read(otherwise, stage)
    return chosen([reader.truth(node.this, stage)], [reader.read(node.args["true"], stage), other])


def chosen(tests: list[Value], results: list[Value]) -> Value:
    """Return CASE WHEN: the last of `results` is that of ELSE."""
    if all(each.is_untyped for each in results):
        return results[0]
    results = _typed(alike(results))

    def built(*parts: Expr) -> Expr:
        conditions, values = parts[: len(tests)], parts[len(tests) :]
        branches = when(conditions[0]).then(values[0])
        for condition, value in zip(conditions[1:], values[1:-1], strict=True):
            branches = branches.when(condition).then(value)
        return branches.otherwise(values[-1])

    return computed(built, *tests, *results)


def _element(reader: Expressions, node: exp.Expression, stage: Stage) -> Value:
    return element_of(reader.text, node, partial(reader.read, stage=stage))


def _list(reader: Expressions, node: exp.Expression, stage: Stage) -> Value:
    return list_of(reader.text, node, partial(reader.read, stage=stage))


def _column(reader: Expressions, node: exp.Expression, stage: Stage) -> Value:
    return reader.column(node, stage)


_READERS: Mapping[type[exp.Expression], _Reader] = {
    exp.Column: _column,
    exp.Literal: _literal,
    exp.Boolean: _boolean,
    exp.Null: _null,
    exp.Paren: _paren,
    exp.And: _junction(exp.And, lambda a, b: a & b),
    exp.Or: _junction(exp.Or, lambda a, b: a | b),
    exp.Not: _not,
    exp.EQ: _compared(lambda a, b: a == b),
    exp.NEQ: _compared(lambda a, b: a != b),
    exp.LT: _compared(lambda a, b: a < b),
    exp.LTE: _compared(lambda a, b: a <= b),
    exp.GT: _compared(lambda a, b: a > b),
    exp.GTE: _compared(lambda a, b: a >= b),
    exp.NullSafeEQ: _same(negated=False),
    exp.NullSafeNEQ: _same(negated=True),
    exp.Add: _sum(1),
    exp.Sub: _sum(-1),
    exp.Mul: _arithmetic(times),
    exp.Div: _arithmetic(divided),
    exp.IntDiv: _arithmetic(whole_quotient),
    exp.Mod: _arithmetic(remainder),
    exp.Neg: _negative,
    exp.Cast: _cast,
    exp.TryCast: _cast,
    exp.Between: _between,
    exp.In: _in,
    exp.Like: _like,
    exp.ILike: _like,
    exp.RegexpLike: _like,
    exp.Is: _is,
    exp.Case: _case,
    exp.If: _if,
    exp.Bracket: _element,
    exp.Array: _list,
}
