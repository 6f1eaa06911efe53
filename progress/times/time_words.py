"""How is a time one 64-bit integer?

A dataflow has one `TimeLayout`: for every nesting level a *field* of value bits, the epoch's at the top,
and above each field a *guard bit*, which is 0 in every time. Bit 63 is unused, so words are ≥ 0.

    bit 62                                                     bit 0
    [0 epoch ........][0 level 1 .....][0 level 2 ....][0 level 3 ..]

A prioritised level has two coordinates (p, i), which share its field: p in the upper half. Levels that a
scope does not have are 0. As a level has its place in every scope, entering a loop changes nothing,
leaving is a mask, feedback adds `unit`, and every path summary is a pair: t' = (t & keep) + add.

The order of a scope needs one word, `guards`: the guard bit of the top level of each chain. With it

    a ≤ b   iff   ((b | guards) - a) & guards == guards

since no borrow passes a guard that is set, and a guard survives iff its chain of `a` is ≤ that of `b`.
The order of the integers is a linear extension of this order, so sorting words sorts times.

The epoch's field counts from an anchor that moves up (`anchor.py`): it bounds how many epochs are open at
once.

`timestamp.py` is the readable twin; property tests hold the two equal. The comparisons of words are compiled,
and stand apart in `word_order.py`: code that describes a dataflow, or packs a time for a worker, needs no
kernel.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Final

from progress.errors import GraphError, MisuseError, TimeOverflowError
from progress.times.anchor import EPOCH_MAX, Anchor
from progress.times.timestamp import TimeShape, Timestamp

WORD_BITS: Final = 63
LEVELS_MAX: Final = 8

EPOCH_BITS_MIN: Final = 2
"""One open epoch, the one before it, which may still be looked up, and the last value, which is neither."""

_DEFAULT_BITS: Final = {
    1: (62,),
    2: (32, 29),
    3: (28, 16, 16),
    4: (20, 13, 13, 13),
    5: (18, 10, 10, 10, 10),
    6: (17, 8, 8, 8, 8, 8),
    7: (14, 7, 7, 7, 7, 7, 7),
    8: (13, 6, 6, 6, 6, 6, 6, 6),
}
assert all(sum(bits) + levels == WORD_BITS for levels, bits in _DEFAULT_BITS.items())
assert max(_DEFAULT_BITS) == LEVELS_MAX


@dataclass(frozen=True)
class TimeLayout:
    """The number of value bits of each nesting level in a word; the same in all scopes of a dataflow.

    Raises `GraphError` if the fields and their guards do not fit 63 bits.
    """

    level_bits: tuple[int, ...]

    def __post_init__(self) -> None:
        if not 1 <= len(self.level_bits) <= LEVELS_MAX:
            raise GraphError(f"a time layout has 1 to {LEVELS_MAX} levels, not {len(self.level_bits)}")
        if min(self.level_bits) < 1 or sum(self.level_bits) + len(self.level_bits) > WORD_BITS:
            raise GraphError(
                f"time layout {self.level_bits} does not fit: the bits of all levels and one guard bit for "
                f"each must be at most {WORD_BITS} together, and no level may be without bits"
            )
        if self.level_bits[0] < EPOCH_BITS_MIN:
            raise GraphError(
                f"time layout {self.level_bits} has no room for epochs: the first level has at least "
                f"{EPOCH_BITS_MIN} bits"
            )
        assert self.shifts[-1] == 0, "the innermost level stands lowest"
        assert self.guard(0) < 1 << WORD_BITS, "bit 63 is the sign"

    @staticmethod
    def default(levels: int) -> TimeLayout:
        """Return the layout of a dataflow of `levels` nesting levels that declares none.

        Raises `GraphError` if loops nest too deep.
        """
        if levels not in _DEFAULT_BITS:
            raise GraphError(
                f"loops nest at most {LEVELS_MAX - 1} deep, not {levels - 1}: all counters share one word"
            )
        layout = TimeLayout(_DEFAULT_BITS[levels])
        assert layout.levels == levels, layout
        assert layout.guard(0) == 1 << (WORD_BITS - 1), "the epoch's guard is the highest bit in use"
        return layout

    @property
    def levels(self) -> int:
        """Number of nesting levels that have a field."""
        return len(self.level_bits)

    @cached_property
    def shifts(self) -> tuple[int, ...]:
        """For each level, the position of the lowest bit of its field."""
        return tuple(
            sum(bits + 1 for bits in self.level_bits[level + 1 :]) for level in range(len(self.level_bits))
        )

    @cached_property
    def epochs(self) -> int:
        """Number of epochs that have words.

        The last value of the field has none: it stands for all later epochs, so a frontier there means that
        all epochs with words are complete.
        """
        return (1 << self.level_bits[0]) - 1

    @cached_property
    def limit(self) -> int:
        """The first word that is too large: a word of this epoch, or of a later one, is wide."""
        return self.epochs << self.shifts[0]

    @cached_property
    def window(self) -> int:
        """Number of epochs from the anchor on whose rows may enter.

        The rest of the field is for rows that operators send to later epochs, and for rows of workers whose
        anchor is ahead.
        """
        return max(2, 1 << (self.level_bits[0] - 1))

    def guard(self, level: int) -> int:
        """Return the guard bit of one level."""
        assert 0 <= level < self.levels, (level, self)
        bit = self.shifts[level] + self.level_bits[level]
        assert bit < WORD_BITS, "bit 63 is the sign"
        return 1 << bit


@dataclass(frozen=True)
class TimeCode:
    """Times of one scope to words and back: a layout seen through a shape.

    Laws: unpack(pack(t)) == t · pack keeps and reflects the order · pack(a) < pack(b) if a < b · the same of
    pack_wide and unpack_wide, for all epochs · where pack has a word, pack_wide has the same

    Raises `GraphError` if the scope is deeper than the layout, or a prioritised level has too few bits.
    """

    layout: TimeLayout
    shape: TimeShape
    anchor: Anchor = field(default_factory=Anchor, compare=False, repr=False)

    def __post_init__(self) -> None:
        if self.shape.levels > self.layout.levels:
            raise GraphError(
                f"{self.shape.levels} nesting levels do not fit the {self.layout.levels} of the layout"
            )
        for bits, coordinates in zip(self.layout.level_bits, self.shape.level_coordinates, strict=False):
            if bits < coordinates:
                raise GraphError(f"a level of {bits} bits cannot hold {coordinates} counters")
        assert self.guards & self.valid == 0, "guards stand between fields"
        assert self.unit & ~self.valid == 0, "one iteration fits"

    def anchored(self, anchor: Anchor) -> TimeCode:
        """Return this code for words that count from `anchor`, wherever that moves.

        It shares the cached properties, which do not depend on the anchor.
        """
        code = object.__new__(TimeCode)
        code.__dict__.update(self.__dict__, anchor=anchor)
        return code

    @cached_property
    def fields(self) -> tuple[tuple[int, int], ...]:
        """For each coordinate, (position of its lowest bit, number of bits)."""
        fields: list[tuple[int, int]] = []
        for level, coordinates in enumerate(self.shape.level_coordinates):
            bits, shift = self.layout.level_bits[level], self.layout.shifts[level]
            if coordinates == 1:
                fields.append((shift, bits))
            else:
                lower = bits - bits // 2
                fields += [(shift + lower, bits // 2), (shift, lower)]
        assert len(fields) == self.shape.coordinates
        assert fields == sorted(fields, reverse=True), "earlier coordinates stand higher"
        return tuple(fields)

    @cached_property
    def _in_one_loop(self) -> tuple[int, int, int, int] | None:
        """The lowest bit of the epoch, that of the counter, the number of epochs and the last counter.

        None unless the scope has two coordinates, as in most loops.
        """
        if self.shape.coordinates != 2:
            return None
        (epoch_at, _), (counter_at, bits) = self.fields
        return epoch_at, counter_at, self.layout.epochs, (1 << bits) - 1

    @cached_property
    def guards(self) -> int:
        """The guard bit of the top level of each chain: all that comparing needs to know of the scope."""
        first_of_level = [sum(self.shape.level_coordinates[:level]) for level in range(self.shape.levels)]
        levels = [first_of_level.index(start) for start, _ in self.shape.bounds]
        assert levels[0] == 0, "the epoch is a chain of its own"
        assert levels == sorted(set(levels)), "every chain begins with a level of its own"
        return sum(self.layout.guard(level) for level in levels)

    @cached_property
    def valid(self) -> int:
        """All value bits of the scope: a word is a time of the scope iff it has no other bits."""
        return self.keep_mask(self.shape.levels)

    @cached_property
    def unit(self) -> int:
        """The amount that one feedback adds: one, in the last counter."""
        return 1 << self.fields[-1][0]

    @cached_property
    def probe_high(self) -> int:
        """A word that is late in every coordinate, with as much room above; tells summaries apart."""
        return sum(1 << (shift + bits - 1) for shift, bits in self.fields)

    def keep_mask(self, level_count: int) -> int:
        """Return the value bits of the outermost `level_count` levels: the mask of leaving to that depth."""
        assert 0 <= level_count <= self.layout.levels, (level_count, self)
        bits, shifts = self.layout.level_bits, self.layout.shifts
        mask = sum(((1 << bits[level]) - 1) << shifts[level] for level in range(level_count))
        assert not any(mask & self.layout.guard(level) for level in range(self.layout.levels)), "no guard"
        return mask

    def keep_mask_coordinates(self, count: int) -> int:
        """Return the value bits of the first `count` coordinates; may cut a prioritised level in two."""
        assert 0 <= count <= self.shape.coordinates, (count, self)
        mask = sum(((1 << bits) - 1) << shift for shift, bits in self.fields[:count])
        assert mask & ~self.valid == 0, (mask, self)
        return mask

    def pack(self, time: Timestamp) -> int:
        """Return the word of a time. Raises `TimeOverflowError` if a coordinate does not fit its field."""
        # Fast path: the times of inputs and outputs.
        if len(time) == 1 == self.shape.coordinates and self.holds(time[0]):
            return (time[0] - self.anchor.epoch) << self.layout.shifts[0]
        if (loop := self._in_one_loop) is not None and len(time) == 2:
            epoch_at, counter_at, epochs, last = loop
            ahead, counter = time[0] - self.anchor.epoch, time[1]
            if 0 <= ahead < epochs and 0 <= counter <= last:
                return ahead << epoch_at | counter << counter_at
        if len(time) != self.shape.coordinates:
            raise MisuseError(
                f"{time} is no time of this scope, which has {self.shape.coordinates} coordinates"
            )
        word = 0
        first = self.anchor.epoch
        stop = first + self.layout.epochs
        for coordinate, (value, (shift, bits)) in enumerate(zip(time, self.fields, strict=True)):
            stop = stop if coordinate == 0 else 1 << bits
            if not first <= value < stop:
                raise TimeOverflowError(
                    f"{self.coordinate_name(coordinate)} of {time} does not fit: it may be {first} to "
                    f"{stop - 1}; the dataflow's layout has {self.layout.level_bits} bits per "
                    "level, and another one may be given to it"
                )
            word |= (value - first) << shift
            first = 0
        assert word >= 0, "bit 63 is the sign"
        assert word & ~self.valid == 0, (time, self)
        return word

    def unpack(self, word: int) -> Timestamp:
        """Return the time of a word.

        Raises `TimeOverflowError` if bits outside the scope's fields are set.
        """
        if word < 0 or word & ~self.valid:
            raise TimeOverflowError(
                f"word {word:#x} is no time of this scope: a counter has left its field, or a level is set "
                f"that the scope does not have (fields {self.layout.level_bits}, scope {self.shape})"
            )
        if self.shape.coordinates == 1:
            return ((word >> self.layout.shifts[0]) + self.anchor.epoch,)
        if (loop := self._in_one_loop) is not None:
            epoch_at, counter_at, _, last = loop
            return (word >> epoch_at) + self.anchor.epoch, word >> counter_at & last
        time = tuple((word >> shift) & ((1 << bits) - 1) for shift, bits in self.fields)
        if self.anchor.epoch:
            time = (time[0] + self.anchor.epoch, *time[1:])
        assert self.shape.is_timestamp(time), (word, time)
        return time

    def holds(self, epoch: int) -> bool:
        """Return True if an epoch has words, with the anchor as it is now."""
        return 0 <= epoch - self.anchor.epoch < self.layout.epochs

    def within(self, word: int) -> int:
        """Return the word, or for a wide one that of the last epoch that has words."""
        limit, shift = self.layout.limit, self.layout.shifts[0]
        return word if word < limit else (word & ((1 << shift) - 1)) | (limit - (1 << shift))

    def epoch_of(self, word: int) -> int:
        """Return the epoch of a word, perhaps a wide one, or one from before the anchor."""
        return self.anchor.epoch + (word >> self.layout.shifts[0])

    def word_of_epoch(self, epoch: int) -> int:
        """Return the word of the first time of an epoch, perhaps a wide one: `pack_wide` without a check."""
        return (epoch - self.anchor.epoch) << self.layout.shifts[0]

    def pack_wide(self, time: Timestamp) -> int:
        """Return the word of a time of any epoch; it is wide if no word holds the time now.

        Words from before the anchor are below 0. Raises `TimeOverflowError` for an epoch after `EPOCH_MAX`,
        and for other coordinates as `pack`.
        """
        if not 0 <= time[0] <= EPOCH_MAX:
            raise TimeOverflowError(f"the epoch of {time} does not fit: it may be 0 to {EPOCH_MAX}")
        if len(time) == 1 == self.shape.coordinates:
            return (time[0] - self.anchor.epoch) << self.layout.shifts[0]
        rest = self.pack((self.anchor.epoch, *time[1:]))
        return rest + ((time[0] - self.anchor.epoch) << self.layout.shifts[0])

    def unpack_wide(self, word: int) -> Timestamp:
        """Return the time of a word of any epoch; the inverse of `pack_wide`."""
        shift = self.layout.shifts[0]
        _, *rest = self.unpack(word & ((1 << shift) - 1))
        return (self.epoch_of(word), *rest)

    def coordinate_name(self, coordinate: int) -> str:
        """Return the name of the counter in a coordinate, for messages."""
        assert 0 <= coordinate < self.shape.coordinates, (coordinate, self)
        if coordinate == 0:
            return "the epoch"
        level, before = 0, 0
        while before + self.shape.level_coordinates[level] <= coordinate:
            before += self.shape.level_coordinates[level]
            level += 1
        assert level < self.shape.levels, (coordinate, self)
        if self.shape.level_coordinates[level] == 1:
            return f"the counter of loop level {level}"
        return f"the {'priority' if coordinate == before else 'counter'} of prioritised loop level {level}"
