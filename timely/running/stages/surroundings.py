"""The surroundings of one vertex on its worker, as its runner sees them.

    Surroundings       the dataflow: it gives turns, counts changes, and knows frontiers
    LoopSurroundings   the same around a compiled loop
    Source             the input, import or constant of a stage without a vertex
    Checker            hears of each event

Each is a protocol, which names the module that implements it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol, TypeVar

from progress.compiled.arrays import Int64s
from progress.times.anchor import Anchor
from progress.tracking.count_changes import Change
from progress.tracking.far import FarPointstamps
from progress.tracking.tracker import Tracker

from ...operators.alarms import Alarms
from ...operators.vertex import Feeder
from ...wire.batch import Batch
from ...wire.routing import Routing
from ...wire.transport import Lent

__all__ = [
    "Checker",
    "Counts",
    "Frontiers",
    "Lender",
    "LoopSurroundings",
    "Source",
    "Surroundings",
    "WithAlarms",
]

Woken_contra = TypeVar("Woken_contra", contravariant=True)
"""The runners that have turns there."""


class Checker(Protocol):
    """Hears of each event when a worker checks its progress tracking; `checking/checker.py` implements it."""

    def on_step_done(self, changes: Sequence[Change]) -> None:
        """Called when the worker has applied its own changes and is about to send them."""
        ...

    def on_progress(self, peer: int, changes: Sequence[Change]) -> None:
        """Called when the worker has applied changes from a peer."""
        ...

    def on_data(self, connector: int, word: int) -> None:
        """Called when a message has arrived from another worker."""
        ...

    def on_sent(self, connector: int, word: int) -> None:
        """Called when a message has left for another worker."""
        ...

    def on_notify(self, stage: int, word: int) -> None:
        """Called when a notification is about to be delivered."""
        ...


class Source(Protocol):
    """The input, import or constant for which a stage without a vertex stands."""

    def let_rows_in(self) -> None:
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
    """Counts what is outstanding, on one worker."""

    @property
    def worker(self) -> int:
        """Index of this worker."""
        ...

    @property
    def workers(self) -> int:
        """The number of all workers."""
        ...

    @property
    def count(self) -> Callable[[int, int, int], None]:
        """Takes (location, word, delta): one change of an occurrence count."""
        ...


class Surroundings(Counts, Protocol[Woken_contra]):
    """The dataflow around a vertex, on its worker; `instance.py` implements it, and `compiled_loop.py` in a
    compiled loop.
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
        """Return the vertices that send to input `port` of a stage on this worker."""
        ...

    @property
    def checker(self) -> Checker | None:
        """Hears of each event; None: nothing is checked."""
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


class WithAlarms(Surroundings[Woken_contra], Protocol[Woken_contra]):
    """The same, where vertices may ask for turns although nothing comes in: not in a compiled loop."""

    @property
    def alarms(self) -> Alarms:
        """What they have asked for."""
        ...


class Lender(Protocol):
    """The worker, as far as it lends shared memory to a compiled loop."""

    def lend(self, actor: int) -> Lent | None:
        """Return memory that the worker has with all others, to be used by a compiled loop until `take_back`;
        None: there is none now.
        """
        ...

    def take_back(self) -> None:
        """See `lend`."""
        ...


class LoopSurroundings(Counts, Protocol[Woken_contra]):
    """The dataflow that a compiled loop is in; `instance.py` implements it."""

    @property
    def index(self) -> int:
        """The number of the dataflow."""
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
        """Hears of each event; None: nothing is checked."""
        ...

    def feeding(self, stage: int, port: int) -> list[Feeder]:
        """Return the vertices that send to input `port` of a stage on this worker."""
        ...

    @property
    def routing(self) -> Routing:
        """The routing: which worker has which keys."""
        ...

    @property
    def anchor(self) -> Anchor:
        """The epoch from which words count."""
        ...

    @property
    def far(self) -> FarPointstamps:
        """The pointstamps that are later than words can hold."""
        ...

    def send_data(self, peer: int, connector: int, word: int, batch: Batch) -> None:
        """Send a message to another worker."""
        ...

    def wake(self, runner: Woken_contra, /) -> None:
        """Let the loop have its turn."""
        ...

    def resume_later(self, runner: Woken_contra, /) -> None:
        """Let the loop have one turn once others have had theirs."""
        ...

    def await_epoch(self, stage: int) -> None:
        """Let a stage have a turn when words count from a later epoch."""
        ...
