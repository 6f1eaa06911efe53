"""A compiled loop: all stages of a loop, run together by code that knows their vertices better than a worker
does.

To progress tracking a compiled loop is one stage, which holds the first epoch in which anything of it is
outstanding: rows in the loop have times of their own, which nobody outside sees. So a compiled loop may do as
it likes inside, as long as

    every row that it sends is at or after the epoch that its runner holds (`CompiledLoop.first`)
    its runner holds an epoch until all rows that it will send there are sent

and its runner asks it only to finish epochs for which no more rows will come.

Closed epochs are done in *spans*: all epochs that are closed when one begins, together. With several workers
each runs its share of the loop, and they go in step, in *rounds*: `running/stages/compiled_loop.py` says how.
A *barrier* is a step of the loop that waits for all rows of its times.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from enum import Enum
from typing import NamedTuple, Protocol

from progress.times.anchor import Rebase
from progress.times.time_words import TimeCode, TimeLayout

from ..dictionaries import Mark
from ..wire.batch import Batch
from ..wire.routing import Routing
from ..wire.transport import Lent
from .vertex import Vertex

__all__ = [
    "CompiledLoop",
    "Link",
    "LinkUse",
    "LoopMaker",
    "LoopSite",
    "Member",
    "RoundInput",
    "RoundResult",
    "Stop",
    "Vote",
    "are_alike",
]


class Member(NamedTuple):
    """One stage of a compiled loop: its number, its vertex, which has started, and the loops it is in, as
    numbers that tell them apart, outermost first.
    """

    stage: int
    name: str
    vertex: Vertex
    code: TimeCode
    loops: tuple[int, ...]


class LinkUse(Protocol):
    """A connector, as a compiled loop uses it."""

    rows_sent: int
    messages_sent: int

    def carry(self, batch: Batch, word: int) -> tuple[Batch, int] | None:
        """Return a batch and its word as they arrive, or None if no rows do."""
        ...

    def divided(self, batch: Batch, word: int) -> list[Batch | None]:
        """Return the rows of an arriving batch for each worker, by index; None where there are none."""
        ...

    def send(self, batch: Batch, word: int) -> None:
        """Send a batch to its targets outside of the loop."""
        ...

    def send_made(self, batch: Batch, word: int) -> None:
        """Send a batch in the same way, without the connector's transform, which was applied already."""
        ...

    def send_moved(self, batch: Batch, word: int) -> None:
        """Send a batch in the same way, whose times are already those at which it arrives."""
        ...

    def count_iteration(self, word: int, rows: int) -> None:
        """Count rows that have gone round, for reports about the loop."""
        ...


class Link(NamedTuple):
    """A connector that begins in a compiled loop. `target` is -1 if it ends outside."""

    source: int
    output: int
    target: int
    port: int
    keep: int
    add: int
    transform: object | None
    limits: Sequence[tuple[int, int, int]]
    """Lowest bit and mask of a counter, and the iteration from which on `use` has to be asked."""
    is_round: bool
    use: LinkUse
    route: object | None
    """The route that decides which worker gets which rows; None: they stay."""


class LoopSite(NamedTuple):
    """All that a compiled loop is made of."""

    members: Sequence[Member]
    links: Sequence[Link]
    layout: TimeLayout
    fed: Sequence[tuple[int, int]]
    """The stages and ports at which rows come in from outside."""
    worker: int
    workers: int
    """The index of this worker, and the number of workers."""
    routing: Routing
    """The routing in the loop: which worker has which keys."""


class Vote(NamedTuple):
    """The news of one worker about a loop, to all others, in one round. Epochs are counted from 0.

    worker   the worker that votes
    number   of the round; rounds are counted from 0 on, without end
    bound    the first epoch that is not closed yet, as far as this worker knows, or has heard
    first    the first epoch before it in which anything is outstanding with this worker, or has left with
             this vote; `bound` if nothing is
    barrier  the barrier that opens next for outstanding rows; -1: no rows wait at any barrier
    counters the iteration for which it opens, as the bits of a time word below its epoch
    passes   True if rows have left with the vote that must be passed on before another barrier opens
    is_empty True if this worker keeps nothing at all, of whichever epoch
    ended    if nothing is kept: a byte for each port, 1 if no rows will come in there any more
    """

    worker: int
    number: int
    bound: int
    first: int
    barrier: int
    counters: int
    passes: bool
    is_empty: bool
    ended: bytes


def are_alike(votes: Sequence[Vote]) -> bool:
    """Return True if no worker keeps anything, and all votes have the same `ended`."""
    return len({vote.ended for vote in votes}) == 1 and all(vote.is_empty for vote in votes)


