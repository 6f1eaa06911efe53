"""When is an epoch sealed, and what belongs to it? Worker 0 decides; all carry it out, in the same order.

    enter    staged deliveries belong to an epoch: the parts of an insertion, which have arrived on all
             workers, or what the successful attempts at a batch have staged
    seal     epochs up to this one are complete
    close    an input has no further epochs

One message to worker 0, `Decide`, asks for a decision, and one order, `Decided`, tells it to the others.
Either worker 0 has made the decision or it has not, whatever becomes of the client that asked. The decision
reaches every worker, since messages between workers are not lost (a worker that is lost ends the cluster);
and all workers carry out all decisions in the same order.

A small insertion needs no decision: it goes to one worker, and belongs to the epoch that is open there when
it arrives. A worker that has not heard of a seal yet takes it for an epoch that the others have left, which
is no harm: the epoch is complete only when that worker has sealed it, too.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from progress.records import record
from progress.times.anchor import EPOCH_MAX

from ..errors import InputClosedError, MisuseError, RequestError, RestartedError
from ..limits import NAME_CHARS_MAX
from ..operators.inputs.handle import InputHandle
from ..operators.inputs.names import DeliveryName
from ..running.core import Worker
from ..running.instance import Instance
from ..wire.claims import shown
from ..wire.handshake import Decided, Entering, SealedInput, encode_control
from ..wire.requests import ALL_PARTS, ONE_ATTEMPT, Decide, Reply, Value

__all__ = ["Ledger", "Orders", "attempt_names", "open_epoch"]


def open_epoch(instance: Instance) -> int:
    """Return the first epoch of a dataflow that is not sealed. Closed inputs do not count unless all are
    closed.

    A dataflow without inputs of its own has the epochs of its imports and sources, as far as this worker
    knows. The epoch with which it began is sealed if all dataflows that it reads are past it; clients may ask
    before its rows have come.
    """
    handles = instance.inputs.values()
    if not handles and instance.sources:
        return _open_at_sources(instance)
    if not handles:
        first = instance.first_epoch
        is_past = first > 0 or all(handle.is_past(first) for handle in instance.imports)
        epochs = [handle.epoch for handle in instance.imports]
        opened = [handle.epoch for handle in instance.imports if not handle.is_complete]
        return max(min(opened, default=max(epochs, default=0)), first + is_past)
    # Several times for each epoch: lists, since a generator costs more than a short list.
    opened = [handle.epoch for handle in handles if not handle.is_closed]
    if opened:
        return min(opened)
    last = max([handle.epoch for handle in handles])
    return max(last, _open_at_sources(instance)) if instance.sources else last


def _open_at_sources(instance: Instance) -> int:
    """Return the first epoch at which a source, or an import, may still bring records."""
    epochs = [handle.epoch for handle in instance.imports]
    opened = [handle.epoch for handle in instance.imports if not handle.is_complete]
    opened += instance.open_at_sources()
    return min(opened) if opened else max([*epochs, *(source.latest for source in instance.sources)])


@record(frozen=True)
class _Batch:
    """A batch of attempts that a client wants to enter: see `Decide`."""

    attempts: tuple[str, ...]
    stream: str
    may_skip: bool
    looked: int


@record(frozen=True)
class _Entering:
    """A staged delivery that a client wants to enter at `handle`, the input `input`; if it is new, in
    `epoch`.
    """

    input: str
    handle: InputHandle
    name: DeliveryName
    batch: _Batch | None
    parts: int
    is_new: bool
    epoch: int


class Ledger(Protocol):
    """Where a durable worker writes decisions: see `durability/durability.py`."""

    def write_order(self, order: Decided | SealedInput, streams: Sequence[tuple[str, str, str]]) -> None:
        """Write a decision; `streams`: (input, query, stream) of each batch that it names. Raise why nothing
        can be written at present, if so.
        """
        ...

    def write_seal(self, dataflow: int, epoch: int) -> None:
        """Write a decision that only seals epochs up to this one; raise as `write_order` does."""
        ...

    def note_sealed(self, instance: Instance) -> None:
        """Note that epochs were sealed, or inputs closed, on this worker."""
        ...


class Orders:
    """Decides on worker 0, and carries out decisions on every worker."""

    def __init__(self, worker: Worker) -> None:
        self._worker = worker
        self.ledger: Ledger | None = None
        """Where decisions are written before anybody hears of them; None: nowhere."""
        self.incarnation = 0
        """The incarnation of the cluster, if it is durable."""

    # On worker 0, for clients. If these raise, nothing has changed.

    def decide(self, request: Decide) -> Reply:
        """Decide as a request asks. A repetition changes nothing."""
        instance = self._worker.instance(request.dataflow)
        if request.only:
            return self._seal_one(instance, request)
        behind = request.epoch
        if request.after:
            behind = _entered(instance, request.after, behind)
            if behind < 0:
                return Reply({"open": -1, "sealed": -1})
        if not (request.enter or request.close):
            opened = self.seal(request.dataflow, behind) if request.seals else open_epoch(instance)
            return Reply({"open": opened, "sealed": behind if request.seals else -1})
        entries = _entries(instance, request, self.incarnation)
        closing = _closing(instance, request.close)
        sealed = max([behind, *[entry.epoch for entry in entries if entry.is_new]]) if request.seals else -1
        if sealed >= 0:
            _check_sealable(instance, sealed)
        # A batch that was committed has nothing staged any more; an insertion may have been staged again.
        entering = [_entering(entry) for entry in entries if entry.is_new or entry.batch is None]
        if entering or closing or sealed >= 0:
            order = Decided(request.dataflow, sealed, tuple(entering), closing)
            if self.ledger is not None:
                streams = [
                    (entry.input, entry.name.writer, entry.batch.stream)
                    for entry in entries
                    if entry.is_new and entry.batch is not None
                ]
                self.ledger.write_order(order, streams)
            for entry in entries:
                if entry.is_new and entry.batch is None:  # it counts as taken from now on
                    entry.handle.deliveries.take(entry.name, entry.epoch)
            if self._worker.workers > 1:
                self._tell(order)
            self.carry_out(order)
        for entry in entries:
            if entry.is_new and entry.batch is not None:
                entry.handle.deliveries.note_stream(entry.name.writer, entry.batch.stream)
        entered: list[Value] = [[entry.is_new, entry.epoch] for entry in entries]
        return Reply({"entered": entered, "open": open_epoch(instance), "sealed": sealed})

    def seal(self, dataflow: int, epoch: int) -> int:
        """Seal all epochs up to `epoch` that are not sealed yet; return the epoch that is open then. Fast
        path: requests that only seal, one for each epoch, need no more than this.
        """
        instance = self._worker.instance(dataflow)
        opened = [handle for handle in instance.inputs.values() if not handle.is_closed]
        if not (opened and 0 <= epoch < EPOCH_MAX):
            _check_sealable(instance, epoch)
        if epoch < opened[0].epoch and epoch < (first := min([handle.epoch for handle in opened])):
            return first
        if self.ledger is not None:
            self.ledger.write_seal(dataflow, epoch)
        if self._worker.workers > 1:
            self._tell(Decided(dataflow, epoch))
        self._seal(instance, opened, epoch)
        if self.ledger is not None:
            self.ledger.note_sealed(instance)
        return epoch + 1

    def _seal_one(self, instance: Instance, request: Decide) -> Reply:
        """Seal epochs of one input. Values: open, sealed, as `Decide` has them, of this input."""
        handle = instance.input(request.only)
        if request.after or request.enter or request.close:
            raise RequestError(f"a request that seals input {request.only!r} alone does nothing else")
        handle.check_open()
        if not request.seals:
            return Reply({"open": handle.epoch, "sealed": -1})
        if request.epoch < 0:
            raise RequestError(f"epochs are whole numbers from 0 on, not {request.epoch}")
        handle.epoch_word(request.epoch + 1)  # raises if it is out of range
        if request.epoch >= handle.epoch:
            order = SealedInput(instance.index, request.only, request.epoch)
            if self.ledger is not None:
                self.ledger.write_order(order, [])
            if self._worker.workers > 1:
                self._tell(order)
            self.carry_out(order)
        return Reply({"open": handle.epoch, "sealed": request.epoch})

    # On every worker.

    def carry_out(self, order: Decided | SealedInput) -> None:
        """Carry out a decision. An error ends the dataflow; for an ended dataflow there is nothing to do."""
        instance = self._worker.instances.get(order.dataflow)
        if instance is None:
            return
        if isinstance(order, SealedInput):
            self._seal(instance, [instance.input(order.input)], order.sealed)
            if self.ledger is not None:
                self.ledger.note_sealed(instance)
            return
        try:
            for one in order.enter:
                name = DeliveryName(one.writer, one.sequence)
                handle = instance.input(one.input)
                if one.epoch < 0:
                    handle.deliveries.drop(name, [ONE_ATTEMPT])
                else:
                    handle.enter(name, one.attempts, one.epoch, one.order, self._worker.index, one.parts)
            if order.sealed >= 0:
                opened = [handle for handle in instance.inputs.values() if not handle.is_closed]
                self._seal(instance, opened, order.sealed)
            for closed in order.close:
                instance.input(closed).close()
            if self.ledger is not None and (order.sealed >= 0 or order.close):
                self.ledger.note_sealed(instance)
        except BaseException as error:  # also of a codec
            self._worker.fail(order.dataflow, error)

    def _seal(self, instance: Instance, opened: list[InputHandle], epoch: int) -> None:
        try:
            for handle in opened:
                handle.seal(epoch)
        except BaseException as error:  # also of a codec
            self._worker.fail(instance.index, error)

    def _tell(self, order: Decided | SealedInput) -> None:
        assert self._worker.index == 0, "one worker decides"
        self._worker.send_control(encode_control(order))


def _check_sealable(instance: Instance, epoch: int) -> None:
    """Raise if all inputs are closed, if there is none, or if `epoch` is out of range."""
    opened = [handle for handle in instance.inputs.values() if not handle.is_closed]
    if not opened:
        if instance.inputs:
            raise InputClosedError(
                f"all inputs of dataflow {instance.index} are closed: there is no epoch {epoch} to seal"
            )
        epochs = "its epochs are sealed where what it imports comes from"
        if instance.sources:
            epochs = "its epochs come from its sources"
        raise MisuseError(
            f"dataflow {instance.index} ({instance.frozen.name}) has no inputs of its own: {epochs}"
        )
    if not 0 <= epoch < EPOCH_MAX:
        opened[0].epoch_word(epoch + 1)  # epochs look alike at all inputs


def attempt_names(attempts: object) -> tuple[str, ...]:
    """Return the names of attempts; raise `RequestError` if one is no text or stands there twice."""
    names = tuple(name for name in attempts if isinstance(name, str)) if isinstance(attempts, list) else ()
    if not isinstance(attempts, list) or len(names) < len(attempts) or len(set(names)) < len(names):
        raise RequestError(f"attempts are named, each once, not {shown(attempts)}")
    return names


def _entered(instance: Instance, names: Sequence[Value], epoch: int) -> int:
    """Return the last epoch, `epoch` or later, that deliveries of these names may have entered; -1 if it is
    not known that all of them were taken.
    """
    for one in names:
        match one:
            case [str(name), str(writer), int(sequence)]:
                entered = instance.input(name).deliveries.entered_by(DeliveryName(writer, sequence))
                if entered is None:
                    return -1
                epoch = max(epoch, entered)
            case _:
                raise RequestError(f"a delivery is [input, writer, sequence], not {shown(one)}")
    return epoch


def _entries(instance: Instance, request: Decide, incarnation: int) -> list[_Entering]:
    """Return the deliveries of a request that shall enter; raise if one of them may not."""
    checked: list[_Entering] = []
    epoch, is_stale = request.epoch, request.incarnation != incarnation
    for one in request.enter:
        parts = ALL_PARTS
        match one:
            case [str(name), str(writer), int(sequence)]:
                batch = None
            case [str(name), str(writer), int(sequence), int(parts)] if parts > 0:
                batch = None
            case [str(name), str(writer), int(sequence), attempts, str(stream), bool(may_skip), int(looked)]:
                batch = _Batch(attempt_names(attempts), stream, may_skip, looked)
            case _:
                raise RequestError(
                    "what enters is [input, writer, sequence], [input, writer, sequence, parts], or [input, "
                    f"query, batch, attempts, stream, may_skip, looked], not {shown(one)}"
                )
        if max(len(writer), 0 if batch is None else len(batch.stream)) > NAME_CHARS_MAX:
            raise RequestError(f"a name has at most {NAME_CHARS_MAX:,} characters: {shown(one)}")
        handle, delivery = instance.input(name), DeliveryName(writer, sequence)
        is_new = (
            _is_new_insertion(handle, delivery, is_stale)
            if batch is None
            else _is_new_batch(handle, delivery, batch, is_stale)
        )
        entered = max(epoch, handle.epoch) if is_new else handle.epoch
        handle.epoch_word(entered + (batch is not None))
        if any((name, writer) == (other.input, other.name.writer) for other in checked):
            raise RequestError(f"one delivery of a writer enters at a time: {shown(one)} is the second")
        checked.append(_Entering(name, handle, delivery, batch, parts, is_new, entered))
    return checked


def _is_new_insertion(handle: InputHandle, name: DeliveryName, is_stale: bool) -> bool:
    if not handle.is_new(name):
        return False
    _check_current(name, is_stale)
    handle.deliveries.check_staged(name)
    return True


def _is_new_batch(handle: InputHandle, name: DeliveryName, batch: _Batch, is_stale: bool) -> bool:
    deliveries = handle.deliveries
    if not deliveries.is_new_batch(name, None if batch.may_skip else batch.stream):
        return False
    handle.check_open()
    deliveries.check_remembered(name.writer)
    if not batch.may_skip:
        deliveries.check_follows(name)
    if batch.attempts:
        _check_current(name, is_stale)
        deliveries.check_looked(name, batch.looked)
    return True


def _check_current(name: DeliveryName, is_stale: bool) -> None:
    """Raise `RestartedError` if rows were staged in another incarnation of the cluster: then only those that
    came after the restart are here, and to let these enter would lose the others.
    """
    if is_stale:
        raise RestartedError(
            f"the rows of delivery {name.sequence} of {name.writer!r} were staged before the cluster started "
            "again, and are gone: send all of them again"
        )


def _closing(instance: Instance, names: Sequence[Value]) -> tuple[str, ...]:
    """Return those of these inputs that are not closed yet."""
    closing: list[str] = []
    for name in names:
        if not isinstance(name, str):
            raise RequestError(f"inputs are closed by name, not by {shown(name)}")
        if not instance.input(name).is_closed:
            closing.append(name)
    return tuple(closing)


def _entering(entry: _Entering) -> Entering:
    """Return the order to all workers about a delivery."""
    name, batch, handle = entry.name, entry.batch, entry.handle
    attempts = None if batch is None else batch.attempts
    if not entry.is_new:
        # An insertion may have been staged again since; of a batch nothing is staged any more.
        return Entering(entry.input, name.writer, name.sequence, -1, 0, attempts)
    order = handle.next_call(1 if batch is None else len(batch.attempts))
    return Entering(entry.input, name.writer, name.sequence, entry.epoch, order, attempts, entry.parts)
