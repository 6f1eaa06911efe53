"""Imports: a dataflow reads from another one that runs on the same workers.

A vertex of the other dataflow, the *owner*, keeps a collection that others may read from its present state
on. The *source*, one for each import on each worker, has

    since    the first epoch as of which the import can begin to read
    upper    the first epoch for which the owner may still bring rows; None when it never will again

In the importing dataflow an import is an input: open on every worker, at the epoch as of which all begin. A
worker takes the rows that have come and lets them enter. Then, not before, it moves its own share of the
input on to `upper`. So an epoch of the import is complete when all workers have all rows that the owner had
for it. An import whose owner is complete is closed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol, runtime_checkable

from progress.errors import MisuseError
from progress.times.anchor import EPOCH_MAX
from progress.times.time_words import TimeCode

from ..dictionaries import Mark
from ..durable.journal import BY_EPOCH, InputJournal
from ..failure import is_interrupt, text_of
from ..wire.batch import Batch
from .inputs.names import UNNAMED
from .vertex import Vertex

__all__ = ["DividingSource", "Entry", "Exported", "ImportCodec", "ImportHandle", "ImportSource", "Taken"]


@dataclass(frozen=True, eq=False)
class Exported:
    """An export of a running dataflow: the vertex on this worker that keeps the rows.

    `owner` and `dataflow` are name and number of the dataflow; `of_input` is the name of the input whose
    content it is, if it is that of an input.
    """

    dataflow: int
    owner: str
    name: str
    of_input: str
    vertex: Vertex

    def title(self) -> str:
        """Return what it is, as errors say it."""
        return f"{self.name!r} of dataflow {self.dataflow} ({self.owner})"


class Taken(NamedTuple):
    """The rows that a source has brought: batches, each with an epoch ≤ those of its rows; `upper`, the first
    epoch for which more may come; whether these are all rows that may be taken now; and the last epoch of all
    these rows.
    """

    batches: Sequence[tuple[int, Batch]]
    upper: int | None
    is_all: bool
    latest: int = -1


class ImportSource(Protocol):
    """One import on one worker. From the moment it is made it keeps its `since` readable."""

    @property
    def since(self) -> int:
        """The first epoch as of which it can read."""
        ...

    @property
    def upper(self) -> int | None:
        """The first epoch for which the owner may still bring rows; None if it never will."""
        ...

    def begin(self, code: TimeCode, epoch: int, news: Callable[[], None]) -> None:
        """Begin to read as of `epoch`, which is ≥ since, with times as `code` packs them. It calls `news`
        when there is something to take.
        """
        ...

    def take(self, before: int) -> Taken:
        """Return the rows that have come for epochs before `before`: first the state as of the epoch at
        which it began, perhaps in pieces. While rows are left, `upper` counts them as rows that the owner
        may still bring.
        """
        ...

    def close(self) -> None:
        """Read no more. A second call does nothing."""
        ...

    def symbols(self, mark: Mark) -> None:
        """Show `mark` all arrays in which there may be words that stand for values."""
        ...


@runtime_checkable
class DividingSource(Protocol):
    """A source that can feed an input whose rows are logged."""

    def divide_epochs(self) -> None:
        """Let each batch have rows of one epoch only, from now on."""
        ...


class ImportCodec(Protocol):
    """Reads exports of the kind that an importing dataflow declares."""

    def describe(self) -> str:
        """Return a stable text for the fingerprint."""
        ...

    def open(self, exported: Exported, reader: str) -> ImportSource:
        """Begin to read for the dataflow `reader`; raise `MisuseError` if the export is not of that kind."""
        ...


class Entry(Protocol):
    """The stage that stands for an import; see `Entrance` of inputs."""

    @property
    def code(self) -> TimeCode:
        """How words pack epochs."""
        ...

    @property
    def room(self) -> int:
        """The first epoch whose rows cannot enter yet."""
        ...

    def wake(self) -> None:
        """Ask for an activation, which calls `ImportHandle.let_rows_in`."""
        ...

    def may_enter(self, epoch: int) -> bool:
        """Return True if rows of an epoch may enter now; if not, `wake` follows when they may be able to."""
        ...

    def resume(self) -> None:
        """Ask for an activation once others have had their turn."""
        ...

    def let_in(self, batch: Batch, word: int) -> None:
        """Let rows enter."""
        ...

    def advance(self, old: int, new: int | None) -> None:
        """Move the open epoch on; `None`: no rows will come any more."""
        ...


class ImportHandle:
    """One import on one worker, from the moment its dataflow is prepared.

    `epoch` is the first that is open here. If `is_complete`, none is open, no rows can come any more, and
    `epoch` is behind the last one.
    """

    def __init__(self, exported: Exported, source: ImportSource, entry: Entry) -> None:
        self.exported = exported
        self.epoch = 0
        self.is_complete = False
        self._upper = -1
        self._latest = -1
        self._source = source
        self._entry = entry
        self._journal: InputJournal | None = None

    def log_to(self, journal: InputJournal) -> None:
        """Write all rows that enter, by epoch. Call it before any do."""
        assert isinstance(self._source, DividingSource), "what feeds inputs of collections"
        self._source.divide_epochs()
        self._journal = journal

    @property
    def since(self) -> int:
        """The first epoch as of which it can begin. Raises `MisuseError` if that of the source is no
        epoch.
        """
        since = self._source.since
        if type(since) is not int or not 0 <= since <= EPOCH_MAX:
            raise MisuseError(
                f"the import of {self.exported.title()} can begin at {type(since).__name__} "
                f"{text_of(since)}: `since` of its source is an epoch, a whole number from 0 on"
            )
        return since

    @property
    def held_epoch(self) -> int | None:
        """The first epoch at which rows may still enter here; None when none will."""
        return None if self.is_complete else self.epoch

    def is_past(self, epoch: int) -> bool:
        """Return True if the owner will bring no more rows of `epoch`, as far as this worker knows."""
        upper = self._source.upper
        return upper is None or upper > epoch

    def is_through(self, epoch: int) -> bool:
        """Return True if all rows that the owner has of epochs before `epoch` have entered here."""
        return self.is_complete or self._upper >= epoch

    def begin(self, epoch: int) -> None:
        """Begin to read as of `epoch`."""
        self.epoch = epoch
        self._source.begin(self._entry.code, epoch, self._entry.wake)
        self._entry.wake()

    def let_rows_in(self) -> None:
        """Let rows enter that have come: the activation of the import's stage."""
        if self.is_complete:
            return
        taken = self._source.take(self._entry.room)
        if taken.is_all and taken.upper is not None:
            self._upper = taken.upper
        self._latest = max(self._latest, taken.latest)
        pack = self._entry.code.pack
        if self._journal is not None and taken.batches:
            rows = [(epoch, [batch]) for epoch, batch in taken.batches]
            self._journal.rows(BY_EPOCH, "", UNNAMED, rows)
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
        """Read no more, so that the owner may drop what it kept for this. An error of a source that fails to
        close is ignored: nothing reads from it any more.
        """
        try:
            self._source.close()
        except BaseException as error:
            if is_interrupt(error):
                raise

    def symbols(self, mark: Mark) -> None:
        """Show the words of rows that have come and did not enter yet."""
        mark.holder(self._source, f"the import of {self.exported.title()}")
