"""When may a worker forget words that nothing refers to?

A word is in use on a worker while a batch in an inbox or an input, a vertex or the log of an output has it
(`Worker.symbols`). That is not all: a peer that believes it to be known here sends rows with it and says no
more of it, and they may be on their way. So forgetting takes three steps, while all goes on:

    begin       the worker tells each peer: believe nothing of what I know. From before that on its
                dictionaries note what others are told and what they tell
    on_answer   a peer has withdrawn its belief. Messages keep their order, so what it sent in the old
                belief has arrived, and what comes now brings what it needs
    forget      when all have answered, between two activations: what is neither in use nor noted goes

Law: no row meets a worker that does not know its words. A row of its own is in use when it forgets. A row of
a peer was sent either in the belief of before, and so was here before the answer, or in a later one. Later
beliefs come from entries that went to or from the peer since it withdrew, and these have been noted since
before that; or since the worker has forgotten, when they are true.

Who is told an entry believes it known where it comes from: that is why what is told is noted, and not only
what is learned.

One who holds something and cannot say what keeps the worker from forgetting anything: `not_known` says who.

Pure: `Worker` sends what is to be sent, and `worker/process.py` decides when. Workers that share a process,
and its dictionaries, have no need of messages: `worker/together.py`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Protocol

from progress.errors import InternalError, PeerError

from ..dictionaries import Mark, dictionaries

__all__ = ["Forgetting", "HoldsWords", "forget_the_rest"]


class HoldsWords(Protocol):
    """A worker, as far as it holds words."""

    def symbols(self, mark: Mark) -> None:
        """Show all that it holds."""
        ...

    def silent(self) -> list[str]:
        """Who there holds something and cannot say what; quickly found."""
        ...


def forget_the_rest(holders: Sequence[HoldsWords]) -> tuple[int, list[str]]:
    """Forget, in all dictionaries of this process, what none of `holders` has: how many words these were, and
    who could not say what it holds. If there is one of these, nothing is forgotten.

    Requires: the holders are all that there are, and none of them is at work.
    Cost: that of looking at every word that is held; see `Dictionary`.
    """
    not_known = [who for holder in holders for who in holder.silent()]
    if not not_known:
        markings = [dictionary.marking() for dictionary in dictionaries()]
        mark = Mark(markings)
        for holder in holders:
            try:
                holder.symbols(mark)
            except Exception as error:  # of a vertex that somebody has written
                mark.unknown(f"{type(error).__name__}: {error}")
        not_known = mark.not_known
        if not not_known:
            pairs = zip(dictionaries(), markings, strict=True)
            return sum(dictionary.forget(marking) for dictionary, marking in pairs), []
    for dictionary in dictionaries():
        dictionary.give_up()
    return 0, not_known


class Forgetting:
    """How far worker `index` of `workers` is with it."""

    def __init__(self, index: int, workers: int) -> None:
        self._peers = [peer for peer in range(workers) if peer != index]
        self._awaited: set[int] | None = None
        self.not_known: list[str] = []
        """Who could not say what it holds, the last time."""

    @property
    def is_under_way(self) -> bool:
        """Whether it has begun and is not over."""
        return self._awaited is not None

    @property
    def is_ready(self) -> bool:
        """Whether all peers have answered."""
        return self._awaited is not None and not self._awaited

    def begin(self) -> Iterable[int]:
        """The peers to be told that they are to withdraw what they believe. Requires: not `is_under_way`."""
        if self._awaited is not None:
            raise InternalError("a worker begins to forget, and has begun already")
        for dictionary in dictionaries():
            dictionary.begin()
        self._awaited = set(self._peers)
        return self._peers

    def withdraw(self, peer: int) -> None:
        """A peer has begun; what it is sent from now on brings all that it needs. It is to be answered."""
        for dictionary in dictionaries():
            dictionary.withdraw(peer)

    def on_answer(self, peer: int) -> None:
        """A peer has withdrawn what it believed; `PeerError` if nobody asked it."""
        if self._awaited is None or peer not in self._awaited:
            raise PeerError(f"worker {peer} answered a withdrawal that nobody told it of")
        self._awaited.remove(peer)

    def forget(self, holders: Sequence[HoldsWords]) -> int:
        """`forget_the_rest`, after which it is over. Requires: `is_ready`."""
        if not self.is_ready:
            raise InternalError("a worker forgets before all others have answered")
        self._awaited = None
        forgotten, self.not_known = forget_the_rest(holders)
        return forgotten
