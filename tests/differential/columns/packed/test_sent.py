"""Packed rows on a wire: what a peer says of them is checked before anything is read."""

from __future__ import annotations

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st
from reference.words import Row, as_words, rows_of
from strategies_words import rows

from differential.columns.column_types import ROW_WORDS_MAX
from differential.columns.packed.block import BLOCK_ROWS, Block
from differential.columns.packed.sent import Sent, received, to_send
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


def _header(*shape: int, columns: int = 0) -> memoryview:
    """Time word, rows, whether all have the diff, the diff; columns of which all rows have the same value."""
    return memoryview(struct.pack(f"<{4 + 3 * columns}q", *shape, *(0, 0, 5) * columns))


def test_a_block_is_as_large_as_blocks_are_and_a_row_as_wide_as_rows_are() -> None:
    sent = received(_header(8, BLOCK_ROWS, 1, -3, columns=ROW_WORDS_MAX - 2), memoryview(b"x"), 0)
    assert (sent.block.rows, sent.block.columns, sent.word, sent.diff) == (
        BLOCK_ROWS,
        ROW_WORDS_MAX - 2,
        8,
        -3,
    )
    sent = received(_header(8, 1, 0, 0, columns=ROW_WORDS_MAX - 1), memoryview(b"x"), 0)
    assert (sent.block.columns, sent.diff) == (ROW_WORDS_MAX - 1, None)
    assert received(_header(8, 1, 1, 0), memoryview(b"x"), 0).block.columns == 0


@pytest.mark.parametrize(
    "header",
    [
        _header(8, 0, 1, 1, columns=1),
        _header(8, -1, 1, 1, columns=1),
        _header(8, BLOCK_ROWS + 1, 1, 1, columns=1),
        _header(8, 1, 2, 1, columns=1),
        _header(8, 1, -1, 1, columns=1),
        _header(8, 1, 0, 0),
        _header(8, 1, 1, 1, columns=ROW_WORDS_MAX - 1),
        _header(8, 1, 0, 0, columns=ROW_WORDS_MAX),
    ],
    ids=["none", "less", "too many", "2", "-1", "no diff", "too wide", "too wide with a diff"],
)
def test_a_shape_that_nobody_sends_is_refused(header: memoryview) -> None:
    with pytest.raises(PeerError, match="worker 5 sent packed updates of an impossible shape"):
        received(header, memoryview(b"x"), 5)


@pytest.mark.parametrize("size", [0, 8, 31, 33, 55, 57])
def test_a_header_that_ends_within_a_column_is_refused(size: int) -> None:
    with pytest.raises(PeerError, match=f"worker 5 sent packed updates with a header of {size} bytes"):
        received(memoryview(bytes(_header(8, 1, 1, 1, columns=2))[:size]), memoryview(b"x"), 5)


@given(rows(2, wide=True).filter(len), st.sampled_from([None, 0, 1, -(2**63), 2**63 - 1]))
def test_what_is_sent_is_what_is_received(some: list[Row], diff: int | None) -> None:
    header, memory = to_send(Sent(Block(as_words(some, 4)), -8, diff))
    arrived = received(memoryview(header), memoryview(bytes(memory)), 0)
    assert (arrived.word, arrived.diff) == (-8, diff)
    assert rows_of(arrived.block.words()) == some
