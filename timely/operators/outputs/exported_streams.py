"""Exports of streams: records that another dataflow of the cluster reads, and this reading.

An export keeps, on each worker, the records of epochs that are not complete, and of as many complete ones as
its dataflow has said. A dataflow that is installed later reads them from the first of these epochs on, and
then records as they come. Epochs keep their numbers, and records their worker.

Invariant: records of epochs ≥ `since` are kept, and of epochs ≥ that of any reader that has not begun.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import ClassVar

from progress.errors import MisuseError
from progress.times.time_words import TimeCode

from ...dictionaries import Mark
from ...wire.batch import Batch, Records
from ...wire.frames.table_batch import TableBatch
from ..imported import Exported, Taken
from ..vertex import Vertex

__all__ = ["ExportsRecords", "RecordsImport", "StreamExportVertex", "StreamImport"]


@dataclass(frozen=True)
class ExportsRecords:
    """Makes the vertices of an export, which keeps so many complete epochs; None: all."""

    keep: int | None

    def __call__(self) -> StreamExportVertex:
        """Return a new vertex."""
        return StreamExportVertex(self.keep)


class StreamExportVertex(Vertex):
    """Keeps records by epoch, and hands them to those that read them."""

    word_times: ClassVar[bool] = True
    wants_frontier: ClassVar[bool] = True

    def __init__(self, keep: int | None) -> None:
        self._keep = keep
        self._kept: dict[int, list[Batch]] = {}
        self._readers: list[StreamImport] = []
        self._since = 0
        """What `since` was last: epochs from there on are kept. It never becomes less."""

    def recv_all(self, port: int, messages: Sequence[tuple[int, Batch]]) -> None:
        """Keep records, and hand them on."""
        del port
        for word, batch in messages:
            if not isinstance(batch, Records | TableBatch):
                raise MisuseError(
                    f"{self!r} exports records or tables, and got a {type(batch).__name__}: of a collection "
                    "write collection.export(name, by=…), or collection.stream() before it"
                )
            epoch = self.code.epoch_of(word)
            self._kept.setdefault(epoch, []).append(batch)
            for reader in self._readers:
                reader.on_batch(epoch, batch)

    def on_frontier(self) -> None:
        """Forget what need not be kept any more, and let readers go on."""
        self.forget()
        for reader in self._readers:
            reader.on_frontier()

    def rebase(self, by: object) -> None:
        """Do nothing: what is kept has the numbers of epochs."""
        del by

    @property
    def upper(self) -> int | None:
        """The first epoch that may still get records; None if none ever will."""
        frontier = self.frontier_words(0)
        return self.code.epoch_of(int(frontier[0])) if len(frontier) else None

    @property
    def since(self) -> int:
        """The first epoch from which on a reader can begin."""
        if self._keep is None:
            return 0
        upper = self.upper
        behind = max(self._kept, default=-1) + 1 if upper is None else upper
        self._since = max(self._since, behind - self._keep)
        return self._since

    def read(self, reader: StreamImport) -> None:
        """Take a reader; what it may still read stays."""
        self._readers.append(reader)

    def leave(self, reader: StreamImport) -> None:
        """Hand nothing to a reader any more."""
        if reader in self._readers:
            self._readers.remove(reader)
            self.forget()

    def kept_from(self, epoch: int) -> list[tuple[int, Batch]]:
        """Return what is kept of epochs from this one on, in their order."""
        return [(one, batch) for one in sorted(self._kept) if one >= epoch for batch in self._kept[one]]

    def forget(self) -> None:
        """Forget epochs that nobody can begin with any more."""
        first = min((self.since, *(reader.since for reader in self._readers if not reader.has_begun)))
        for epoch in [epoch for epoch in self._kept if epoch < first]:
            del self._kept[epoch]

    def counters(self) -> dict[str, int]:
        """Return how many epochs and records it keeps, and how many dataflows read it."""
        rows = sum(batch.rows for batches in self._kept.values() for batch in batches)
        return {"epochs": len(self._kept), "rows": rows, "importers": len(self._readers)}

    def symbols(self, mark: Mark) -> None:
        """Records hold values, and no words."""


class StreamImport:
    """One import of a stream on one worker; see `timely.operators.imported`."""

    def __init__(self, vertex: StreamExportVertex) -> None:
        self._vertex = vertex
        self._since = vertex.since
        self._news: Callable[[], None] | None = None
        self._waiting: list[tuple[int, Batch]] = []
        vertex.read(self)

    @property
    def has_begun(self) -> bool:
        """True once it has taken what was kept."""
        return self._news is not None

    @property
    def since(self) -> int:
        """The first epoch from which on it can read; once it has begun, from which on it does."""
        return self._since

    @property
    def upper(self) -> int | None:
        """The first epoch that may still get records; None if none ever will."""
        return self._vertex.upper

    def begin(self, code: TimeCode, epoch: int, news: Callable[[], None]) -> None:
        """Read records of `epoch` and later ones."""
        del code
        self._since, self._news = epoch, news
        self._waiting = self._vertex.kept_from(epoch)
        self._vertex.forget()

    def on_batch(self, epoch: int, batch: Batch) -> None:
        """Keep records until they are taken; those of epochs before the first are none of this dataflow."""
        if self._news is not None and epoch >= self._since:
            self._waiting.append((epoch, batch))
            self._news()

    def on_frontier(self) -> None:
        """Report that there may be something to take."""
        if self._news is not None:
            self._news()

    def take(self, before: int) -> Taken:
        """Return records of epochs before `before`; the others wait."""
        ready = [each for each in self._waiting if each[0] < before]
        self._waiting = [each for each in self._waiting if each[0] >= before]
        upper = self._vertex.upper
        for epoch, _ in self._waiting:
            upper = epoch if upper is None else min(upper, epoch)
        return Taken(ready, upper, True, max((epoch for epoch, _ in ready), default=-1))

    def symbols(self, mark: Mark) -> None:
        """Records hold values, and no words."""

    def close(self) -> None:
        """Read no more."""
        self._vertex.leave(self)
        self._waiting.clear()


class RecordsImport:
    """Reads an exported stream of records."""

    def describe(self) -> str:
        """Return a stable text for the fingerprint."""
        return "records of an exported stream"

    def open(self, exported: Exported, reader: str) -> StreamImport:
        """Begin to read; raise `MisuseError` if the export is no stream."""
        if not isinstance(exported.vertex, StreamExportVertex):
            raise MisuseError(
                f"{exported.title()} is a collection, and {reader} wants to import a stream of records: "
                f"write dd.imported(flow, {exported.owner!r}, {exported.name!r}, schema)"
            )
        return StreamImport(exported.vertex)
