"""Which epochs are durable: nobody is shown an epoch that a restart could change.

    sealed    a worker has carried out the seal of an epoch: all that it has of it is in its log by then
    synced    its log has told so much; it says so to worker 0 (`Synced`)
    durable   all workers have said so to worker 0, which tells them (`Durable`)

A worker reports only the last of the epochs that became synced together, so the messages of many epochs in
flight are few. A lone worker sends none.
"""

from __future__ import annotations

from collections import deque

from ...durable.log import Log
from ...operators.capture import FOREVER
from ...running.core import Worker
from ...running.instance import Instance
from ...running.stages.source_runner import SourceRunner
from ...wire.handshake import Durable, Synced, encode_control
from ..orders import open_epoch

__all__ = ["DurableEpochs", "sealed_before"]

_Key = tuple[int, str]
"""A dataflow, and the name of one of its sources; "": its inputs, which are sealed together."""


def sealed_before(instance: Instance) -> dict[str, int]:
    """Return, for the inputs of a dataflow (""), and for each of its sources, the first epoch that may still
    get rows on this worker; `FOREVER` if none.
    """
    before = {source.name: source.kept_before for source in instance.sources}
    if instance.inputs:
        before[""] = _open_at_inputs(instance)
    return before


def _open_at_inputs(instance: Instance) -> int:
    if all(handle.is_closed for handle in instance.inputs.values()):
        return FOREVER
    return open_epoch(instance)


class DurableEpochs:
    """The durable epochs of all dataflows, as one worker knows them.

    Those of sources are counted apart: each source goes on by itself, and an output may be complete that an
    input which is behind does not reach.
    """

    def __init__(self, worker: Worker, log: Log, is_log_of_all: bool = False) -> None:
        """`is_log_of_all`: all workers of the cluster share the log, so that none has to ask another whether
        the rows of an epoch are there that was sealed.
        """
        self._worker = worker
        self._log = log
        self._is_log_of_all = is_log_of_all
        self._sealed: deque[tuple[int, _Key, int]] = deque()
        """The position of the log, what was sealed there, and the epoch before which it was."""
        self._before: dict[_Key, int] = {}
        self._synced: dict[_Key, list[int]] = {}
        """On worker 0: the epoch before which each worker has synced all it has."""
        self._unmarked: set[_Key] = set()
        """On worker 0: those of which the log does not have yet what is durable."""

    def begin(self, instance: Instance, before: int | None = None) -> None:
        """Note that the epochs of a dataflow come from logs that count: those that were sealed, or those
        before this one.
        """
        for name, sealed in sealed_before(instance).items():
            self._before[instance.index, name] = sealed if before is None else before

    def begin_new(self, instance: Instance) -> None:
        """Note that a dataflow begins that no log has: it takes no rows of its own for earlier epochs."""
        self.begin(instance, instance.first_epoch)

    def mark(self, dataflow: int, source: str = "") -> int:
        """Return the first epoch of a dataflow that is not durable, of its inputs, or of a source; the caller
        writes it into the log.
        """
        self._unmarked.discard((dataflow, source))
        return self._before.get((dataflow, source), 0)

    def unmarked(self) -> list[tuple[int, str, int]]:
        """Return dataflows, or sources of them, with the first epoch that is not durable, as far as the log
        does not have that.
        """
        return [(*key, self.mark(*key)) for key in sorted(self._unmarked)]

    def note(self, instance: Instance) -> None:
        """Note that epochs of a dataflow were sealed, or inputs closed, on this worker."""
        self._sealed.append((self._log.position, (instance.index, ""), _open_at_inputs(instance)))

    def note_source(self, instance: Instance, source: SourceRunner) -> None:
        """Note that a source has written how far it has come on this worker."""
        self._sealed.append((self._log.position, (instance.index, source.name), source.kept_before))

    def before(self, instance: Instance) -> int:
        """Return the first epoch of a dataflow that is not durable: neither what it has taken itself, nor
        what it reads of others.
        """
        before = FOREVER
        if instance.inputs:
            before = self._before.get((instance.index, ""), 0)
        for source in instance.sources:
            before = min(before, self._before.get((instance.index, source.name), 0))
        return min([before, *map(self.before, self._owners(instance))])

    def shown_before(self, instance: Instance) -> int:
        """Return the first epoch that may not be shown, of those that are complete at some output, since it
        may rest on something that is not durable.

        An input or a source that has not come further than what is durable of it holds up no output: one that
        it reaches is not complete behind that.
        """
        if not instance.sources:  # all inputs are sealed together
            before = self._before.get((instance.index, ""), 0) if instance.inputs else FOREVER
        else:
            before = FOREVER
            for name, sealed in sealed_before(instance).items():
                durable = self._before.get((instance.index, name), 0)
                if durable < sealed and (not name or durable < instance.first_at_source(name)):
                    before = min(before, durable)
        return min([before, *map(self.shown_before, self._owners(instance))])

    def _owners(self, instance: Instance) -> list[Instance]:
        """Return the dataflows that a dataflow imports from."""
        owners = [self._worker.instances.get(imported.exported.dataflow) for imported in instance.imports]
        return [owner for owner in owners if owner is not None]

    @property
    def has_unsynced(self) -> bool:
        """True if something was sealed that the log has not told, as far as `look` knows."""
        return bool(self._sealed)

    def look(self) -> bool:
        """Report what the log has synced since the last look; return True if there was anything."""
        if not self._sealed or self._sealed[0][0] > self._log.told:
            return False
        synced: dict[_Key, int] = {}
        while self._sealed and self._sealed[0][0] <= self._log.told:
            _, key, before = self._sealed.popleft()
            synced[key] = before
        for (dataflow, source), before in synced.items():
            if self._is_log_of_all and not source:
                self.on_durable(Durable(dataflow, before))
            elif self._worker.index == 0:
                self.on_synced(0, Synced(dataflow, before, source))
            else:
                self._worker.send_control(encode_control(Synced(dataflow, before, source)), to=0)
        return True

    def on_synced(self, worker: int, news: Synced) -> None:
        """On worker 0: note how far a worker has synced a dataflow; tell all what is durable by that."""
        key = news.dataflow, news.source
        synced = self._synced.setdefault(key, [0] * self._worker.workers)
        synced[worker] = max(synced[worker], news.before)
        before = min(synced)
        if before > self._before.get(key, 0):
            self._before[key] = before
            self._unmarked.add(key)
            if self._worker.workers > 1:
                self._worker.send_control(encode_control(Durable(news.dataflow, before, news.source)))

    def on_durable(self, news: Durable) -> None:
        """Note what worker 0 has told."""
        key = news.dataflow, news.source
        if self._worker.index == 0:
            self._unmarked.add(key)
        self._before[key] = max(self._before.get(key, 0), news.before)
