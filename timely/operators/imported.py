"""Imports: what a dataflow reads of another one that runs on the same workers.

A vertex of the other dataflow, the *owner*, keeps something that others may read from its present state on.
Its *source*, one for each import on each worker, tells

    since    the first epoch as of which one can begin to read
    upper    the first epoch of which the owner may still bring something; None when it never will again

In the importing dataflow an import is an input: open on every worker, at the epoch as of which all begin. A
worker takes what has come in and lets it enter, and then, not before, moves its own share of the input on to
`upper`. So an epoch of the import is complete when all workers have all that the owner had for it; an
import whose owner is complete is closed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from progress.errors import MisuseError
from progress.times.anchor import EPOCH_MAX
from progress.times.time_words import TimeCode

from ..dictionaries import Mark
from ..failure import is_interrupt, text_of
from ..wire.batch import Batch
from .vertex import Vertex

__all__ = ["Entry", "Exported", "ImportCodec", "ImportHandle", "ImportSource", "Taken"]


@dataclass(frozen=True, eq=False)
class Exported:
    """What a running dataflow lets others read: the vertex on this worker that keeps it.

    `owner` and `dataflow` are name and number of the dataflow; `of_input` is the input that it is the content
    of, if it is one's.
    """

    dataflow: int
    owner: str
    name: str
    of_input: str
    vertex: Vertex

    def title(self) -> str:
        """What it is, as errors say it."""
        return f"{self.name!r} of dataflow {self.dataflow} ({self.owner})"


class Taken(NamedTuple):
    """What a source has brought: batches, each with an epoch ≤ those of its rows; where it has got to;
    whether this is all that there is now, and may be taken; and the last epoch of all these rows.
    """

    batches: Sequence[tuple[int, Batch]]
    upper: int | None
    is_all: bool
    latest: int = -1


class ImportSource(Protocol):
    """One import on one worker. From when it is made it keeps its `since` readable."""

    @property
    def since(self) -> int:
        """The first epoch as of which one can read."""
        ...

    @property
    def upper(self) -> int | None:
        """The first epoch of which the owner may still bring something; None if it never will."""
        ...

    def begin(self, code: TimeCode, epoch: int, news: Callable[[], None]) -> None:
        """Read as of `epoch`, which is ≥ since, times as `code` packs them; `news` is called when there is
        something to take.
        """
        ...

    def take(self, before: int) -> Taken:
        """What has come in of the epochs before `before`, first of all the state as of the epoch of the
        beginning, perhaps in pieces. As long as there is more, that is what the owner may still bring.
        """
        ...

    def close(self) -> None:
        """Read no more. Twice is once."""
        ...

    def symbols(self, mark: Mark) -> None:
        """Show `mark` all arrays in which there may be words that stand for values."""
        ...


class ImportCodec(Protocol):
    """What the importing dataflow wants to read."""

    def describe(self) -> str:
        """Stable text for the fingerprint."""
        ...

    def open(self, exported: Exported, reader: str) -> ImportSource:
        """Begin to read for the dataflow `reader`; `MisuseError` if what is there is not what is wanted."""
        ...


class Entry(Protocol):
    """The stage that stands for an import; see `Entrance` of inputs."""

    @property
    def code(self) -> TimeCode:
        """How epochs are packed into words."""
        ...

    @property
    def room(self) -> int:
        """The first epoch of which rows cannot enter yet."""
        ...

    def wake(self) -> None:
        """Ask for an activation, which calls `ImportHandle.release`."""
        ...

    def may_enter(self, epoch: int) -> bool:
        """Whether rows of an epoch may enter now; if not, `wake` follows when they may be able to."""
        ...

    def resume(self) -> None:
        """Ask for one once others have had their turn."""
        ...

    def let_in(self, batch: Batch, word: int) -> None:
        """Rows enter."""
        ...

    def advance(self, old: int, new: int | None) -> None:
        """The open epoch moves on; `None`: nothing will come any more."""
        ...


class ImportHandle:
    """One import on one worker, from when its dataflow is prepared.

    `epoch` is the first that is open here; `is_complete`: none is, nothing can come any more, and `epoch` is
    behind the last one.
    """

    def __init__(self, exported: Exported, source: ImportSource, entry: Entry) -> None:
        self.exported = exported
        self.epoch = 0
        self.is_complete = False
        self._upper = -1
        self._latest = -1
        self._source = source
        self._entry = entry

    @property
    def since(self) -> int:
        """The first epoch as of which it can begin. Raises `MisuseError` if the source says no epoch."""
        since = self._source.since
        if type(since) is not int or not 0 <= since <= EPOCH_MAX:
            raise MisuseError(
                f"the import of {self.exported.title()} can begin at {type(since).__name__} "
                f"{text_of(since)}: `since` of its source is an epoch, a whole number from 0 on"
            )
        return since

    @property
    def held_epoch(self) -> int | None:
        """The first epoch at which something may still enter here; None when nothing will."""
        return None if self.is_complete else self.epoch

    def is_past(self, epoch: int) -> bool:
        """Whether the owner has nothing more to bring of `epoch`, as far as this worker knows."""
        upper = self._source.upper
        return upper is None or upper > epoch

    def is_through(self, epoch: int) -> bool:
        """Whether all that the owner has of the epochs before `epoch` has entered here."""
        return self.is_complete or self._upper >= epoch

    def begin(self, epoch: int) -> None:
        """Read as of `epoch`."""
        self.epoch = epoch
        self._source.begin(self._entry.code, epoch, self._entry.wake)
        self._entry.wake()

    def release(self) -> None:
        """Let in what has come: the activation of the import's stage."""
        if self.is_complete:
            return
        taken = self._source.take(self._entry.room)
        if taken.is_all and taken.upper is not None:
            self._upper = taken.upper
        self._latest = max(self._latest, taken.latest)
        pack = self._entry.code.pack
        for epoch, batch in taken.batches:
            self._entry.let_in(batch, pack((epoch,)))
        if not taken.is_all:
            self._entry.resume()
        elif taken.upper is None:
            self.is_complete = True
            self._entry.advance(self.epoch, None)
            self.epoch = max(self.epoch, self._latest + 1)
        else:
            if taken.upper > self.epoch:
                self._entry.advance(self.epoch, taken.upper)
                self.epoch = taken.upper
            self._entry.may_enter(taken.upper)

    def close(self) -> None:
        """Read no more; what was kept for it may go. A source that fails to close is let go of all the
        same: nothing reads from it any more.
        """
        try:
            self._source.close()
        except BaseException as error:
            if is_interrupt(error):
                raise

    def symbols(self, mark: Mark) -> None:
        """What has come in and was not let in yet."""
        mark.holder(self._source, f"the import of {self.exported.title()}")
