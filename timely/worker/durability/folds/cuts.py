"""When is a fold begun, and how do workers make ready for it?

    Logged    worker 0 hears how much each process has logged. Once that is much beside the last base, or very
              many incarnations have left logs,
    CutLog    it names an epoch of each dataflow that is complete, and whose rows are on all disks, to all
    LogCut    each worker writes what its outputs keep of the changes up to there, and all that its stored
              outputs hold as of the last sealed epoch; begins a segment of its log, and says so once this is
              on its disk. Worker 0 is the first, and sends `CutLog` once more; the others begin theirs behind
              that. So parts about which it has decided in front of its cut are in front of theirs
    then      worker 0 starts a process that folds: `python -m timely.durable fold`

What is behind the cut in a log is not read, so workers go on meanwhile. A fold that fails harms nothing: the
next one stands for the same records, and more.

A stored output is written as of the epoch that was sealed last when worker 0 gave the order. No reader can
have forgotten changes behind that epoch when a worker gets the order, so it keeps them until it has begun to
write. It begins once it may show the epoch.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import repeat, zip_longest
from typing import Final, TypeAlias

from ....durable.journal import Journal
from ....durable.past import PastFlow
from ....failure import full_text_of
from ....limits import ANSWER_LOG_BYTES_MAX
from ....operators.capture import FOREVER, CaptureVertex
from ....running.core import Worker
from ....running.instance import Instance
from ....wire.batch import Batch
from ....wire.handshake import CutLog
from ...orders import open_epoch
from ..epochs import DurableEpochs

__all__ = ["LogCuts", "epochs_to_fold", "epochs_to_store", "stored_outputs"]

_STEP_SECONDS: Final = 0.002
"""How long a worker writes changes of outputs in one step."""

_SMALL_RECORD_ROWS: Final = 256
_RECORD_ROWS: Final = 4_096
"""Changes of so many rows, of several epochs, are one record. Each new text takes 6 µs, so records of rows
with texts are smaller, by what the last one took.
"""

_SEGMENT_RECORDS: Final = 256
"""Behind so many records of an answer, or slow ones of changes, the log goes on in another segment. Each has
256 rows with texts, and a segment that has said a million texts takes 30 ms to end.
"""

_ShownBefore: TypeAlias = Callable[[Instance, str, int], int]
"""See `Durability.shown_before`."""


def epochs_to_fold(worker: Worker, epochs: DurableEpochs) -> dict[int, int]:
    """Return, by dataflow, the last epoch whose answers a base may have: it is complete at all outputs
    on this worker, its rows are on all disks, and it has an answer, as all epochs that are kept before it.
    """
    last: dict[int, int] = {}
    for number, instance in worker.instances.items():
        if instance.is_standby or instance.is_taking_over:
            continue  # clients see what an older version has put out
        before = epochs.before(instance)
        for name in instance.frozen.outputs:
            before = min(before, instance.output(name).complete_before)
        if before >= FOREVER:
            before = max([handle.epoch for handle in instance.inputs.values()], default=0)
            before = max([before, *(instance.output(name).extent()[1] for name in instance.frozen.outputs)])
        for name in instance.frozen.outputs:
            before = min(before, instance.output(name).last_answered(before - 1) + 1)
        last[number] = before - 1
    return last


def epochs_to_store(worker: Worker, dataflows: Sequence[int]) -> tuple[int, ...]:
    """Return, for each of these dataflows, the last epoch that is sealed, also of what it reads, as of which
    its stored outputs are to be written; -1 if it has none, or nothing is sealed, or clients see those of an
    older version yet.
    """
    epochs = []
    for number in dataflows:
        instance = worker.instances.get(number)
        epoch = -1
        if instance is not None and not instance.is_taking_over and stored_outputs(instance):
            epoch = _open_epoch(worker, instance) - 1
        epochs.append(epoch)
    return tuple(epochs)


def _open_epoch(worker: Worker, instance: Instance) -> int:
    """Return the first epoch that is not sealed, of a dataflow or of what it reads: its own inputs may be
    sealed far ahead of that.
    """
    epoch = open_epoch(instance)
    for imported in instance.imports if instance.inputs else ():
        owner = worker.instances.get(imported.exported.dataflow)
        if owner is not None and not imported.is_complete:
            epoch = min(epoch, _open_epoch(worker, owner))
    return epoch


def _sealed(worker: Worker, instance: Instance) -> int:
    """Return the last epoch of a dataflow that is sealed, also of what it reads: see `Past.sealed`."""
    owners = (worker.instances.get(each.exported.dataflow) for each in instance.imports)
    sealed = [_sealed(worker, owner) for owner in owners if owner is not None]
    if instance.inputs or not sealed:
        sealed.append(open_epoch(instance) - 1)
    return min(sealed)


def stored_outputs(instance: Instance) -> list[str]:
    """Return the names of the outputs of a dataflow that are stored."""
    return [name for name, declared in instance.frozen.outputs.items() if declared.is_stored]


class LogCuts:
    """Cuts the log of one worker, step by step.

    Args:
        worker: the worker.
        journal: its journal.
        cuts: False if another worker of this process writes to the same log, and cuts it.
        shown_before: tells how far an output may be shown.
        sealed: the last sealed epochs of dataflows of the logs, also of what these read.
    """

    def __init__(
        self,
        worker: Worker,
        journal: Journal,
        cuts: bool,
        shown_before: _ShownBefore,
        sealed: Mapping[int, int],
    ) -> None:
        self._worker = worker
        self._journal = journal
        self._cuts = cuts
        self._shown_before = shown_before
        self._stored: dict[tuple[int, str], int] = {}
        """By dataflow and output: the epoch as of which its rows were written last, in this incarnation."""
        self._written: dict[tuple[int, str], int] = {}
        """By dataflow and output: the epoch before which the log, or a base, has all changes."""
        self._orders: list[CutLog] = []
        self._steps: Iterator[bool] | None = None
        self._waiting: list[tuple[int, str]] = []
        """The position in the log of each cut, and its name."""
        self._held: set[str] = set()
        """The names of cuts that are not made before `let_cut`."""
        self.sealed = dict(sealed)
        """By dataflow: the last epoch up to which a fold may have summed up its rows."""
        self.on_cut: Callable[[CutLog], None] | None = None
        """Is called with each order as soon as the log is cut for it."""

    def begin(self, instance: Instance, flow: PastFlow | None) -> None:
        """Note of a dataflow that has begun which changes of its outputs the base has, or the log."""
        base, switch = (None, None) if flow is None else (flow.base, flow.switch)
        for name in instance.frozen.outputs:
            before = instance.first_epoch
            if switch is not None and name in switch.outputs:
                before = switch.epoch
            if base is not None:
                stored = base.outputs[name].kept_before if name in base.outputs else 0
                before = max(before, stored, base.right_from + 1)
            self._written[instance.index, name] = before

    def note_written(self, number: int, output: str, before: int) -> None:
        """Note that the log has all changes of an output before this epoch."""
        self._written[number, output] = before

    def order(self, order: CutLog, is_held: bool = False) -> None:
        """Begin to carry out an order of worker 0; with `is_held`, do not cut the log before `let_cut`."""
        self._orders.append(order)
        if is_held:
            self._held.add(order.name)
        for instance, epoch in self._to_store(order):
            for name in stored_outputs(instance):
                instance.output(name).keep_changes(epoch + 1)

    def let_cut(self, name: str) -> bool:
        """Let the log be cut under a name; return False if that is not held."""
        is_held = name in self._held
        self._held.discard(name)
        return is_held

    def has_newer(self, is_lost: bool = False) -> bool:
        """Return True if some stored output has an epoch that was sealed after its rows were written last;
        with `is_lost`, after those before: no fold has read what was written last.
        """
        numbers = list(self._worker.instances)
        return any(
            (-1 if is_lost else self._stored.get((number, name), -1)) < epoch
            for number, epoch in zip(numbers, epochs_to_store(self._worker, numbers), strict=True)
            for name in stored_outputs(self._worker.instances[number])
        )

    @property
    def is_cutting(self) -> bool:
        """True while there is something to write."""
        return self._steps is not None or bool(self._orders)

    def step(self) -> bool:
        """Go on writing for a moment; return True if there was anything to do. While the disk
        fails there is not: records that find no room would be an error of this worker.
        """
        if self._journal.log.error is not None:
            return False
        if self._steps is None:
            if not self._orders:
                return False
            self._steps = self._carry_out(self._orders.pop(0))
        until = time.monotonic() + _STEP_SECONDS
        moved = False
        try:
            for moved_now in self._steps:
                moved = moved or moved_now
                if not moved_now or time.monotonic() > until:
                    return moved
        except BaseException:
            # The log has some changes in part, and must not be cut: a fold would count them as whole.
            self._steps = repeat(False)
            raise
        self._steps = None
        return True

    def told(self) -> list[str]:
        """Return the names of the cuts that the log has told by now."""
        names = []
        while self._waiting and self._waiting[0][0] <= self._journal.log.told:
            names.append(self._waiting.pop(0)[1])
        return names

    def _carry_out(self, order: CutLog) -> Iterator[bool]:
        """Write what a fold needs; yield True after a piece of work, False if others have to work first."""
        for number, epoch in zip(order.dataflows, order.epochs, strict=True):
            instance = self._worker.instances.get(number)
            for name in () if instance is None else instance.frozen.outputs:
                # A dataflow may end meanwhile; then nobody needs its changes.
                while self._worker.instances.get(number) is instance:
                    assert instance is not None
                    if not instance.is_taking_over and instance.output(name).complete_before > epoch:
                        yield from self._write(instance, name, epoch + 1)
                        break
                    yield False
        for instance, epoch in self._to_store(order):
            for name in stored_outputs(instance):
                yield from self._store(instance, name, order.name, epoch)
        while order.name in self._held:
            yield False
        for number, instance in self._worker.instances.items():
            self.sealed[number] = max(_sealed(self._worker, instance), self.sealed.get(number, -1))
        if self._cuts:
            self._journal.cut(order.name)
            self._waiting.append((self._journal.log.position, order.name))
        if self.on_cut is not None:
            self.on_cut(order)

    def _write(self, instance: Instance, name: str, stop: int) -> Iterator[bool]:
        """Write the changes of an output before the epoch `stop` that are not forgotten and not written."""
        key = instance.index, name
        capture = instance.output(name)
        first = self._written.get(key, instance.first_epoch)
        if stop <= first:
            stop = first
        forgotten, _ = capture.log.extent()
        start = max(first, min(forgotten, stop))
        waiting: list[tuple[int, list[Batch]]] = []
        rows, rows_max, slow_records = 0, _SMALL_RECORD_ROWS, 0
        for epoch, batch in capture.log.written(start, stop):
            waiting.append((epoch, [batch]))
            rows += batch.rows
            if rows >= rows_max:
                began = time.perf_counter()
                self._journal.changes(instance.index, name, (forgotten, start, start), waiting)
                affordable = int(rows * _STEP_SECONDS / max(time.perf_counter() - began, 1e-9))
                rows_max = min(max(affordable, _SMALL_RECORD_ROWS), _RECORD_ROWS)
                slow_records += rows_max == _SMALL_RECORD_ROWS
                if slow_records == _SEGMENT_RECORDS:
                    self._journal.log.begin_segment()
                    slow_records = 0
                waiting, rows = [], 0
            yield True
        forgotten, _ = capture.log.extent()  # what was forgotten meanwhile may be written in part only
        self._journal.changes(instance.index, name, (forgotten, start, stop), waiting)
        self._written[key] = stop
        yield True

    def _to_store(self, order: CutLog) -> list[tuple[Instance, int]]:
        """Return the dataflows whose stored outputs are to be written, and as of which epoch."""
        pairs = zip_longest(order.dataflows, order.stored, fillvalue=-1)
        return [
            (self._worker.instances[number], epoch)
            for number, epoch in pairs
            if epoch >= 0 and number in self._worker.instances
        ]

    def _store(self, instance: Instance, name: str, cut: str, epoch: int) -> Iterator[bool]:
        """Write all that a stored output holds as of an epoch, once it may be shown."""
        number, capture = instance.index, instance.output(name)
        while (
            instance.is_taking_over  # worker 0 was faster
            or capture.complete_before <= epoch
            or self._shown_before(instance, name, epoch + 1) <= epoch
        ):
            if self._worker.instances.get(number) is not instance:
                return
            yield False
        if self._stored.get((number, name), -1) < epoch:
            self._stored[number, name] = epoch
            why = _why_unanswered(capture, epoch)
            batches = iter(()) if why else capture.log.answer(epoch)
            for count, batch in enumerate(batches):
                capture.let_changes_go()  # the first of the batches has fixed all of them
                if count and count % _SEGMENT_RECORDS == 0:
                    self._journal.log.begin_segment()
                self._journal.answer(number, name, cut, epoch, batch, is_last=False)
                yield True
                while self._journal.log.unsynced_bytes > ANSWER_LOG_BYTES_MAX:
                    yield False
                if self._worker.instances.get(number) is not instance:
                    return
            self._journal.answer(number, name, cut, epoch, None, is_last=True, why=why)
        capture.let_changes_go()
        yield True


def _why_unanswered(capture: CaptureVertex, epoch: int) -> str:
    """Return why an output has no answer as of a complete epoch; "" if it has one."""
    error = None if capture.failures is None else capture.failures.error_at(epoch)
    if error is not None:
        return f"it has no answer: {full_text_of(error)}"
    first, _ = capture.log.extent()
    return f"its changes before epoch {first} are forgotten" if first > epoch + 1 else ""
