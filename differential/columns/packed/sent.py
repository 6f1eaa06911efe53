"""A block on its way to another worker: a header that describes it, and its bytes as they lie in memory.

    header   time word, rows, whether all rows have one diff, and that diff; then place, width and base of
             each column
    bytes    the values of all columns that have any, and a byte to spare

All numbers are little-endian, of eight bytes. Neither end copies anything, so the receiver checks the header
before it uses it: kernels read wherever it says.
"""

from __future__ import annotations

import struct
from typing import Final, NamedTuple

from differential.columns.column_types import ROW_WORDS_MAX
from differential.columns.packed.block import BLOCK_ROWS, Block, PackedColumn
from timely.errors import PeerError

__all__ = ["Sent", "received", "to_send"]

_HEADER: Final = struct.Struct("<4q")
"""Time word, rows, 1 if all rows have one diff (0 if it is a column behind the row), and that diff."""

_COLUMN: Final = struct.Struct("<3q")


class Sent(NamedTuple):
    """A block, the time of its rows, and their diff; the diff is None if it is a column behind the row."""

    block: Block
    word: int
    diff: int | None


def to_send(sent: Sent) -> tuple[bytes, memoryview]:
    """Return header and bytes; the bytes are the memory of the block."""
    columns, memory = sent.block.lying()
    diff = sent.diff
    header = _HEADER.pack(sent.word, sent.block.rows, diff is not None, 0 if diff is None else diff)
    return b"".join((header, *(_COLUMN.pack(*column) for column in columns))), memory


def received(header: memoryview, memory: memoryview, peer: int) -> Sent:
    """Return what worker `peer` sent; `PeerError` unless all described values lie in the bytes."""
    size = header.nbytes - _HEADER.size
    count, rest = divmod(size, _COLUMN.size)
    if size < 0 or rest:
        raise PeerError(f"worker {peer} sent packed updates with a header of {header.nbytes} bytes")
    word, rows, is_same, diff = _HEADER.unpack_from(header)
    width = count if is_same else count - 1
    if is_same not in (0, 1) or not 0 <= width <= ROW_WORDS_MAX - 2 or not 1 <= rows <= BLOCK_ROWS:
        raise PeerError(
            f"worker {peer} sent packed updates of an impossible shape: {width} words, {rows} rows"
        )
    columns = [PackedColumn(*entry) for entry in _COLUMN.iter_unpack(header[_HEADER.size :])]
    try:
        block = Block.within(rows, columns, memory)
    except ValueError as error:
        raise PeerError(f"worker {peer} sent packed updates that are not there: {error}") from error
    return Sent(block, word, diff if is_same else None)