class RoundInput(NamedTuple):
    """The input with which a compiled loop goes from round to round by itself.

    lent     the memory where round messages are written and read
    vote     the last vote of this worker; if a span `begins`: the one before its first, with its bound
    header   of a round message with rows
    word     the time word of such a message, which is also in the header
    anchor   the epoch from which words count
    ended    a byte for each port, 1 if no rows will come in there any more
    begins   True if a span begins, whose epochs have been closed: the loop passes on all rows, and votes
    """

    lent: Lent
    vote: Vote
    header: bytes
    word: int
    anchor: int
    ended: bytes
    begins: bool = False


class Stop(Enum):
    """Why a compiled loop goes on by itself no further."""

    WAITS = 0
    """It waits for other workers, or for a turn."""
    AGAIN = 1
    """Its runner may call it again at once, when it has taken back the memory that it lent."""
    VOTES = 2
    """Its runner has to send the next vote."""
    ENDS = 3
    """The span has ended."""


class RoundResult(NamedTuple):
    """How far a compiled loop went by itself.

    stop     why it does not go on
    vote     the last vote of this worker
    rounds   the number of rounds in which it has taken up the messages of all others
    first    the first epoch in which anything is outstanding with any worker, as of the last of these rounds
    is_alike True if in that round no worker kept anything, and all votes had the same `ended`
    """

    stop: Stop
    vote: Vote
    rounds: int
    first: int
    is_alike: bool


class CompiledLoop(Protocol):
    """One worker's share of a loop. Words are time words; errors of any method end the dataflow.

    A lone worker runs a span by `close` and `run`. Workers that have peers run it by `close`, and then round
    by round: by `pass_on`, `vote`, `message`, `hear` and `follow`, or all of these in `go_on`; at its end
    `send`.
    """

    at: int | None
    """The stage that it is working on, which errors name; None: it is no single stage."""

    message_kind: int
    """`KIND` of round messages."""

    def take(self, stage: int, port: int, batch: Batch) -> None:
        """Keep a batch that has come in at a port of a stage, or work on it at once as far as possible."""
        ...

    def rests(self) -> bool:
        """Return True if rows that wait, but at no barrier, may do so until there is something else to do."""
        ...

    def close(self, start: int, bound: int) -> bool:
        """Note that the epochs before the word `bound` are closed, and those before `start` are done.
        Return True if there may be anything to do in them, here or, with peers, for rows that come from the
        peers.
        """
        ...

    def run(self) -> bool:
        """Do what is outstanding in closed epochs, without peers, and send the rows that leave. Return True
        if all of it is done; if not, the runner calls again, after others have had their turn.
        """
        ...

    def first(self) -> int | None:
        """Return the word of the first epoch in which anything is outstanding here; None: nothing is."""
        ...

    def on_ended(self) -> None:
        """Called when no rows will come any more at some ports; the frontiers of vertices say at which."""
        ...

    def report(self) -> dict[int, int]:
        """Count at connectors all rows that passed them and went round loops. Return how often Python gave
        each stage a turn since the last call.
        """
        ...

    def rebase(self, by: Rebase) -> None:
        """Count words from a later epoch. The dataflow moves the words of vertices."""
        ...

    def symbols(self, mark: Mark) -> None:
        """Show all words that it keeps beside its vertices."""
        ...

    def pass_on(self) -> None:
        """Do all work for which no barrier must open."""
        ...

    def send(self) -> None:
        """Send all rows that are to leave the loop."""
        ...

    def waiting(self) -> tuple[int, int, bool]:
        """Return `barrier`, `counters` and `passes` of the next vote."""
        ...

    def message(self, vote: Vote, peer: int) -> Batch:
        """Return a round message: a vote with all rows for a worker, which do not wait here any more."""
        ...

    def vote_in(self, message: Batch) -> Vote:
        """Return the vote of another worker's round message."""
        ...

    def hear(self, message: Batch) -> None:
        """Take up the rows of another worker's round message."""
        ...

    def follow(self, votes: Sequence[Vote]) -> bool:
        """Pass on rows that came with these votes, or open the barrier that comes first among theirs; return
        False if no vote asks for either.
        """
        ...

    def go_on(self, start: RoundInput) -> RoundResult:
        """Take up round messages of all other workers as they come, follow them and vote, as a runner would
        with the methods above; up to a limit, so that others have their turn.
        """
        ...


LoopMaker = Callable[[LoopSite], CompiledLoop | None]
"""Compiles a loop; returns None if it must run as ordinary loops do."""
