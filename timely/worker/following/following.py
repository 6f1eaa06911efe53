"""A worker that follows: it does the work of a cluster that is at work elsewhere, and may take its place.

It reads what that cluster writes, and gives its own dataflows the same rows at the same epochs, as far as
these are durable. It has no clients, and writes nothing but
how far it is (`durable/following/status.py`). What it has done so far holds for whoever takes
over, since rows that are durable count for ever. On an order it becomes part of the next incarnation:

    taken over   the fence of the next incarnation stands, and its `begin` says what counts (`announce`)
    the rest     it reads the records that it has not read yet, and seals what was sealed
    adopted      its dataflows go on as those of a worker that has restored them from the logs

If it has read records that do not count (`OvertakenError`), it is of no use, and ends.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Mapping
from operator import lt
from typing import Final

from ...building.freeze import FrozenDataflow
from ...dictionaries import Mark
from ...durable.bases.manifest import base_numbers, read_base
from ...durable.following.followed import FollowedLogs
from ...durable.incarnations import Incarnation, newest_fence
from ...durable.past import Past, PastFlow, PastInput
from ...durable.store import Store, store_errors
from ...errors import FencedError, InternalError, MisuseError, revive
from ...operators.capture import CaptureVertex
from ...running.core import Worker
from ...running.instance import Instance
from ..durability.durability import another_query
from ..durability.restoring import Share, feed_base, feed_orders, feed_rows

__all__ = ["Following"]

_LOOK_SECONDS: Final = 0.02
_LOOK_SECONDS_MAX: Final = 0.25
"""How often a worker looks what the logs have; the less often, the longer nothing has come."""

_LOOK_AT_BASES_SECONDS: Final = 5.0


class Following:
    """What one worker follows. It also tells `Installations` what of a dataflow is known.

    Args:
        worker: the worker.
        store: of the cluster that is at work.
    """

    def __init__(self, worker: Worker, store: Store) -> None:
        """Raise `StoreError` if nothing can be followed."""
        self._worker = worker
        self._store = store
        index, workers = worker.index, worker.workers
        self._logs = FollowedLogs(store, lambda old: old % workers == index)
        self._share = Share(self._logs.earlier, index, workers)
        self.begun: dict[int, Instance] = {}
        """The dataflows that have begun here, in order; without those that have ended for good."""
        self._look_at = 0.0
        self._pause = _LOOK_SECONDS
        self._look_at_bases = time.monotonic() + _LOOK_AT_BASES_SECONDS
        self._base = self._logs.earlier.base.number
        self._rows = 0
        self._fresh: list[int] = []
        """How many segments without earlier names of each log were begun when `read_anew` was called."""
        self.is_abreast = False
        """True once this worker has had all that the logs had; it may still have to work on that."""

    @property
    def pause_seconds(self) -> float:
        """How long it is until `look` looks again."""
        return max(0.0, self._look_at - time.monotonic())

    @property
    def past(self) -> Past:
        """The dataflows, as far as the logs have been read."""
        return self._logs.past

    # For `Installations`.

    @property
    def waits(self) -> bool:
        """False: dataflows do not wait for one another once they have begun."""
        return False

    def note_number(self, key: str, number: int) -> None:
        """Do nothing: the logs say which numbers there are."""

    def note_refused(self, number: int) -> None:
        """Do nothing: `next_flow` names the dataflow again, and its error is raised then."""

    def check_same(self, number: int, frozen: FrozenDataflow) -> None:
        """Raise `MisuseError` if `frozen` is not what the logs have under this number."""
        flow = self.past.flows.get(number)
        if flow is not None and flow.fingerprint != frozen.fingerprint:
            raise another_query(flow.key, flow.lines, tuple(frozen.graph.describe()))

    def checked_epoch(self, number: int, epoch: int, reads: Collection[int]) -> int:
        """Return the epoch with which a dataflow has begun where it is at work."""
        as_of = self.past.flows[number].as_of
        if as_of < epoch:
            raise MisuseError(f"dataflow {number} began with epoch {as_of}, and is at epoch {epoch} here")
        return as_of

    def write_flow(self, instance: Instance, key: str, spec: str, arguments: bytes, as_of: int) -> None:
        """Raise `InternalError`: workers that follow install nothing new."""
        raise InternalError(f"dataflow {instance.index} was installed on workers that follow others")

    def write_version(
        self, instance: Instance, replaces: int, key: str, spec: str, arguments: bytes, as_of: int
    ) -> None:
        """Raise `InternalError`: workers that follow replace nothing."""
        raise InternalError(f"dataflow {replaces} was replaced on workers that follow others")

    @property
    def versions(self) -> None:
        """Nothing is written here."""
        return None

    def on_begun(self, instance: Instance) -> None:
        """Give a dataflow that has just begun what a base has of it. An error ends this worker: if it ended
        the dataflow alone, workers that have taken over would let another one take the place of its rows.
        """
        self.begun[instance.index] = instance
        for name in instance.frozen.outputs:
            _sum_up_digests(instance.output(name), self._worker)
        feed_base(instance, self.past.flows[instance.index], self._share)

    # Following.

    def next_flow(self) -> PastFlow | None:
        """Return a dataflow that has to begin; None if all have."""
        for number, flow in self.past.flows.items():
            if number not in self.begun and number not in self.past.gone:
                return flow
        return None

    def look(self) -> bool:
        """Take in what has come, if it is time to look; return True if there was anything. Requires: all
        dataflows have begun.
        """
        now = time.monotonic()
        if now < self._look_at:
            return False
        self._pause = min(2 * self._pause, _LOOK_SECONDS_MAX)
        self._look_at = now + self._pause
        if newest_fence(self._store) > self._logs.incarnation:
            if self._worker.index:
                return False  # worker 0 has put it, and says so at once, or ends, and all others with it
            raise FencedError(
                f"the cluster that this worker followed, incarnation {self._logs.incarnation} of the store "
                f"{self._store.name}, has started again by itself: follow anew"
            )
        has_begun = self._logs.read_orders()
        self._end_gone()
        if has_begun:
            self._look_at = now
            return True  # it begins first
        self._logs.read_rows(self._inputs())
        moved = False
        for instance in self._alive():
            flow = self.past.flows[instance.index]
            feed_rows(instance, flow.inputs)
            before = _rows_waiting(instance)
            moved = _seal(instance, min(flow.sealed, flow.durable - 1)) or moved
            for source in instance.sources:
                moved = source.have_past_before(flow.source(source.name).durable) or moved
            self._rows += max(0, before - _rows_waiting(instance))
        if moved:
            self._pause = _LOOK_SECONDS
        self.is_abreast = True  # once the work is done: more may come all the time
        if now >= self._look_at_bases:
            self._look_at_bases = now + _LOOK_AT_BASES_SECONDS
            self._forget()
        return moved

    def complete_before(self) -> dict[int, int]:
        """Return the first epoch that is not complete here, by dataflow."""
        return {
            instance.index: min(
                (instance.output(name).complete_before for name in instance.frozen.outputs),
                default=instance.epochs_done(),
            )
            for instance in self._alive()
        }

    def rows_since(self) -> int:
        """Return how many rows have entered dataflows since the last call."""
        rows, self._rows = self._rows, 0
        return rows

    # Words; see `HoldsWords`. A segment of a log says each symbol once, so later rows of it need all of them.

    def read_anew(self) -> None:
        """Let `has_read_anew` be true once each log has gone on to a segment that says all its symbols."""
        self._fresh = self._logs.fresh_segments()

    @property
    def has_read_anew(self) -> bool:
        """True if no symbol that a log has said before `read_anew` is needed for its rows to come."""
        return all(map(lt, self._fresh, self._logs.fresh_segments()))

    def symbols(self, mark: Mark) -> None:
        """Show the words of rows that no dataflow of this worker has yet."""
        self._logs.symbols(mark)

    def silent(self) -> list[str]:
        """Return []: all rows that were read can show their words."""
        return []

    def finish(self, incarnation: Incarnation, past: Past) -> dict[int, Instance]:
        """Read the rest of what counts for the incarnation that has taken over, give it to the dataflows that
        have begun, and return these. `past`: what the logs say for that incarnation.
        """
        self._logs.read_rest(incarnation, self._inputs())
        self._end_gone()
        for instance in self._alive():
            number = instance.index
            feed_rows(instance, self.past.flows[number].inputs)
            if number in past.flows:
                feed_orders(instance, past.flows[number])
        return self.begun

    def _alive(self) -> list[Instance]:
        instances = self._worker.instances
        return [
            instance
            for number, instance in self.begun.items()
            if number in instances and number in self.past.flows
        ]

    def _inputs(self) -> Mapping[int, dict[str, PastInput]]:
        """Return where rows go: to dataflows that are at work here, and to new versions that are not yet."""
        waiting = {number: flow.inputs for number, flow in self.past.versions.items()}
        return {**waiting, **{instance.index: self._flow_inputs(instance) for instance in self._alive()}}

    def _flow_inputs(self, instance: Instance) -> dict[str, PastInput]:
        return self.past.flows[instance.index].inputs

    def _end_gone(self) -> None:
        for number, (reason, classes) in self.past.gone.items():
            # It does not begin again, and holds memory for as long as it is here.
            if self.begun.pop(number, None) is not None and number in self._worker.instances:
                self._worker.end(number, revive(list(classes), reason))

    def _forget(self) -> None:
        """Drop the changes of outputs that the newest base no longer has: all readers have forgotten them.
        Sum up the digests of the epochs that it has summed up: they are compared as one.
        """
        with store_errors(self._store):
            numbers = base_numbers(self._store)
            if not numbers or numbers[-1] <= self._base:
                return
            self._base = numbers[-1]
            base = read_base(self._store, self._base)
        for instance in self._alive():
            flow = base.flows.get(instance.index)
            if flow is None:
                continue
            for name, output in flow.outputs.items():
                instance.output(name).forget(output.kept_from)
            for name in instance.frozen.outputs:
                capture = instance.output(name)
                if capture.digests is not None:
                    whole_before = max(flow.summed, flow.right_from) + 1
                    capture.digests.sum_up(min(whole_before, capture.complete_before))


def _rows_waiting(instance: Instance) -> int:
    return sum(handle.rows_waiting for handle in instance.inputs.values())


def _seal(instance: Instance, epoch: int) -> bool:
    moved = False
    for handle in instance.inputs.values():
        if epoch >= handle.epoch:
            handle.seal(epoch)
            moved = True
    return moved


def _sum_up_digests(capture: CaptureVertex, worker: Worker) -> None:
    capture.keep_digests(counts_failures=worker.index == 0)
