"""The same rows as a packed batch and as an update batch."""

from __future__ import annotations

import numpy as np
from reference.words import Row, as_words

from differential.columns.packed.block import Block
from differential.columns.update_batch import PackedBatch, UpdateBatch

__all__ = ["packed_and_plain"]


def packed_and_plain(some: list[Row], word: int, diff: int | None) -> tuple[PackedBatch, UpdateBatch]:
    """The same rows of two words, at one time, packed in blocks of three, and as words."""
    words = as_words([(*row[:2], word, row[-1] if diff is None else diff) for row in some], 4)
    kept = words[[0, 1, 3] if diff is None else [0, 1]]
    blocks = [Block(np.ascontiguousarray(kept[:, at : at + 3])) for at in range(0, len(some), 3)]
    return PackedBatch(tuple(blocks), 2, word, diff, (0,)), UpdateBatch(words, (0,))
