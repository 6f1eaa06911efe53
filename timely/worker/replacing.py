"""How does one version of a dataflow take the place of another while clients go on?

    built        all workers build the new version beside the old one (`installation.py`), under its name. The
                 old version feeds the inputs that both have with what it exports of them. If that fails
                 anywhere, the old version goes on as if nothing had happened
    standby      the new version runs, and catches up; no client can reach it
    switched     worker 0 sees that the new version has caught up, and says with which epoch e it goes on
                 (`Switched`); all epochs before e are sealed. What clients have appended from e on, and
                 append from now on, belongs to the new version: on every worker its inputs take over what
                 waits at those of the old one
    taken over   a worker on which both versions have completed the epochs before e lets the outputs go on,
                 too: with what the old one has put out before e, and then, at e, the difference between the
                 two (`TakenOver`)
    gone         all workers have done so: the old version ends

In a durable cluster there are two steps more between `standby` and `switched`. Before that nothing of the new
version counts, and after a restart the old one goes on; after it, the new one does.

    held         worker 0 sees that the new version has caught up, and says with which epoch e it is to go on
                 (`HoldInputs`). Requests about inputs wait on all workers. Once all epochs before e are
                 complete, each writes what the new version takes over, and says so (`InputsHeld`)
    decided      all have done so: worker 0 writes that the new version has taken the place of the old one

An order of worker 0 reaches all workers between the same seals, so on every worker e is the open epoch when
the worker carries out `Switched`. Requests that name the old version go to the new one: those about inputs
once it is switched, those about outputs once it is taken over.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Protocol

import pyarrow as pa

from ..building.freeze import FrozenDataflow
from ..errors import GraphError, MisuseError, ReplacedError, TimelyError, class_names, revive
from ..failure import full_text_of
from ..operators.imported import Exported
from ..operators.inputs.codecs import InputCodec
from ..operators.inputs.folded import RereadingCodec
from ..running.core import Worker
from ..running.importing import importers_of
from ..running.instance import Instance
from ..wire.handshake import Ended, HoldInputs, InputsHeld, Switched, TakenOver, encode_control
from .orders import open_epoch

__all__ = ["Replacements", "SwitchLog", "changed_forms", "feeds_of"]


def feeds_of(worker: Worker, old: Instance, frozen: FrozenDataflow) -> dict[str, Exported]:
    """Return, by input name, the exports that feed the inputs which a new version has in common with `old`;
    raise if there is none for one of them.
    """
    feeds: dict[str, Exported] = {}
    who = f"dataflow {old.index} ({old.frozen.name})"
    _check_no_source(f"{who} cannot be replaced", "it", old.frozen)
    _check_no_source(f"{who} cannot be replaced", "the new version", frozen)
    for name, declared in frozen.inputs.items():
        before = old.frozen.inputs.get(name)
        if before is None:
            continue
        _check_readable(f"{who} cannot be replaced: its input {name!r}", before.codec, declared.codec)
        exports = [export for export in old.frozen.exports.values() if export.of_input == name]
        if not exports:
            raise MisuseError(
                f"{who} cannot be replaced: it does not keep what its input {name!r} holds, with which that "
                "of the new version has to begin. A version that exports the input, by input(…).export(…), "
                "can be replaced; of this one, install the new version beside it, feed that, and uninstall it"
            )
        feeds[name] = worker.exported(old.index, exports[0].name)
    return feeds


def _check_readable(what: str, before: InputCodec, now: InputCodec) -> None:
    """Raise `GraphError` if rows of an input of an old version cannot be read as those of the new one."""
    if before.describe() == now.describe():
        return None
    why = ""
    if isinstance(now, RereadingCodec):
        try:
            return now.check_older(before)
        except MisuseError as error:
            why = f": {error}"
    raise GraphError(
        f"{what} is a {before.describe()}, that of the new version a {now.describe()}{why}. Give the new one "
        "another name: it begins empty"
    )


def changed_forms(old: Instance, new: Instance) -> dict[str, pa.Schema]:
    """Return the columns that clients of an old version send, by input, where the new version has others."""
    forms: dict[str, pa.Schema] = {}
    for name, before in old.frozen.inputs.items():
        now, form = new.frozen.inputs.get(name), getattr(before.codec, "arrow_schema", None)
        if now is not None and form is not None and before.codec.describe() != now.codec.describe():
            forms[name] = form()
    return forms


def _check_no_source(cannot: str, which: str, frozen: FrozenDataflow) -> None:
    """Raise `MisuseError` if a version of a dataflow has a source: nobody keeps what that has brought."""
    for stage in frozen.sources:
        declared = frozen.stages[stage]
        raise MisuseError(
            f"{cannot}: {which} has the source {declared.name!r} ({declared.site}), and what a source has "
            "brought is not kept for a new version. Install the new version beside it, and uninstall it"
        )


class SwitchLog(Protocol):
    """Where a durable worker writes about new versions: see `durability/switching.py`."""

    def begin(self, new: Instance) -> None:
        """Write what the old version feeds the inputs of a new one with."""
        ...

    def write(self, old: Instance, new: Instance) -> Iterator[None]:
        """Write what a new version takes over, in pieces."""
        ...

    def mark(self) -> int:
        """Return the position of the log behind all that was written, for which somebody waits."""
        ...

    def has_told(self, position: int) -> bool:
        """Return True if all up to a position of the log counts, whatever happens."""
        ...

    def decide(self, old: Instance, new: Instance, epoch: int, lost: Mapping[str, str]) -> int:
        """Write that the new version takes the place of the old one, `lost`: with which of its outputs it
        does not go on. Return the position of the log.
        """
        ...

    def switched(self, old: Instance, new: Instance, epoch: int, lost: Mapping[str, str]) -> None:
        """Note that it has done so."""
        ...

    def give_up(self, new: int, error: TimelyError) -> None:
        """Write that a new version has ended before anything was decided about it."""
        ...


@dataclass
class _Replacement:
    """A replacement under way, of `old` by `new`; `epoch` is -1 until it is switched."""

    old: int
    new: int
    epoch: int = -1
    held_at: int = -1
    """In a durable cluster: the epoch with which the new version is to go on; -1: nothing is held yet."""
    steps: Iterator[None] | None = None
    """Writes what the new version takes over."""
    written: int = -1
    """The position of the log behind that, until it is told; on worker 0 then behind the decision."""
    is_decided: bool = False
    held: set[int] = field(default_factory=set)
    """On worker 0: the workers that have written all."""
    is_taken_over: bool = False
    done: set[int] = field(default_factory=set)
    """On worker 0: the workers that have taken over."""


class Replacements:
    """All replacements on one worker."""

    def __init__(self, worker: Worker) -> None:
        self._worker = worker
        self.were_any = False
        """True if any replacement has ever begun here, or was switched though it had failed here before it
        began.
        """
        self._under_way: dict[int, _Replacement] = {}  # by the number of the new version
        self._inputs_of: dict[int, int] = {}  # from the number of an old version to that of the new one
        self._outputs_of: dict[int, int] = {}
        self._lost: dict[tuple[int, str], str] = {}
        """Outputs that do not go on as they were, by number of the old version and name, and the reason."""
        self._forms: dict[tuple[int, str], pa.Schema] = {}
        """By number of an old version and input: the columns that its clients send, if the next version has
        other ones.
        """
        self.log: SwitchLog | None = None
        """Where a durable worker writes; None: nowhere."""

    def restore(self, old: int, new: int, lost: Mapping[str, str], forms: Mapping[str, pa.Schema]) -> None:
        """Note that a new version has taken the place of a dataflow in an earlier incarnation; `forms`: see
        `changed_forms`.
        """
        self.were_any = True
        self._inputs_of[old] = self._outputs_of[old] = new
        self._note_forms(old, forms)
        self._lost.update({(old, name): why for name, why in lost.items()})

    # For clients.

    def inputs_of(self, dataflow: int) -> int:
        """Return the number of the version that has the inputs of `dataflow` now."""
        return _last(self._inputs_of, dataflow) if self._inputs_of else dataflow

    def outputs_of(self, dataflow: int) -> int:
        """Return the number of the version that has the outputs of `dataflow` now."""
        return _last(self._outputs_of, dataflow) if self._outputs_of else dataflow

    def first_of(self, dataflow: int, output: str) -> int:
        """Return the number of the version with which this output began. An output goes on as it was when its
        dataflow is replaced, unless `check_output` raises.
        """
        before = {new: old for old, new in self._outputs_of.items()}
        while dataflow in before and (before[dataflow], output) not in self._lost:
            dataflow = before[dataflow]
        return dataflow

    def instance(self, dataflow: int) -> Instance:
        """Return the dataflow, or its new version if that has taken over the outputs on this worker."""
        return self._worker.instance(self.outputs_of(dataflow) if self._outputs_of else dataflow)

    def check_input(self, dataflow: int, name: str) -> None:
        """Raise `ReplacedError` if the new version has no such input."""
        instance = self._worker.instances.get(self.inputs_of(dataflow))
        if dataflow in self._inputs_of and instance is not None and name not in instance.inputs:
            offered = ", ".join(map(repr, instance.inputs)) or "none"
            raise ReplacedError(
                f"the input {name!r} is gone: dataflow {dataflow} was replaced by dataflow {instance.index} "
                f"({instance.frozen.name}), whose inputs are {offered}"
            )

    def check_runs(self, dataflow: int) -> None:
        """Raise the error with which a version has ended, if it has."""
        self._worker.instance(dataflow)

    def older_form(self, dataflow: int, name: str) -> pa.Schema | None:
        """Return the columns that clients of this version send to an input, if a newer version has others."""
        while dataflow in self._inputs_of:
            if (dataflow, name) in self._forms:
                return self._forms[dataflow, name]
            dataflow = self._inputs_of[dataflow]
        return None

    def _note_forms(self, old: int, forms: Mapping[str, pa.Schema]) -> None:
        self._forms.update({(old, name): form for name, form in forms.items()})

    def check_output(self, dataflow: int, name: str) -> None:
        """Raise `ReplacedError` if this output has not gone on as it was in version `dataflow`."""
        while dataflow in self._outputs_of:
            if (dataflow, name) in self._lost:
                raise ReplacedError(self._lost[dataflow, name])
            dataflow = self._outputs_of[dataflow]

    def is_standby(self, dataflow: object) -> bool:
        """Return True if this is a new version that serves no clients here yet."""
        if not self._under_way:  # Fast path, for each request.
            return False
        return any(one.new == dataflow and not one.is_taken_over for one in self._under_way.values())

    def beside(self, dataflow: int) -> list[int]:
        """Return the other versions of a dataflow that run beside it while one replaces the other."""
        pairs = [(one.old, one.new) for one in self._under_way.values()]
        return [other for pair in pairs if dataflow in pair for other in pair if other != dataflow]

    def is_under_way(self, dataflow: int) -> bool:
        """Return True if a dataflow is being replaced, or is replacing another."""
        return any(dataflow in (one.old, one.new) for one in self._under_way.values())

    def is_switched(self, new: int) -> bool:
        """Return True if a new version has the inputs already, so that there is no way back."""
        return new in self._inputs_of.values() or any(
            one.new == new and one.is_decided for one in self._under_way.values()
        )

    def is_held(self, dataflow: int) -> bool:
        """Return True if requests about inputs of a dataflow wait: a new version is about to have them."""
        return any(one.old == dataflow and one.epoch < 0 <= one.held_at for one in self._under_way.values())

    def check_replaceable(self, old: Instance) -> None:
        """On worker 0: raise `MisuseError` if this dataflow cannot be replaced."""
        who = f"dataflow {old.index} ({old.frozen.name}) cannot be replaced"
        others = [one for one in importers_of(self._worker.instances, old.index) if not one.is_standby]
        if others:
            listed = ", ".join(f"{one.index} ({one.frozen.name})" for one in others)
            raise MisuseError(f"{who}: it is read by dataflow {listed}. Uninstall what reads it first")
        _check_no_source(who, "it", old.frozen)
        if old.imports:
            raise MisuseError(
                f"{who}: it imports, and its outputs may be ahead of its inputs. Install the new version "
                "beside it, and uninstall it"
            )
        ahead = max(old.inputs.values(), key=lambda handle: handle.epoch, default=None)
        if ahead is not None and ahead.epoch > (epoch := open_epoch(old)):
            raise MisuseError(
                f"{who}: its input {ahead.name!r} is at epoch {ahead.epoch}, and another one at {epoch}. "
                f"Seal all of them up to there, flow.seal(through={ahead.epoch - 1}), and replace it again"
            )
        closed = [name for name, handle in old.inputs.items() if handle.is_closed]
        if closed:
            raise MisuseError(
                f"{who}: its input {closed[0]!r} is closed, and nothing can go on there. Install the new "
                "version beside it, and uninstall it"
            )

    # On every worker.

    def begin(self, old: int, new: Instance) -> None:
        """Note that the new version has begun to run."""
        new.is_standby = new.is_taking_over = True
        self.were_any = True
        self._under_way[new.index] = _Replacement(old, new.index)
        self._worker.on_step = self.look
        if self.log is not None:
            self.log.begin(new)

    def look(self) -> bool:
        """Take the steps for which the dataflows have come far enough; return True if there was any."""
        happened = False
        for one in list(self._under_way.values()):
            try:
                happened = self._look_at(one) or happened
            except BaseException as error:  # the sum of two logs may overflow 64 bits
                self._worker.fail(one.new, error)
                happened = True
        if not self._under_way:
            self._worker.on_step = None
        return happened

    def _look_at(self, one: _Replacement) -> bool:
        old, new = (self._worker.instances.get(index) for index in (one.old, one.new))
        if new is None:
            self._on_new_ended(one, old)
        elif old is None and one.is_taken_over:
            del self._under_way[one.new]
        elif old is None:
            ended = self._worker.ended[one.old]
            who = f"dataflow {one.old}, which was to be replaced, has ended: {full_text_of(ended)}"
            self._worker.fail(one.new, revive(class_names(ended), who))
        elif one.epoch < 0:
            happened = _seal_what_is_not_fed(old, new)
            if self.log is not None and one.held_at >= 0:
                return self._go_on_holding(self.log, one, old, new) or happened
            return (self._worker.index == 0 and self._switch_if_caught_up(one, old, new)) or happened
        elif not one.is_taken_over:
            return self._take_over_if_done(one, old, new)
        else:
            return False
        return True

    def _on_new_ended(self, one: _Replacement, old: Instance | None) -> None:
        """Forget a replacement whose new version has ended. If it was switched, the old version has no inputs
        any more, and ends, too; before that, it goes on.
        """
        del self._under_way[one.new]
        error = self._worker.ended[one.new]
        if self._worker.on_failure is not None:
            # It may have ended here because of the old one, which had already ended elsewhere.
            self._worker.on_failure(one.new, error)
        if one.is_decided and one.epoch < 0:
            order = Switched(one.old, one.new, one.held_at)
            self._worker.send_control(encode_control(order))
            self.switch(order)
        elif one.epoch >= 0 and old is not None:
            self._worker.end(one.old, error)
        elif one.epoch < 0 and self.log is not None and self._worker.index == 0:
            self.log.give_up(one.new, error)

    def hold(self, order: HoldInputs) -> None:
        """Let requests about the inputs of a dataflow wait."""
        one = self._under_way.get(order.new)
        if one is not None:  # else it has failed here before worker 0 knew
            one.held_at = order.epoch

    def _go_on_holding(self, log: SwitchLog, one: _Replacement, old: Instance, new: Instance) -> bool:
        """Write what the new version takes over, and once that counts, tell worker 0; there, write the
        decision, and let it be carried out once that counts. Return True if there was anything to do.
        """
        if one.steps is None:
            outputs = [old.output(name).complete_before for name in old.frozen.outputs]
            is_through = all(feed.is_through(one.held_at) for feed in new.feeds.values())
            if not is_through or min([old.epochs_done(), *outputs]) < one.held_at:
                return False
            one.steps = log.write(old, new)
        for _ in one.steps:
            return True
        if one.written < 0:
            one.written = log.mark()
        if not log.has_told(one.written):
            return False
        index = self._worker.index
        if index not in one.held:
            one.held.add(index)
            if index:
                self._worker.send_control(encode_control(InputsHeld(one.new)), to=0)
            return True
        if index or len(one.held) < self._worker.workers:
            return False
        if not one.is_decided:
            one.written = log.decide(old, new, one.held_at, _lost_outputs(old, new, one.held_at))
            one.is_decided = True  # if that raises, the old version goes on
            return True
        order = Switched(one.old, one.new, one.held_at)
        self._worker.send_control(encode_control(order))
        self.switch(order)
        return True

    def held(self, worker: int, news: InputsHeld) -> None:
        """On worker 0: note that a worker has written all that a new version takes over."""
        one = self._under_way.get(news.dataflow)
        if one is not None:
            one.held.add(worker)

    def switch(self, order: Switched) -> None:
        """Let clients feed the new version."""
        one = self._under_way.get(order.new)
        old, new = (self._worker.instances.get(index) for index in (order.old, order.new))
        self._inputs_of[order.old] = order.new
        self.were_any = True
        if one is None or new is None:
            # It has failed here before worker 0 knew; but once worker 0 has switched, there is no way back.
            if old is not None:
                self._worker.end(order.old, self._worker.ended[order.new])
            return
        if old is None:
            return  # the old version has failed; `look` will handle that
        one.epoch = order.epoch
        old.is_standby, new.is_standby = True, False
        self._note_forms(order.old, changed_forms(old, new))
        try:
            for name, handle in new.inputs.items():
                if name in new.feeds:
                    handle.take_over(old.input(name), order.epoch)
                elif handle.epoch < order.epoch:
                    handle.seal(order.epoch - 1)
        except BaseException as error:
            self._worker.fail(one.new, error)
            return
        if self.log is not None:
            self.log.switched(old, new, order.epoch, _lost_outputs(old, new, order.epoch))

    def _take_over_if_done(self, one: _Replacement, old: Instance, new: Instance) -> bool:
        happened = new.let_go_of_feeds(one.epoch)
        if new.feeds or min(old.epochs_done(), new.epochs_done()) < one.epoch:
            return happened
        names = [name for name in old.frozen.outputs if name in new.frozen.outputs]
        captures = [(name, old.output(name), new.output(name)) for name in names]
        if any(min(a.complete_before, b.complete_before) < one.epoch for _, a, b in captures):
            return happened
        lost = _lost_outputs(old, new, one.epoch)
        for name, before, now in captures:
            if name not in lost:
                now.take_over(before, one.epoch)
        self._lost.update({(one.old, name): why for name, why in lost.items()})
        one.is_taken_over, new.is_taking_over = True, False
        self._outputs_of[one.old] = one.new
        if self._worker.index == 0:
            self.taken_over(0, TakenOver(one.new))
        else:
            self._worker.send_control(encode_control(TakenOver(one.new)), to=0)
        return True

    # On worker 0.

    def _switch_if_caught_up(self, one: _Replacement, old: Instance, new: Instance) -> bool:
        epoch = open_epoch(old)
        try:
            self.check_replaceable(old)
            if new.first_epoch > epoch:
                raise MisuseError(
                    f"the new version begins with epoch {new.first_epoch} of its imports, and dataflow "
                    f"{old.index} ({old.frozen.name}) is at epoch {epoch}: seal that one up to there, and "
                    "replace it again"
                )
        except MisuseError as error:
            self._worker.fail(one.new, error)
            return True
        if not all(handle.is_through(new.first_epoch) for handle in new.feeds.values()):
            return False
        # The new version begins with an epoch that has the whole state, and it has to compute that one, too.
        # If it imports, the dataflows that it reads may hold it back, so its progress says nothing.
        done = old.epochs_done()
        if not new.imports:
            epoch_done = min(done, max(new.first_epoch + 1, done - 1))
            if new.epochs_done() < epoch_done:
                return False
            # A strict output ends the dataflow if it has no answer; it runs after all else is done.
            outputs = [
                new.output(name) for name, declared in new.frozen.outputs.items() if declared.is_strict
            ]
            if any(output.complete_before < epoch_done for output in outputs):
                return False
        if self.log is None:
            order = Switched(old.index, new.index, epoch)
            self._worker.send_control(encode_control(order))
            self.switch(order)
        else:
            holding = HoldInputs(old.index, new.index, epoch)
            self._worker.send_control(encode_control(holding))
            self.hold(holding)
        return True

    def taken_over(self, worker: int, news: TakenOver) -> None:
        """Note that a worker has taken over the outputs. Once all have, end the old version."""
        one = self._under_way.get(news.dataflow)
        if one is None:
            return  # the new version has failed meanwhile
        one.done.add(worker)
        if len(one.done) == self._worker.workers:
            error = ReplacedError(f"dataflow {one.old} was replaced by dataflow {one.new}")
            self._worker.end(one.old, error)
            ended = Ended(one.old, full_text_of(error), tuple(class_names(error)))
            self._worker.send_control(encode_control(ended))


def _seal_what_is_not_fed(old: Instance, new: Instance) -> bool:
    """Seal inputs that only the new version has as far as the old version is sealed: they are empty until
    then. Return True if there was any to seal.
    """
    epoch = open_epoch(old)
    behind = [handle for name, handle in new.inputs.items() if name not in new.feeds and handle.epoch < epoch]
    for handle in behind:
        handle.seal(epoch - 1)
    return bool(behind)


def _lost_outputs(old: Instance, new: Instance, epoch: int) -> dict[str, str]:
    """Return the outputs of the old version that do not go on, and why, for clients."""
    who = f"dataflow {new.index} ({new.frozen.name})"
    why = f"dataflow {old.index} was replaced at epoch {epoch} by {who}, "
    lost: dict[str, str] = {}
    for name in old.frozen.outputs:
        if name not in new.frozen.outputs:
            lost[name] = f"the output {name!r} is gone: {why}which has no such output"
        elif not new.output(name).log.can_take_over(old.output(name).log):
            lost[name] = (
                f"the output {name!r} is another one: {why}where its rows are of another form. Ask for "
                f"that dataflow, cluster.flow({new.index}), and begin with a snapshot"
            )
    return lost


def _last(way: dict[int, int], dataflow: int) -> int:
    while dataflow in way:
        dataflow = way[dataflow]
    return dataflow
