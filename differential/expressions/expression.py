"""Expressions: what a user can write with columns.

    from differential import col, lit, when

    edges.filter((col.src != col.dst) & col.weight.is_not_null())
         .select(src=col.src, cost=when(col.weight > 10).then(col.weight // 2).otherwise(lit(1)))

An expression is data: frozen, hashable, printed in the form in which it was written, with a stable
`describe()` for plans and fingerprints. It names columns, and belongs to no collection; `type_in(schema)`
returns its type over given columns. Since `==` builds an expression, compare two expressions by
`a.equals(b)`: `bool(a == b)` is refused, and so are `and`, `or`, `not` and `if`. Write `&`, `|`, `~`, with
each side of a comparison in parentheses.

    null      as in SQL: a result is null if an operand is, but for is_null and fill_null; `false & null`
              is false, `true | null` is true; a filter keeps the rows where its condition is true
    int       a row whose result leaves 64 bits fails (RowError); // and % round down, as in Python
    zero      // and % of ints by 0 fail, too; / makes inf or nan. Choose by `when(b != 0).then(a // b)`;
              `when` and `fill_null` compute a value only in rows that take it, & and | always both sides
    float     NaN equals itself and is greater than every number, so that equal rows stay equal
    string    and bytes: compared and ordered as their values are, character by character
    any       compared with == != is_in only; cast values that come out of one
    decimal   exact, with the digits of Spark; a result that needs more than its type has fails

Functions are methods, as in Polars (`col.name.str.upper()`, `col.t.dt.year()`, `col.x.round(2)`), and
functions, as in PySpark (`dd.upper(col.name)`); both come from one catalogue (`functions/catalogue.py`).

Printing is in `text.py`, types in `types.py`, evaluation in `evaluation.py`.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import takewhile
from typing import Final, Literal, NoReturn, TypeAlias, overload

from differential.columns.column_types import ColumnType, TypeSpec, as_column_type
from differential.columns.schema import Schema
from differential.errors import ExpressionError
from differential.expressions.functions.namespaces import (
    ListMethods,
    NumberMethods,
    StringMethods,
    TimeMethods,
)
from differential.expressions.functions.refusals import ExprRefusals, check_no_bool
from differential.expressions.literals import Scalar, constant_of, constants_in
from differential.expressions.text import receiver_text, text_of
from differential.expressions.tree import BinaryOp, ColumnTree, LiteralTree, Op, OperationTree, Tree
from differential.expressions.types import type_of
from differential.other_spellings.answers import item_of_expression
from differential.other_spellings.of_expressions import ExprSpellings
from differential.other_spellings.table import EXPRESSIONS
from timely.user_code.call_site import call_site
from timely.user_code.offered import Offered

__all__ = [
    "DEPTH_MAX",
    "SIZE_MAX",
    "Aliased",
    "BinaryOp",
    "ColumnRef",
    "Columns",
    "Expr",
    "ExprLike",
    "LiteralValue",
    "Op",
    "OpenWhen",
    "Operation",
    "Ordering",
    "When",
    "as_condition",
    "as_expr",
    "call_function",
    "check_columns",
    "coalesce",
    "col",
    "greatest",
    "least",
    "lit",
    "max_of",
    "min_of",
    "when",
]


SIZE_MAX: Final = 100_000
"""Most operators, columns and constants of an expression, written out: `x = x + x` doubles them."""

DEPTH_MAX: Final = 150
"""Most operators within one another. A walk through an expression takes some of Python's stack for each."""


