"""Rows that wait at an input of an older version of a dataflow, as the newer version has them.

The columns of an input may differ between the two: see `RereadingCodec`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from .codecs import InputCodec, RereadingCodec
from .folded import Folded, Waiting

__all__ = ["Reread", "rereading"]

Reread: TypeAlias = Callable[[int | None, Waiting], tuple[int | None, Waiting]]
"""Takes a batch and the time word of its rows (None: it is folded, and has none); returns both for the newer
version. A batch that changes is not folded any more."""


def rereading(codec: InputCodec, older: InputCodec) -> Reread:
    """Return the function that makes rows for `codec` of rows that wait as `older` has made them. Requires:
    `codec` can read them.
    """
    if not isinstance(codec, RereadingCodec) or codec.describe() == older.describe():
        return _as_it_is

    def reread(word: int | None, batch: Waiting) -> tuple[int | None, Waiting]:
        if isinstance(batch, Folded):
            word = 0 if word is None else word
            batch = batch.unfolded(word)
        return word, codec.reread(older, batch)

    return reread


def _as_it_is(word: int | None, batch: Waiting) -> tuple[int | None, Waiting]:
    return word, batch
