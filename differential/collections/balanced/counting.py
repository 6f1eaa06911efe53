"""Count rows and pairs of a routed join, by unit, key and bucket, for a client that makes announcements."""

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
    """The load of each unit of a join that is `Routed`; `pairs` is its result.

    Rows (side, unit, bucket, what), with the amount as multiplicity. what: 0 for stored rows, 1 for rows that
    probed there, 2 for pairs that these found, 3 for rows that have moved there. side: of the stored rows, 0
    left and 1 right; bucket: of the key, one of 1,024. The loads depend on the inputs and on announcements,
    and neither on workers nor on the order of arrival. A pair that goes is subtracted at the unit where that
    is found, so a unit may have a negative number of pairs: read `changes()`, or filter what you need.

    Raises SchemaError for a collection that is no such join.
    """
    return pairs.with_node(SpreadLoads(_spread_of(pairs, "loads")))


def _spread_of(pairs: Collection, operator: str) -> Spread:
    """Return the routed join beneath operators that treat its rows one by one."""
    node = pairs.node
    while isinstance(node, Select | Filter | NotNull):
        node = node.source
    if not isinstance(node, Spread):
        raise SchemaError(f"{operator} ({call_site()}): {node!r:.80} is no join with balance=dd.Routed(…)")
    return node


def key_counts(pairs: Collection, at_least: int) -> Collection:
    """Keys with at least `at_least` rows of both sides together in a `Routed` join; `pairs` is its result.

    Rows (key, left, right): the key's hash, and the number of rows of each side. They tell a client that
    makes announcements which keys are heavy. Stores a number for each key.
    """
    if type(at_least) is not int or at_least < 1:
        raise SchemaError(f"key_counts ({call_site()}): at_least is 1 or more, not {at_least!r:.80}")
    both = _counted(pairs, "counted by key", "key_counts")
    counts = both.group_by("key").agg(left=count_if(col.side == 0), right=count_if(col.side == 1))
    return counts.filter(col.left + col.right >= at_least)


def bucket_counts(pairs: Collection) -> Collection:
    """Rows (side, key) of a join that is `Routed`, where key is the bucket of a row's key, one of 1,024.

    The multiplicity is the number of rows of that side in that bucket. `pairs` is the join's result.
    """
    return _counted(pairs, "counted by bucket", "bucket_counts")


def _counted(pairs: Collection, purpose: Purpose, operator: str) -> Collection:
    join = _spread_of(pairs, operator)
    parts: list[Collection] = []
    for side, names in enumerate(zip(*join.on, strict=True)):
        place = PlaceOnUnits(join.children[side], names, side, purpose, join.balance)
        parts.append(pairs.with_node(place).select(side=lit(side), key=col(UNIT)))
    return parts[0].concat(parts[1])


def key_hash(values: Sequence[object], schema: SchemaSpec) -> int:
    """Return the hash of a key, which names the key in announcements: `key_hash([7], "order: int")`.

    The types are those of the join's keys, without null unless null equals null there.
    """
    words = encode_rows(Schema.of(schema), [tuple(values)], SYMBOLS)
    return int(hash_of_key(words, 0, words.shape[0]))
