"""Slots, in which rows of a compiled loop wait: arrays that Python owns and a kernel fills.

During a load so many rows wait that, unpacked, they would take the most memory of all. So Python packs rows
that it adds to many others, block by block, and leaves only the last rows as words. These are always too many
for a kernel: it leaves the slot to Python, and need not know of the packed rows.
"""

from __future__ import annotations

import copy
from collections.abc import Iterable, Iterator, Sequence
from typing import Final, Self

import numpy as np

from differential.columns.packed.block import Block
from differential.columns.packed.parts import Part, changed, joined, packed
from differential.kernels.compiled_loops.layout import (
    FAR,
    S_AT,
    S_COLUMNS,
    S_COMPONENTS,
    S_LEAST,
    S_NEXT,
    S_ROOM,
    S_ROWS,
    SLOT,
)
from differential.kernels.compiled_loops.slots import least_in, moved_in_order, put_rows
from differential.kernels.rows.room import lengthened, shortened
from differential.thresholds import SLOT_LOOSE_ROWS_MAX, STEP_ROWS_MAX
from progress.compiled.arrays import Int64s
from progress.times.anchor import Rebase

__all__ = ["Slots"]

_ROOM_FIRST: Final = 64
_ROOM_KEPT: Final = 1 << 16
_ROOM_AT_REST: Final = 1 << 12
"""Rows for which a slot keeps its room from one iteration to the next, and from one span to the next."""


