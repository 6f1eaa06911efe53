"""What is a chain of linear operators, and which one function runs all of it?

An operator is *linear* if it treats every row by itself and has no state: select, filter, negate, map,
flat_map. It may then be applied to changes just as to collections, at any time, on either side of an
exchange. So a chain of them belongs to no vertex, but to the connector that it lies on, as a function from
words to words.

Rows are `words[width + 2, n]`: the words of the columns in order, time, diff. The function returns rows of
the chain's last columns, C-contiguous, or None if no row is left. It never changes its argument, and may
return it.

    chain = LinearChain.over(schema).select({"dst": col.src, "src": col.dst}).filter(col.src > 0).negate()
    function = chain.compile(symbols)             # words → words or None
    chain.as_projection()                         # where each word comes from, if words only move; here None

Steps that only move words (renaming, reordering, dropping, constants, negation) are tracked symbolically and
cost one gather at the end, or none: filters and computed columns read the words where they were. Consecutive
filters are fused.
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
"""The name of the column behind the keys in the result of `accumulate`."""


@dataclass(frozen=True)
class LinearChain:
    """Linear operators one after another; immutable, every method returns a longer chain.

    Laws: the function of a chain is the functions of its steps, one after another · negating twice changes
    nothing · filters commute · accumulate(f(words)) == the plain definition on the accumulated rows
    (linearity)
    """

    schema_in: Schema
    schema_out: Schema
    steps: tuple[Step, ...] = ()
    origins: tuple[bytes, ...] = ()
    """For each step the operator that it stands for.

    Failures of one operator are one collection, also if it stands in several chains.
    """

    @classmethod
    def over(cls, schema: SchemaSpec) -> LinearChain:
        """Return the chain that does nothing to rows of `schema`."""
        schema = Schema.of(schema)
        return cls(schema, schema)

    def select(self, columns: Mapping[str, ExprLike]) -> LinearChain:
        """Make rows of these columns, each an expression over the columns so far.

        Raises ExpressionError, naming the user's line, if one does not fit them.
        """
        site = call_site()
        exprs = tuple((name, as_expr(value)) for name, value in columns.items())
        types = [Column(name, expr.type_in(self.schema_out)) for name, expr in exprs]
        return self._longer(SelectPass(exprs, site), Schema(tuple(types)))

    def with_columns(self, columns: Mapping[str, ExprLike]) -> LinearChain:
        """Keep the columns so far, with those named in `columns` replaced or added at the end."""
        return self.select({**{name: col(name) for name in self.schema_out.names}, **columns})

    def filter(self, condition: ExprLike) -> LinearChain:
        """Keep the rows where `condition` is true; raises ExpressionError if it is not a condition."""
        expr = as_expr(condition)
        check_condition(expr, self.schema_out)
        return self._longer(FilterPass(expr), self.schema_out)

    def not_null(self, names: Sequence[str]) -> LinearChain:
        """Declare that the columns `names` are never null; the caller must know that. Rows stay the same."""
        step = NotNullPass(tuple(names), self.schema_out)
        return self._longer(step, step.schema_out)

    def negate(self) -> LinearChain:
        """Keep the same rows with the opposite diff."""
        return self._longer(NegatePass(), self.schema_out)

    def guarded(
        self, inner: LinearChain, part: Literal["good", "errors"], stage: str, schema: Schema
    ) -> LinearChain:
        """Run `inner`, and make rows of `schema` from its results or from its errors.

        `part` chooses: the results for rows on which `inner` does not fail, or descriptions of the rows on
        which it does. `stage` names the operator in these.
        """
        text = "; ".join(inner.describe())
        return self._longer(Guard(part, stage, self.schema_out, schema, inner.compile, text), schema)

    def claim(self, what: str) -> LinearChain:
        """Keep the rows, and count each as a failure of the claim `what`: that there are no rows."""
        return self._longer(Claim(what, self.schema_out), self.schema_out)

    def nothing(self, schema: Schema) -> LinearChain:
        """Make no rows, of columns `schema`; rows that fail in front of this step still fail."""
        return self._longer(Nothing(schema), schema)

    def answered(self, schema: Schema, text: str, site: CallSite) -> LinearChain:
        """Keep the answers of a function of groups, columns `schema`; drop the columns of errors."""
        record, stage, line, error, _ = self.schema_out.names[len(schema) :]
        return self._longer(
            AnsweredTransform(self.schema_out, schema, (record, stage, line, error), text, site), schema
        )

    def weigh(self, by: str) -> LinearChain:
        """Multiply multiplicities by the integer column `by`, and drop it."""
        return self._longer(WeighPass(by), without(self.schema_out, by))

    def apply(self, kind: UserKind, function: MapFunction, schema: SchemaSpec | None = None) -> LinearChain:
        """Apply `map`, `flat_map` or `map_batches`, as `kind` says."""
        return self._user(kind, function, schema)

    def map(self, function: MapFunction, schema: SchemaSpec | None = None) -> LinearChain:
        """Apply `function(record)` to each record; results have the columns of `schema`, by default the same.

        The type of the results is not guessed: all rows of a collection must agree on it, and the first batch
        may be empty. For the function's duties and costs see `user_functions.py`.
        """
        return self._user("map", function, schema)

    def flat_map(self, function: FlatMapFunction, schema: SchemaSpec | None = None) -> LinearChain:
        """Make all records of `function(record)` for each record; otherwise like `map`."""
        return self._user("flat_map", function, schema)

    def map_batches(self, function: BatchFunction, schema: SchemaSpec | None = None) -> LinearChain:
        """Apply `function(table)` to each batch of rows of one time: an Arrow table with the column `diff`.

        The division of rows into batches is arbitrary: `batch_functions.py`.
        """
        return self._user("map_batches", function, schema)

    def slide(self, time: str, lengths: tuple[int, int, int], names: tuple[str, str]) -> LinearChain:
        """Make each row once for each sliding window around its `time`; see `sliding.py`."""
        step = SlidingTransform(self.schema_out, time, lengths, names, call_site())
        return self._longer(step, step.schema_out)

    def place(self, keys: Sequence[str], places: Places, text: str) -> LinearChain:
        """Make each row once for each unit that `places` returns for it, in front; see `placing.py`."""
        step = Placing(self.schema_out, tuple(keys), places, text)
        return self._longer(step, step.schema_out)

    def keyed_by(self, key_columns: Sequence[str]) -> LinearChain:
        """Put the columns `key_columns` first, in that order, then the others, as keyed operators need.

        Raises SchemaError for a column that does not exist or is named twice.
        """
        if len(set(key_columns)) != len(key_columns):
            raise SchemaError(f"a key column is named twice in {', '.join(key_columns)} ({call_site()}).")
        names = self.schema_out.reordered(key_columns).names
        return self if names == self.schema_out.names else self.select({name: col(name) for name in names})

    def accumulate(self, keys: Sequence[str], makers: Sequence[tuple[int, int, int, int]]) -> LinearChain:
        """Make rows of `keys` and a component; the difference is what a row adds to its group's sum.

        Equal rows are summed. This is linear, although the step looks at several rows at once.
        """
        chain = self.keyed_by(keys)
        over = chain.schema_out.picked(keys)
        schema = Schema((*over, Column(COMPONENT, integer)))
        return chain._longer(AccumulateTransform(over.width, tuple(makers), schema), schema)

    def then(self, other: LinearChain) -> LinearChain:
        """Return this chain followed by `other`, which must take the columns that this one makes."""
        assert other.schema_in == self.schema_out, f"{other.schema_in} is not {self.schema_out}"
        steps, origins = (*self.steps, *other.steps), (*self.origins, *other.origins)
        return replace(self, schema_out=other.schema_out, steps=steps, origins=origins)

    def standing_for(self, operator: bytes, shorter: LinearChain) -> LinearChain:
        """Return the same chain, whose steps behind those of `shorter` stand for `operator`."""
        more = (operator,) * (len(self.steps) - len(shorter.steps))
        return replace(self, origins=(*shorter.origins, *more))

    def is_identity(self) -> bool:
        """True if it leaves every row as it is."""
        projection = self.as_projection()
        return projection is not None and projection.is_identity(self.schema_in.width)

    def as_projection(self, symbols: SymbolTable | None = None) -> Projection | None:
        """Return where each word of the result comes from, if words only move or are constant; else None.

        With `symbols`, string constants are entered there, as by `compile`.
        """
        return projection_of(self.steps, self.schema_in, symbols)

    def as_accumulation(self, symbols: SymbolTable) -> tuple[Projection, AccumulateTransform] | None:
        """Return how words move before the last step, and that step, if it accumulates; otherwise None."""
        if not self.steps or not isinstance(last := self.steps[-1], AccumulateTransform):
            return None
        moves = projection_of(self.steps[:-1], self.schema_in, symbols)
        return None if moves is None else (moves, last)

    def compile(self, symbols: SymbolTable) -> RowFunction:
        """Return the one function: int64[schema_in.width + 2, n] → int64[schema_out.width + 2, m], or None.

        It returns None for no rows, and may raise RowError and UserFunctionError. A chain that only moves
        words costs 0.2 µs, a filter some 2 µs.
        """
        return as_one(self.passes(symbols))

    def passes(self, symbols: SymbolTable) -> list[Pass]:
        """Return the passes that `compile` makes into one function."""
        return passes_of(self.steps, self.schema_in, symbols, self.origins)

    @property
    def risky(self) -> LinearChain | None:
        """The chain up to its last step that may have no answer for a row; None if every step has one."""
        steps = risky_steps(self.steps, self.schema_in)
        return replace(self, steps=self.steps[:steps], origins=self.origins[:steps]) if steps else None

    def sites(self) -> Mapping[str, str]:
        """Return where each part that may fail was written, by the part's text."""
        sites: dict[str, str] = {}
        for step in self.steps:
            if isinstance(step, SelectPass):
                sites.update(
                    {text: str(site) for text, site in sites_in([e for _, e in step.columns]).items()}
                )
            elif isinstance(step, FilterPass):
                sites.update({text: str(site) for text, site in sites_in([step.condition]).items()})
            elif isinstance(step, AnsweredTransform):
                sites[record_text(step.text)] = str(step.site)
            elif isinstance(step, UserStep):
                sites[record_text(step.name)] = str(step.site)
            elif isinstance(step, SlidingTransform):
                sites[step.text] = str(step.site)
            elif isinstance(step, Claim):
                sites[record_text(step.what)] = step.what
        return sites

    def describe(self) -> list[str]:
        """Return a line for each step, the same in every process, for plans and fingerprints."""
        return [step.describe() for step in self.steps]

    def _longer(self, step: Step, schema: Schema) -> LinearChain:
        return replace(self, schema_out=schema, steps=(*self.steps, step), origins=(*self.origins, b""))

    def _user(self, kind: UserKind, function: MapFunction, schema: SchemaSpec | None) -> LinearChain:
        site = call_site()
        if not callable(function):
            raise ExpressionError(f"{kind}({function!r}) ({site}) needs a function.")
        schema_out = self.schema_out if schema is None else Schema.of(schema)
        return self._longer(UserStep(kind, function, self.schema_out, schema_out, site), schema_out)