@dataclass(frozen=True, eq=False, repr=False)
class Expr(ExprRefusals, NumberMethods, ExprSpellings, Tree):
    """Something that has a value in every row. Base of all expressions; see the module's docstring."""

    _internal = frozenset(
        {"depth", "is_pending", "name", "op", "operands", "site", "size", "to", "type", "value"}
    )

    def __post_init__(self) -> None:
        object.__setattr__(self, "site", call_site())

    def describe(self) -> str:
        """Return the expression as it would be written: equal for equal expressions, in every process."""
        return text_of(self)

    def _receiver(self) -> str:
        """Return the expression as it stands before the dot of a method, in parentheses if it needs them."""
        return receiver_text(self)

    def type_in(self, schema: Schema) -> ColumnType:
        """Return its type over the columns of `schema`.

        Raises ExpressionError naming the column or the operator, and the user's line, if it has none.
        """
        return type_of(self, schema)

    def columns(self) -> frozenset[str]:
        """Return the names of the columns it reads."""
        return frozenset()

    def equals(self, other: Expr) -> bool:
        """Return True if both are the same expression, wherever they were written."""
        return self.describe() == other.describe()

    def __hash__(self) -> int:
        return hash(self.describe())

    def __repr__(self) -> str:
        return self.describe()

    def __add__(self, other: ExprLike) -> Expr:
        return _binary("+", self, other)

    def __radd__(self, other: ExprLike) -> Expr:
        return _binary("+", other, self)

    def __sub__(self, other: ExprLike) -> Expr:
        return _binary("-", self, other)

    def __rsub__(self, other: ExprLike) -> Expr:
        return _binary("-", other, self)

    def __mul__(self, other: ExprLike) -> Expr:
        return _binary("*", self, other)

    def __rmul__(self, other: ExprLike) -> Expr:
        return _binary("*", other, self)

    def __truediv__(self, other: ExprLike) -> Expr:
        return _binary("/", self, other)

    def __rtruediv__(self, other: ExprLike) -> Expr:
        return _binary("/", other, self)

    def __floordiv__(self, other: ExprLike) -> Expr:
        return _binary("//", self, other)

    def __rfloordiv__(self, other: ExprLike) -> Expr:
        return _binary("//", other, self)

    def __mod__(self, other: ExprLike) -> Expr:
        return _binary("%", self, other)

    def __rmod__(self, other: ExprLike) -> Expr:
        return _binary("%", other, self)

    def __eq__(self, other: object) -> Expr:  # type: ignore[override]  # `==` builds an expression
        return _binary("==", self, other)

    def __ne__(self, other: object) -> Expr:  # type: ignore[override]  # as above
        return _binary("!=", self, other)

    def __lt__(self, other: ExprLike) -> Expr:
        return _binary("<", self, other)

    def __le__(self, other: ExprLike) -> Expr:
        return _binary("<=", self, other)

    def __gt__(self, other: ExprLike) -> Expr:
        return _binary(">", self, other)

    def __ge__(self, other: ExprLike) -> Expr:
        return _binary(">=", self, other)

    def __and__(self, other: ExprLike) -> Expr:
        return _binary("&", self, other)

    def __rand__(self, other: ExprLike) -> Expr:
        return _binary("&", other, self)

    def __or__(self, other: ExprLike) -> Expr:
        return _binary("|", self, other)

    def __ror__(self, other: ExprLike) -> Expr:
        return _binary("|", other, self)

    def __neg__(self) -> Expr:
        return Operation("negative", (self,))

    def __invert__(self) -> Expr:
        return Operation("~", (self,))

    def abs(self) -> Expr:
        """The value without its sign."""
        return Operation("abs", (self,))

    def is_null(self) -> Expr:
        """True where the value is null; never null itself."""
        return Operation("is_null", (self,))

    def is_not_null(self) -> Expr:
        """True where there is a value; never null itself."""
        return Operation("~", (Operation("is_null", (self,)),))

    def is_in(self, *values: Scalar | Iterable[Scalar]) -> Expr:
        """True where the value is one of `values`, constants or one list of them; null where it is null."""
        return Operation("is_in", (self, *(lit(value) for value in constants_in(values))))

    def fill_null(self, value: ExprLike) -> Expr:
        """The value, or `value` where it is null."""
        return Operation("fill_null", (self, as_expr(value)))

    def asc(self, *, nulls_last: bool = False) -> Ordering:
        """In an order: the least value first; nulls before all, or after. SQL, Spark, Polars: `asc`."""
        return Ordering(self, False, nulls_last)

    def desc(self, *, nulls_last: bool = True) -> Ordering:
        """In an order: the greatest value first; nulls after all, or before."""
        return Ordering(self, True, nulls_last)

    def cast(self, type_: TypeSpec) -> Expr:
        """The value as another type; `functions/casts.py` lists the rules.

        A row with a value that the type cannot hold (a text that is no number, say) fails with a RowError
        that names it: the outputs behind have no answer while the row is there.
        """
        return Operation("cast", (self,), as_column_type(type_))

    def try_cast(self, type_: TypeSpec) -> Expr:
        """As `cast`, with null for a value that the type cannot hold."""
        return Operation("try_cast", (self,), as_column_type(type_))

    def alias(self, name: str) -> Aliased:
        """The value under a name, for `select(col.x.alias("y"))`."""
        return Aliased(name, self)

    def between(self, lower: ExprLike, upper: ExprLike) -> Expr:
        """True where the value is neither below `lower` nor above `upper`."""
        return (self >= lower) & (self <= upper)

    def eq_null_safe(self, other: ExprLike) -> Expr:
        """True where both are equal, or both null; never null itself."""
        value = as_expr(other)
        return (self == value).fill_null(False) | (self.is_null() & value.is_null())

    def _write(self, name: str, /, *operands: object) -> Expr:
        """Write the function `name` of the catalogue; methods made from the catalogue call this."""
        return call_function(name, *operands)

    def __pow__(self, exponent: ExprLike) -> Expr:
        return self.power(exponent)

    def __rpow__(self, base: ExprLike) -> Expr:
        return as_expr(base).power(self)

    def substr(self, position: int, length: int) -> Expr:
        """`length` characters from `position` on, counted from 1 as in SQL, or from the end if negative."""
        return self.str.slice(position - 1 if position > 0 else position, length)

    __abs__ = abs
    __round__ = NumberMethods.round
    __floor__ = NumberMethods.floor
    __ceil__ = NumberMethods.ceil

    def _missing(self, name: str) -> str:
        # Copy, pickle and other tools that look for protocols come here, some before it has fields.
        if name.startswith("_"):
            return name
        written = self.describe()
        field = f". Of a map or struct write {self._receiver()}.list.field({name!r})"
        return EXPRESSIONS.message(f"{written} has no {name!r}", name, otherwise=field)

    def __getitem__(self, key: ExprLike) -> Expr:
        """The element of an array at a place, from 0; the value of a map under a key; a field of a struct."""
        if isinstance(key, slice):
            raise ExpressionError(f"{item_of_expression(self._receiver(), key)} ({call_site()})")
        return call_function("item", self, key)

    def field(self, name: str) -> Expr:
        """A field of a struct, or the value of a map under a key; the same as `x[name]`."""
        return call_function("field", self, name)

    # Last, because a property that is called as a type hides the type in what follows.

    @property
    def dt(self) -> TimeMethods:
        """Functions of dates and timestamps."""
        return TimeMethods(self, call_function)

    @property
    def list(self) -> ListMethods:
        """Functions of nested values."""
        return ListMethods(self, call_function)

    @property
    def str(self) -> StringMethods:
        """Functions of strings."""
        return StringMethods(self, call_function)


