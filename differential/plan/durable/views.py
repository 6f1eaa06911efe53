"""What do the stateless operators behind an input say about each of its rows?

The operators are run on the row with its number in place of its time. So whatever they make of it is known to
come from that row.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

import numpy as np

from timely.building.dataflow import Dataflow
from timely.building.stream import Feed

from ...columns.column_types import Bools, Int64s
from ...columns.update_batch import UpdateBatch, words_of
from ...linear.transform import LinearTransform
from ..building import Plan
from ..decoding import decode_plan
from ..nodes import Import, Input, Node
from ..stages.lowering import Lowering
from ..stages.timed import input_codec

__all__ = ["Views"]

_NEVER: Final = (1 << 63) - 1


class _ViewPath(NamedTuple):
    """One way from the input to a reader: the operators on it, and the words of the last column there."""

    kind: str
    transform: LinearTransform | None
    bound_words: int


class Views:
    """The readers of an input that `rules.py` has found.

    Args:
        name: of the input.
        packed: the plan of the readers.
        kinds: what each of them needs.
        may_drop: True if no other reader needs rows that these do not.
    """

    def __init__(self, name: str, packed: bytes, kinds: Sequence[str], may_drop: bool) -> None:
        self.may_drop = may_drop
        dataflow = Dataflow("fold")
        plan = Plan(dataflow)

        def add_input(node: Input | Import) -> Node:
            assert isinstance(node, Input), "imports are not directly behind inputs"
            return plan.leaf(node, dataflow.input(node.name, input_codec(node)))

        nodes = decode_plan(packed, plan, add_input, is_trusted=False, is_improved=True)
        lowering = Lowering(dataflow, plan.streams, plan.sites)
        own = dataflow.inputs[name].stage
        self._paths: list[_ViewPath] = []
        for node, kind in zip(nodes, kinds, strict=True):
            bound = node.schema.columns[-1].words
            self._paths += [
                _ViewPath(kind, _transform_of(feed), bound)
                for feed in lowering.feeds(node)
                if feed.stream.stage_index == own
            ]

    def needed(self, words: Int64s, summed: int) -> Bools:
        """Return which rows some reader needs behind the epoch `summed`."""
        needed = np.zeros(words.shape[1], np.bool_)
        for path in self._paths:
            rows, failing = _run(path, words)
            origins = rows[-2]
            if path.kind == "during":
                origins = origins[_bounds(rows, path.bound_words) > summed]
            needed[origins] = True
            needed[failing] = True
        return needed

    def epochs(self, words: Int64s, summed: int, first: int) -> Int64s:
        """Return, for rows that came at the epochs in `words[-2]`, epochs at which every reader judges them
        in the same way: `summed` if possible. Epochs behind `summed` stay.
        """
        came = words[-2]
        late_behind = np.full(words.shape[1], first - 1, np.int64)
        on_time_until = np.full(words.shape[1], _NEVER, np.int64)
        for path in self._paths:
            if path.kind == "on time":
                rows, _ = _run(path, words)
                bounds, origins = _bounds(rows, path.bound_words), rows[-2]
                is_late = came[origins] > bounds
                np.maximum.at(late_behind, origins[is_late], bounds[is_late])
                np.minimum.at(on_time_until, origins[~is_late], bounds[~is_late])
        epochs = np.where(on_time_until >= summed, summed, late_behind + 1)
        return np.where(came > summed, came, epochs)


def _transform_of(feed: Feed) -> LinearTransform | None:
    assert feed.transform is None or isinstance(feed.transform, LinearTransform)
    return feed.transform


def _run(path: _ViewPath, words: Int64s) -> tuple[Int64s, list[int]]:
    """Return the rows behind a path, with the number of their row in place of the time; and the numbers of
    rows that the operators have no answer for.
    """
    numbered = words.copy()
    numbered[-2] = np.arange(words.shape[1])
    numbered[-1] = 1
    if path.transform is None:
        return numbered, []
    if path.transform.chain.risky is not None:
        rows, failed = path.transform.apart(numbered)
        none = np.empty((path.transform.chain.schema_out.width + 2, 0), np.int64)
        return none if rows is None else rows, [one.time for one in failed]
    batch = path.transform(UpdateBatch(numbered))
    if batch is None:
        return np.empty((path.transform.chain.schema_out.width + 2, 0), np.int64), []
    return words_of(batch), []


def _bounds(rows: Int64s, words: int) -> Int64s:
    """Return the values of the last column; null is behind all epochs."""
    return rows[-3] if words == 1 else np.where(rows[-4] != 0, rows[-3], _NEVER)
