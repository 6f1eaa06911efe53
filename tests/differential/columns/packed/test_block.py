"""Blocks: rows packed by column, and back; and the room that is given back."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from reference.words import Row, as_words, rows_of
from strategies_words import rows
from words_seen import Seen

from differential.columns.packed.block import Block, PackedColumn, reserve, reserved_bytes
from differential.kernels.rows.memory import HEADER
from timely.dictionaries import Mark


@given(rows(2, wide=True).filter(len))
def test_a_block_has_the_rows_that_it_is_made_of_in_their_order(some: list[Row]) -> None:
    block = Block(as_words(some, 4))
    assert (rows_of(block.words()), block.rows, block.columns) == (some, len(some), 4)
    for column in range(4):
        words = np.empty(len(some), np.int64)
        block.write(column, words)
        assert words.tolist() == [row[column] for row in some]


@given(rows(2, wide=True).filter(len), st.integers(1, 5))
def test_a_block_piece_by_piece_is_all_its_rows_in_the_same_memory(some: list[Row], many: int) -> None:
    block, found, places = Block(as_words(some, 4)), [], set()
    for piece in block.pieces(many):
        assert 1 <= piece.shape[1] <= many and piece.flags.c_contiguous
        found += rows_of(piece)
        places.add(piece.ctypes.data)
    assert found == some and len(places) == 1


@given(rows(2, wide=True).filter(len), st.data())
def test_some_rows_of_a_block_are_a_block_in_the_same_memory(some: list[Row], data: st.DataObject) -> None:
    block = Block(as_words(some, 4))
    start = data.draw(st.integers(0, len(some) - 1))
    stop = data.draw(st.integers(start + 1, len(some)))
    part = block.between(start, stop)
    assert (rows_of(part.words()), part.rows, part.bytes) == (some[start:stop], stop - start, block.bytes)
    columns, memory = part.lying()
    copied = memoryview(bytes(memory))
    assert rows_of(Block.within(part.rows, columns, copied).words()) == some[start:stop]
    first = data.draw(st.integers(0, part.rows - 1))
    assert rows_of(part.between(first, part.rows).words()) == some[start + first : stop]
    assert rows_of(block.words()) == some


def test_a_block_knows_a_column_in_which_all_words_are_the_same() -> None:
    block = Block(np.array([[5, 5], [1, 2], [-(2**63), -(2**63)], [0, 2**62]]))
    assert [block.only(column) for column in range(-4, 4)] == 2 * [5, None, -(2**63), None]


@given(rows(2, wide=True).filter(len))
def test_a_block_shows_the_words_of_the_columns_that_are_asked_for(some: list[Row]) -> None:
    seen = Seen()
    Block(as_words(some, 4)).symbols(Mark([seen]), [1])
    assert seen.words == {row[1] for row in some}


def test_a_column_takes_as_many_bytes_as_its_values_need_and_none_if_they_are_the_same() -> None:
    rows_many = 1 << 16
    number = np.arange(rows_many)
    wide = Block(np.stack([number << 20, number, np.full_like(number, -7), np.ones_like(number)]))
    assert wide.bytes <= (8 + 2) * rows_many + 4096


@pytest.mark.parametrize("low", [0, -(2**63), -5])
def test_columns_are_as_wide_as_the_distance_of_their_bounds(low: int) -> None:
    for bits in range(64 if low == -(2**63) else 63):
        width = next(width for width in (0, 1, 2, 3, 4, 8) if bits <= 8 * width)
        ranges = np.array([[low, low + 2**bits - 1]])
        line, _ = reserve(3, ranges)
        assert line[HEADER + 1 :].tolist() == [width, 0 if width == 8 else low]
        assert 3 * width < reserved_bytes(3, ranges) <= 3 * width + 64 + 8


@given(rows(2, wide=True).filter(len), st.lists(st.integers(-1, 3), max_size=6))
def test_columns_of_a_block_are_picked_or_the_same_in_all_rows(some: list[Row], sources: list[int]) -> None:
    block = Block(as_words(some, 4))
    other = block.with_columns(sources, list(range(len(sources))))
    assert (other.rows, other.columns, other.bytes) == (len(some), len(sources), block.bytes)
    assert rows_of(other.words()) == [
        tuple(at if source < 0 else row[source] for at, source in enumerate(sources)) for row in some
    ]


@given(rows(2, wide=True).filter(len), st.lists(st.integers(-1, 3), max_size=6))
def test_columns_that_lie_elsewhere_are_read_there_and_nothing_beside_them(
    some: list[Row], sources: list[int]
) -> None:
    block = Block(as_words(some, 4)).with_columns(sources, list(range(len(sources))))
    columns, memory = block.lying()
    copied = memoryview(bytes(memory))
    assert rows_of(Block.within(block.rows, columns, copied).words()) == rows_of(block.words())
    assert Block.within(block.rows, columns, copied).lying()[0] == columns
    if any(column.width for column in columns):
        assert max(column.at + block.rows * column.width for column in columns) + 1 == len(memory)
        with pytest.raises(ValueError, match="values of"):
            Block.within(block.rows, columns, copied[:-1])
    else:
        assert len(memory) == 1


@pytest.mark.parametrize("width", [1, 2, 3, 4, 8])
def test_a_column_that_begins_before_its_memory_or_ends_behind_it_is_refused(width: int) -> None:
    memory = memoryview(bytes(range(5 * width + 2)))
    for at in (0, 1):
        block = Block.within(5, [PackedColumn(at, width, -7)], memory)
        wanted = [
            int.from_bytes(memory[at + width * row : at + width * (row + 1)], "little") - 7
            for row in range(5)
        ]
        assert block.words()[0].tolist() == wanted
    for at in (-1, 2, -(2**63), 2**63 - 1):
        with pytest.raises(ValueError, match=f"5 values of {width} bytes from byte {at} on"):
            Block.within(5, [PackedColumn(at, width, 0)], memory)


@pytest.mark.parametrize("width", [-1, 5, 6, 7, 9, 2**62])
def test_a_column_of_no_width_that_there_is_is_refused(width: int) -> None:
    with pytest.raises(ValueError, match="bytes for a value"):
        Block.within(1, [PackedColumn(0, width, 0)], memoryview(bytes(100)))


@pytest.mark.parametrize("at", [0, -1, -(2**63), 2**63 - 1])
def test_where_a_column_lies_that_takes_nothing_is_of_no_interest(at: int) -> None:
    block = Block.within(2, [PackedColumn(at, 0, -5)], memoryview(b"x"))
    assert block.words().tolist() == [[-5, -5]]


@pytest.mark.parametrize("count", [0, -1])
def test_a_block_without_rows_is_refused(count: int) -> None:
    with pytest.raises(ValueError, match="rows"):
        Block.within(count, [PackedColumn(0, 0, 3)], memoryview(b"x"))
