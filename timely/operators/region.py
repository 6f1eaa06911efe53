"""A region: all stages of a loop, run together, by who knows their vertices better than a worker does.

To progress tracking a region is one stage, which holds the first epoch that anything of it is outstanding in:
what goes on in the loop has times of its own, which nobody outside sees. So a region may do as it likes
inside, as long as

    what it sends is at or after the epoch that it holds (`Region.first`)
    it holds an epoch until all that it will send there is sent

and it is only asked to finish epochs for which nothing more will come.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple, Protocol

from progress.times.anchor import Rebase
from progress.times.time_words import TimeCode, TimeLayout

from ..dictionaries import Mark
from ..wire.batch import Batch
from .vertex import Vertex

__all__ = ["Link", "LinkUse", "Member", "Region", "RegionMaker", "RegionSite"]


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

    def send(self, batch: Batch, word: int) -> None:
        """Send a batch to where it belongs, outside of the region."""
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


class RegionSite(NamedTuple):
    """What there is to make a region of."""

    members: Sequence[Member]
    links: Sequence[Link]
    layout: TimeLayout
    fed: Sequence[tuple[int, int]]
    """The stages and ports at which something comes in from outside."""


class Region(Protocol):
    """See above. Words are time words; errors of any method end the dataflow."""

    at: int | None
    """The stage that it is at, for what is said of an error; None: at none in particular."""

    def take(self, stage: int, port: int, batch: Batch) -> None:
        """A batch has come in from outside, at a port of a stage. It is kept, or done what may be done at
        once."""
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

    def rebase(self, by: Rebase) -> None:
        """Words count from a later epoch. Vertices are told by themselves."""
        ...

    def symbols(self, mark: Mark) -> None:
        """Show all words that it keeps beside its vertices."""
        ...


RegionMaker = Callable[[RegionSite], Region | None]
"""Makes the region of a loop, or None if it must run as ordinary loops do."""
