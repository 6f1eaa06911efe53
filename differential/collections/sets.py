"""Operators on collections as multisets of whole rows: sums, sets, what is kept of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Self

from ..errors import SchemaError
from ..plan.nodes import Arrange, Concat, Consolidate, Distinct
from .handle import in_one_place
from .rows import RowOperators

__all__ = ["SetOperators"]


class SetOperators(RowOperators):
    """Sums and sets of rows."""

    def concat(self, *others: Self) -> Self:
        """The sum: multiplicities added. The others must have the same columns and types; their order may
        differ.
        """
        parts = in_one_place((self, *others))
        nodes = tuple(part.conformed(self.schema, "concat").node for part in parts)
        return parts[0].with_node(Concat(nodes)) if others else self

    def consolidate(self) -> Self:
        """The same collection, each time's updates summed before they go on."""
        return self.with_node(Consolidate(self.node))

    def arrange(self, by: str | Sequence[str]) -> Self:
        """The same collection, kept by the columns `by` once: joins and groups by just these, in this order,
        read it, and none keeps rows of its own. Inside loops, too.

        What several operators read alike is arranged without being asked; this is for what differs in
        filters: write them behind the join. It keeps what its readers need of it. Rust: `arrange_by_key`.
        """
        keys = (by,) if isinstance(by, str) else tuple(by)
        for key in keys:
            self.schema.offset(key)
        if not keys or len(set(keys)) != len(keys):
            raise SchemaError(f"arrange: by takes the names of different columns, not {by!r}")
        return self.with_node(Arrange(self.node, keys))

    def distinct(self) -> Self:
        """Each row that has a positive multiplicity, once."""
        return self.with_node(Distinct(self.node))
