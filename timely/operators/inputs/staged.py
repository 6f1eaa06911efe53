"""Parts of large insertions that have arrived, until worker 0 says which epoch they enter.

A part belongs to no epoch. When all of an insertion are on their workers its client asks worker 0 to let it
enter, which is decided once for all (`worker/orders.py`). One whose client is not heard of is refused there
after `STAGED_SECONDS_MAX`, and dropped after twice that: whatever worker 0 lets enter no other worker has
dropped. What tasks of a query stage is in `attempts.py`.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple

from ...errors import MisuseError
from ...limits import STAGED_SECONDS_MAX
from .appends import AppendId
from .folded import Waiting

__all__ = ["Staged", "StagedPart"]


class StagedPart(NamedTuple):
    """Rows of one part, at the time `word` for now."""

    word: int
    batches: list[Waiting]
    size_bytes: int


@dataclass
class _Insertion:
    """The parts of one that have arrived here, and when its client was last heard of."""

    since: float
    parts: dict[int, StagedPart] = field(default_factory=dict)

    @property
    def bytes(self) -> int:
        """Memory of all parts."""
        return sum(part.size_bytes for part in self.parts.values())


class Staged:
    """What is staged at the input `name` on one worker."""

    def __init__(self, name: str, clock: Callable[[], float] = time.monotonic) -> None:
        self._name = name
        self._clock = clock
        self._insertions: dict[AppendId, _Insertion] = {}
        self.bytes = 0

    def __len__(self) -> int:
        """Of how many insertions there are parts."""
        return len(self._insertions)

    def add(self, identity: AppendId, number: int, part: StagedPart) -> None:
        """Keep one part of an insertion. The same number again replaces the first."""
        known = self._insertions.setdefault(identity, _Insertion(self._clock()))
        known.since = self._clock()
        before = known.parts.get(number)
        known.parts[number] = part
        self.bytes += part.size_bytes - (0 if before is None else before.size_bytes)

    def check(self, identity: AppendId) -> None:
        """Raise `MisuseError` if the parts of an insertion are not here any more. Asked of worker 0, where
        every insertion in parts has one: what it does not refuse by then no other worker has dropped.
        """
        known = self._insertions.get(identity)
        if known is None or self._clock() - known.since > STAGED_SECONDS_MAX:
            raise MisuseError(
                f"input {self._name!r}: the parts of insertion {identity.sequence} of writer "
                f"{identity.writer!r} have "
                f"waited for more than {STAGED_SECONDS_MAX:.0f} s, and were dropped: insert the rows again"
            )

    def take(self, identity: AppendId) -> list[tuple[int, StagedPart]]:
        """The parts of an insertion, by number, which are staged no longer; none, if none came here."""
        known = self._insertions.pop(identity, None)
        if known is None:
            return []
        self.bytes -= known.bytes
        return sorted(known.parts.items())

    def drop(self, identity: AppendId) -> None:
        """Forget the parts of an insertion."""
        self.take(identity)

    def drop_old(self) -> None:
        """Let go of what has waited for too long."""
        now = self._clock()
        for old in [
            identity
            for identity, known in self._insertions.items()
            if now - known.since > 2 * STAGED_SECONDS_MAX
        ]:
            self.drop(old)

    def batches(self) -> list[Waiting]:
        """All that is staged."""
        parts = [part for known in self._insertions.values() for part in known.parts.values()]
        return [batch for part in parts for batch in part.batches]

    def clear(self) -> None:
        """Forget all parts."""
        self._insertions.clear()
        self.bytes = 0

    def compared(self) -> object:
        """All that decides what it will do; bytes follow."""
        return self._insertions
