"""Which appends to epochs that their callers name have come? For as long as one of them may be repeated."""

from __future__ import annotations

import heapq
from collections.abc import Sequence

from progress.errors import MisuseError

from .appends import AppendId

__all__ = ["EpochAppends"]


class EpochAppends:
    """Of each epoch, until the next but one is sealed: a task that is tried again just after a seal is told
    "repetition" and not "sealed"; what is older would grow for ever.
    """

    def __init__(self) -> None:
        self._of: dict[int, set[AppendId]] = {}
        self._last_of: dict[AppendId, int] = {}
        """Of those that have rows of several epochs the last of these."""
        self._epochs: list[int] = []  # a heap of the keys: a seal must not look through all that wait
        self._since = 0
        """The first epoch of which all is known."""

    def __len__(self) -> int:
        """Of how many epochs any are known."""
        return len(self._of)

    def add(self, epochs: Sequence[int], identity: AppendId) -> None:
        """One has come, with rows of these epochs."""
        for epoch in epochs:
            known = self._of.get(epoch)
            if known is None:
                known = self._of[epoch] = set()
                heapq.heappush(self._epochs, epoch)
            known.add(identity)
        if len(epochs) > 1:
            self._last_of[identity] = max(epochs[-1], self._last_of.get(identity, 0))

    def has(self, epoch: int, identity: AppendId) -> bool:
        """Whether one to an epoch has come."""
        return identity in self._of.get(epoch, ())

    def has_all(self, epochs: Sequence[int], identity: AppendId) -> bool:
        """Whether one to several epochs has come: to all of which it is known. Raises `MisuseError` if it has
        come to some of them only.
        """
        known = [epoch for epoch in epochs if epoch >= self._since]
        came = [epoch for epoch in known if self.has(epoch, identity)]
        if 0 < len(came) < len(known):
            lacks = next(epoch for epoch in known if not self.has(epoch, identity))
            raise MisuseError(
                f"append {identity.sequence} of writer {identity.writer!r} has come with rows of epoch "
                f"{came[0]} and none of epoch {lacks}, and now it has some of both: it is another one. Give "
                "it a number of its own"
            )
        return bool(came)

    def missing(self, epoch: int, expected: Sequence[AppendId]) -> list[AppendId]:
        """Those of `expected` that have come neither to an epoch nor, with rows of several, to others that
        are not forgotten. (One of a single epoch is known by that, too: another of its name may be missing.)
        """
        came = self._of.get(epoch, ())
        return [identity for identity in expected if identity not in came and identity not in self._last_of]

    def forget_before(self, epoch: int) -> None:
        """Those to earlier epochs cannot be repeated any more."""
        self._since = max(self._since, epoch)
        while self._epochs and self._epochs[0] < epoch:
            gone = heapq.heappop(self._epochs)
            for identity in self._of.pop(gone):
                if self._last_of.get(identity) == gone:
                    del self._last_of[identity]
