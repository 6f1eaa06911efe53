"""A region: all stages of a loop, run together, by who knows their vertices better than a worker does.

To progress tracking a region is one stage, which holds the first epoch that anything of it is outstanding in:
what goes on in the loop has times of its own, which nobody outside sees. So a region may do as it likes
inside, as long as

    what it sends is at or after the epoch that it holds (`Region.first`)
    it holds an epoch until all that it will send there is sent

and it is only asked to finish epochs for which nothing more will come.

With several workers their regions go in step: see `JointRegion`.
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
    "Going",
    "JointRegion",
    "Link",
    "LinkUse",
    "Member",
    "Region",
    "RegionMaker",
    "RegionSite",
    "Said",
    "Stop",
    "Went",
]


class Member(NamedTuple):
    """One stage of a region: its number, its vertex, which has started, and the loops it is in, as numbers
    that tell them apart, outermost first.
    """

    stage: int
    name: str
    vertex: Vertex
    code: TimeCode
    loops: tuple[int, ...]


class LinkUse(Protocol):
    """A connector, as a region uses it."""

    rows_sent: int
    messages_sent: int

    def carry(self, batch: Batch, word: int) -> tuple[Batch, int] | None:
        """What becomes of a batch on its way: it and its word as they arrive, or None for no rows."""
        ...

    def divided(self, batch: Batch, word: int) -> list[Batch | None]:
        """The rows of each worker, by index, of a batch as it arrives; None where there are none."""
        ...

    def send(self, batch: Batch, word: int) -> None:
        """Send a batch to where it belongs, outside of the region."""
        ...

    def send_made(self, batch: Batch, word: int) -> None:
        """The same of a batch that the connector's transform has been applied to already."""
        ...

    def tell_round(self, word: int, rows: int) -> None:
        """So many rows have gone round, for whoever asks how a loop went."""
        ...


class Link(NamedTuple):
    """A connector that begins in a region. `target` is -1 if it ends outside."""

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
    """Which worker gets which rows; None: they stay."""


class RegionSite(NamedTuple):
    """What there is to make a region of."""

    members: Sequence[Member]
    links: Sequence[Link]
    layout: TimeLayout
    fed: Sequence[tuple[int, int]]
    """The stages and ports at which something comes in from outside."""
    worker: int
    workers: int
    """Index of this worker, and how many there are."""
    routing: Routing
    """Which of them has which keys, in the loop."""


class Region(Protocol):
    """See above. Words are time words; errors of any method end the dataflow."""

    at: int | None
    """The stage that it is at, for what is said of an error; None: at none in particular."""

    def take(self, stage: int, port: int, batch: Batch) -> None:
        """A batch has come in from outside, at a port of a stage. It is kept, or done what may be done at
        once."""
        ...

    def rests(self) -> bool:
        """Whether what waits, without a gate, may do so until there is something else to do."""
        ...

    def run(self, bound: int) -> bool:
        """Do what is outstanding before the word `bound`, and send what comes of it; whether all of it is
        done: if not, it is called again, after others have had their turn.
        """
        ...

    def first(self) -> int | None:
        """The word of the first epoch in which anything is outstanding here; None: nothing is."""
        ...

    def on_since(self, since: int, has_ended: bool) -> None:
        """Nobody will ask about what was before the word `since`; `has_ended`: nothing will come any more at
        some ports at which that was not so.
        """
        ...

    def turns(self) -> dict[int, int]:
        """How often each stage has had its turn since this was last asked."""
        ...

    def tell(self) -> None:
        """Somebody asks how much went by connectors and round loops: let them know of all that did."""
        ...

    def rebase(self, by: Rebase) -> None:
        """Words count from a later epoch. Vertices are told by themselves."""
        ...

    def symbols(self, mark: Mark) -> None:
        """Show all words that it keeps beside its vertices."""
        ...


class Said(NamedTuple):
    """What one worker says of a joint region to all others: a *beat*, beside rows. Epochs are counted from 0.

    worker   who says it
    number   of the beat; they are counted from 0 on, without end
    bound    the first epoch that is not closed yet, as far as this worker knows, or has heard
    first    the first epoch before it in which anything is outstanding with this worker, or has left with
             this beat; `bound` if nothing is
    gate     the gate that opens next for what is outstanding so; -1: nothing waits at any
    counters the iteration for which it opens, as the bits of a time word below its epoch
    passes   whether rows have left with it that must be passed on before another gate opens
    is_empty whether nothing at all is kept, of whichever epoch
    ended    where nothing is kept: a byte for each port, 1 if nothing will come in there any more
    """

    worker: int
    number: int
    bound: int
    first: int
    gate: int
    counters: int
    passes: bool
    is_empty: bool
    ended: bytes


class Going(NamedTuple):
    """What a joint region needs to say and hear beats by itself.

    lent     where they are written and read
    said     what was said last; if it `begins`: before what is to be said first, with its bound
    header   of a message that brings a beat with rows
    word     the time word of such a message, which is also in the header
    anchor   the epoch from which words count
    ended    a byte for each port, 1 if nothing will come in there any more
    begins   whether a stretch does, whose epochs have been closed: all is to be passed on, and a beat said
    """

    lent: Lent
    said: Said
    header: bytes
    word: int
    anchor: int
    ended: bytes
    begins: bool = False


class Stop(Enum):
    """Why a joint region goes on by itself no further."""

    WAITS = 0
    """For others, or for a turn."""
    AGAIN = 1
    """It may be asked at once to go on, when what was lent has been taken back."""
    SAYS = 2
    """The next beat has to be said for it."""
    ENDS = 3
    """The stretch has ended."""


class Went(NamedTuple):
    """How far a joint region went by itself.

    stop     why it does not go on
    said     what was said last
    beats    how many have been taken up of each other worker
    first    the first epoch in which anything is outstanding with any, as of the last of these
    is_alike whether in that beat all kept nothing, and said the same of what has ended
    """

    stop: Stop
    said: Said
    beats: int
    first: int
    is_alike: bool


class JointRegion(Region, Protocol):
    """A region that goes in step with those of other workers: rows leave in the middle of a loop."""

    def close(self, start: int, bound: int) -> None:
        """The epochs before the word `bound` are closed, and those before `start` are done."""
        ...

    def pass_on(self) -> None:
        """Do all for which no gate must open."""
        ...

    def open(self, gate: int, counters: int) -> None:
        """Open a gate, if anything waits at it for these counters, and do all for which none must open."""
        ...

    def order(self, gate: int, counters: int) -> tuple[int, ...]:
        """Gates open in the order of what this gives."""
        ...

    def next_gate(self) -> tuple[int, int] | None:
        """The gate that opens next and its counters, for what waits here and what is about to leave."""
        ...

    def passes(self) -> bool:
        """Whether rows of closed epochs are about to leave for elsewhere than gates."""
        ...

    def beat(self, said: Said, peer: int) -> Batch:
        """What is said, with all rows for a worker, which do not wait here any more."""
        ...

    def hear(self, beat: Batch) -> None:
        """Take up the rows of another worker's beat."""
        ...

    def said(self, beat: Batch) -> Said:
        """What another worker has said."""
        ...

    @property
    def beat_kind(self) -> int:
        """`KIND` of its beats."""
        ...

    def go_on(self, going: Going) -> Went:
        """Take up beats of all other workers as they come, do what follows and say the next one, as whoever
        calls this would; up to a limit, so that others have their turn.
        """
        ...

    def send(self) -> None:
        """Send all that is to leave the loop."""
        ...


RegionMaker = Callable[[RegionSite], Region | None]
"""Makes the region of a loop, or None if it must run as ordinary loops do."""
