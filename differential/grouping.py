"""`group_by(keys)`, and what can be computed of each group."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from differential.columns.schema import Column, Schema, SchemaSpec
from differential.errors import SchemaError
from differential.linear.chain import LinearChain
from timely.user_code.call_site import call_site
from timely.user_code.code_digest import digest_of

from .aggregates import Aggregate
from .collection import Collection, Term
from .operators.group_functions import UserGroupFunction, on_words
from .operators.vertices import AggregateVertex, GroupFunctionVertex, Shown
from .other_spellings import explain

__all__ = ["Grouped"]


@dataclass(frozen=True, eq=False)
class Grouped:
    """A collection cut into groups by the columns `keys`."""

    collection: Collection
    keys: tuple[str, ...]

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> object:
            raise AttributeError(explain("a grouped collection", name, groups=True))

    def agg(self, **aggregates: Aggregate) -> Collection:
        """One row per group: the keys, and each aggregate under its name."""
        if not aggregates:
            raise SchemaError("agg needs at least one aggregate, as in agg(n=dd.count())")
        schema = self.collection.schema
        for name, aggregate in aggregates.items():
            if not isinstance(aggregate, Aggregate):
                raise SchemaError(
                    f"agg({name}=…) takes dd.count(), dd.sum('x'), dd.min('x') or dd.max('x'), "
                    f"not {aggregate!r}"
                )
            if name in self.keys:
                raise SchemaError(f"agg: {name!r} is a key already; choose another name")
        columns = tuple(Column(name, aggregate.type_in(schema)) for name, aggregate in aggregates.items())
        result = Schema((*schema.picked(self.keys), *columns))
        needed = list(
            dict.fromkeys(
                a.column for a in aggregates.values() if a.column is not None and a.column not in self.keys
            )
        )
        kept = schema.picked((*self.keys, *needed)).reordered(self.keys)
        source = self.collection.select(*kept.names)
        key_words = sum(schema[key].words for key in self.keys)
        wanted = [
            (a.kind, -1 if a.column is None else kept.offset(a.column) - key_words)
            for a in aggregates.values()
        ]
        for aggregate in aggregates.values():
            if aggregate.column in self.keys:
                raise SchemaError(
                    f"{aggregate.describe()}: {aggregate.column!r} is a key of the groups; copy it first: "
                    f"select(…, x=col.{aggregate.column})"
                )
        names = tuple(aggregate.describe() for aggregate in aggregates.values())
        shown = Shown(kept.picked(self.keys), kept, result, names)
        text = ", ".join(f"{name}={aggregate.describe()}" for name, aggregate in aggregates.items())
        (stream,) = source.dataflow.stage(
            f"group by {', '.join(self.keys) or 'nothing'}: {text}",
            lambda: AggregateVertex(key_words, kept.width - key_words, wanted, shown),
            source.feeds(0, self.keys),
            detail=f"({kept}) → ({result})",
        )
        return replace(
            source, schema=result, terms=(Term(stream, LinearChain.over(result)),), is_consolidated=True
        )

    def reduce(self, function: UserGroupFunction, schema: SchemaSpec) -> Collection:
        """Whatever rows `function(key, rows)` gives for each group; the result has the keys and the columns
        of `schema`.

        `key` is a tuple; `rows` a list of (row without the keys, multiplicity), multiplicities not 0. It
        returns rows: tuples, or bare values if `schema` has one column. It must be pure: it is called again
        whenever its group changes, also when that may turn out to be no change. About 2 µs per row of a
        changed group.
        """
        given = Schema.of(schema)
        source_schema = self.collection.schema.reordered(self.keys)
        keys = source_schema.picked(self.keys)
        for column in given:
            if column.name in self.keys:
                raise SchemaError(
                    f"reduce: {column.name!r} is a key already; choose another name in its schema"
                )
        rest = Schema(tuple(column for column in source_schema if column.name not in self.keys))
        result = Schema((*keys, *given))
        site = str(call_site())
        shown = Shown(keys, source_schema, result)
        title = (
            f"reduce by {', '.join(self.keys) or 'nothing'}: {getattr(function, '__qualname__', 'function')}"
        )
        (stream,) = self.collection.dataflow.stage(
            title,
            lambda: GroupFunctionVertex(
                keys.width, rest.width, on_words(function, keys, rest, given, site), shown
            ),
            self.collection.feeds(0, self.keys),
            detail=f"({source_schema}) → ({result}) {digest_of(function)}",
        )
        return replace(
            self.collection,
            schema=result,
            terms=(Term(stream, LinearChain.over(result)),),
            is_consolidated=True,
        )
