"""Forgetting of words to which nothing refers any more, agreed with the peers.

A word is in use on a worker while a batch in an inbox or an input, a vertex or the log of an output has it
(`Worker.symbols`). That is not all: a peer that believes this worker to know a word sends rows with it and
not the value, and such rows may be on their way. So forgetting takes three steps, while all work goes on:

    begin       the worker tells each peer: do not believe any more that I know any words. From before that on
                its dictionaries note the entries that they send to peers, and those that come from peers
    on_answer   a peer has withdrawn its belief. Messages keep their order, so all rows that it sent in the
                old belief have arrived, and later ones bring the entries that they need
    forget      when all peers have answered, between two activations: words go that are neither in use nor
                noted

Law: no row meets a worker that does not know its words. A row of the worker's own is in use when it
forgets. A row of a peer was sent either in the old belief, and so was here before the answer, or in a later
belief. Later beliefs come from entries that went to or from the peer since it withdrew, and these have been
noted since before that; or since the worker has forgotten, when they are true.

A worker that receives an entry believes that the sender knows it. That is why entries are noted when they are
sent, and not only when they are received.

A holder of words that cannot show them keeps the worker from forgetting anything: `not_known` names it.

Pure: `Worker` sends the messages, and `worker/process.py` decides when. Workers that share a process, and its
dictionaries, need no messages: `worker/together.py`.
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
        """Show all words that it holds."""
        ...

    def silent(self) -> list[str]:
        """Return its parts that hold words and cannot show them. It is quick."""
        ...


def forget_the_rest(holders: Sequence[HoldsWords]) -> tuple[int, list[str]]:
    """Forget, in all dictionaries of this process, the words that none of `holders` has. Return the number of
    these words, and the parts that could not show theirs; if there are such parts, nothing is forgotten.

    Requires: the holders are all that there are, and none of them is at work.
    Cost: a look at every word that is held; see `Dictionary`.
    """
    not_known = [who for holder in holders for who in holder.silent()]
    if not not_known:
        markings = [dictionary.marking() for dictionary in dictionaries()]
        mark = Mark(markings)
        for holder in holders:
            try:
                holder.symbols(mark)
            except Exception as error:  # of a user's vertex
                mark.unknown(f"{type(error).__name__}: {error}")
        not_known = mark.not_known
        if not not_known:
            pairs = zip(dictionaries(), markings, strict=True)
            return sum(dictionary.forget(marking) for dictionary, marking in pairs), []
    for dictionary in dictionaries():
        dictionary.give_up()
    return 0, not_known


class Forgetting:
    """How far worker `index` of `workers` is with forgetting."""

    def __init__(self, index: int, workers: int) -> None:
        self._peers = [peer for peer in range(workers) if peer != index]
        self._awaited: set[int] | None = None
        self.not_known: list[str] = []
        """The parts that could not show their words, the last time."""

    @property
    def is_under_way(self) -> bool:
        """True if it has begun and is not over."""
        return self._awaited is not None

    @property
    def is_ready(self) -> bool:
        """True if all peers have answered."""
        return self._awaited is not None and not self._awaited

    def begin(self) -> Iterable[int]:
        """Begin; return the peers to which a withdrawal is to be sent. Requires: not `is_under_way`."""
        if self._awaited is not None:
            raise InternalError("a worker begins to forget, and has begun already")
        for dictionary in dictionaries():
            dictionary.begin()
        self._awaited = set(self._peers)
        return self._peers

    def receive(self, peer: int, is_answer: bool, frame_count: int) -> bool:
        """Take in a withdrawal, or the answer to one; return True if it is to be answered."""
        if frame_count != 1:
            raise PeerError(f"worker {peer} sent a withdrawal of {frame_count} frames instead of 1")
        if is_answer:
            self.on_answer(peer)
        else:
            self.withdraw(peer)
        return not is_answer

    def withdraw(self, peer: int) -> None:
        """Withdraw the belief in what a peer knows, since it has begun: messages to it bring all entries that
        they need from now on. The caller answers the peer.
        """
        for dictionary in dictionaries():
            dictionary.withdraw(peer)

    def on_answer(self, peer: int) -> None:
        """Note that a peer has withdrawn its belief; raise `PeerError` if this worker has sent it no
        withdrawal.
        """
        if self._awaited is None or peer not in self._awaited:
            raise PeerError(f"worker {peer} answered a withdrawal that nobody told it of")
        self._awaited.remove(peer)

    def forget(self, holders: Sequence[HoldsWords]) -> int:
        """Call `forget_the_rest`, and return the number of words; then it is over. Requires: `is_ready`."""
        if not self.is_ready:
            raise InternalError("a worker forgets before all others have answered")
        self._awaited = None
        forgotten, self.not_known = forget_the_rest(holders)
        return forgotten
