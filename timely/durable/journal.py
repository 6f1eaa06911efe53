"""What a worker writes into the log of its process, and how each record reads.

    rows     a delivery: its name, the epochs that it has entered, and the rows of each
    few      a delivery of a few plain rows, as values
    part     rows that are staged: they count once a decision of worker 0 names them
    dropped  an attempt at a delivery whose parts so far, on this worker, no decision will name
    source   rows that a source has sent on this worker since its record before, where it goes on behind
             them, and the first epoch at which it may still send
    order    a decision of worker 0, as it tells it to the other workers
    sealed   a decision that only seals: epochs up to this one are complete
    durable  the logs of all workers have all rows of the epochs before this one
    flow     a dataflow has begun
    version  a new version of a dataflow has begun: it counts once it is switched, and its rows with it
    taken    the names of deliveries that a new version takes over at one of its inputs
    older    what an output held before the changes that it keeps, and these changes, which a new version
             takes over
    switched a new version has taken the place of a dataflow, with all that goes with it
    gone     dataflows have ended for good: a client has ended them, or another one takes the place of one
             that had failed; or a new version has failed before it was switched
    place    a reader has come to this epoch of an output; -1: it reads no more
    digest   what an output has shown on this worker of the epochs before this one (`digests.py`)
    build    which release and machine has made these digests
    accept   digests of dataflows that were written before count no more
    kept     the changes of some epochs of an output, for the next base
    answer   rows of what an output holds as of an epoch, to be stored (`answers/logged.py`)
    cut      a base may stand for all segments before this one

Worker 0 alone writes `order`, `sealed`, `durable`, `flow`, `version`, `switched` and `gone`. Every other
record but `cut` names the worker that wrote it: workers of one process share a log. Epochs in records are
whole numbers. Times within batches count from the anchor of the worker that wrote them, which moves; a reader
overwrites them.

A log is like a peer that never answers (`Batch.to_frames`): symbols travel along, once in each segment.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from typing import Final, TypeAlias

from ..dictionaries import dictionaries
from ..limits import WORKERS_MAX
from ..wire.batch import Batch, Frame, Large, Records, absorb, decode, frames_of, is_known
from .log import Log

__all__ = [
    "BY_EPOCH",
    "IN_OPEN_EPOCH",
    "PLACES_OF_CALL",
    "READER",
    "InputJournal",
    "Journal",
    "Noted",
    "Shape",
    "SourceJournal",
    "append_batches",
    "batches_in",
    "place_of_part",
]

_ROWS: Final = "rows"
_PLAIN: Final = "few"
_PART: Final = "part"
_DROPPED: Final = "dropped"
_SOURCE: Final = "source"
_ORDER: Final = "order"
_SEALED: Final = "sealed"
_DURABLE: Final = "durable"
_FLOW: Final = "flow"
_VERSION: Final = "version"
_TAKEN: Final = "taken"
_OLDER: Final = "older"
_SWITCHED: Final = "switched"
_GONE: Final = "gone"
_PLACE: Final = "place"
_DIGEST: Final = "digest"
_BUILD: Final = "build"
_KEPT: Final = "kept"
_ANSWER: Final = "answer"
_CUT: Final = "cut"
_ACCEPT: Final = "accept"

IN_OPEN_EPOCH: Final = "open"
"""The name of a delivery is one of those for whichever epoch is open."""
BY_EPOCH: Final = "epochs"
"""The name of a delivery counts in the epochs of its rows; it may have none."""

READER: Final = -1
"""The peer from which symbols are learned while logs are read; logs that are written have other numbers."""

Shape: TypeAlias = Sequence[tuple[int, int]]
"""The kind of each batch of a delivery, and how many frames it has."""

PLACES_OF_CALL: Final = 1 << 32
"""How many places a call gets: more than it can have rows, since a request has fewer bytes."""


def place_of_part(number: int, worker: int) -> int:
    """Return the position among the rows of its call of a part with this number that came to `worker`."""
    return (number * WORKERS_MAX + worker) * PLACES_OF_CALL


class Journal:
    """What one worker writes. Nothing here waits for the disk, but rows if very many wait for it already (see
    `Log.add`): a decision must not fail once worker 0 has made it.
    """

    def __init__(self, log: Log, worker: int) -> None:
        self.log = log
        self.worker = worker

    def input(self, dataflow: int, name: str) -> InputJournal:
        """Return what the input `name` of a dataflow writes to."""
        return InputJournal(self, dataflow, name)

    def source(self, dataflow: int, name: str, of: int) -> SourceJournal:
        """Return what a source writes to, which may send on so many workers."""
        return SourceJournal(self, dataflow, name, of)

    def order(self, dataflow: int, payload: bytes, streams: Sequence[Sequence[str]] = ()) -> None:
        """Write a decision of worker 0. `streams`: (input, query, stream) of each batch that it names."""
        self.log.add([_ORDER, dataflow, payload, streams], waits=False)

    def sealed(self, dataflow: int, epoch: int, durable_before: int) -> None:
        """Write that worker 0 has sealed all epochs up to this one; `durable_before`: see `durable`."""
        self.log.add([_SEALED, dataflow, epoch, durable_before], waits=False)

    def durable(self, dataflow: int, before: int, source: str = "") -> None:
        """Write that all rows of the epochs before this one are in the logs, durably: those that clients have
        inserted, or those of a source. Those who follow the logs may work on these epochs.
        """
        self.log.add([_DURABLE, dataflow, before, *([source] if source else [])], waits=False)

    def flow(self, dataflow: int, facts: Sequence[object]) -> None:
        """Write that a dataflow has begun: see `past.PastFlow` for its facts."""
        self.log.add([_FLOW, dataflow, *facts], waits=False)

    def version(self, dataflow: int, facts: Sequence[object]) -> None:
        """Write that a new version of a dataflow has begun, with facts as for `flow`."""
        self.log.add([_VERSION, dataflow, *facts], waits=False)

    def switched(self, facts: Sequence[object]) -> int:
        """Write that a new version has taken the place of a dataflow: see `versions.PastSwitch` for the
        facts. Return the position of the log.
        """
        return self.log.add([_SWITCHED, *facts], waits=False)

    def older(
        self, dataflow: int, output: str, kept_from: int, by_epoch: Sequence[tuple[int, Sequence[Batch]]]
    ) -> None:
        """Write, for a new version, changes that an output had before it. Those of epochs before `kept_from`
        are what was there by then.
        """
        shapes: list[object] = []
        frames: list[Frame] = []
        with self.log.making:
            peer = self.log.peer
            for epoch, batches in by_epoch:
                shapes.append([epoch, append_batches(peer, batches, frames)])
            _add(self.log, peer, [_OLDER, self.worker, dataflow, output, kept_from, shapes], frames)

    def gone(self, dataflows: Sequence[int], reason: str, classes: Sequence[str]) -> None:
        """Write that dataflows have ended for good, with this error."""
        self.log.add([_GONE, dataflows, reason, classes], waits=False)

    def place(self, dataflow: int, output: str, reader: str, epoch: int, seconds: float) -> None:
        """Write how far a reader of an output has come, and that it was heard of now."""
        heard = int(time.time())
        self.log.add([_PLACE, self.worker, dataflow, output, reader, epoch, seconds, heard])

    def build(self, description: str) -> None:
        """Write which release and machine makes the answers."""
        self.log.add([_BUILD, self.worker, description])

    def digest(self, dataflow: int, output: str, before: int, sums: Sequence[tuple[int, int]]) -> int:
        """Write the digests of an output of epochs before this one: (epoch, digest) of each that is not 0 and
        is in no record before. Return the position of the log.
        """
        epochs = [epoch for epoch, _ in sums]
        digests = [digest for _, digest in sums]
        return self.log.add([_DIGEST, self.worker, dataflow, output, before, epochs, digests])

    def changes(
        self,
        dataflow: int,
        output: str,
        epochs: tuple[int, int, int],
        by_epoch: Sequence[tuple[int, Sequence[Batch]]],
    ) -> None:
        """Write changes of an output. `epochs`: the first whose changes are not forgotten, and the range that
        this record has; changes of earlier epochs are forgotten, or in earlier records.
        """
        shapes: list[object] = []
        frames: list[Frame] = []
        with self.log.making:
            peer = self.log.peer
            for epoch, batches in by_epoch:
                shapes.append([epoch, append_batches(peer, batches, frames)])
            _add(self.log, peer, [_KEPT, self.worker, dataflow, output, *epochs, shapes], frames)

    def answer(
        self,
        dataflow: int,
        output: str,
        cut: str,
        epoch: int,
        batch: Batch | None,
        *,
        is_last: bool,
        why: str = "",
    ) -> None:
        """Write rows of what an output holds as of an epoch, for a cut. `is_last`: they are all on this
        worker. `why`: the output has no answer as of the epoch.
        """
        frames: list[Frame] = []
        with self.log.making:
            peer = self.log.peer
            shape = [] if batch is None else append_batches(peer, [batch], frames)
            head = [_ANSWER, self.worker, dataflow, output, cut, epoch, why, is_last, shape]
            _add(self.log, peer, head, frames)

    def cut(self, name: str) -> None:
        """Begin a segment with a record that has this name."""
        self.log.begin_segment()
        self.log.add([_CUT, name])

    def accept(self, dataflows: Sequence[int]) -> int:
        """Write that all digests of dataflows that were written before count no more. Return the position of
        the log.
        """
        return self.log.add([_ACCEPT, dataflows])


class InputJournal:
    """What one input of one worker writes."""

    __slots__ = ("_dataflow", "_journal", "_log", "_name", "_worker")

    def __init__(self, journal: Journal, dataflow: int, name: str) -> None:
        self._journal = journal
        self._log = journal.log
        self._worker = journal.worker
        self._dataflow = dataflow
        self._name = name

    def few(
        self, writer: str, sequence: int, epoch: int, diff: int, rows: Sequence[Sequence[object]]
    ) -> None:
        """Write a delivery of plain rows for the open epoch."""
        self._log.add([_PLAIN, self._worker, self._dataflow, self._name, writer, sequence, epoch, diff, rows])

    def rows(
        self,
        series: str,
        writer: str,
        sequence: int,
        by_epoch: Sequence[tuple[int, Sequence[Batch]]],
        calls: int = 0,
    ) -> None:
        """Write a delivery with its rows by epoch: all of them, in one record. `calls`: how many calls have
        their order by now, where that counts.
        """
        shapes: list[object] = []
        frames: list[Frame] = []
        head = [_ROWS, self._worker, self._dataflow, self._name, series, writer, sequence, calls, shapes]
        with self._log.making:
            peer = self._log.peer
            for epoch, batches in by_epoch:
                shapes.append([epoch, append_batches(peer, batches, frames)])
            _add(self._log, peer, head, frames)

    def taken(self, facts: Sequence[object]) -> None:
        """Write which deliveries were taken before: see `versions.TakenFacts`."""
        self._log.add([_TAKEN, self._worker, self._dataflow, self._name, *facts])

    def part(
        self,
        writer: str,
        sequence: int,
        attempt: str,
        number: int,
        is_first: bool,
        batches: Sequence[Batch],
        rows: int,
    ) -> None:
        """Write a part of an attempt at a delivery. `is_first`: this worker has no other part of the attempt;
        `rows` as its client has counted them.
        """
        frames: list[Frame] = []
        head = [_PART, self._worker, self._dataflow, self._name, writer, sequence, attempt, number, is_first]
        with self._log.making:
            peer = self._log.peer
            shape = append_batches(peer, batches, frames)
            _add(self._log, peer, [*head, rows, shape], frames)

    def dropped(self, writer: str, sequence: int, attempt: str) -> None:
        """Write that the parts of an attempt that are here count for nothing. Nothing rests on that: a disk
        that fails does no harm.
        """
        head = [_DROPPED, self._worker, self._dataflow, self._name, writer, sequence, attempt]
        self._log.add(head, waits=False)


Noted: TypeAlias = Batch | tuple[Frame, ...]
"""A batch that is to be written, or the frames of one that has records."""


class SourceJournal:
    """What one source writes on one worker."""

    __slots__ = ("_head", "_journal")

    def __init__(self, journal: Journal, dataflow: int, name: str, of: int) -> None:
        self._journal = journal
        self._head = [_SOURCE, journal.worker, dataflow, name, of]

    @staticmethod
    def noted(batch: Batch) -> Noted:
        """Return a batch for `write`, as it is sent: those that get records may change them in place. Raises
        `MisuseError` for a value that no record may hold.
        """
        return tuple(batch.to_frames(READER)) if isinstance(batch, Records) else batch

    def write(self, held: int, position: bytes, by_epoch: Sequence[tuple[int, Sequence[Noted]]]) -> None:
        """Write all that was sent since the last call, in one record. `held`: see
        `SourcePosition`.
        """
        shapes: list[object] = []
        frames: list[Frame] = []
        log = self._journal.log
        with log.making:
            peer = log.peer
            for epoch, noted in by_epoch:
                shape: list[object] = []
                for one in noted:
                    if isinstance(one, tuple):
                        shape.append([Records.KIND, len(one)])
                        frames += one
                    else:
                        shape += append_batches(peer, [one], frames)
                shapes.append([epoch, shape])
            _add(log, peer, [*self._head, held, position, shapes], frames)


def append_batches(peer: int, batches: Sequence[Batch], frames: list[Frame]) -> list[object]:
    """Append the frames of batches, as `peer` can read them; return [kind, number of frames] for each
    message.
    """
    shape: list[object] = []
    try:
        for batch in batches:
            for one in batch.messages() if isinstance(batch, Large) else (batch,):
                own = frames_of(one, peer)
                # Now and not behind `add`: the next batch must not say the same symbols again.
                one.on_sent(peer)
                shape.append([one.KIND, len(own)])
                frames += own
    except BaseException:
        _unsay(peer)
        raise
    return shape


def _add(log: Log, peer: int, head: Sequence[object], frames: Sequence[Frame]) -> None:
    """Add a record whose frames were made for `peer`. Another thread may have added records without frames
    meanwhile, so that the segment is full by now: this one still belongs to it.
    """
    try:
        log.add(head, frames)
    except BaseException:
        _unsay(peer)
        raise


def _unsay(peer: int) -> None:
    """Take back all symbols that this segment of the log should have: it may lack some of them."""
    for dictionary in dictionaries():
        dictionary.withdraw(peer)


def batches_in(
    shape: Shape, frames: Iterator[memoryview], is_mine: bool, reader: int = READER
) -> list[Batch]:
    """Return the batches in the next frames; if they are of another share, learn their symbols only."""
    batches: list[Batch] = []
    for kind, count in shape:
        own = [next(frames) for _ in range(count)]
        if is_mine:
            batches.append(decode(kind, own, reader))
        elif is_known(kind):  # else it is of a dataflow that is not here, as are its symbols
            absorb(kind, own, reader)
    return batches
