"""What is a chain of linear operators, and which one function does the work of all of it?

An operator is *linear* if it treats every row by itself and has no state: select, filter, negate, map,
flat_map. Then it may be applied to changes as it is to collections, at any time, on either side of an
exchange; so chains of them belong to no vertex, but to the connector that they lie on, as a function from
words to words.

Rows are `words[width + 2, n]`: the words of the columns in order, time, diff. The function gives rows of
the chain's last columns, C-contiguous, or None if none is left; it never changes what it is given, and may
give it back.

    chain = LinearChain.over(schema).select({"dst": col.src, "src": col.dst}).filter(col.src > 0).negate()
    function = chain.compile(symbols)             # words → words or None
    chain.as_projection()                         # where each word comes from, if words only move; here None

What only moves words (renaming, reordering, dropping, constants, negation) is carried along symbolically
and costs one gather at the end, or none: filters and computed columns read the words where they were.
Several filters are one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final, Literal

from differential.columns.column_types import integer
from differential.columns.schema import Column, Schema, SchemaSpec
from differential.columns.symbols.table import SymbolTable
from differential.errors import ExpressionError, SchemaError
from differential.expressions.expression import ExprLike, as_expr, col
from differential.expressions.projection import Projection
from differential.expressions.types import check_condition
from differential.linear.failures.answered import AnsweredTransform
from differential.linear.failures.claiming import Claim, Nothing
from differential.linear.failures.failing import Pass, sites_in
from differential.linear.failures.guarding import Guard, record_text
from differential.linear.passes import (
    AccumulateTransform,
    FilterPass,
    NegatePass,
    NotNullPass,
    RowFunction,
    SelectPass,
    Step,
    WeighPass,
    as_one,
    passes_of,
    projection_of,
    risky_steps,
)
from differential.linear.placing import Places, Placing
from differential.linear.sliding import SlidingTransform
from differential.linear.user_functions import (
    BatchFunction,
    FlatMapFunction,
    MapFunction,
    UserKind,
    UserStep,
)
from differential.linear.weighing import without
from timely.user_code.call_site import CallSite, call_site

__all__ = ["COMPONENT", "LinearChain"]

COMPONENT: Final = "(component)"
"""The column beside the keys of what `accumulate` gives."""


@dataclass(frozen=True)
class LinearChain:
    """Linear operators one after another; immutable, every method gives a longer chain.

    Laws: the function of a chain is the functions of its steps, one after another · negating twice changes
    nothing · filters commute · accumulate(f(words)) == the plain definition on the accumulated rows
    (linearity)
    """

    schema_in: Schema
    schema_out: Schema
    steps: tuple[Step, ...] = ()
    origins: tuple[bytes, ...] = ()
    """Of each step the operator that it stands for: what fails in several chains of one operator is one
    collection.
    """

    @classmethod
    def over(cls, schema: SchemaSpec) -> LinearChain:
        """The chain that does nothing to rows of `schema`."""
        schema = Schema.of(schema)
        return cls(schema, schema)

    def select(self, columns: Mapping[str, ExprLike]) -> LinearChain:
        """Rows of these columns, each an expression over the columns so far.

        Raises ExpressionError, naming the user's line, if one does not fit them.
        """
        site = call_site()
        exprs = tuple((name, as_expr(value)) for name, value in columns.items())
        types = [Column(name, expr.type_in(self.schema_out)) for name, expr in exprs]
        return self._longer(SelectPass(exprs, site), Schema(tuple(types)))

    def with_columns(self, columns: Mapping[str, ExprLike]) -> LinearChain:
        """The columns so far, those named in `columns` replaced or added at the end."""
        return self.select({**{name: col(name) for name in self.schema_out.names}, **columns})

    def filter(self, condition: ExprLike) -> LinearChain:
        """Only the rows where `condition` is true; raises ExpressionError if it is not a condition."""
        expr = as_expr(condition)
        check_condition(expr, self.schema_out)
        return self._longer(FilterPass(expr), self.schema_out)

    def not_null(self, names: Sequence[str]) -> LinearChain:
        """The same rows; the columns `names` are null in none of them, which somebody else has to know."""
        step = NotNullPass(tuple(names), self.schema_out)
        return self._longer(step, step.schema_out)

    def negate(self) -> LinearChain:
        """The same rows with the opposite diff."""
        return self._longer(NegatePass(), self.schema_out)

    def guarded(
        self, inner: LinearChain, part: Literal["good", "errors"], stage: str, schema: Schema
    ) -> LinearChain:
        """What `inner` makes of rows on which it does not fail, or what is said of the others: columns of
        `schema`.
        """
        text = "; ".join(inner.describe())
        return self._longer(Guard(part, stage, self.schema_out, schema, inner.compile, text), schema)

    def claim(self, what: str) -> LinearChain:
        """The same rows, each of which is a failure: `what` says what is claimed of a collection without
        rows.
        """
        return self._longer(Claim(what, self.schema_out), self.schema_out)

    def nothing(self, schema: Schema) -> LinearChain:
        """No rows, of columns `schema`; what fails on the way there fails all the same."""
        return self._longer(Nothing(schema), schema)

    def answered(self, schema: Schema, text: str, site: CallSite) -> LinearChain:
        """The answers of a function of groups, columns `schema`, without the columns of errors behind."""
        record, stage, line, error, _ = self.schema_out.names[len(schema) :]
        return self._longer(
            AnsweredTransform(self.schema_out, schema, (record, stage, line, error), text, site), schema
        )

    def weigh(self, by: str) -> LinearChain:
        """Without the column `by`, an integer, by which multiplicities are multiplied."""
        return self._longer(WeighPass(by), without(self.schema_out, by))

    def apply(self, kind: UserKind, function: MapFunction, schema: SchemaSpec | None = None) -> LinearChain:
        """`map`, `flat_map` or `map_batches`, whichever `kind` says."""
        return self._user(kind, function, schema)

    def map(self, function: MapFunction, schema: SchemaSpec | None = None) -> LinearChain:
        """`function(record)` for each record; the result has the columns of `schema`, or the same as before.

        The type of what a Python function gives is not guessed: rows of one collection must agree on it,
        and the first batch may be empty. What the function must observe and what it costs:
        `user_functions.py`.
        """
        return self._user("map", function, schema)

    def flat_map(self, function: FlatMapFunction, schema: SchemaSpec | None = None) -> LinearChain:
        """All records of `function(record)` for each record; as `map` otherwise."""
        return self._user("flat_map", function, schema)

    def map_batches(self, function: BatchFunction, schema: SchemaSpec | None = None) -> LinearChain:
        """`function(table)` for each batch of rows of one time as an Arrow table with the column `diff`.

        How rows are divided into batches is arbitrary: `batch_functions.py`.
        """
        return self._user("map_batches", function, schema)

    def slide(self, time: str, lengths: tuple[int, int, int], names: tuple[str, str]) -> LinearChain:
        """Each row once for each sliding window that its `time` is in; see `sliding.py`."""
        step = SlidingTransform(self.schema_out, time, lengths, names, call_site())
        return self._longer(step, step.schema_out)

    def place(self, keys: Sequence[str], places: Places, text: str) -> LinearChain:
        """Each row once for each unit that `places` gives it, which comes in front; see `placing.py`."""
        step = Placing(self.schema_out, tuple(keys), places, text)
        return self._longer(step, step.schema_out)

    def keyed_by(self, key_columns: Sequence[str]) -> LinearChain:
        """The columns `key_columns` first, in that order, and then the others: the layout of a keyed
        operator.

        Raises SchemaError for a column that is not there or named twice.
        """
        if len(set(key_columns)) != len(key_columns):
            raise SchemaError(f"a key column is named twice in {', '.join(key_columns)} ({call_site()}).")
        names = self.schema_out.reordered(key_columns).names
        return self if names == self.schema_out.names else self.select({name: col(name) for name in names})

    def accumulate(self, keys: Sequence[str], makers: Sequence[tuple[int, int, int, int]]) -> LinearChain:
        """The components of what is to be added up by `keys`, which come first: rows of keys and a component,
        the amount in the difference. Summed, so that it is linear although it looks at several rows.
        """
        chain = self.keyed_by(keys)
        over = chain.schema_out.picked(keys)
        schema = Schema((*over, Column(COMPONENT, integer)))
        return chain._longer(AccumulateTransform(over.width, tuple(makers), schema), schema)

    def then(self, other: LinearChain) -> LinearChain:
        """First this chain, then `other`, which must take the columns that this one gives."""
        assert other.schema_in == self.schema_out, f"{other.schema_in} is not {self.schema_out}"
        steps, origins = (*self.steps, *other.steps), (*self.origins, *other.origins)
        return replace(self, schema_out=other.schema_out, steps=steps, origins=origins)

    def standing_for(self, operator: bytes, shorter: LinearChain) -> LinearChain:
        """The same chain, whose steps behind those of `shorter` stand for an operator."""
        more = (operator,) * (len(self.steps) - len(shorter.steps))
        return replace(self, origins=(*shorter.origins, *more))

    def is_identity(self) -> bool:
        """Whether it leaves every row as it is."""
        projection = self.as_projection()
        return projection is not None and projection.is_identity(self.schema_in.width)

    def as_projection(self, symbols: SymbolTable | None = None) -> Projection | None:
        """Where each word of the result comes from, if words only move or are constant; else None.

        With `symbols`, string constants are entered there, as `compile` does.
        """
        return projection_of(self.steps, self.schema_in, symbols)

    def as_accumulation(self, symbols: SymbolTable) -> tuple[Projection, AccumulateTransform] | None:
        """How words move before the last step, which accumulates; None of a chain that is not like that."""
        if not self.steps or not isinstance(last := self.steps[-1], AccumulateTransform):
            return None
        moves = projection_of(self.steps[:-1], self.schema_in, symbols)
        return None if moves is None else (moves, last)

    def compile(self, symbols: SymbolTable) -> RowFunction:
        """The one function: int64[schema_in.width + 2, n] → int64[schema_out.width + 2, m], or None for no
        rows.

        It may raise RowError and UserFunctionError. A chain that only moves words costs 0.2 µs, a filter
        some 2 µs.
        """
        return as_one(self.passes(symbols))

    def passes(self, symbols: SymbolTable) -> list[Pass]:
        """The passes of which `compile` makes one function."""
        return passes_of(self.steps, self.schema_in, symbols, self.origins)

    @property
    def risky(self) -> LinearChain | None:
        """The part of the chain up to the last step that has no answer for some rows; None if all always
        have.
        """
        steps = risky_steps(self.steps, self.schema_in)
        return replace(self, steps=self.steps[:steps], origins=self.origins[:steps]) if steps else None

    def sites(self) -> Mapping[str, str]:
        """By the text of everything in it that may fail, where it was written."""
        found: dict[str, str] = {}
        for step in self.steps:
            if isinstance(step, SelectPass):
                found.update(
                    {text: str(site) for text, site in sites_in([e for _, e in step.columns]).items()}
                )
            elif isinstance(step, FilterPass):
                found.update({text: str(site) for text, site in sites_in([step.condition]).items()})
            elif isinstance(step, AnsweredTransform):
                found[record_text(step.text)] = str(step.site)
            elif isinstance(step, UserStep):
                found[record_text(step.name)] = str(step.site)
            elif isinstance(step, SlidingTransform):
                found[step.text] = str(step.site)
            elif isinstance(step, Claim):
                found[record_text(step.what)] = step.what
        return found

    def describe(self) -> list[str]:
        """A line for each step, the same in every process, for plans and fingerprints."""
        return [step.describe() for step in self.steps]

    def _longer(self, step: Step, schema: Schema) -> LinearChain:
        return replace(self, schema_out=schema, steps=(*self.steps, step), origins=(*self.origins, b""))

    def _user(self, kind: UserKind, function: MapFunction, schema: SchemaSpec | None) -> LinearChain:
        site = call_site()
        if not callable(function):
            raise ExpressionError(f"{kind}({function!r}) ({site}) needs a function.")
        schema_out = self.schema_out if schema is None else Schema.of(schema)
        return self._longer(UserStep(kind, function, self.schema_out, schema_out, site), schema_out)
