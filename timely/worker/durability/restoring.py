"""How does a dataflow begin with what a base and the logs hold? Its inputs get all rows again: those that the
base has summed as one change, all others at their own epochs.

Each worker does so with its own share, and by itself: what is sealed is the same for all. What it shows of an
epoch then rests on the same rows as before, wherever they are, so it is the same.

Answers are right from some epoch on, at which the whole base is one change. So the outputs keep the changes
of later epochs, and readers get the earlier ones, as far as they are kept, from the store.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from operator import itemgetter
from typing import Final, cast

import numpy as np
import pyarrow as pa

from ...dictionaries import Mark, dictionaries
from ...durable.bases.coverage import Logs
from ...durable.bases.files import raw_records, read_table
from ...durable.bases.manifest import BaseFile, InputBase, KeptBases, OutputBase
from ...durable.bases.positions import latest_places, source_key
from ...durable.journal import IN_OPEN_EPOCH, READER, Shape, batches_in, place_of_part
from ...durable.past import PastEntering, PastFlow, PastInput
from ...durable.store import store_errors
from ...durable.versions import PastOlder, PastSwitch
from ...operators.inputs.handle import InputHandle
from ...operators.inputs.names import UNNAMED, DeliveryName
from ...operators.outputs.output_log import OlderChanges, OutputCodec, OutputLog
from ...operators.outputs.told_failures import ToldFailures
from ...running.instance import Instance
from ...wire.arrow import int64s_of
from ...wire.batch import Batch

__all__ = ["Share", "feed", "feed_base", "feed_orders", "feed_rows", "has_stand_in"]

_EPOCH: Final = "epoch"


class Share:
    """The part of a base that one worker of a new incarnation has.

    Args:
        logs: name the base.
        worker, workers: which of how many workers.
    """

    def __init__(self, logs: Logs, worker: int, workers: int) -> None:
        self.logs = logs
        self.worker = worker
        self.workers = workers

    def tables(self, files: list[BaseFile]) -> Iterator[pa.Table]:
        """Yield the rows of this share in these files: whole files if there are many, else some of each."""
        files = [file for file in files if not file.is_raw]
        is_by_file = len(files) >= self.workers
        for number, file in enumerate(files):
            if is_by_file and number % self.workers != self.worker:
                continue
            table = read_table(self.logs.store, self.logs.base.number, file)
            if is_by_file:
                yield table
            else:
                first, stop = (table.num_rows * at // self.workers for at in (self.worker, self.worker + 1))
                yield table.slice(first, stop - first)

    def raw(self, files: list[BaseFile]) -> Iterator[tuple[list[object], list[Batch]]]:
        """Yield, of this share, the records that are as they were logged, with their batches."""
        try:
            for file in files:
                if not file.is_raw:
                    continue
                records = raw_records(self.logs.store, self.logs.base.number, file)
                for number, record in enumerate(records):
                    is_mine = number % self.workers == self.worker
                    shape = record.head[-1] if record.head[0] == "rows" else []
                    batches = batches_in(cast("Shape", shape), iter(record.frames), is_mine)
                    if is_mine:
                        yield record.head, batches
                for dictionary in dictionaries():
                    dictionary.withdraw(READER)
        finally:
            for dictionary in dictionaries():
                dictionary.withdraw(READER)

    @property
    def is_first(self) -> bool:
        """True on worker 0."""
        return self.worker == 0


class _StoredChanges:
    """The changes of an output that are in a base; implements `OlderChanges`.

    Readers may want them after other bases have followed, and the files of this one are gone. Each of those
    has the same changes. So what a worker keeps of them depends on the rows alone.
    """

    def __init__(self, share: Share, dataflow: int, name: str, output: OutputBase, right_from: int) -> None:
        self._share = share
        self._dataflow = dataflow
        self._name = name
        self._output = output
        self.share = share.worker, share.workers
        self.kept_from = min(output.kept_from, right_from + 1)
        self.before = max((file.epochs[1] + 1 for file in output.files), default=0)

    def tables(self) -> Iterator[pa.Table]:
        """See `OlderChanges`."""
        store = self._share.logs.store
        with store_errors(store):
            base = KeptBases(store).newest
            for file in base.flows[self._dataflow].outputs[self._name].files:
                yield read_table(store, base.number, file)

    def records(self) -> Iterator[tuple[int, Batch]]:
        """See `OlderChanges`."""
        for head, batches in self._share.raw(self._output.files):
            for batch in batches:
                yield cast("int", head[1]), batch


class _ChangesAtHand:
    """Changes of an output that were read; implements `OlderChanges`."""

    before = 0

    def __init__(
        self,
        share: tuple[int, int],
        kept_from: int,
        tables: Sequence[pa.Table],
        records: Sequence[tuple[int, Batch]],
    ) -> None:
        self.share = share
        self.kept_from = kept_from
        self._tables, self._records = tables, records

    def tables(self) -> Iterator[pa.Table]:
        """See `OlderChanges`."""
        return iter(self._tables)

    def records(self) -> Iterator[tuple[int, Batch]]:
        """See `OlderChanges`."""
        return iter(self._records)


def feed(instance: Instance, flow: PastFlow, inputs: dict[str, PastInput], share: Share) -> None:
    """Give the inputs of a dataflow, which has just begun, what `inputs` say; then seal and close what was
    sealed and closed, and let readers go on where they were.
    """
    feed_base(instance, flow, share)
    feed_rows(instance, inputs)
    feed_orders(instance, flow)


def feed_base(instance: Instance, flow: PastFlow, share: Share) -> None:
    """Give a dataflow, which has just begun, what a base has of it."""
    right_from = -1 if flow.base is None else flow.base.right_from
    for name in instance.frozen.outputs:
        output = None if flow.base is None else flow.base.outputs.get(name)
        if flow.switch is not None and has_stand_in(flow, name):
            codec = instance.frozen.outputs[name].codec
            instance.output(name).take_over_later(_OldVersion(flow, flow.switch, name, codec, share))
        elif right_from >= 0:
            output = output or OutputBase([], right_from + 1, right_from + 1)
            older = _StoredChanges(share, flow.number, name, output, right_from)
            instance.output(name).go_on(right_from + 1, older)
    for name, handle in instance.inputs.items():
        _feed_base(handle, flow.inputs.get(name, PastInput()).base, share)
    for source in instance.sources:
        base = flow.inputs.get(source_key(source.name), PastInput()).base
        for head, batches in share.raw(base.files):
            source.put_back(cast("int", head[1]), batches)


def feed_rows(instance: Instance, inputs: dict[str, PastInput]) -> None:
    """Give the inputs of a dataflow the names and rows that `inputs` have, and take them out of there."""
    for name, handle in instance.inputs.items():
        if name in inputs:
            if (taken := inputs[name].taken) is not None:
                inputs[name].taken = None
                _feed_names(handle, taken, instance.worker == 0)
                handle.put_back_calls(taken.calls)
            _feed_input(handle, inputs[name])
    for source in instance.sources:
        past = inputs.get(source_key(source.name), PastInput())
        for delivery in past.deliveries:
            for epoch, batches in zip(delivery.epochs, delivery.batches, strict=True):
                source.put_back(epoch, batches)
        past.deliveries.clear()


def feed_orders(instance: Instance, flow: PastFlow) -> None:
    """Seal and close what was sealed and closed, and let readers and sources go on where they were."""
    for handle in instance.inputs.values():
        if flow.sealed >= handle.epoch:
            handle.seal(flow.sealed)
    for name, sealed in flow.sealed_alone.items():
        if sealed >= instance.input(name).epoch:
            instance.input(name).seal(sealed)
    for name in flow.closed:
        instance.input(name).close()
    for source in instance.sources:
        source.have_past(flow.source(source.name).first_held(flow.as_of))
    for (output_name, reader), (epoch, seconds, _) in latest_places(flow.places).items():
        if output_name in instance.frozen.outputs:
            instance.output(output_name).places.put_back(reader, epoch, seconds)


def has_stand_in(flow: PastFlow, output: str) -> bool:
    """Return True if what an output held in an older version of the dataflow is to be taken over again: the
    epoch at which the new version goes on is made again.
    """
    switch, base = flow.switch, flow.base
    is_made_again = switch is not None and (base is None or base.right_from < switch.epoch)
    return switch is not None and is_made_again and output in switch.outputs


class _OldVersion:
    """What an output of a dataflow held in the version before; implements `OlderVersion`. A base is read at
    once, since it may be gone later. Logs may yet be read: a worker that follows does so later.
    """

    def __init__(
        self, flow: PastFlow, switch: PastSwitch, name: str, codec: OutputCodec, share: Share
    ) -> None:
        self._older = flow.older.setdefault(name, PastOlder())
        self._title = f"output {name!r} of an older version of dataflow {flow.number}"
        self._codec = codec
        self._share = share.worker, share.workers
        self.epoch = switch.epoch
        self.failures = ToldFailures(switch.outputs[name])
        self._tables: list[pa.Table] = []
        if flow.base is not None and name in flow.base.outputs:
            stored = flow.base.outputs[name]
            self._older.kept_from = stored.kept_from
            for file in stored.files:
                self._tables.append(read_table(share.logs.store, share.logs.base.number, file))

    def new_log(self) -> OutputLog:
        """See `OlderVersion`."""
        return self._codec.new_log()

    def changes(self) -> OlderChanges:
        """See `OlderVersion`; called once."""
        records, self._older.changes = self._older.changes, []
        return _ChangesAtHand(self._share, self._older.kept_from, self._tables, records)

    def symbols(self, mark: Mark) -> None:
        """Show the words of changes that were read."""
        for _, batch in self._older.changes:
            mark.holder(batch, self._title)


def _feed_names(handle: InputHandle, base: InputBase, is_first: bool) -> None:
    """Let an input know of deliveries; the first worker has the rows of batches."""
    deliveries = handle.deliveries
    for writer, epoch, intervals in base.names:
        deliveries.put_back_names(
            cast("str", writer), cast("list[tuple[int, int]]", intervals), cast("int", epoch)
        )
    for append_writer, sequence, epochs in base.appends:
        deliveries.take_in(epochs, DeliveryName(append_writer, sequence))
    for query in base.queries:
        name = DeliveryName(query.query, query.batch)
        deliveries.put_back_batch(name, query.rows if is_first else 0)
        if query.stream is not None:
            deliveries.note_stream(query.query, query.stream)


def _feed_base(handle: InputHandle, base: InputBase, share: Share) -> None:
    _feed_names(handle, base, share.is_first)
    handle.put_back_calls(base.calls)
    for table in share.tables(base.files):
        for epoch, rows in _by_epoch(table):
            handle.put_back_table(epoch, rows)
    for head, batches in share.raw(base.files):
        match head:
            case ("rows", int(epoch), int(order), place, _):
                handle.put_back(epoch, batches, order, cast("int | None", place))
            case ("few", int(epoch), diffs, rows):
                plain = [tuple(row) for row in cast("list[list[object]]", rows)]
                handle.put_back_rows(epoch, plain, cast("list[int]", diffs))


def _by_epoch(table: pa.Table) -> Iterator[tuple[int, pa.Table]]:
    """Yield the rows of each epoch, without the column; epochs ascend."""
    if table.num_rows == 0:
        return
    at = max(number for number, name in enumerate(table.column_names) if name == _EPOCH)
    epochs, rows = int64s_of(table.column(at)), table.remove_column(at)
    starts = np.flatnonzero(np.diff(epochs, prepend=epochs[0] - 1)).tolist()
    for start, stop in zip(starts, [*starts[1:], table.num_rows], strict=True):
        yield int(epochs[start]), rows.slice(start, stop - start)


def _feed_input(handle: InputHandle, past: PastInput) -> None:
    deliveries = handle.deliveries
    entered = [
        (incarnation, writer, sequence, entering.order.epoch)
        for (incarnation, writer, sequence, is_batch), entering in past.entered.items()
        if not is_batch
    ]
    # Those not heard of for longest are forgotten first, so the older ones come first.
    for _, writer, sequence, epoch in sorted([*entered, *past.names], key=itemgetter(0)):
        deliveries.take(DeliveryName(writer, sequence), epoch)
    for delivery in past.deliveries:
        if delivery.series != IN_OPEN_EPOCH and delivery.sequence != UNNAMED:
            deliveries.take_in(delivery.epochs, DeliveryName(delivery.writer, delivery.sequence))
        for epoch, batches in zip(delivery.epochs, delivery.batches, strict=True):
            handle.put_back(epoch, batches)
    past.names.clear()
    past.deliveries.clear()
    for epoch, (rows, diffs) in past.few.items():
        handle.put_back_rows(epoch, rows, diffs)
    past.few.clear()
    for entering in past.entered.values():
        _feed_entering(handle, entering)
    past.entered.clear()
    for query, stream in past.streams.items():
        deliveries.note_stream(query, stream)
    past.streams.clear()
    handle.put_back_calls(past.calls)


def _feed_entering(handle: InputHandle, entering: PastEntering) -> None:
    """Let the parts that a decision names enter in the same order as before."""
    order = entering.order
    name = DeliveryName(order.writer, order.sequence)
    rows = 0
    for (attempt, worker, number), part in sorted(entering.parts.items()):
        at = 0 if order.attempts is None else order.attempts.index(attempt)
        handle.put_back(order.epoch, part.batches, order.order + at, place_of_part(number, worker))
        rows += part.rows if part.is_mine else 0
    if order.attempts is not None:
        handle.deliveries.put_back_batch(name, rows)
    handle.put_back_calls(order.order + len(order.attempts or "1") - 1)
