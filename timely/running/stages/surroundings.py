"""What is around one vertex on its worker, as those who run the vertex see it.

`Surroundings` is the dataflow: it has turns to give, counts changes, and knows frontiers;
`LoopSurroundings` the same around a compiled loop. `Source` is what a
stage without a vertex stands for, `Checker` who is told what happens.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol, TypeVar

from progress.compiled.arrays import Int64s
from progress.times.anchor import Anchor
from progress.tracking.count_changes import Change
from progress.tracking.far import FarPointstamps
from progress.tracking.tracker import Tracker

from ...operators.vertex import Feeder
from ...wire.batch import Batch
from ...wire.routing import Routing
from ...wire.transport import Lent

__all__ = ["Checker", "Counts", "Frontiers", "Lender", "LoopSurroundings", "Source", "Surroundings"]

Woken_contra = TypeVar("Woken_contra", contravariant=True)
"""Who has turns there."""


class Checker(Protocol):
    """Who is told what happens, when a worker checks its progress tracking. In use is `checking.py`."""

    def on_step_done(self, changes: Sequence[Change]) -> None:
        """The worker has applied its own changes and is about to tell them."""
        ...

    def on_progress(self, peer: int, changes: Sequence[Change]) -> None:
        """The worker has applied what a peer has told."""
        ...

    def on_data(self, connector: int, word: int) -> None:
        """A message has arrived from another worker."""
        ...

    def on_sent(self, connector: int, word: int) -> None:
        """A message has left for another worker."""
        ...

    def on_notify(self, stage: int, word: int) -> None:
        """A notification is about to be delivered."""
        ...


class Source(Protocol):
    """What a stage without a vertex stands for: an input, an import, or a constant."""

    def release(self) -> None:
        """Let rows enter: the activation of the stage."""
        ...


class Frontiers(Protocol):
    """Knows the frontiers of ports."""

    def frontier(self, port: int) -> Int64s:
        """See `Tracker.frontier`."""
        ...

    def first(self, port: int) -> int | None:
        """See `Tracker.first`."""
        ...


class Counts(Protocol):
    """Who counts what is outstanding, and on which worker."""

    @property
    def worker(self) -> int:
        """Index of this worker."""
        ...

    @property
    def workers(self) -> int:
        """How many workers there are in all."""
        ...

    @property
    def count(self) -> Callable[[int, int, int], None]:
        """Takes (location, word, delta): one change of an occurrence count."""
        ...


class Surroundings(Counts, Protocol[Woken_contra]):
    """The dataflow around a vertex, on its worker. In use are `instance.py`, and `compiled_loop.py` in a
    loop.
    """

    @property
    def recheck(self) -> set[int]:
        """Stages whose notifications may have become due."""
        ...

    @property
    def tracker(self) -> Frontiers:
        """Knows the frontiers of all ports."""
        ...

    def feeding(self, stage: int, port: int) -> list[Feeder]:
        """Who sends to input `port` of a stage on this worker."""
        ...

    @property
    def checker(self) -> Checker | None:
        """Who is told what happens, if anybody is."""
        ...

    @property
    def is_calm(self) -> bool:
        """See `Runner`."""
        ...

    def wake(self, runner: Woken_contra, /) -> None:
        """Let a stage have its turn."""
        ...

    def resume_later(self, runner: Woken_contra, /) -> None:
        """Let a stage have one turn once others have had theirs."""
        ...

    def await_epoch(self, stage: int) -> None:
        """Let a stage have a turn when words count from a later epoch."""
        ...


class Lender(Protocol):
    """The worker, as a compiled loop asks it for shared memory."""

    def lend(self) -> Lent | None:
        """Return memory that the worker has with all others, to be used until `take_back`; None: there is
        none now.
        """
        ...

    def take_back(self) -> None:
        """See `lend`."""
        ...


class LoopSurroundings(Counts, Protocol[Woken_contra]):
    """The dataflow that a compiled loop is in. In use is `instance.py`."""

    @property
    def index(self) -> int:
        """Which dataflow it is."""
        ...

    @property
    def lender(self) -> Lender:
        """The owner of the memory that is shared with other workers."""
        ...

    @property
    def tracker(self) -> Tracker:
        """Knows the frontiers of all ports."""
        ...

    @property
    def checker(self) -> Checker | None:
        """Hears what happens, if anybody does."""
        ...

    def feeding(self, stage: int, port: int) -> list[Feeder]:
        """Return the senders to input `port` of a stage on this worker."""
        ...

    @property
    def routing(self) -> Routing:
        """Which worker has which keys."""
        ...

    @property
    def anchor(self) -> Anchor:
        """The epoch from which words count."""
        ...

    @property
    def far(self) -> FarPointstamps:
        """All that is later than words can say."""
        ...

    def send_data(self, peer: int, connector: int, word: int, batch: Batch) -> None:
        """Send a message to another worker."""
        ...

    def wake(self, runner: Woken_contra, /) -> None:
        """Let it have its turn."""
        ...

    def resume_later(self, runner: Woken_contra, /) -> None:
        """Let it have one turn once others have had theirs."""
        ...

    def await_epoch(self, stage: int) -> None:
        """Let a stage have a turn when words count from a later epoch."""
        ...
