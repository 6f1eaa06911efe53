"""When is an epoch sealed, and what belongs to it? Worker 0 decides; all carry it out, in the same order.

    seal     epochs up to this one are complete
    enter    the parts of an insertion, which have arrived on all workers, belong to the epoch that is open
    commit   the same of what the tasks of a batch have staged, of which only the successful attempts count
    close    an input has no further epochs

A decision is made by one message to worker 0. Either it has been made or it has not, whatever becomes of the
client that asked; it reaches every worker, since messages between workers are not lost (a worker that is lost
ends the cluster); and it meets what was decided before and after it in the same order everywhere.

A small insertion needs no decision: it goes to one worker, and belongs to the epoch that is open there when
it arrives. A worker that has not heard of a seal yet takes it for an epoch that the others have left, which
is no harm: the epoch is complete only when that worker has sealed it, too.
"""

from __future__ import annotations

from ..errors import InputClosedError, MisuseError
from ..operators.inputs.deliveries import ONE_ATTEMPT
from ..operators.inputs.handle import InputHandle
from ..operators.inputs.names import DeliveryName
from ..running.core import Worker
from ..running.instance import Instance
from ..wire.handshake import Closed, Committed, Entered, Sealed, encode_control
from ..wire.task_requests import CommitAttempts

__all__ = ["Orders", "open_epoch"]


def open_epoch(instance: Instance) -> int:
    """The first epoch that is not sealed; inputs that are closed have no say unless all are.

    Without inputs of its own its epochs are those of what it imports, as far as this worker knows. The one
    with which it began is sealed if its owners are past it; clients may ask for that before it has come.
    """
    handles = instance.inputs.values()
    if not handles:
        first = instance.first_epoch
        is_past = first > 0 or all(handle.is_past(first) for handle in instance.imports)
        epochs = [handle.epoch for handle in instance.imports]
        opened = [handle.epoch for handle in instance.imports if not handle.is_complete]
        return max(min(opened, default=max(epochs, default=0)), first + is_past)
    # Asked several times for each epoch: lists, since generators cost more where there are few.
    opened = [handle.epoch for handle in handles if not handle.is_closed]
    return min(opened) if opened else max([handle.epoch for handle in handles])


class Orders:
    """Makes decisions on worker 0, and carries them out on every worker."""

    def __init__(self, worker: Worker) -> None:
        self._worker = worker

    # On worker 0, for clients. Each raises before anything has changed, or not at all.

    def seal(self, dataflow: int, epoch: int) -> int:
        """Seal all epochs up to `epoch`; sealed ones stay so. Returns the epoch that is open then."""
        instance = self._worker.instance(dataflow)
        if not instance.inputs:
            raise MisuseError(
                f"dataflow {dataflow} ({instance.frozen.name}) has no inputs of its own: its epochs are "
                "sealed where what it imports comes from"
            )
        opened = [handle for handle in instance.inputs.values() if not handle.is_closed]
        if not opened:
            raise InputClosedError(
                f"all inputs of dataflow {dataflow} are closed: there is no epoch {epoch} to seal"
            )
        opened[0].check_epoch(epoch + 1)  # epochs look alike at all inputs
        if epoch < opened[0].epoch and epoch < (first := min([handle.epoch for handle in opened])):
            return first
        if self._worker.workers > 1:
            self._tell(Sealed(dataflow, epoch))
        self._seal(instance, opened, epoch)
        return epoch + 1

    def enter(self, dataflow: int, input_name: str, epoch: int, identity: DeliveryName) -> tuple[bool, int]:
        """Let an insertion whose parts have arrived everywhere belong to `epoch`, or to the open one if that
        is later: (whether it was new, its epoch). A repetition changes nothing.
        """
        handle = self._worker.instance(dataflow).input(input_name)
        if not handle.is_new(identity):
            self._decide(Entered(dataflow, input_name, identity.writer, identity.sequence, -1))
            return False, handle.epoch
        handle.deliveries.check_staged(identity)
        entered = max(epoch, handle.epoch)
        handle.epoch_word(entered)
        handle.deliveries.take(identity, entered)
        order = handle.next_call()
        self._decide(Entered(dataflow, input_name, identity.writer, identity.sequence, entered, order))
        return True, entered

    def commit(self, request: CommitAttempts, attempts: tuple[str, ...]) -> tuple[bool, int]:
        """Let a batch, of which these attempts count, belong to the open epoch: (whether it was new, its
        epoch). A repetition changes nothing.
        """
        query, batch = name = DeliveryName(request.query, request.batch)
        handle = self._worker.instance(request.dataflow).input(request.input)
        deliveries = handle.deliveries
        if not deliveries.is_new_batch(name, None if request.may_skip else request.stream):
            return False, handle.epoch
        handle.check_open()
        deliveries.check_remembered(query)
        if not request.may_skip:
            deliveries.check_follows(name)
        if attempts:
            deliveries.check_looked(name, request.looked)
        handle.epoch_word(handle.epoch + 1)
        order = handle.next_call(len(attempts))
        entered = handle.epoch
        self._decide(Committed(request.dataflow, request.input, query, batch, entered, order, attempts))
        deliveries.note_stream(query, request.stream)
        return True, entered

    def close(self, dataflow: int, input_name: str) -> int:
        """Close an input. Returns the epoch that is open then."""
        instance = self._worker.instance(dataflow)
        if not instance.input(input_name).is_closed:
            self._decide(Closed(dataflow, input_name))
        return open_epoch(instance)

    # On every worker.

    def carry_out(self, order: Sealed | Entered | Committed | Closed) -> None:
        """Do what was decided. What fails ends the dataflow; what is for one that has ended is void."""
        instance = self._worker.instances.get(order.dataflow)
        if instance is None:
            return
        if isinstance(order, Sealed):
            opened = [handle for handle in instance.inputs.values() if not handle.is_closed]
            self._seal(instance, opened, order.epoch)
            return
        try:
            self._carry_out(instance, order)
        except BaseException as error:  # of a codec, too
            self._worker.fail(order.dataflow, error)

    def _seal(self, instance: Instance, opened: list[InputHandle], epoch: int) -> None:
        try:
            for handle in opened:
                handle.seal(epoch)
        except BaseException as error:  # of a codec, too
            self._worker.fail(instance.index, error)

    def _carry_out(self, instance: Instance, order: Entered | Committed | Closed) -> None:
        if isinstance(order, Closed):
            instance.input(order.input).close()
        elif isinstance(order, Committed):
            name = DeliveryName(order.query, order.batch)
            instance.input(order.input).enter_batch(
                name, order.attempts, order.epoch, order.order, self._worker.index
            )
        else:
            handle = instance.input(order.input)
            identity = DeliveryName(order.writer, order.sequence)
            if order.epoch < 0:
                handle.deliveries.drop(identity, [ONE_ATTEMPT])
            else:
                handle.enter_insertion(identity, order.epoch, order.order, self._worker.index)

    def _decide(self, order: Entered | Committed | Closed) -> None:
        if self._worker.workers > 1:
            self._tell(order)
        self.carry_out(order)

    def _tell(self, order: Sealed | Entered | Committed | Closed) -> None:
        assert self._worker.index == 0, "one worker decides"
        self._worker.send_control(encode_control(order))