@dataclass(frozen=True)
class Ordering(Offered):
    """How an expression takes part in an order of rows: `col.x.desc()`; no expression itself."""

    _internal = frozenset({"descending", "describe", "expr", "nulls_last", "reversed"})

    expr: Expr
    descending: bool = False
    nulls_last: bool = False

    def reversed(self) -> Ordering:
        """The opposite order."""
        return Ordering(self.expr, not self.descending, not self.nulls_last)

    def describe(self) -> str:
        """Return the ordering as it would be written."""
        last = "" if self.nulls_last == self.descending else f"nulls_last={self.nulls_last}"
        return f"{self.expr._receiver()}.{'desc' if self.descending else 'asc'}({last})"


@dataclass(frozen=True, eq=False, repr=False)
class ColumnRef(Expr, ColumnTree):
    """The value of a column."""

    def columns(self) -> frozenset[str]:
        """Return the names of the columns it reads."""
        return frozenset((self.name,))


@dataclass(frozen=True, eq=False, repr=False)
class LiteralValue(Expr, LiteralTree):
    """The same value in every row; None is null."""


@dataclass(frozen=True, eq=False, repr=False)
class Operation(Expr, OperationTree):
    """An operator and its operands; see `OperationTree`."""

    operands: tuple[Expr, ...]

    def __post_init__(self) -> None:
        super().__post_init__()
        size = 1 + sum(operand.size for operand in self.operands)
        if size > SIZE_MAX:
            # Printing it would take as long as everything else that this refuses.
            raise ExpressionError(
                f"an expression of {size:,} operators, columns and constants ({self.site}); there may be "
                f"{SIZE_MAX:,}.\n  What is used again counts again: compute it as a column first, by "
                "with_columns(…). In place of very many constants, join."
            )
        object.__setattr__(self, "size", size)
        depth = 1 + max(operand.depth for operand in self.operands)
        if depth > DEPTH_MAX:
            raise ExpressionError(
                f"an expression of {depth:,} operators within one another ({self.site}); there may be "
                f"{DEPTH_MAX:,}.\n  Compute a part of it as a column first, by with_columns(…); for one of "
                "many values write is_in([…]), for many cases join a table of them."
            )
        object.__setattr__(self, "depth", depth)
        if any(operand.is_pending for operand in self.operands):
            object.__setattr__(self, "is_pending", True)

    def columns(self) -> frozenset[str]:
        """Return the names of the columns it reads."""
        return frozenset[str]().union(*(operand.columns() for operand in self.operands))


