"""now() and CURRENT_DATE: conditions on times that begin and cease to hold as time passes.

A comparison of a time with now() bounds the time in which a row is there. now() may be moved by a constant
interval, and cut to its day, so the bound can be solved for now():

    floor(now + inner, grain) + outer >= time     ⟺     now >= ceil(time - outer, grain) - inner

The clock that says when it is now is that of the epochs; it comes in when relations become collections.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final, NamedTuple

from sqlglot import exp

from ....columns.column_types import timestamp
from ....errors import SqlError
from ....expressions.expression import Expr
from ...algebra.relations import PeriodBound
from ..texts import SqlText
from .types import DAY_MICROS, interval_of
from .values import Value, as_type, computed

__all__ = ["bounds_of", "is_now", "misplaced", "reads_now"]

_Read = Callable[[exp.Expression], Value]

_TURNED: Final[dict[type[exp.Expression], type[exp.Expression]]] = {
    exp.LT: exp.GT, exp.LTE: exp.GTE, exp.GT: exp.LT, exp.GTE: exp.LTE,
}  # fmt: skip
_HOW = "compare it with a time in WHERE, HAVING or QUALIFY, as in at > now() - INTERVAL '1' HOUR"


class _Moment(NamedTuple):
    """floor(now + inner, grain) + outer, in microseconds."""

    inner: int = 0
    grain: int = 1
    outer: int = 0


def is_now(node: exp.Expression) -> bool:
    """Return True for now(), CURRENT_TIMESTAMP, CURRENT_DATE and today()."""
    if isinstance(node, exp.Anonymous):
        return node.name.lower() in ("now", "today") and not node.expressions
    return isinstance(node, exp.CurrentTimestamp | exp.CurrentDate)


def reads_now(node: exp.Expression) -> bool:
    """Return True if an expression has now() in it, subqueries apart."""
    if isinstance(node, exp.Query | exp.Subquery):
        return False
    return is_now(node) or any(reads_now(each) for each in node.iter_expressions())


def misplaced(text: SqlText, node: exp.Expression) -> SqlError:
    """Return the error of a now() that stands anywhere else."""
    return text.error(node, f"{text.written(node)} cannot stand here: {_HOW}")


def bounds_of(text: SqlText, node: exp.Expression, read: _Read) -> Iterator[PeriodBound]:
    """Yield the bounds that a comparison with now() sets; raises SqlError for another condition."""
    if isinstance(node, exp.Paren):
        text.parts_of(node, "this")
        yield from bounds_of(text, node.this, read)
    elif isinstance(node, exp.Between):
        text.parts_of(node, "this", "low", "high")
        yield _bound(text, exp.GTE, node.this, node.args["low"], node, read)
        yield _bound(text, exp.LTE, node.this, node.args["high"], node, read)
    elif isinstance(node, exp.EQ):
        text.parts_of(node, "this", "expression")
        for op in (exp.GTE, exp.LTE):
            yield _bound(text, op, node.this, node.args["expression"], node, read)
    elif type(node) in _TURNED:
        text.parts_of(node, "this", "expression")
        yield _bound(text, type(node), node.this, node.args["expression"], node, read)
    else:
        at = next(each for each in node.walk() if isinstance(each, exp.Expression) and is_now(each))
        raise text.error(
            at, f"{text.written(node)}: {text.written(at)} is compared by =, <, <=, >, >= alone; {_HOW}"
        )


def _bound(  # both sides, and where they stand
    text: SqlText, op: type[exp.Expression], left: exp.Expression, right: exp.Expression,
    node: exp.Expression, read: _Read,
) -> PeriodBound:  # fmt: skip
    if reads_now(right):
        left, right, op = right, left, _TURNED[op]
    if reads_now(right):
        raise text.error(right, f"{text.written(node)}: now() stands on one side alone")
    if not reads_now(left):
        raise text.error(node, f"{text.written(node)}: write each comparison with now() by itself")
    moment, time = _moment(text, left), read(right)
    if time.text is None and time.type.kind not in ("date", "timestamp"):
        raise text.error(right, f"{text.written(right)} is {time.type}, and no time")
    time = as_type(time, timestamp)
    # The bound is a microsecond later for now > time, and for now <= time, which ends behind it.
    later = int(op in (exp.GT, exp.LTE))

    def bound(expr: Expr) -> Expr:
        micros = expr.cast("int") + (later - moment.outer)
        if moment.grain > 1:
            micros = -(-micros // moment.grain) * moment.grain
        return micros - moment.inner if moment.inner else micros

    return PeriodBound(computed(bound, time).expr, op in (exp.GT, exp.GTE))


def _moment(text: SqlText, node: exp.Expression) -> _Moment:
    if isinstance(node, exp.Paren):
        text.parts_of(node, "this")
        return _moment(text, node.this)
    if is_now(node):
        text.parts_of(node, *(("this", "expressions") if isinstance(node, exp.Anonymous) else ()))
        is_day = isinstance(node, exp.CurrentDate) or node.name.lower() == "today"
        return _Moment(grain=DAY_MICROS if is_day else 1)
    if isinstance(node, exp.Cast | exp.TryCast) and isinstance(node.to, exp.DataType):
        moment, to = _moment(text, node.this), node.to.this.value
        if to == "DATE" and moment.grain == 1:
            return _Moment(moment.inner + moment.outer, DAY_MICROS)
        if to.startswith("TIMESTAMP") or (to == "DATE" and moment.outer % DAY_MICROS == 0):
            return moment
    elif isinstance(node, exp.Add | exp.Sub):
        text.parts_of(node, "this", "expression")
        sign, amount = (1 if isinstance(node, exp.Add) else -1), node.args["expression"]
        moment = _moment(text, node.this)
        return moment._replace(outer=moment.outer + sign * _amount(text, amount, moment))
    elif isinstance(node, exp.TsOrDsAdd | exp.DateAdd | exp.DateSub):
        text.parts_of(node, "this", "expression", "unit")
        unit = node.args.get("unit")
        if unit is None or unit.name.upper() == "DAY":
            sign, moment = (-1 if isinstance(node, exp.DateSub) else 1), _moment(text, node.this)
            if moment.grain == 1:
                moment = _Moment(moment.inner + moment.outer, DAY_MICROS)
            return moment._replace(
                outer=moment.outer + sign * _days(text, node.args["expression"]) * DAY_MICROS
            )
    raise text.error(node, f"{text.written(node)}: now() is moved by a constant interval alone; {_HOW}")


def _amount(text: SqlText, node: exp.Expression, moment: _Moment) -> int:
    if isinstance(node, exp.Interval):
        length = interval_of(text, node)
        if length.months:
            raise text.error(
                node,
                f"{text.written(node)}: months differ in length; write at + INTERVAL '1' MONTH",
            )
        return length.micros
    if moment.grain == 1:
        raise text.error(node, f"{text.written(node)}: now() is moved by a constant interval alone; {_HOW}")
    return _days(text, node) * DAY_MICROS


def _days(text: SqlText, node: exp.Expression) -> int:
    if isinstance(node, exp.Neg | exp.Paren):
        return (-1 if isinstance(node, exp.Neg) else 1) * _days(text, node.this)
    if isinstance(node, exp.Mul):
        return _days(text, node.this) * _days(text, node.args["expression"])
    if not isinstance(node, exp.Literal) or node.args.get("is_string") or not str(node.this).isdigit():
        raise text.error(node, f"{text.written(node)}: a number of days is a constant here")
    return int(str(node.this))
