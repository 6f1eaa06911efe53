"""Which epochs are durable: nobody is shown an epoch that a restart could change.

    sealed    a worker has carried out the seal of an epoch: all that it has of it is in its log by then
    synced    its log has told so much; it says so to worker 0 (`Synced`)
    durable   all workers have said so to worker 0, which tells them (`Durable`)

A worker reports only the last of the epochs that became synced together, so the messages of many epochs in
flight are few. A lone worker sends none.
"""

from __future__ import annotations

from collections import deque
from typing import Final

from ...durable.log import Log
from ...operators.capture import FOREVER
from ...running.core import Worker
from ...running.instance import Instance
from ...running.stages.source_runner import SourceRunner
from ...running.stages.upstream import upstream_of
from ...wire.handshake import Durable, Synced, encode_control
from ..orders import open_epoch

__all__ = ["ANY_STAGE", "DurableEpochs", "sealed_before"]

ANY_STAGE: Final = -1
"""In place of a stage: whatever the dataflow shows."""

_Key = tuple[int, str]
"""A dataflow, and the name of one of its sources; "": all of its inputs; `_OF_INPUT` and a name: one of
them, of a dataflow in which inputs have epochs of their own.
"""
_OF_INPUT: Final = "\0"
"""With this begins no name of a source."""


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
        self._are_apart: set[int] = set()
        """Dataflows in which an input was sealed by itself."""
        self._leading: dict[tuple[int, int], frozenset[str]] = {}
        """What leads to a stage, by dataflow and stage, of those that were asked about."""
        self._unmarked: set[_Key] = set()
        """On worker 0: the log does not have yet what is durable of these."""

    def begin(self, instance: Instance, before: int | None = None) -> None:
        """Note that the epochs of a dataflow come from logs that count: those that were sealed, or those
        before this one.
        """
        self._forget_ended()
        sealed_at = {**sealed_before(instance), **self._sealed_apart(instance)}
        for name, sealed in sealed_at.items():
            self._before[instance.index, name] = sealed if before is None else before

    def _forget_ended(self) -> None:
        """Keep nothing of dataflows that have ended: a cluster may install and end any number. Told of one
        later, as by a worker that lags behind, it is forgotten when the next begins.
        """
        ended = self._worker.ended

        def has_ended(dataflow: int) -> bool:
            return dataflow in ended or ended.is_long_over(dataflow)

        self._are_apart = {dataflow for dataflow in self._are_apart if not has_ended(dataflow)}
        self._unmarked = {key for key in self._unmarked if not has_ended(key[0])}
        self._before = {key: epoch for key, epoch in self._before.items() if not has_ended(key[0])}
        self._synced = {key: epochs for key, epochs in self._synced.items() if not has_ended(key[0])}
        self._leading = {key: names for key, names in self._leading.items() if not has_ended(key[0])}

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
        position = self._log.position
        self._sealed.append((position, (instance.index, ""), _open_at_inputs(instance)))
        for name, before in self._sealed_apart(instance).items():
            self._sealed.append((position, (instance.index, name), before))

    def _sealed_apart(self, instance: Instance) -> dict[str, int]:
        """Return, for each input of a dataflow in which some were sealed by themselves, the first epoch that
        may still get rows on this worker. Once they were, each is counted by itself for good: what was shown
        stays shown.
        """
        if instance.index not in self._are_apart:
            opened = {handle.epoch for handle in instance.inputs.values() if not handle.is_closed}
            if len(opened) <= 1:
                return {}
            self._are_apart.add(instance.index)
        return {
            _OF_INPUT + name: FOREVER if handle.is_closed else handle.epoch
            for name, handle in instance.inputs.items()
        }

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

    def shown_before(self, instance: Instance, stage: int = ANY_STAGE) -> int:
        """Return the first epoch that may not be shown, of those that are complete at some output, since it
        may rest on something that is not durable; `stage`: the stage of that output, or of a probe.

        An input or a source holds up only what it reaches. One that has not come further than what is durable
        of it holds up nothing: what it reaches is not complete behind that.
        """
        of_inputs = self._before.get((instance.index, ""), 0) if instance.inputs else FOREVER
        if not instance.sources and instance.index not in self._are_apart:  # all inputs are sealed together
            before = of_inputs
        else:
            before = FOREVER
            leading = None if stage == ANY_STAGE else self._leading_to(instance, stage)
            for name, sealed in self._sealed_by_name(instance).items():
                if leading is not None and name not in leading:
                    continue
                durable = self._before.get((instance.index, name), 0)
                is_input = name[:1] in ("", _OF_INPUT)
                if is_input:  # all are durable as far as the inputs together are
                    durable = max(durable, of_inputs)
                if durable < sealed and (is_input or durable < instance.first_at_source(name)):
                    before = min(before, durable)
        return min([before, *map(self.shown_before, self._owners(instance))])

    def _leading_to(self, instance: Instance, stage: int) -> frozenset[str]:
        """Return the names of the sources and inputs, as keys have them, from which rows come to a stage."""
        leading = self._leading.get((instance.index, stage))
        if leading is None:
            frozen = instance.frozen
            feeding = [spec.index for specs in frozen.feeding[stage] for spec in specs]
            upstream = upstream_of(frozen, len(frozen.stages), feeding)
            inputs = [name for name, each in frozen.inputs.items() if frozen.stage_of[each.stage] in upstream]
            sources = [source.name for source in instance.sources if source.stage in upstream]
            together = [""] if inputs else []
            leading = frozenset([*sources, *together, *(_OF_INPUT + name for name in inputs)])
            self._leading[instance.index, stage] = leading
        return leading

    def _sealed_by_name(self, instance: Instance) -> dict[str, int]:
        """Return `sealed_before` with each input in place of all of them, if they are counted apart."""
        sealed = sealed_before(instance)
        apart = self._sealed_apart(instance) if instance.index in self._are_apart else {}
        if apart:
            sealed.pop("", None)
        return {**sealed, **apart}

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
            if self._is_log_of_all and source[:1] in ("", _OF_INPUT):
                self.on_durable(Durable(dataflow, before, source))
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
            self._note_unmarked(key)
            if self._worker.workers > 1:
                self._worker.send_control(encode_control(Durable(news.dataflow, before, news.source)))

    def on_durable(self, news: Durable) -> None:
        """Note what worker 0 has told."""
        key = news.dataflow, news.source
        if self._worker.index == 0:
            self._note_unmarked(key)
        self._before[key] = max(self._before.get(key, 0), news.before)

    def _note_unmarked(self, key: _Key) -> None:
        """Note that the log does not have yet what is durable. Workers that follow take all inputs together,
        so it never has that of one input.
        """
        if key[1][:1] != _OF_INPUT:
            self._unmarked.add(key)
