"""Joins: rows of two collections that belong together."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Self

from ..errors import SchemaError
from ..plan.nodes import Join
from .handle import in_one_place
from .sets import SetOperators

__all__ = ["JoinOperators"]


class JoinOperators(SetOperators):
    """Pairs of rows."""

    def join(self, other: Self, on: str | Sequence[str] | Mapping[str, str]) -> Self:
        """Pairs of rows with equal keys (inner join); multiplicities are multiplied.

        `on` names the key columns; a mapping says which column of this collection equals which of `other`.
        Columns of the result: the keys under the names they have here, the other columns of this, the other
        columns of `other`.
        """
        left, right = in_one_place((self, other))
        pairs = _pairs(on)
        for keys in zip(*pairs, strict=True):
            if len(set(keys)) != len(keys):
                raise SchemaError(f"join: a key is named twice in {', '.join(keys)}")
        return left.with_node(Join(left.node, right.node, pairs))


def _pairs(on: str | Sequence[str] | Mapping[str, str]) -> tuple[tuple[str, str], ...]:
    if isinstance(on, str):
        return ((on, on),)
    if isinstance(on, Mapping):
        return tuple(on.items())
    return tuple((key, key) for key in on)
