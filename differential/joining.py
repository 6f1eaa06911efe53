"""Inner join of two collections, as one stage with two inputs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from differential.columns.schema import Column, Schema
from differential.errors import SchemaError
from differential.linear.chain import LinearChain

from .collection import Collection, Term
from .operators.vertices import JoinVertex

__all__ = ["join"]


def join(left: Collection, right: Collection, on: str | Sequence[str] | Mapping[str, str]) -> Collection:
    """Rows of both with equal keys; see `Collection.join`. Both are in one scope."""
    pairs = _pairs(on)
    left_keys, right_keys = [pair[0] for pair in pairs], [pair[1] for pair in pairs]
    for keys in (left_keys, right_keys):
        if len(set(keys)) != len(keys):
            raise SchemaError(f"join: a key is named twice in {', '.join(keys)}")
    for left_key, right_key in pairs:
        if left.schema[left_key].type != right.schema[right_key].type:
            raise SchemaError(
                f"join: key {left_key!r} is {left.schema[left_key].type}, key {right_key!r} is "
                f"{right.schema[right_key].type}; cast one of them"
            )
    schema = _joined_schema(left.schema, right.schema, left_keys, right_keys)
    key_words = sum(left.schema[key].words for key in left_keys)
    left_words, right_words = left.schema.width - key_words, right.schema.width - key_words
    schemas = (left.schema.reordered(left_keys), right.schema.reordered(right_keys))
    feeds = [*left.feeds(0, left_keys), *right.feeds(1, right_keys)]
    condition = " and ".join(f"{a} = {b}" if a != b else a for a, b in pairs)
    (stream,) = left.dataflow.stage(
        f"join on {condition}",
        lambda: JoinVertex(key_words, left_words, right_words, schemas),
        feeds,
        detail=f"({left.schema}) with ({right.schema})",
    )
    return replace(
        left, schema=schema, terms=(Term(stream, LinearChain.over(schema)),), is_consolidated=False
    )


def _pairs(on: str | Sequence[str] | Mapping[str, str]) -> list[tuple[str, str]]:
    if isinstance(on, str):
        return [(on, on)]
    if isinstance(on, Mapping):
        return list(on.items())
    return [(key, key) for key in on]


def _joined_schema(
    left: Schema, right: Schema, left_keys: Sequence[str], right_keys: Sequence[str]
) -> Schema:
    keys: list[Column] = [left[key] for key in left_keys]
    others = [column for column in left if column.name not in left_keys]
    more = [column for column in right if column.name not in right_keys]
    taken = {column.name for column in (*keys, *others)}
    for column in more:
        if column.name in taken:
            raise SchemaError(
                f"join: both sides have a column {column.name!r} besides the keys. Rename one before: "
                f"select(…, right_{column.name}=col.{column.name})"
            )
    return Schema((*keys, *others, *more))
