"""How are appends told apart, and which worker takes one?

An append is known by (writer, sequence): a repeated one must meet the first. So its worker depends on these
alone, by a function that is the same in every process.

Two kinds of identities are remembered, each as long as it can be asked for:

    of one epoch    an append to an epoch that its caller names, such as a Spark task's: until the next but
                    one is sealed. Any numbers, in any order.
    of a writer     an insertion into whichever epoch is open. The numbers of a writer follow one another, so
                    that a few intervals hold all of them: an insertion repeated an hour later counts once.
"""

from __future__ import annotations

import os
import uuid
import zlib
from bisect import bisect_right
from collections import OrderedDict
from numbers import Integral
from typing import Final, NamedTuple

from ...errors import InputClosedError, MisuseError
from ...limits import GAPS_MAX, WRITERS_MAX

__all__ = [
    "UNNAMED",
    "AppendId",
    "ExpectedAppend",
    "Numbers",
    "WriterNumbers",
    "identity_of",
    "named",
    "new_writer",
    "nothing_follows",
    "place_of",
]

ExpectedAppend = tuple[str, str, int]
"""(input, writer, sequence) of an append that must have arrived before its epoch is sealed."""


class AppendId(NamedTuple):
    """Names one append, so that a repetition is known as such."""

    writer: str
    sequence: int


_SEQUENCE_MAX: Final = 1 << 62
"""What a request carries."""

UNNAMED: Final = -1
"""The number, in a request, of an append to an epoch that nobody can repeat, since it has no name."""


def identity_of(writer: str, sequence: int) -> AppendId | None:
    """By what a repetition of an append to an epoch is known; None if it is new each time."""
    return None if sequence == UNNAMED else AppendId(writer, sequence)


def named(writer: object, sequence: object) -> tuple[str, int]:
    """The name that a caller gives what he adds. A number below 0 is none: who says -1 for "unknown" would
    lose all but the first of these.
    """
    number = -1 if isinstance(sequence, bool) or not isinstance(sequence, Integral) else int(sequence)
    if isinstance(writer, str) and 0 <= number <= _SEQUENCE_MAX:
        return writer, number
    raise MisuseError(
        "an insertion is known by a writer, a text, and a sequence, a whole number from 0 to 2⁶²: not by "
        f"writer={writer!r:.80}, sequence={sequence!r:.80}. Number those of a writer 0, 1, 2, …"
    )


def place_of(writer: str, sequence: int, workers: int) -> int:
    """The worker that an append goes to."""
    assert workers > 0
    return zlib.crc32(f"{writer}\0{sequence}".encode("utf-8", "surrogatepass")) % workers


def nothing_follows(name: str) -> InputClosedError:
    """What is said of rows for an input that is closed, by workers, and by a client that has closed it."""
    return InputClosedError(
        f"input {name!r} is closed: nothing can be added to it any more. To complete an epoch and go on, "
        "write flow.seal() in place of close(), which is for behind the last rows; to begin again, uninstall "
        "the dataflow and install it anew"
    )


def new_writer() -> str:
    """A name that no other writer has."""
    return f"{os.getpid()}-{uuid.uuid4().hex[:12]}"


class Numbers:
    """A set of whole numbers as intervals: small while they follow one another, in whatever order."""

    __slots__ = ("_firsts", "_lasts", "next")

    def __init__(self) -> None:
        self._firsts: list[int] = []
        self._lasts: list[int] = []
        self.next: int | None = None
        """The number right behind the last one; None if there is none."""

    def __contains__(self, number: int) -> bool:
        at = bisect_right(self._firsts, number) - 1
        return at >= 0 and number <= self._lasts[at]

    @property
    def gaps(self) -> int:
        """How many gaps there are between the numbers."""
        return max(0, len(self._firsts) - 1)

    def add(self, number: int) -> None:
        """Put a number in; once is enough."""
        if number == self.next:  # most often
            self._lasts[-1] = number
            self.next = number + 1
            return
        at = bisect_right(self._firsts, number) - 1
        if at >= 0 and number <= self._lasts[at]:
            return
        joins_left = at >= 0 and self._lasts[at] == number - 1
        joins_right = at + 1 < len(self._firsts) and self._firsts[at + 1] == number + 1
        if joins_left and joins_right:
            self._lasts[at] = self._lasts.pop(at + 1)
            del self._firsts[at + 1]
        elif joins_left:
            self._lasts[at] = number
        elif joins_right:
            self._firsts[at + 1] = number
        else:
            self._firsts.insert(at + 1, number)
            self._lasts.insert(at + 1, number)
        self.next = self._lasts[-1] + 1


class WriterNumbers:
    """The insertions of each writer that have been taken."""

    def __init__(self, writers_max: int = WRITERS_MAX, gaps_max: int = GAPS_MAX) -> None:
        self._writers_max = writers_max
        self._gaps_max = gaps_max
        self._numbers: OrderedDict[str, Numbers] = OrderedDict()

    def __len__(self) -> int:
        return len(self._numbers)

    def __contains__(self, identity: AppendId) -> bool:
        known = self._numbers.get(identity.writer)
        return known is not None and identity.sequence in known

    def follows(self, writer: str, sequence: int) -> bool:
        """Whether an insertion is the next one of its writer, and so is new, and leaves no gap."""
        known = self._numbers.get(writer)
        return known is not None and known.next == sequence

    def check(self, identity: AppendId) -> None:
        """Raise `MisuseError` if its number would leave one gap too many."""
        known = self._numbers.get(identity.writer)
        if known is None or known.gaps < self._gaps_max:
            return
        if not any(number in known for number in range(identity.sequence - 1, identity.sequence + 2)):
            raise MisuseError(
                f"writer {identity.writer!r} has left {known.gaps:,} gaps in the numbers of its "
                "insertions: number "
                "them 0, 1, 2, …, or take another name for the writer"
            )

    def add(self, writer: str, sequence: int) -> None:
        """Remember an insertion that has been taken."""
        numbers = self._numbers.get(writer)
        if numbers is not None:
            self._numbers.move_to_end(writer)
        else:
            numbers = self._numbers[writer] = Numbers()
            if len(self._numbers) > self._writers_max:
                self._numbers.popitem(last=False)
        numbers.add(sequence)
