"""The same rows as a packed batch and as an update batch."""

from __future__ import annotations

import itertools

import numpy as np
from reference.words import Row, as_words

from differential.columns.packed.block import Block
from differential.columns.update_batch import PackedBatch, UpdateBatch

__all__ = ["packed_and_plain"]


def packed_and_plain(some: list[Row], word: int, diff: int | None) -> tuple[PackedBatch, UpdateBatch]:
    """The same rows of two words, at one time, packed in blocks of two and three in turn, and as words."""
    words = as_words([(*row[:2], word, row[-1] if diff is None else diff) for row in some], 4)
    kept = words[[0, 1, 3] if diff is None else [0, 1]]
    bounds = [at for at in range(len(some)) if at % 5 in (0, 2)]
    blocks = [
        Block(np.ascontiguousarray(kept[:, start:stop]))
        for start, stop in itertools.pairwise([*bounds, len(some)])
    ]
    return PackedBatch(tuple(blocks), 2, word, diff, (0,)), UpdateBatch(words, (0,))
