"""What there is in a join that is routed, in its units and of its keys: for whoever announces."""

from __future__ import annotations

from collections.abc import Sequence

from timely.user_code.call_site import call_site

from ...aggregates import count_if
from ...columns.rows import encode_rows
from ...columns.schema import Schema, SchemaSpec
from ...columns.worker_symbols import SYMBOLS
from ...errors import SchemaError
from ...expressions.expression import col, lit
from ...kernels.rows.hashing import hash_of_key
from ...linear.placing import UNIT
from ...plan.nodes import Filter, NotNull, PlaceOnUnits, Select, Spread, SpreadLoads
from ...skew.balance import Purpose
from ..collection import Collection

__all__ = ["bucket_counts", "key_counts", "key_hash", "loads"]


def loads(pairs: Collection) -> Collection:
    """How much there is in each unit of a join that is `Routed`, of which `pairs` is the result.

    Rows (side, unit, bucket, what), as often as there is of it: what is 0 for rows that are kept, 1 for rows
    that probed there, 2 for pairs that these found, 3 for rows that have moved there. side: of what is kept,
    0 left and 1 right; bucket: of the key, one of 1,024. They depend on what comes in and on announcements,
    and neither on workers nor on what comes first. A pair that goes is taken off where that is found, so of
    pairs there may be less than none in a unit: read `changes()`, or filter what you want.

    Raises SchemaError for a collection that is no such join.
    """
    return pairs.with_node(SpreadLoads(_spread_of(pairs, "loads")))


def _spread_of(pairs: Collection, asked: str) -> Spread:
    """The join that is routed, beneath what was made of its rows one by one."""
    node = pairs.node
    while isinstance(node, Select | Filter | NotNull):
        node = node.source
    if not isinstance(node, Spread):
        raise SchemaError(f"{asked} ({call_site()}): {node!r:.80} is no join with balance=dd.Routed(…)")
    return node


def key_counts(pairs: Collection, at_least: int) -> Collection:
    """Keys of which a join that is `Routed`, with the result `pairs`, has so many rows of both sides
    together: (key, left, right), the key's hash and how many rows there are of either side.

    Which keys are heavy, for whoever decides what is announced. It keeps a number for each key.
    """
    if type(at_least) is not int or at_least < 1:
        raise SchemaError(f"key_counts ({call_site()}): at_least is 1 or more, not {at_least!r:.80}")
    both = _counted(pairs, "counted by key", "key_counts")
    counts = both.group_by("key").agg(left=count_if(col.side == 0), right=count_if(col.side == 1))
    return counts.filter(col.left + col.right >= at_least)


def bucket_counts(pairs: Collection) -> Collection:
    """Rows (side, key) of a join that is `Routed`, with the result `pairs`, as often as it has rows of that
    side in that bucket of keys, one of 1,024.
    """
    return _counted(pairs, "counted by bucket", "bucket_counts")


def _counted(pairs: Collection, purpose: Purpose, asked: str) -> Collection:
    join = _spread_of(pairs, asked)
    parts: list[Collection] = []
    for side, names in enumerate(zip(*join.on, strict=True)):
        place = PlaceOnUnits(join.children[side], names, side, purpose, join.balance)
        parts.append(pairs.with_node(place).select(side=lit(side), key=col(UNIT)))
    return parts[0].concat(parts[1])


def key_hash(values: Sequence[object], schema: SchemaSpec) -> int:
    """The hash of a key, by which announcements speak of it: `key_hash([7], "order: int")`. Types as those of
    the join's keys, without null unless null equals null there.
    """
    words = encode_rows(Schema.of(schema), [tuple(values)], SYMBOLS)
    return int(hash_of_key(words, 0, words.shape[0]))
