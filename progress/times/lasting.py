"""Words of one scope that stay the same when the anchor moves: for code that stores words and cannot move
them.

The words of a *lasting* code count from one epoch for ever. As long as the anchor has not moved they are the
words of the dataflow; afterwards they are larger by `base`, and may be wide.

    word of the dataflow   =   lasting word - base
"""

from __future__ import annotations

from progress.errors import TimeOverflowError
from progress.times.anchor import EPOCH_MAX, Anchor
from progress.times.time_words import TimeCode
from progress.times.timestamp import Timestamp

__all__ = ["LastingCode"]


class LastingCode(TimeCode):
    """Times of one scope to lasting words and back.

    Laws: unpack(pack(t)) == t, wherever the anchor is · the same t has the same word for ever · as long as
    `base` is 0 the words are those of the code that it was made from
    """

    live: Anchor
    """The anchor of the dataflow, which moves; `anchor` stays."""

    @staticmethod
    def of(code: TimeCode) -> LastingCode:
        """Return a lasting code whose words are those of `code` now."""
        lasting = object.__new__(LastingCode)
        lasting.__dict__.update(code.__dict__, anchor=Anchor(code.anchor.epoch), live=code.anchor)
        return lasting

    @property
    def base(self) -> int:
        """By how much lasting words are larger than those of the dataflow now."""
        return (self.live.epoch - self.anchor.epoch) << self.layout.shifts[0]

    def begin(self) -> None:
        """Count words from the anchor as it is now, when the dataflow begins. Requires: nobody has a word
        yet.
        """
        self.anchor.epoch = self.live.epoch

    def pack(self, time: Timestamp) -> int:
        """Return the word of a time.

        Until the anchor moves, the epoch must have a word, as for `TimeCode.pack`; then it may be any up to
        `EPOCH_MAX`. Raises `TimeOverflowError` for other epochs, or a counter that does not fit.
        """
        if self.live.epoch == self.anchor.epoch:
            return super().pack(time)
        if time and not 0 <= time[0] <= EPOCH_MAX:
            raise TimeOverflowError(f"the epoch of {time} does not fit: it may be 0 to {EPOCH_MAX}")
        rest = super().pack((self.anchor.epoch, *time[1:]) if time else time)
        return rest + ((time[0] - self.anchor.epoch) << self.layout.shifts[0])

    def unpack(self, word: int) -> Timestamp:
        """Return the time of a word, perhaps a wide one."""
        if self.shape.coordinates == 1:  # Fast path: the times of inputs and outputs.
            return (self.epoch_of(word),)
        shift = self.layout.shifts[0]
        _, *rest = super().unpack(word & ((1 << shift) - 1))
        return (self.epoch_of(word), *rest)

    def pack_wide(self, time: Timestamp) -> int:
        """Return the word of a time of any epoch."""
        if self.live.epoch == self.anchor.epoch:
            return super().pack_wide(time)
        return self.pack(time)