@dataclass(frozen=True, eq=False, repr=False)
class When(Operation):
    """The value of the first branch whose condition is true, else that of `otherwise`, else null."""

    @overload
    def when(self, condition: ExprLike) -> OpenWhen: ...
    @overload
    def when(self, condition: ExprLike, value: ExprLike) -> When: ...
    def when(self, condition: ExprLike, value: ExprLike | None = None) -> OpenWhen | When:
        """A further branch, for rows where no condition before it is true."""
        self._check_open()
        branch = OpenWhen(self.operands, as_condition("when", condition))
        return branch if value is None else branch.then(value)

    def otherwise(self, value: ExprLike) -> Expr:
        """The value where no condition is true."""
        self._check_open()
        return When("when", (*self.operands, as_expr(value)))

    def _check_open(self) -> None:
        if len(self.operands) % 2:
            raise ExpressionError(f"{self.describe()} ({call_site()}) has its otherwise(...) already.")


@dataclass(frozen=True)
class OpenWhen(Offered):
    """A condition that waits for its `then`; not an expression yet."""

    _internal = frozenset({"condition", "operands"})

    operands: tuple[Expr, ...]
    condition: Expr

    def then(self, value: ExprLike) -> When:
        """The value where the condition is true."""
        return When("when", (*self.operands, self.condition, as_expr(value)))


@dataclass(frozen=True, eq=False)
class Aliased(Offered):
    """An expression with a name for the column that it makes; elsewhere it counts as the expression."""

    _internal = frozenset({"expr", "name"})

    name: str
    expr: Expr


ExprLike: TypeAlias = Expr | Aliased | Scalar
"""What may stand for an expression: an expression or a constant."""


class Columns:
    """`col`: the columns by name, as `col.src` or `col("src")`."""

    def __call__(self, name: str) -> ColumnRef:
        """The column called `name`, whatever the name."""
        if not isinstance(name, str):
            raise ExpressionError(
                f"col[{name!r:.60}] ({call_site()}): the name of a column is a text: write col.x or col('x')"
            )
        return ColumnRef(name)

    def __getitem__(self, name: str) -> ColumnRef:
        return self(name)

    def __iter__(self) -> NoReturn:
        # Python would iterate by `col[0]`, `col[1]`, … without end.
        raise ExpressionError(
            f"col ({call_site()}) has no end: it is every column of any collection.\n"
            "  For all columns of one write select('*'), for their names its schema.names."
        )

    def __contains__(self, name: object) -> NoReturn:
        raise ExpressionError(
            f"col ({call_site()}) belongs to no collection.\n"
            f"  Whether one has a column, its schema says: {name!r:.60} in collection.schema.names."
        )

    def __getattr__(self, name: str) -> ColumnRef:
        # Copy, pickle, notebooks and other tools that look for protocols must not get a column.
        if name.startswith("__"):
            raise AttributeError(name)
        return ColumnRef(name)

    def __repr__(self) -> str:
        return "col"


col: Final = Columns()


