"""What a worker of a durable cluster has besides: a journal, what is durable, what logs hold from before.

A dataflow that the logs hold begins like any other, under its old number; then its inputs get what they had.
Dataflows that read one another begin together: otherwise the first could move on before the other asks for
its rows as of an early epoch.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Collection, Mapping, Sequence
from functools import partial
from itertools import zip_longest
from typing import Final

from ...building.freeze import FrozenDataflow
from ...durable.answers.manifest import declare, stored_bytes
from ...durable.bases.coverage import logs_of
from ...durable.bases.manifest import SegmentName
from ...durable.following.status import followers_of
from ...durable.incarnations import Incarnation
from ...durable.journal import Journal
from ...durable.log import Log
from ...durable.past import Past, PastFlow, PastInput, read_orders, read_rows
from ...durable.store import Store
from ...errors import MisuseError, NotRepeatableError, StoreError, TimelyError, UninstalledError, class_names
from ...failure import fresh_copy, full_text_of
from ...running.core import Worker
from ...running.instance import Instance
from ...wire.handshake import Decided, SealedInput, encode_control
from ...wire.requests import Value
from ..orders import open_epoch
from .digests import DigestChecks
from .epochs import ANY_STAGE, DurableEpochs
from .folds.cuts import LogCuts, stored_outputs
from .folds.fold_facts import fold_facts
from .folds.fold_process import Before, FoldProcess
from .restoring import Share, feed
from .switching import VersionLog

__all__ = ["Durability", "another_query", "check_same_query"]

_log = logging.getLogger("timely")

_MARK_SECONDS: Final = 0.25
"""Where sources go on by themselves nothing is sealed, and workers may never rest. So the log says this
often what is durable, for those who follow.
"""


class Durability:
    """The durable part of one worker.

    Args:
        worker: the worker.
        store: where the logs are.
        incarnation: the present one, with the logs that count from before.
        log: of this process; several workers of a process share it.
        begins_together: all dataflows of the logs begin before any gets its rows, so that the logs are read
            once. False: those that read one another do, because a program installs the others later.
        cuts: this worker cuts the log for folds; see `LogCuts`.
    """

    def __init__(
        self,
        worker: Worker,
        store: Store,
        incarnation: Incarnation,
        log: Log,
        begins_together: bool,
        cuts: bool = True,
    ) -> None:
        self._worker = worker
        self._incarnation = incarnation
        self._begins_together = begins_together
        self.log = log
        self.journal = Journal(log, worker.index)
        self.epochs = DurableEpochs(worker, log, is_log_of_all=incarnation.processes == 1)
        self._logs = logs_of(store, incarnation)
        self.past: Past = read_orders(self._logs)
        self.digests = DigestChecks(worker, self.journal, self.past, store.name)
        self.cuts = LogCuts(worker, self.journal, cuts, self.shown_before, self.past.sealed())
        flows = self.past.flows.values()
        later = {key: flow.number for flow in flows if flow.switch is not None for key in flow.switch.keys}
        self._numbers = {**later, **{flow.key: flow.number for flow in flows}}
        self.versions = VersionLog(
            self.journal, self.past, self.epochs, self.digests, self.cuts, self._numbers, store
        )
        self._successors: dict[int, int] = {}
        """For a dataflow that is about to begin under the key of a failed one: the number of that."""
        self.begun: set[int] = set()
        """The numbers of all dataflows that have begun in this incarnation."""
        self._unfed: dict[int, Instance] = {}
        """The dataflows of the logs that have begun, and whose inputs are still empty."""
        self._fed: set[int] = set()
        """The dataflows of the logs whose inputs have what they had."""
        self.of_process: Sequence[Durability] = (self,)
        """The durable parts of all workers of this process."""
        self._folds: FoldProcess | None = None
        self._has_sources = False
        self._mark_at = 0.0

    @property
    def incarnation(self) -> Incarnation:
        """The present incarnation, and what counts from before."""
        return self._incarnation

    @property
    def number(self) -> int:
        """The number of the incarnation."""
        return self._incarnation.number

    @property
    def cluster(self) -> str:
        """The identity of the cluster, the same in all its incarnations."""
        return self._incarnation.cluster

    def look(self) -> bool:
        """Tell other workers, and note, what the log has told since the last look, and what is made again
        after a restart; return True if there was anything.
        """
        happened = self.epochs.look()
        if self._has_sources and time.monotonic() >= self._mark_at:
            self._mark_at = time.monotonic() + _MARK_SECONDS
            self.mark_durable()
        happened = self.versions.look() or happened
        return self.digests.look() or happened

    def shown_before(self, instance: Instance, output: str, complete: int) -> int:
        """Return the first epoch that may not be shown at an output (at all of them, if that is empty), of
        those before `complete`, which are complete there.
        """
        shown = self.digests.before(instance, output, complete)
        declared = instance.frozen.outputs.get(output)
        stage = ANY_STAGE if declared is None else instance.frozen.stage_of[declared.stage]
        return min(shown, self.epochs.shown_before(instance, stage))

    def is_under_way(self) -> bool:
        """Return True if an epoch was sealed that the log has not told, and the log has no digest to tell."""
        return self.epochs.has_unsynced and not self.digests.has_unsynced

    # Decisions of worker 0: see `Ledger`.

    def write_order(self, order: Decided | SealedInput, streams: Sequence[tuple[str, str, str]]) -> None:
        """See `Ledger`."""
        if self.log.error is not None:
            self._check_anew()
        self.journal.order(order.dataflow, encode_control(order), streams)

    def write_seal(self, dataflow: int, epoch: int) -> None:
        """See `Ledger`."""
        if self.log.error is not None:
            self._check_anew()
        self.journal.sealed(dataflow, epoch, self.epochs.mark(dataflow))

    def note_sealed(self, instance: Instance) -> None:
        """See `Ledger`."""
        self.epochs.note(instance)

    def _check_anew(self) -> None:
        """The same as `check`, after one more try of the log."""
        self.log.try_again()
        self.check()

    def check(self) -> None:
        """Raise why nothing can be written at present, if so: worker 0 decides nothing then."""
        if self.log.error is not None:
            raise fresh_copy(self.log.error)

    # Folds.

    @property
    def base(self) -> int:
        """The number of the base from which this incarnation has gone on; 0: there was none."""
        return self._incarnation.base

    @property
    def have_all_begun(self) -> bool:
        """True if all dataflows of the logs have begun, though they may have ended, and have their rows."""
        return not self._unfed and self.begun >= self.past.flows.keys()

    def fold_process(self, folder: str) -> FoldProcess:
        """Return what folds the store in this folder; for worker 0."""
        base = self._logs.base
        logged = sum(
            end
            for log in self._logs.logs
            for path, end in log.segments
            if not base.covers(SegmentName.of(path))
        )
        base_bytes = sum(file.size_bytes for file in base.files().values())
        base_bytes += stored_bytes(store := self._logs.store)
        before = Before(self._incarnation.number, base_bytes, logged, self._logs.incarnations())
        self._folds = FoldProcess(folder, store, before)
        return self._folds

    def report(self) -> dict[str, Value]:
        """Return what `stats()` says of the store; worker 0 knows of all logs, and of those that follow."""
        error, size = self.log.error, self.log.size_bytes
        own: dict[str, Value] = {
            "incarnation": self.number,
            "logged_bytes": size,
            "unsynced_bytes": self.log.unsynced_bytes,
            "failing": "" if error is None else str(error),
        }
        if self._folds is None:
            return own
        opened = {number: open_epoch(instance) for number, instance in self._worker.instances.items()}
        followers: list[Value] = [
            {
                "worker": each.worker,
                "process": each.process,
                "is_abreast": each.is_abreast,
                "behind": each.behind(opened),
            }
            for each in followers_of(self._logs.store.name)
        ]
        return {**own, "since_base_bytes": self._folds.logged_bytes(size), "standby": followers}

    # Dataflows by the names under which clients install them.

    def number_of(self, key: str) -> int | None:
        """Return the number of the dataflow under this key that runs, is about to, or is in the logs; None if
        there is none, or it has failed. Raise what has ended it if another one must not take the place of its
        rows: it has not got them, or has come to other answers than before.
        """
        number = self._numbers.get(key)
        error = None if number is None else self._worker.ended.get(number)
        if error is None:
            return number
        is_whole = number not in self.past.flows or number in self._fed
        if isinstance(error, NotRepeatableError) or (number in self.begun and not is_whole):
            raise fresh_copy(error)
        return None if is_whole else number  # it could not be built, and may be built later

    def has_key(self, key: str) -> bool:
        """Return True if there is a dataflow under this key, even if nothing must take its place."""
        try:
            return self.number_of(key) is not None
        except TimelyError:
            return True

    def note_number(self, key: str, number: int) -> None:
        """Remember under which key a dataflow is installed. If an earlier one under that key has failed, the
        new one takes its place for good when it begins.
        """
        before = self._numbers.get(key)
        if before is not None and before in self._worker.ended:
            self._successors[number] = before
        self._numbers[key] = number

    def note_refused(self, number: int) -> None:
        """Note that a dataflow could not be built. If the logs have it, it may be built later."""
        before = self._successors.pop(number, None)
        if number not in self.past.flows:
            keys = [key for key, other in self._numbers.items() if other == number]
            for key in keys:
                del self._numbers[key]
                if before is not None:
                    self._numbers[key] = before

    def note_gone(self, numbers: Collection[int], error: UninstalledError) -> None:
        """Write that a client has ended dataflows."""
        self.journal.gone(sorted(numbers), full_text_of(error), class_names(error))
        for key in [key for key, number in self._numbers.items() if number in numbers]:
            del self._numbers[key]

    def check_same(self, number: int, frozen: FrozenDataflow) -> None:
        """Raise `MisuseError` if `frozen` is not what the logs have under this number."""
        flow = self.past.flows.get(number)
        if flow is not None and flow.fingerprint != frozen.fingerprint:
            raise another_query(flow.key, flow.lines, tuple(frozen.graph.describe()))

    # Dataflows begin.

    def write_flow(self, instance: Instance, key: str, spec: str, arguments: bytes, as_of: int) -> None:
        """Write that a new dataflow is about to begin as of an epoch; before that, that the one whose place
        it takes has ended for good.
        """
        if instance.index not in self.past.flows:
            for name in stored_outputs(instance):
                declare(self._logs.store, instance.index, key, name)
            before = self._successors.pop(instance.index, None)
            if before is not None:
                error = self._worker.ended[before]
                self.journal.gone([before], full_text_of(error), class_names(error))
            self.versions.note_key(instance.index, key)
            self.journal.flow(instance.index, _facts(instance, key, spec, arguments, as_of))
            _say_what_is_kept(instance, key)

    def write_version(
        self, instance: Instance, replaces: int, key: str, spec: str, arguments: bytes, as_of: int
    ) -> None:
        """Write that a new version of a dataflow is about to begin. Its names are those of the old one; and
        `key`, if no other dataflow has that.
        """
        own = key if self._numbers.get(key, replaces) == replaces else self.versions.keys(replaces)[0]
        first = self.versions.note_key(instance.index, own, replaces)
        self.journal.version(instance.index, _facts(instance, first, spec, arguments, as_of))
        _say_what_is_kept(instance, key)

    def checked_epoch(self, number: int, epoch: int, reads: Collection[int]) -> int:
        """Return the epoch with which a dataflow begins that can begin with `epoch`, or a later one: that
        with which it began, if the logs have it. Raise `MisuseError` if it is too late for that one.

        A new one begins no earlier than a base may sum up the rows of what it `reads`: those of earlier
        epochs are not there, or will not be after a restart.
        """
        flow = self.past.flows.get(number)
        if flow is None:
            return max([epoch, *(self.cuts.sealed.get(owner, 0) for owner in reads)])
        if flow.as_of < epoch:
            raise MisuseError(
                f"{flow.key!r} began with epoch {flow.as_of} of the dataflows that it reads, and these are "
                f"at epoch {epoch} by now: connect again, and install {flow.key!r} right behind them, before "
                "they are used"
            )
        return flow.as_of

    def on_begun(self, instance: Instance) -> None:
        """Let a dataflow that has just begun write what it takes; one that the logs hold gets its rows before
        that, once those that it is to begin with have begun.
        """
        number = instance.index
        self.begun.add(number)
        self.digests.begin(instance)
        if number not in self.past.flows:
            self.epochs.begin_new(instance)
            self._open(instance)
            return
        self._unfed[number] = instance
        together = self._together_with(number) - self._fed
        if together <= self._unfed.keys():
            self._feed(together)

    def adopt(self, instances: Mapping[int, Instance]) -> None:
        """Go on with dataflows of the logs that have begun while this worker followed, and have all rows."""
        for number, instance in instances.items():
            if number in self.past.flows:
                self.begun.add(number)
                self._fed.add(number)
                if number in self._worker.instances:
                    self.digests.begin(instance)
                    self.epochs.begin(instance)
                    self._open(instance)

    def mark_durable(self) -> None:
        """Write what is durable, for workers that follow, if the log does not have that yet."""
        for number, source, before in self.epochs.unmarked():
            self.journal.durable(number, before, source)

    @property
    def waits(self) -> bool:
        """True if some dataflow has begun, and has not got its rows because others have not begun."""
        return bool(self._unfed)

    def feed_all(self) -> None:
        """Give their rows to all dataflows that have begun, on all workers of this process: somebody wants to
        use one of them now.
        """
        for one in self.of_process:
            if one.waits:
                one._feed(set(one._unfed))

    def open_epoch(self, instance: Instance) -> int:
        """Return the epoch that will be open once a dataflow has its rows, or, if all its inputs will be
        closed, an earlier one; 0 if it has them.
        """
        if instance.index not in self._unfed:
            return 0
        return max(instance.first_epoch, self.past.flows[instance.index].passed + 1)

    def _feed(self, numbers: Collection[int]) -> None:
        """Give their rows to dataflows. One that cannot take them ends; if the store cannot be read, all do
        that have not got theirs, and this raises.
        """
        index, workers = self._worker.index, self._worker.workers
        unfed = {number: self._unfed.pop(number) for number in sorted(numbers)}
        flows = [self.past.flows[number] for number in unfed if number not in self._worker.ended]
        try:
            inputs = read_rows(self._logs, flows, lambda old: old % workers == index)
            share = Share(self._logs, index, workers)
            for flow in flows:
                self._feed_one(unfed[flow.number], flow, inputs.pop(flow.number), share)
        except BaseException as error:
            for flow in flows:
                if flow.number not in self._fed:
                    self._worker.fail(flow.number, error)
            raise

    def _feed_one(
        self, instance: Instance, flow: PastFlow, inputs: dict[str, PastInput], share: Share
    ) -> None:
        try:
            feed(instance, flow, inputs, share)
        except StoreError:
            raise
        except BaseException as error:  # of a codec
            self._worker.fail(flow.number, error)
            return
        self._fed.add(flow.number)
        self.epochs.begin(instance)
        self._open(instance)

    def _open(self, instance: Instance) -> None:
        flow = self.past.flows.get(instance.index)
        self.cuts.begin(instance, flow)
        for name, handle in instance.inputs.items():
            handle.journal = self.journal.input(instance.index, name)
        for source in instance.sources:
            journal = self.journal.source(instance.index, source.name, source.of)
            note_kept = partial(self.epochs.note_source, instance, source)
            source.start(journal, note_kept, [] if flow is None else flow.source(source.name).values())
            note_kept()  # where a source never sends, nothing is missing
            self._has_sources = True

    def _together_with(self, number: int) -> set[int]:
        """Return the dataflows of the logs that begin with this one."""
        flows = self.past.flows
        if self._begins_together:
            return set(flows)
        together = {number}
        while True:
            more = {
                flow.number
                for flow in flows.values()
                if flow.number not in together
                and (together & set(flow.reads) or any(flow.number in flows[one].reads for one in together))
            }
            if not more:
                return together
            together |= more


def _facts(instance: Instance, key: str, spec: str, arguments: bytes, as_of: int) -> list[object]:
    """Return the facts of a dataflow for a log: see `PastFlow`."""
    frozen = instance.frozen
    lines = list(frozen.graph.describe())
    reads = sorted({imported.exported.dataflow for imported in instance.imports})
    folding = fold_facts(instance).plain()
    return [spec, arguments, key, reads, as_of, frozen.fingerprint, lines, folding]


def _say_what_is_kept(instance: Instance, key: str) -> None:
    """Write into the log of this process of what the store will keep the whole history, and why."""
    for reason in fold_facts(instance).reasons():
        _log.warning("dataflow %d (%s): the store keeps the whole history of %s", instance.index, key, reason)


def check_same_query(key: str, stored: FrozenDataflow, offered: FrozenDataflow) -> None:
    """Raise `MisuseError` if `offered` is not the dataflow that is installed under this key."""
    if stored.fingerprint != offered.fingerprint:
        raise another_query(key, tuple(stored.graph.describe()), tuple(offered.graph.describe()))


def another_query(key: str, stored: Sequence[str], offered: Sequence[str]) -> MisuseError:
    """Return the error about a dataflow under this key that is described otherwise than the stored one."""
    what = "its fingerprint"
    for at, (was, now) in enumerate(zip_longest(stored, offered)):
        if was != now:
            where = "the layout of times" if at == 0 else f"stage {at - 1}"
            what = f"{where} was\n    {was or 'missing'}\n  and is now\n    {now or 'missing'}"
            break
    return MisuseError(
        f"a durable cluster has one query under each name, and under {key!r} the store has another one: "
        f"{what}\n  Write this query as it was. A changed one gets another name, and stands beside it: "
        f"cluster.replace({key!r}, the changed one) lets it take the rows and the place of this one. To "
        "begin without the rows, install the changed one, or uninstall the old one first"
    )
