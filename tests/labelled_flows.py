"""A compiled loop for tests that look into workers: from which least node does one get to each node?"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import pyarrow as pa

import differential as dd
from differential import Collection, col
from differential.operators.edge.table_in import TableIn
from timely import Dataflow
from timely.operators.capture import FOREVER
from timely.running.instance import Instance

__all__ = ["Pair", "changes_of", "countdown", "countdown_plainly", "feed", "labels", "labels_plainly"]

Pair = tuple[int, int]


def labels(dataflow: Dataflow) -> None:
    """The join reads what the minimum keeps of its answers, one iteration later."""
    edges = dd.input(dataflow, "edges", "k: int, to: int")
    own = edges.select(k=col.k, v=col.k).concat(edges.select(k=col.to, v=col.to)).distinct()

    def body(x: Collection) -> Collection:
        moved = x.join(edges, on="k").select(k=col.to, v=col.v)
        return moved.concat(own).group_by("k").agg(v=dd.min("v"))

    own.iterate(body).output("out")


def labels_plainly(pairs: Sequence[Pair]) -> set[Pair]:
    """What `labels` means: by hand, without workers."""
    least = {node: node for pair in pairs for node in pair}
    while True:
        better = {
            node: min([label, *(least[k] for k, to in pairs if to == node)]) for node, label in least.items()
        }
        if better == least:
            return set(least.items())
        least = better


def feed(instance: Instance, pairs: Sequence[Pair], diff: int = 1) -> None:
    """Put edges into the open epoch, which ends with them."""
    handle = instance.input("edges")
    if pairs:
        assert isinstance(handle.codec, TableIn)
        table = pa.table(dict(zip(handle.codec.schema.names, zip(*pairs, strict=True), strict=True)))
        handle.append(handle.epoch, handle.codec.encode(table, diff, handle.epoch_word(handle.epoch)))
    handle.seal()


def changes_of(instance: Instance) -> Counter[tuple[int, ...]]:
    """How often each (k, v, epoch) has come out."""
    found: Counter[tuple[int, ...]] = Counter()
    for row in instance.output("out").log.changes(0, FOREVER).to_pylist():
        *words, diff = row.values()
        found[tuple(words)] += diff
    return found


def countdown(dataflow: Dataflow) -> None:
    """Numbers go round a compiled loop as one less, each time under the next key, until they are zero: the
    key decides which worker has a number, so that all of them have their turn.
    """
    numbers = dd.input(dataflow, "edges", "k: int, v: int")

    def body(x: Collection) -> Collection:
        return x.where(col.v > 0).select(k=col.k + 1, v=col.v - 1).concat(numbers).distinct()

    numbers.iterate(body).output("out")


def countdown_plainly(pairs: Sequence[Pair]) -> set[Pair]:
    """What `countdown` means."""
    return {(k + turn, v - turn) for k, v in pairs for turn in range(v + 1)}
