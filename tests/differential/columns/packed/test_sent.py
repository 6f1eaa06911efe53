"""Packed rows on a wire: what a peer says of them is checked before anything is read."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from reference.words import Row, as_words
from strategies_words import rows

from differential.columns.packed.block import Block
from differential.columns.update_batch import PackedBatch, words_of
from timely.errors import PeerError


@given(rows(1, wide=True).filter(len), st.integers(0, 200), st.integers(-(2**63), 2**63 - 1))
def test_what_does_not_lie_in_the_bytes_is_never_read(some: list[Row], at: int, value: int) -> None:
    packed = PackedBatch((Block(as_words([(row[0], row[-1]) for row in some], 2)),), 1, 8, None)
    header, memory = [memoryview(bytes(frame)) for frame in packed.to_frames(1)]
    changed = bytearray(header)
    place = at % len(header) // 8 * 8
    changed[place : place + 8] = value.to_bytes(8, "little", signed=True)
    for frames in (
        [memoryview(changed), memory],
        [header, memory[: at % len(memory)]],
        [header[:at], memory],
    ):
        try:
            arrived = PackedBatch.from_frames(frames, 5)
        except PeerError:
            continue
        assert words_of(arrived).shape[1] == arrived.rows
    for read in (PackedBatch.from_frames, PackedBatch.absorb):
        with pytest.raises(PeerError, match="worker 5 sent packed updates in frames: 1, not two"):
            read([header], 5)