def lit(value: object, type_: TypeSpec | None = None) -> LiteralValue:
    """The same value in every row.

    `type_` is needed for None, for an int meant as float, and for "any". Raises ExpressionError if no
    column type holds the value.
    """
    return LiteralValue(*constant_of(value, None if type_ is None else as_column_type(type_), call_site()))


@overload
def when(condition: ExprLike) -> OpenWhen: ...
@overload
def when(condition: ExprLike, value: ExprLike) -> When: ...
def when(condition: ExprLike, value: ExprLike | None = None) -> OpenWhen | When:
    """`when(c).then(x).when(d).then(y).otherwise(z)`: x where c is true, else y where d is, else z.

    `when(c, x)`, as in PySpark, is `when(c).then(x)`.
    """
    branch = OpenWhen((), as_condition("when", condition))
    return branch if value is None else branch.then(value)


def min_of(*values: ExprLike) -> Expr:
    """The least of several values in the same row; null if one of them is."""
    return _extreme("min_of", values)


def max_of(*values: ExprLike) -> Expr:
    """The greatest of several values in the same row; null if one of them is."""
    return _extreme("max_of", values)


def least(*values: ExprLike) -> Expr:
    """The least of several values in the same row, nulls left out, as in SQL; null if all are."""
    return _extreme("least", values)


def greatest(*values: ExprLike) -> Expr:
    """The greatest of several values in the same row, nulls left out, as in SQL; null if all are."""
    return _extreme("greatest", values)


def coalesce(*values: ExprLike) -> Expr:
    """The first of several values that is not null."""
    if not values:
        raise ExpressionError(f"coalesce() ({call_site()}) needs at least one value.")
    check_columns("coalesce", values)
    *others, result = [as_expr(value) for value in values]
    for other in reversed(others):
        result = other.fill_null(result)
    return result


def call_function(name: str, *operands: object) -> Expr:
    """Return the function `name` of the catalogue over `operands`, up to the first that is None."""
    present = tuple(takewhile(lambda operand: operand is not None, operands))
    check_columns(name, present)
    return Operation(name, tuple(as_expr(operand) for operand in present))


def check_columns(name: str, operands: Iterable[object], before: str = "") -> None:
    """Raise ExpressionError for `upper("name")`: PySpark means a column by it, but here a text is a text.

    `before`: arguments ahead of the operands, as the message writes them; then each text means a column.
    """
    operand_list = list(operands)
    text = next((each for each in operand_list if isinstance(each, str)), None)
    if text is not None and not any(isinstance(each, Expr | Aliased | OpenWhen) for each in operand_list):
        columns = [
            col(each) if each is text or (before and isinstance(each, str)) else each for each in operand_list
        ]
        written, meant = (before + ", ".join(map(repr, each)) for each in (operand_list, columns))
        raise ExpressionError(
            f"{name}({written}) ({call_site()}) is of no column: {text!r} is a text.\n"
            f"  Of the column write {name}({meant}); of a text that is the same in every row, lit({text!r})."
        )


def as_expr(value: object) -> Expr:
    """Return `value` as an expression: itself, or a literal; raises ExpressionError if it is neither."""
    if isinstance(value, Expr):
        return value
    if isinstance(value, Aliased):
        return value.expr
    if isinstance(value, OpenWhen):
        raise ExpressionError(f"when({value.condition.describe()}) ({call_site()}) lacks its then(...).")
    return lit(value)


def as_condition(call: str, value: object) -> Expr:
    """Return `value` as a condition of `call`; raises ExpressionError for True or False."""
    check_no_bool(call, value)
    return as_expr(value)


def _binary(op: BinaryOp, left: object, right: object) -> Expr:
    for side in (left, right) if op in ("&", "|") else ():
        check_no_bool(op, side)
    return Operation(op, (as_expr(left), as_expr(right)))


def _extreme(op: Literal["min_of", "max_of", "least", "greatest"], values: tuple[ExprLike, ...]) -> Expr:
    if not values:
        raise ExpressionError(f"{op}() ({call_site()}) needs at least one value.")
    check_columns(op, values)
    return Operation(op, tuple(as_expr(value) for value in values))


# The annotations of the methods that are made in that module name these types: `typing.get_type_hints`.
vars(sys.modules[NumberMethods.__module__]).update(Expr=Expr, ExprLike=ExprLike)