class Slots:
    """All slots of a compiled loop, by number. `table` describes them to kernels.

    counters: the bits of a time word that are not its epoch's
    """

    def __init__(self, counters: int) -> None:
        self._counters = counters
        self._arrays: list[Int64s] = []
        self.times: dict[int, tuple[int, ...]] = {}
        """By slot the words of its rows that are times, beside the time word."""
        self.packed: dict[int, list[Block]] = {}
        """Packed rows by slot; a slot that has some has more than STEP_ROWS_MAX rows as words, too."""
        self.table: Int64s = np.zeros((0, SLOT), np.int64)
        self.are_large = False
        """True if some slot has more room than it keeps between spans."""
        self.bound = 0
        """All epochs before that of this time word are closed."""

    def __deepcopy__(self, memo: dict[int, object]) -> Self:
        """Return slots with the same rows, in memory of their own; packed rows are shared."""
        copied = copy.copy(self)
        memo[id(self)] = copied
        copied._arrays = [array.copy() for array in self._arrays]
        copied.table = self.table.copy()
        copied.packed = {slot: blocks.copy() for slot, blocks in self.packed.items()}
        for slot in range(len(copied._arrays)):
            copied._describe(slot)
        return copied

    def __len__(self) -> int:
        return len(self._arrays)

    def add(self, columns: int, components: int = 0, times: Sequence[int] = ()) -> int:
        """Add a slot for rows of `columns` columns, and return its number.

        `components`: their number, if the rows are of components. `times`: words of the rows that are times,
        beside the time word.
        """
        self._arrays.append(np.empty((columns, _ROOM_FIRST), np.int64))
        self.table = np.concatenate([self.table, np.zeros((1, SLOT), np.int64)])
        number = len(self._arrays) - 1
        if times:
            self.times[number] = tuple(times)
        self.table[number, S_COLUMNS], self.table[number, S_COMPONENTS] = columns, components
        self.table[number, S_LEAST] = self.table[number, S_NEXT] = FAR
        self._describe(number)
        return number

    def rows(self, slot: int) -> int:
        """Return how many rows wait there as words; some do if any wait."""
        rows: int = self.table.item(slot, S_ROWS)
        return rows

    @property
    def packed_rows(self) -> int:
        """Number of rows that wait packed, in all slots."""
        if not self.packed:  # fast path
            return 0
        return sum(block.rows for blocks in self.packed.values() for block in blocks)

    def put(self, slot: int, words: Int64s, time: int = -2) -> None:
        """Add rows to a slot; `time`: the column of their time word."""
        rows = words.shape[1]
        if rows == 0:
            return
        if rows <= STEP_ROWS_MAX:
            # Kernels are compiled for one memory layout only.
            words = np.ascontiguousarray(words)
            column = time % words.shape[0]
            if put_rows(self.table, slot, words, column, self.bound, self._counters):
                return
        table = self.table
        held, least_before = table.item(slot, S_ROWS), table.item(slot, S_LEAST)
        if held + rows > SLOT_LOOSE_ROWS_MAX and rows > STEP_ROWS_MAX and time == -2:
            self._put_many(slot, words)
        else:
            if self._arrays[slot].shape[1] < held + rows:
                self.make_room(slot, held + rows)
            self._arrays[slot][:, held : held + rows] = words
            table[slot, S_ROWS] = held + rows
        least, following = least_in(words[time], self.bound, self._counters)
        if least < least_before:
            table[slot, S_LEAST] = least
        if following < FAR:
            table[slot, S_NEXT] = min(table.item(slot, S_NEXT), following)

    def _put_many(self, slot: int, words: Int64s) -> None:
        """Pack the rows that are there and, if the new rows are many themselves, all but the last of them."""
        rows = words.shape[1]
        last = rows - STEP_ROWS_MAX - 1 if rows > SLOT_LOOSE_ROWS_MAX // 2 else 0
        blocks = self.packed.setdefault(slot, [])
        for part in (self.look(slot), words[:, :last]):
            blocks += packed(part)
        self.table[slot, S_ROWS] = 0
        self.make_room(slot, rows - last)
        self._arrays[slot][:, : rows - last] = words[:, last:]
        self.table[slot, S_ROWS] = rows - last

    def put_packed(self, slot: int, blocks: Iterable[Block]) -> None:
        """Add packed rows to a slot; unpack them if the slot has few."""
        for block in blocks:
            held, rows = self.rows(slot), block.rows
            if held + rows <= SLOT_LOOSE_ROWS_MAX and slot not in self.packed:
                self.put(slot, block.words())
                continue
            # Leave so many rows as words that a kernel sees that they are too many.
            as_words = min(max(STEP_ROWS_MAX + 1 - held, 0), rows)
            if as_words:
                self.put(slot, block.between(0, as_words).words())
            if as_words < rows:
                self._put_block(slot, block.between(as_words, rows))

    def _put_block(self, slot: int, block: Block) -> None:
        self.packed.setdefault(slot, []).append(block)
        least, following = least_in(_times_of(block), self.bound, self._counters)
        line = self.table[slot]
        line[S_LEAST], line[S_NEXT] = min(int(line[S_LEAST]), least), min(int(line[S_NEXT]), following)

    def find_packed(self) -> None:
        """Lower `S_NEXT` of each slot to the first counters of its packed rows, which kernels do not see."""
        for slot, blocks in self.packed.items():
            line = self.table[slot]
            for block in blocks:
                line[S_NEXT] = min(int(line[S_NEXT]), self.next_of(_times_of(block)))

    def next_of(self, times: Int64s) -> int:
        """Return the least counters of those times that are of closed epochs; FAR if there are none."""
        following: int = least_in(times, self.bound, self._counters)[1]
        return following

    def take(self, slot: int) -> Int64s:
        """Remove all rows from a slot and return them."""
        return self._take_words(slot) if slot not in self.packed else joined(self.take_parts(slot))

    def take_parts(self, slot: int) -> list[Part]:
        """Remove all rows from a slot and return them in parts: packed ones first, then one of words."""
        blocks = self.packed.pop(slot, [])
        return [*blocks, np.ascontiguousarray(self._take_words(slot))]

    def take_parts_moved(self, slot: int, keep: int, add: int) -> list[Part]:
        """Do the same, with every time `t` at `(t & keep) + add`; packed parts are packed again."""

        def later(words: Int64s) -> Int64s:
            words[-2] = (words[-2] & keep) + add
            return words

        parts = self.take_parts(slot)
        for number, part in enumerate(parts):
            parts[number] = changed(part, later)
        return parts

    def take_moved(self, slot: int, keep: int, add: int) -> tuple[Int64s, int] | None:
        """Remove few rows from a slot; return them with their times moved, and the least time.

        Every time `t` becomes `(t & keep) + add`; the rows are sorted and summed. If there are more than a
        few, they stay, and the result is None.
        """
        table = self.table
        rows = table.item(slot, S_ROWS)
        if rows > STEP_ROWS_MAX or slot in self.packed:
            return None
        moved: tuple[Int64s, int] = moved_in_order(self._arrays[slot], rows, keep, add)
        table[slot, S_ROWS] = 0
        table[slot, S_LEAST] = table[slot, S_NEXT] = FAR
        return moved

    def _empty(self, slot: int) -> None:
        table = self.table
        table[slot, S_ROWS] = 0
        table[slot, S_LEAST] = table[slot, S_NEXT] = FAR

    def _take_words(self, slot: int) -> Int64s:
        rows, array = self.rows(slot), self._arrays[slot]
        self._empty(slot)
        if array.shape[1] <= _ROOM_KEPT:
            return array[:, :rows].copy()
        # The array of a load is given away; `shortened` frees the room behind its rows.
        self._arrays[slot] = np.empty((array.shape[0], _ROOM_FIRST), np.int64)
        self._describe(slot)
        return shortened(array, rows)

    def look(self, slot: int) -> Int64s:
        """Return the rows that are words, in place: not to be kept, nor written to."""
        return self._arrays[slot][:, : self.rows(slot)]

    def looks(self, slot: int) -> Iterator[Int64s]:
        """Yield all rows, some at a time; use them as those of `look`."""
        yield from (block.words() for block in self.packed.get(slot, ()))
        yield self.look(slot)

    def make_room(self, slot: int, rows: int) -> None:
        """Make room for at least `rows` rows in all."""
        array = self._arrays[slot]
        if array.shape[1] >= rows:
            return
        held = self.rows(slot)
        self._arrays[slot] = lengthened(array, held, max(rows, 2 * array.shape[1]))
        self.are_large = self.are_large or self._arrays[slot].shape[1] > _ROOM_AT_REST
        self._describe(slot)

    def tidy(self) -> None:
        """Free the room of slots after a span that needed much.

        A next span as large allocates the room anew; its work on so many rows takes far longer than that.
        """
        if not self.are_large:
            return
        self.are_large = False
        for slot, array in enumerate(self._arrays):
            if array.shape[1] > _ROOM_AT_REST:
                if self.rows(slot):
                    self.are_large = True
                    continue
                self._arrays[slot] = np.empty((array.shape[0], _ROOM_FIRST), np.int64)
                self._describe(slot)

    def least(self, slot: int) -> int:
        """Return the least time of the rows, FAR without any."""
        return int(self.table[slot, S_LEAST])

    def rebase(self, by: Rebase, slot: int, time: int = -2) -> None:
        """Make time words of a slot count from a later epoch."""
        rows = self.rows(slot)
        if rows:
            array = self._arrays[slot]
            for word in (time, *self.times.get(slot, ())):
                array[word, :rows] = by.words(array[word, :rows].copy())
            self.table[slot, S_LEAST] = int(array[time, :rows].min())
        if slot in self.packed:
            assert time == -2
            least, blocks = int(self.table[slot, S_LEAST]), self.packed[slot]
            for number, block in enumerate(blocks):
                words = block.words()
                for word in (time, *self.times.get(slot, ())):
                    words[word] = by.words(words[word])
                least, blocks[number] = min(least, int(words[time].min())), Block(words)
            self.table[slot, S_LEAST] = least

    def _describe(self, slot: int) -> None:
        array = self._arrays[slot]
        self.table[slot, S_AT], self.table[slot, S_ROOM] = array.ctypes.data, array.shape[1]


def _times_of(block: Block) -> Int64s:
    """Return the times of rows; one for all if they have the same."""
    if (only := block.only(-2)) is not None:
        return np.array([only], np.int64)
    times: Int64s = np.empty(block.rows, np.int64)
    block.write(block.columns - 2, times)
    return times
