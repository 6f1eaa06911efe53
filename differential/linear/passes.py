"""How does a chain of linear operators become few passes over the words?

The planner walks the steps once, with three things at hand: the columns so far, a `Projection` that says
where their words are, and conditions still to be tested. Selecting columns and negating only change the
projection; a filter only adds a condition. The planner makes a *pass* of them where something must be
computed, and at the end:

    gather      test the conditions, gather the words of the rows that pass
    compute     write computed columns into a new array
    accumulate  sum what each row adds to its group
    user        hand the rows to a Python function, cut them into sliding windows, or place them on units

A condition that can fail (it divides) sees only the rows that passed the filters before it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from differential.columns.column_types import Bools, Int64s
from differential.columns.overflow import negate_diffs
from differential.columns.schema import Column, Schema
from differential.columns.symbols.table import SymbolTable
from differential.errors import RowError
from differential.expressions.compiled import CompiledExpression
from differential.expressions.evaluation import Compiler
from differential.expressions.expression import Expr
from differential.expressions.projection import TRAILING_WORDS, Projection
from differential.linear.accumulating import AccumulateTransform
from differential.linear.batch_functions import compile_batches
from differential.linear.failures.answered import AnsweredTransform
from differential.linear.failures.claiming import Claim, Nothing
from differential.linear.failures.failing import Pass
from differential.linear.failures.guarding import Guard, guarded
from differential.linear.failures.raising import can_raise
from differential.linear.placing import Placing
from differential.linear.sliding import SlidingTransform
from differential.linear.user_functions import UserStep, compile_user_step
from differential.linear.weighing import weighed, without
from timely.user_code.call_site import CallSite

__all__ = [
    "AccumulateTransform",
    "FilterPass",
    "NegatePass",
    "NotNullPass",
    "RowFunction",
    "SelectPass",
    "Step",
    "WeighPass",
    "as_one",
    "passes_of",
    "projection_of",
    "risky_steps",
    "schema_of",
]


@dataclass(frozen=True)
class SelectPass:
    """New columns, each an expression over the old ones."""

    columns: tuple[tuple[str, Expr], ...]
    site: CallSite

    def describe(self) -> str:
        """Return the step as it would be written."""
        return f"select({', '.join(f'{name}={expr.describe()}' for name, expr in self.columns)})"


@dataclass(frozen=True)
class FilterPass:
    """Only rows where a condition is true."""

    condition: Expr

    def describe(self) -> str:
        """Return the step as it would be written."""
        return f"filter({self.condition.describe()})"


@dataclass(frozen=True)
class NotNullPass:
    """The same rows without the null flags of these columns, which are never null."""

    names: tuple[str, ...]
    schema_in: Schema

    @property
    def schema_out(self) -> Schema:
        """The same columns, these without nulls."""
        return self.schema_in.without_nulls(self.names)

    def projection(self) -> Projection:
        """Return the places of the words that remain."""
        sources: list[int] = []
        for column in self.schema_out:
            words = self.schema_in.words_of(column.name)
            sources += list(words)[-column.type.words :]
        return Projection.of(sources)

    def describe(self) -> str:
        """Return a text that names the columns."""
        return f"not null: {', '.join(self.names)}"


@dataclass(frozen=True)
class NegatePass:
    """The opposite diff."""

    def describe(self) -> str:
        """Return the step as it would be written."""
        return "negate()"


@dataclass(frozen=True)
class WeighPass:
    """Multiplicities multiplied by an integer column, which is dropped."""

    by: str

    def describe(self) -> str:
        """Return a text that names the column."""
        return f"weigh by {self.by}"


RowFunction: TypeAlias = Callable[[Int64s], Int64s | None]
"""From rows of words, with time and diff, to rows of words; None if no row is left."""

Step: TypeAlias = (
    SelectPass
    | FilterPass
    | NegatePass
    | NotNullPass
    | AccumulateTransform
    | WeighPass
    | Guard
    | UserStep
    | SlidingTransform
    | Placing
    | Claim
    | Nothing
    | AnsweredTransform
)


def projection_of(steps: Sequence[Step], schema: Schema, symbols: SymbolTable | None) -> Projection | None:
    """Return the projection that `steps` amount to, or None if they do more than move words."""
    projection = Projection.identity(schema.width)
    for step in steps:
        if isinstance(step, NegatePass):
            projection = projection.negated()
        elif isinstance(step, NotNullPass):
            projection, schema = projection.then(step.projection()), step.schema_out
        elif isinstance(step, SelectPass):
            moved = _moved(step, Compiler(schema, projection, symbols))
            if moved is None:
                return None
            projection = moved
            schema = schema_of(step, schema)
        else:
            return None
    return projection


def passes_of(
    steps: Sequence[Step], schema: Schema, symbols: SymbolTable, origins: Sequence[bytes] = ()
) -> list[Pass]:
    """Return the passes for all of `steps` over rows of `schema`, one after another.

    `origins`: for each step the operator that it stands for.
    """
    plan = _Plan(schema, symbols)
    for number, step in enumerate(steps):
        plan.origin = origins[number] if origins else b""
        plan.add(step)
    plan.flush()
    return plan.passes


def as_one(passes: Sequence[Pass]) -> RowFunction:
    """Return one function that runs all these passes."""
    functions = [one.function for one in passes]
    if not functions:
        return _unchanged
    if len(functions) == 1:
        return functions[0]

    def run(words: Int64s) -> Int64s | None:
        for function in functions:
            result = function(words)
            if result is None:
                return None
            words = result
        return words

    return run


def risky_steps(steps: Sequence[Step], schema: Schema) -> int:
    """Return the number of steps up to the last one that may fail for some rows; 0 if none may."""
    last = 0
    for number, step in enumerate(steps, 1):
        if isinstance(step, SelectPass):
            fails = any(can_raise(expr, schema) for _, expr in step.columns)
            schema = schema_of(step, schema)
        elif isinstance(step, FilterPass):
            fails = can_raise(step.condition, schema)
        elif isinstance(step, WeighPass):
            fails, schema = False, without(schema, step.by)
        elif isinstance(step, NegatePass):
            fails = False
        else:
            fails, schema = (
                isinstance(step, UserStep | SlidingTransform | Claim | AnsweredTransform),
                step.schema_out,
            )
        if fails:
            last = number
    return last


class _Plan:
    """The passes so far, and the work to be done before the next."""

    def __init__(self, schema: Schema, symbols: SymbolTable) -> None:
        self.passes: list[Pass] = []
        self.origin = b""
        self._symbols = symbols
        self._start(schema)

    def _start(self, schema: Schema) -> None:
        """Continue with words of `schema`, and no work left over."""
        self._schema = schema
        self._width = schema.width
        self._projection = Projection.identity(schema.width)
        self._conditions: list[CompiledExpression] = []
        self._risky = (b"", 1)
        """The operator of the last condition that may fail, and the sign of differences at that point."""
        self._has_unset_symbols = False
        """True if rows that the conditions exclude have no symbol in a column that is never null by now."""

    def add(self, step: Step) -> None:
        """Add the next step."""
        if isinstance(step, NegatePass):
            self._projection = self._projection.negated()
        elif isinstance(step, NotNullPass):
            if self._conditions and any(self._schema[name].type.is_symbol for name in step.names):
                self._has_unset_symbols = True
            self._projection, self._schema = self._projection.then(step.projection()), step.schema_out
        elif isinstance(step, FilterPass):
            condition = self._compiler().compile(step.condition)
            if self._conditions and (condition.can_fail or self._looks_up_unset(step.condition)):
                self.flush()
                condition = self._compiler().compile(step.condition)
            if condition.can_fail or condition.can_overflow or not self._conditions:
                self._risky = (self.origin, self._projection.sign)
            self._conditions.append(condition)
        elif isinstance(step, SelectPass):
            moved = _moved(step, self._compiler())
            if moved is None:
                self._compute(step)
            else:
                self._projection = moved
                self._schema = schema_of(step, self._schema)
        elif isinstance(step, WeighPass):
            self.flush()
            self._pass(weighed(self._schema, step.by, self._symbols), step.describe())
            self._start(without(self._schema, step.by))
        elif isinstance(step, Guard):
            self.flush()
            self._pass(guarded(step, self._symbols), step.describe())
            self._start(step.schema_out)
        elif isinstance(step, AccumulateTransform):
            self.flush()
            self._pass(step.compile(), step.describe())
            self._start(step.schema_out)
        elif isinstance(step, Claim | AnsweredTransform | Nothing):
            self.flush()
            self._pass(step.compile(self._symbols), step.describe())
            self._start(step.schema_out)
        else:
            self.flush()
            if isinstance(step, SlidingTransform | Placing):
                self._pass(step.compile(), step.describe())
            else:
                compiled = compile_batches if step.kind == "map_batches" else compile_user_step
                self._pass(compiled(step, self._symbols), step.name)
            self._start(step.schema_out)

    def _looks_up_unset(self, condition: Expr) -> bool:
        """Return True if a condition may look up symbols that rows excluded so far do not have."""
        read = condition.columns() if self._has_unset_symbols else ()
        return any(self._schema[name].type.is_symbol for name in read)

    def _pass(self, function: RowFunction, name: str, origin: bytes | None = None, sign: int = 1) -> None:
        """Append a pass over rows of the columns so far."""
        self.passes.append(
            Pass(function, self._schema, name, self.origin if origin is None else origin, sign)
        )

    def flush(self) -> None:
        """Make a pass of the work left over, if there is any."""
        projection, width = self._projection, self._width
        if self._conditions:
            self._pass(_gather(self._conditions, projection, width), "filter", *self._risky)
        elif not projection.is_identity(width):
            self._pass(projection.compile(width), "select")
        else:
            return
        self._start(self._schema)

    def _compiler(self) -> Compiler:
        return Compiler(self._schema, self._projection, self._symbols)

    def _compute(self, step: SelectPass) -> None:
        """Append a pass that computes columns, over the rows that the filters have let through."""
        if self._conditions:
            self.flush()
        compiler = self._compiler()
        schema = schema_of(step, self._schema)
        columns = [(compiler.compile(expr), schema.words_of(name)) for name, expr in step.columns]
        sign = self._projection.sign
        self._pass(_compute(columns, schema.width, sign), step.describe(), None, sign)
        self._start(schema)


def schema_of(step: SelectPass, schema: Schema) -> Schema:
    """Return the columns that a selection makes."""
    return Schema(tuple(Column(name, expr.type_in(schema)) for name, expr in step.columns))


def _moved(step: SelectPass, compiler: Compiler) -> Projection | None:
    """Return where the words of the new columns are, if all of them only move; else None."""
    moves: list[tuple[int, int]] = []
    for _, expr in step.columns:
        words = compiler.projected(expr)
        if words is None:
            return None
        moves += words
    return Projection(
        tuple(source for source, _ in moves),
        tuple(constant for _, constant in moves),
        compiler.projection.sign,
    )


def _unchanged(words: Int64s) -> Int64s:
    return words


def _gather(conditions: Sequence[CompiledExpression], projection: Projection, width: int) -> RowFunction:
    """Return a function for the rows where all conditions hold, with the words that `projection` names."""
    mask = _all(conditions)
    project = projection.compile(width)
    project_picked = projection.compile_picked(width)

    def gather(words: Int64s) -> Int64s | None:
        keep = mask(words).nonzero()[0]
        if keep.size == words.shape[1]:
            return project(words)
        if keep.size == 0:
            return None
        return project_picked(words, keep)

    return gather


def _all(conditions: Sequence[CompiledExpression]) -> Callable[[Int64s], Bools]:
    """Return a function that tells where all conditions are true."""
    masks = [condition.mask for condition in conditions]
    first, rest = masks[0], masks[1:]
    if not rest:
        return first
    can_overflow = any(condition.can_overflow for condition in conditions)

    def mask(words: Int64s) -> Bools:
        mask_of_all = first(words)
        for other in rest:
            mask_of_all = mask_of_all & other(words)
        return mask_of_all

    def tried(words: Int64s) -> Bools:
        try:
            return mask(words)
        except RowError:  # perhaps for a row that an earlier condition excludes
            return _one_by_one(masks, words)

    return tried if can_overflow else mask


def _one_by_one(masks: Sequence[Callable[[Int64s], Bools]], words: Int64s) -> Bools:
    """Return where all conditions are true; each sees only rows that those before it let through."""
    left = np.arange(words.shape[1])
    for mask in masks:
        left = left[mask(words.take(left, 1))]
    passing = np.zeros(words.shape[1], dtype=np.bool_)
    passing[left] = True
    return passing


def _compute(columns: Sequence[tuple[CompiledExpression, range]], width: int, sign: int) -> RowFunction:
    """Return a function that writes computed columns, time and diff into a new array."""
    writers = [(compiled.writer(), slice(where.start, where.stop)) for compiled, where in columns]

    def compute(words: Int64s) -> Int64s:
        out = np.empty((width + TRAILING_WORDS, words.shape[1]), dtype=np.int64)
        for write, where in writers:
            write(words, out[where])
        out[-TRAILING_WORDS:] = words[-TRAILING_WORDS:]
        if sign < 0:
            negate_diffs(out)
        return out

    return compute
