"""How does one version of a dataflow take the place of another while clients go on?

    built        the new version is built beside the old one (`installation.py`), under its name. Its inputs
                 that the old one has, too, are fed with what the old one exports of them. If that fails
                 anywhere the old one goes on as if nothing had been
    standby      it runs, and catches up; nobody else can reach it
    switched     worker 0 finds that it has caught up, and says with which epoch e it goes on (`Switched`);
                 all before e are sealed. What clients have appended from e on, and do from now on, is the new
                 version's: on every worker its inputs take over what waits at those of the old one
    taken over   a worker on which both have done with the epochs before e lets the outputs go on, too: what
                 the old one has put out before e, then, at e, the difference between the two (`TakenOver`)
    gone         all workers have done so: the old one ends

An order of worker 0 reaches all workers between the same seals, so e is the open epoch wherever `Switched` is
carried out. What is asked of the old version by its number goes to the new one: inputs from when it is
switched, outputs from when it is taken over.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from ..building.freeze import FrozenDataflow
from ..errors import GraphError, MisuseError, ReplacedError, class_names, revive
from ..failure import story_of
from ..operators.imported import Exported
from ..running.core import Worker
from ..running.importing import importers_of
from ..running.instance import Instance
from ..wire.handshake import Ended, Switched, TakenOver, encode_control
from .orders import open_epoch

__all__ = ["Replacements", "kept_inputs"]


def kept_inputs(worker: Worker, old: Instance, frozen: FrozenDataflow) -> dict[str, Exported]:
    """By name, what feeds the inputs that a new version has in common with `old`; raises if one cannot be."""
    found: dict[str, Exported] = {}
    who = f"dataflow {old.index} ({old.frozen.name})"
    for name, declared in frozen.inputs.items():
        before = old.frozen.inputs.get(name)
        if before is None:
            continue
        if before.codec.describe() != declared.codec.describe():
            raise GraphError(
                f"{who} cannot be replaced: its input {name!r} is a {before.codec.describe()}, that of the "
                f"new version a {declared.codec.describe()}. Give the new one another name: it begins empty"
            )
        kept = [export for export in old.frozen.exports.values() if export.of_input == name]
        if not kept:
            raise MisuseError(
                f"{who} cannot be replaced: it does not keep what its input {name!r} holds, with which that "
                "of the new version has to begin. A version that exports the input, by input(…).export(…), "
                "can be replaced; of this one, install the new version beside it, feed that, and uninstall it"
            )
        found[name] = worker.exported(old.index, kept[0].name)
    return found


@dataclass
class _Replacement:
    """One under way, from `old` to `new`; `epoch` is -1 until it is switched."""

    old: int
    new: int
    epoch: int = -1
    is_taken_over: bool = False
    done: set[int] = field(default_factory=set)
    """On worker 0: the workers that have taken over."""


class Replacements:
    """All replacements on one worker."""

    def __init__(self, worker: Worker) -> None:
        self._worker = worker
        self.were_any = False
        """Whether any has begun, ever; or was switched, though it has failed here before it began."""
        self._under_way: dict[int, _Replacement] = {}  # by the number of the new version
        self._inputs_of: dict[int, int] = {}  # from the number of an old version to that of the new one
        self._outputs_of: dict[int, int] = {}
        self._lost: dict[tuple[int, str], str] = {}
        """Outputs, by number of the old version and name, that do not go on as they were, and why not."""

    # For clients.

    def inputs_of(self, dataflow: int) -> int:
        """The number under which the inputs of `dataflow` are found now."""
        return _last(self._inputs_of, dataflow) if self._inputs_of else dataflow

    def outputs_of(self, dataflow: int) -> int:
        """The number under which the outputs of `dataflow` are found now."""
        return _last(self._outputs_of, dataflow) if self._outputs_of else dataflow

    def first_of(self, dataflow: int, output: str) -> int:
        """The number of the version with which this output began: it goes on as it was when its dataflow is
        replaced, unless `check_output` says otherwise.
        """
        before = {new: old for old, new in self._outputs_of.items()}
        while dataflow in before and (before[dataflow], output) not in self._lost:
            dataflow = before[dataflow]
        return dataflow

    def instance(self, dataflow: int) -> Instance:
        """The dataflow, or the new version of it, as far as that has taken its place here."""
        return self._worker.instance(self.outputs_of(dataflow) if self._outputs_of else dataflow)

    def check_input(self, dataflow: int, name: str) -> None:
        """Raise `ReplacedError` for an input that is not there any more."""
        instance = self._worker.instances.get(self.inputs_of(dataflow))
        if dataflow in self._inputs_of and instance is not None and name not in instance.inputs:
            offered = ", ".join(map(repr, instance.inputs)) or "none"
            raise ReplacedError(
                f"the input {name!r} is gone: dataflow {dataflow} was replaced by dataflow {instance.index} "
                f"({instance.frozen.name}), whose inputs are {offered}"
            )

    def check_output(self, dataflow: int, name: str) -> None:
        """Raise `ReplacedError` for an output that does not go on as who asks has known it."""
        while dataflow in self._outputs_of:
            if (dataflow, name) in self._lost:
                raise ReplacedError(self._lost[dataflow, name])
            dataflow = self._outputs_of[dataflow]

    def is_standby(self, dataflow: object) -> bool:
        """Whether this is a new version that serves no clients here yet."""
        if not self._under_way:  # asked for each request
            return False
        return any(one.new == dataflow and not one.is_taken_over for one in self._under_way.values())

    def beside(self, dataflow: int) -> list[int]:
        """The versions of a dataflow that run beside it, while one is to take the place of the other."""
        pairs = [(one.old, one.new) for one in self._under_way.values()]
        return [other for pair in pairs if dataflow in pair for other in pair if other != dataflow]

    def is_under_way(self, dataflow: int) -> bool:
        """Whether a dataflow is being replaced, or is replacing another."""
        return any(dataflow in (one.old, one.new) for one in self._under_way.values())

    def is_switched(self, new: int) -> bool:
        """Whether a new version has the inputs already, so that there is no way back."""
        return new in self._inputs_of.values()

    def check_replaceable(self, old: Instance) -> None:
        """On worker 0: raise `MisuseError` if this dataflow cannot be replaced."""
        who = f"dataflow {old.index} ({old.frozen.name}) cannot be replaced"
        others = [one for one in importers_of(self._worker.instances, old.index) if not one.is_standby]
        if others:
            listed = ", ".join(f"{one.index} ({one.frozen.name})" for one in others)
            raise MisuseError(f"{who}: it is read by dataflow {listed}. Uninstall what reads it first")
        if old.imports:
            raise MisuseError(
                f"{who}: it imports, and its outputs may be ahead of its inputs. Install the new version "
                "beside it, and uninstall it"
            )
        closed = [name for name, handle in old.inputs.items() if handle.is_closed]
        if closed:
            raise MisuseError(
                f"{who}: its input {closed[0]!r} is closed, and nothing can go on there. Install the new "
                "version beside it, and uninstall it"
            )

    # On every worker.

    def begin(self, old: int, new: Instance) -> None:
        """The new version has begun to run."""
        new.is_standby = True
        self.were_any = True
        self._under_way[new.index] = _Replacement(old, new.index)
        self._worker.on_step = self.look

    def look(self) -> bool:
        """Go on as far as the dataflows have come; returns whether anything has happened."""
        happened = False
        for one in list(self._under_way.values()):
            try:
                happened = self._look_at(one) or happened
            except BaseException as error:  # what two logs add up to may leave 64 bits
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
            who = f"dataflow {one.old}, which was to be replaced, has ended: {story_of(ended)}"
            self._worker.fail(one.new, revive(class_names(ended), who))
        elif one.epoch < 0:
            happened = _seal_what_is_not_fed(old, new)
            return (self._worker.index == 0 and self._switch_if_caught_up(one, old, new)) or happened
        elif not one.is_taken_over:
            return self._take_over_if_done(one, old, new)
        else:
            return False
        return True

    def _on_new_ended(self, one: _Replacement, old: Instance | None) -> None:
        """Before it was switched that changes nothing; afterwards the old version has no inputs any more."""
        del self._under_way[one.new]
        error = self._worker.ended[one.new]
        if self._worker.on_failure is not None:
            # It may have ended here because of the old one, which elsewhere was done with already.
            self._worker.on_failure(one.new, error)
        if one.epoch >= 0 and old is not None:
            self._worker.end(one.old, error)

    def switch(self, order: Switched) -> None:
        """Let clients feed the new version."""
        one = self._under_way.get(order.new)
        old, new = (self._worker.instances.get(index) for index in (order.old, order.new))
        self._inputs_of[order.old] = order.new
        self.were_any = True
        if one is None or new is None:
            # It has failed here, when worker 0 did not know yet; there is no way back from what it says.
            if old is not None:
                self._worker.end(order.old, self._worker.ended[order.new])
            return
        if old is None:
            return  # it has failed, and `look` will find that
        one.epoch = order.epoch
        old.is_standby, new.is_standby = True, False
        try:
            for name, handle in new.inputs.items():
                if name in new.feeds:
                    handle.take_over(old.input(name), order.epoch)
                elif handle.epoch < order.epoch:
                    handle.seal(order.epoch - 1)
        except BaseException as error:
            self._worker.fail(one.new, error)

    def _take_over_if_done(self, one: _Replacement, old: Instance, new: Instance) -> bool:
        happened = new.let_go_of_feeds(one.epoch)
        if new.feeds or min(old.epochs_done(), new.epochs_done()) < one.epoch:
            return happened
        names = [name for name in old.frozen.outputs if name in new.frozen.outputs]
        captures = [(name, old.output(name), new.output(name)) for name in names]
        if any(min(a.complete_before, b.complete_before) < one.epoch for _, a, b in captures):
            return happened
        who = f"dataflow {one.new} ({new.frozen.name})"
        why = f"dataflow {one.old} was replaced at epoch {one.epoch} by {who}, "
        for name in old.frozen.outputs:
            self._lost[one.old, name] = f"the output {name!r} is gone: {why}which has no such output"
        for name, before, now in captures:
            if now.take_over(before, one.epoch):
                del self._lost[one.old, name]
            else:
                self._lost[one.old, name] = (
                    f"the output {name!r} is another one: {why}where its rows are of another form. Ask for "
                    f"that dataflow, cluster.flow({one.new}), and begin with a snapshot"
                )
        one.is_taken_over = True
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
                    f"the new version begins with epoch {new.first_epoch} of what it imports, and dataflow "
                    f"{old.index} ({old.frozen.name}) is at epoch {epoch}: seal that up to there, try again"
                )
        except MisuseError as error:
            self._worker.fail(one.new, error)
            return True
        if not all(handle.is_through(new.first_epoch) for handle in new.feeds.values()):
            return False
        # It begins with an epoch that has the whole state, which is to be computed, too; owners of what it
        # imports may hold it back, however far it has come.
        done = old.epochs_done()
        if not new.imports:
            wanted = min(done, max(new.first_epoch + 1, done - 1))
            if new.epochs_done() < wanted:
                return False
            # An output that ends the dataflow where it has no answer has its turn after all else is done.
            outputs = [
                new.output(name) for name, declared in new.frozen.outputs.items() if declared.is_strict
            ]
            if any(output.complete_before < wanted for output in outputs):
                return False
        order = Switched(old.index, new.index, epoch)
        self._worker.send_control(encode_control(order))
        self.switch(order)
        return True

    def taken_over(self, worker: int, news: TakenOver) -> None:
        """A worker has done so. When all have, the old version is not needed any more."""
        one = self._under_way.get(news.dataflow)
        if one is None:
            return  # it has failed meanwhile
        one.done.add(worker)
        if len(one.done) == self._worker.workers:
            gone = ReplacedError(f"dataflow {one.old} was replaced by dataflow {one.new}")
            self._worker.end(one.old, gone)
            ended = Ended(one.old, story_of(gone), tuple(class_names(gone)))
            self._worker.send_control(encode_control(ended))


def _seal_what_is_not_fed(old: Instance, new: Instance) -> bool:
    """Inputs that only the new version has are empty as far as the old one is sealed."""
    epoch = open_epoch(old)
    behind = [handle for name, handle in new.inputs.items() if name not in new.feeds and handle.epoch < epoch]
    for handle in behind:
        handle.seal(epoch - 1)
    return bool(behind)


def _last(way: dict[int, int], dataflow: int) -> int:
    while dataflow in way:
        dataflow = way[dataflow]
    return dataflow
