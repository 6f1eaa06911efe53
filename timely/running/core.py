"""The worker: one loop that polls, runs vertices, publishes and notifies.

    poll      messages and progress of other workers come in
    run       vertices with work have their turns, each consuming everything that is ready
    publish   own count changes go to the own tracker and to all other workers, in one piece
    notify    vertices whose notifications have become due are queued

Rows for other workers leave while vertices run, before the counts of the step. These parts have names
(`actions.py`): a step performs them in bulk, and a checker one by one, in any order.
A step polls sockets once, in bulk; no callback runs from a socket handler.

An error that a dataflow raises while it works ends that dataflow and no other (`failure.py`): it leaves the
worker, which drops later messages for it, and `on_failure` tells the other workers. A step that failed has
told no worker of its changes of counts, so none can take its work for done.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack
from threading import get_ident
from time import perf_counter_ns
from typing import assert_never

from progress.errors import InternalError, MisuseError, PeerError, TimelyError
from progress.times.anchor import Anchor
from progress.tracking.broadcast import Broadcaster
from progress.tracking.count_changes import Change, summed

from ..building.freeze import FrozenDataflow
from ..dictionaries import Mark
from ..errors import UninstalledError
from ..failure import EndedDataflows, add_note, as_reported, fresh_copy, is_interrupt, is_raised_by_us
from ..limits import EARLY_COUNT_MAX
from ..operators.imported import Exported
from ..wire.batch import absorb, decode, is_of_user
from ..wire.transport import Transport
from .checking.actions import (
    Action,
    Activate,
    Idle,
    Inside,
    Notify,
    Publish,
    Receive,
    Resume,
    Ring,
    Tell,
    singly,
)
from .checking.checker import ProgressChecker, is_switched_on
from .checking.copies import copied
from .collecting import collect_dropped
from .credits import Credits
from .forgetting import Forgetting, HoldsWords
from .importing import exported_by, importers_of, lost_owner, readings_of
from .instance import Instance
from .progress_messages import (
    ControlHeader,
    CreditHeader,
    DataHeader,
    ProgressHeader,
    WithdrawalHeader,
    read_header,
    write_withdrawal_header,
)
from .sending.outgoing import Sender
from .sending.telling import Telling
from .stages.rights import Acting

ACTIVATIONS_PER_STEP_MAX = 256
"""Activations before sockets are looked at again."""

ALONE_SECONDS_MAX = 1e-3
"""How long one step may keep running follow-up work. Small changes finish within it; a load does not, since
each stage may take seconds, and then clients get their turn."""
UNTOLD_SECONDS_MAX = 1e-4
"""The same for a worker that takes turns with all others in one thread: none of them could use news before it
is their turn. Elsewhere others wait for news, and each run of vertices is a step of its own: to tell them
once for several runs made a change 1 to 2 % slower on two processes."""


class Worker(Sender):
    """Worker `index` of `workers`; `transport` may be `None` for a single worker.

    With `check_progress` it checks its progress tracking after each step (`checking/`); an environment
    variable asks for that, too. Without `compiled_loops`, or with `NAIAD_REGIONS=0`, loops run stage by
    stage. `credit_bytes`: the limit of `credits.py`; 0: no limit. `telling`: how it tells others of progress;
    None: after each step.
    """

    def __init__(
        self,
        index: int = 0,
        workers: int = 1,
        transport: Transport | None = None,
        check_progress: bool = False,
        compiled_loops: bool = True,
        credit_bytes: int | None = None,
        telling: Telling | None = None,
    ) -> None:
        if not 0 <= index < workers:
            raise InternalError(f"worker {index} of {workers}")
        if workers > 1 and transport is None:
            raise InternalError(f"{workers} workers need a transport")
        acting = Acting()
        credits = Credits(index, workers, acting.gate, transport, credit_bytes)
        super().__init__(index, workers, transport, acting, credits, telling)
        self._early: dict[int, list[tuple[int, list[memoryview]]]] = {}
        self._ended = EndedDataflows()
        self._checks_progress = check_progress or is_switched_on()
        self.logs_sources = False  # see `Owner`
        self.shares_thread = False  # True if all workers may take turns in one thread
        self._compiles_loops = compiled_loops and os.environ.get("NAIAD_REGIONS", "1") not in ("", "0")
        self.forgetting = Forgetting(index, workers)
        self.steps = self.controls_recv = 0
        self.on_control: Callable[[int, memoryview], None] | None = None
        # Called with a dataflow and the error that has ended it here; if None, `step` raises the error.
        self.on_failure: Callable[[int, TimelyError], None] | None = None
        # Called after each step while dataflows are replaced; returns True if it did anything.
        self.on_step: Callable[[], bool] | None = None

    def install(self, frozen: FrozenDataflow, index: int | None = None) -> Instance:
        """Instantiate a dataflow; all workers install the same ones under the same index."""
        self.start(instance := self.prepare(frozen, index))
        return instance

    def prepare(
        self, frozen: FrozenDataflow, index: int | None = None, feeds: Mapping[str, Exported] | None = None
    ) -> Instance:
        """Instantiate a dataflow without starting it: other workers see nothing of it yet.

        `feeds`: the exports that feed its inputs at first, by name.
        """
        self.acting.thread = get_ident()
        number = len(self._instances) if index is None else index
        if number in self._instances:
            raise InternalError(f"dataflow {number} is installed already")
        return Instance(self, number, frozen, feeds)

    def start(self, instance: Instance, epoch: int = 0) -> None:
        """Let a prepared dataflow take part, beginning with messages that other workers have sent it already.

        `epoch`: the one as of which all workers begin, if it imports.
        """
        self.acting.thread = get_ident()
        number = instance.index
        self._instances[number] = instance
        for owner in instance.reads:
            if owner not in self._instances:
                raise lost_owner(readings_of(instance)[owner], self._ended[owner])
        instance.begin(epoch)
        if self._checks_progress:
            instance.checker = ProgressChecker(instance, epoch)
        graph, shift = instance.frozen.graph, instance.frozen.layout.shifts[0]
        self._broadcasters[number] = Broadcaster(
            self.index, self.workers, graph.location_count, instance.anchor, shift
        )
        if self.telling is not None:
            self.telling.begin(instance, self._broadcasters[number])
        for peer, frames in self._early.pop(number, []):
            self._receive(peer, frames)
        if self._untold:
            self._tell_news()

    def instance(self, index: int = 0) -> Instance:
        """Return an installed dataflow; raise the error that has ended it, if one has."""
        instance = self._instances.get(index)
        if instance is None:
            if index in self._ended or self._ended.is_long_over(index):
                raise fresh_copy(self._ended[index])
            raise MisuseError(
                f"worker {self.index} has no dataflow {index}: installed are "
                f"{sorted(self._instances) or 'none'}"
            )
        return instance

    def exported(self, owner: int | str, export: str) -> Exported:
        """Return what the running dataflow `owner` exports as `export`."""
        return exported_by(self._instances, owner, export)

    @property
    def compiles_loops(self) -> bool:
        """True if loops may be compiled."""
        return self._compiles_loops

    @property
    def instances(self) -> dict[int, Instance]:
        """All running dataflows by index."""
        return self._instances

    @property
    def ended(self) -> EndedDataflows:
        """The dataflows that have ended, or that were never begun, each with the reason."""
        return self._ended

    def end(
        self, number: int, error: TimelyError, origin: int = 0, read: dict[int, str] | None = None
    ) -> None:
        """Drop a dataflow, and later messages for it; requests for it get the error from now on. Dataflows
        that read it end with it; each worker ends them by itself.

        If several errors arise at the same time, all workers keep the same one, which does not depend on the
        order in which they hear of them: see `EndedDataflows.add`, also for `read`.
        """
        instance = self._instances.pop(number, None)
        self._broadcasters.pop(number, None)
        self._early.pop(number, None)
        self._untold.discard(number)
        if self.telling is not None:
            self.telling.end(number)
        if self._ended.add(number, error, origin, read):
            error.ends_dataflow = True
            for importer, readings in self._ended.readers(number):  # which have ended for another reason
                self.end(importer, lost_owner(readings[number], error), origin, readings)
        if instance is not None:
            with ExitStack() as ending:  # an interrupt from the keyboard may come out of each of these
                ending.callback(instance.drop, error)
                for one in importers_of(self._instances, number):
                    readings = readings_of(one)
                    lost = lost_owner(readings[number], error)
                    ending.callback(self.end, one.index, lost, origin, readings)
            # Vertices and runners refer to each other: a worker that then rests would keep them.
            is_brief = instance.frozen.is_brief
            collect_dropped(is_now=isinstance(error, UninstalledError) and not is_brief)

    def forget_end(self, number: int) -> None:
        """Let a dataflow that was never begun be prepared again under its number."""
        self._ended.remove(number)

    def fail(self, number: int, error: BaseException) -> None:
        """End a dataflow because of `error`, here and, by `on_failure`, on all other workers."""
        if self.on_failure is None or (number in self._ended and is_interrupt(error)):
            raise error
        if number in self._ended:
            return  # later errors are no news
        name = self._instances[number].frozen.name if number in self._instances else ""
        where = f"in dataflow {number} ({name}) on worker {self.index} of {self.workers}"
        reported = as_reported(error, where)
        reported.add_note(
            f"dataflow {number} ({name}) has ended with this error, which arose on worker {self.index} of "
            f"{self.workers}: nothing of it can be read any more. Other dataflows go on"
        )
        try:
            self.end(number, reported, self.index)
        finally:  # also after an interrupt while vertices hear of their end
            self.on_failure(number, reported)
        if is_interrupt(error):
            raise error

    def early(self, dataflow: int) -> list[tuple[int, list[memoryview]]]:
        """Return, for reading only, messages to a dataflow that is not installed here yet, oldest first."""
        return self._early.get(dataflow, [])

    def step(self) -> bool:
        """Poll, then run, publish and notify for each dataflow; return True if anything happened."""
        began = perf_counter_ns()
        self.acting.thread = get_ident()  # if the worker is embedded, callers have different threads
        self.steps += 1
        happened = self._transport is not None and self._poll()
        if self.acting.loop is not None and self.acting.gate.has_credit:
            happened = self.acting.loop.run() or happened
        failed: list[tuple[int, BaseException]] | None = None
        for number, instance in self._instances.items():
            try:
                if instance.is_at_rest():
                    continue
                happened = self._step_of(number, instance) or happened
            except BaseException as error:  # a vertex may call sys.exit
                failed = [*(failed or ()), (number, error)]
        for number, failure in failed or ():
            self.fail(number, failure)
        if self.on_step is not None:
            happened = self.on_step() or happened
        if happened:  # `Histogram.add`, without a call
            times, taken = self.timings.step, perf_counter_ns() - began
            times.counts[(taken * taken).bit_length()] += 1
            times.total += taken
        return happened or failed is not None

    def _step_of(self, number: int, instance: Instance) -> bool:
        if instance.alarms.rung or instance.alarms.moments:
            instance.turns.take_alarms()
        if (instance.turns.ready or instance.has_work()) and self.acting.gate.has_credit:
            self._run(number, instance)
            return True
        happened = self._publish(number, instance)
        instance.check_notifications()
        return happened

    def _run(self, number: int, instance: Instance) -> None:
        """Run vertices, and those that become ready by that, and then tell all others once: short turns
        that follow from one another are one step. It ends when a vertex has much to do, and resumes, or when
        it takes long: then clients come first, and other workers wait for news.
        """
        turns = instance.turns
        ran, until = 0, 0.0
        seconds = (
            ALONE_SECONDS_MAX if self.workers == 1 else UNTOLD_SECONDS_MAX if self.shares_thread else 0.0
        )
        untold: list[Change] = []
        while True:
            now = turns.run(ACTIVATIONS_PER_STEP_MAX - ran)
            ran += now
            changes = instance.take_changes()
            if changes and self.workers > 1:
                untold = summed(untold, changes) if untold else changes
            if instance.recheck:
                instance.check_notifications()
            until = until or turns.ran_from + seconds * 1e9
            if not (now and turns.ready) or turns.resumed or turns.ran_until > until:
                break
            if ran >= ACTIVATIONS_PER_STEP_MAX:
                break
            if not untold:
                instance.move_anchor()
        if untold:
            self._tell_all(number, untold)
        instance.move_anchor()

    def _publish(self, number: int, instance: Instance) -> bool:
        """Tell all others of what has changed, also this worker."""
        changes = instance.take_changes()
        if changes and self.workers > 1:
            self._tell_all(number, changes)
        instance.move_anchor()
        return bool(changes)

    def enabled(self) -> list[Action]:
        """Return the actions that are possible now: messages to receive, in the order of peers, then the
        work of each dataflow, in the order of a step. `step` does all of it, `perform` one action.

        Requires: no transport, or one that hands over single messages.
        """
        actions: list[Action] = []
        if self._transport is not None:
            actions += [Receive(peer) for peer in singly(self._transport).heard()]
        for number in sorted(self._instances):
            if self.telling is not None and self.telling.must_tell(self._instances[number]):
                actions.append(Tell(number))
            actions += self._instances[number].enabled()
        return actions

    def perform(self, action: Action) -> None:
        """Do one of the actions that are `enabled`, with the code that `step` uses."""
        self.acting.thread = get_ident()
        if action not in self.enabled():
            raise InternalError(f"worker {self.index} cannot {action} now")
        if isinstance(action, Receive):
            self.messages_recv += 1
            self._receive(action.peer, singly(self._transport).recv_one(action.peer))
            return
        try:
            self._perform_in(self._instances[action.dataflow], action)
        except BaseException as error:  # a vertex may call sys.exit
            self.fail(action.dataflow, error)

    def _perform_in(self, instance: Instance, action: Inside) -> None:
        match action:
            case Resume():
                instance.turns.resume(action.stage)
            case Ring():
                instance.turns.ring_one(action.stage)
            case Activate():
                instance.turns.activate(action.stage)
            case Publish():
                self._publish(action.dataflow, instance)
            case Notify():
                instance.check_notifications()
            case Tell():
                self._tell(instance)
            case Idle():
                instance.turns.idle()
            case _:
                assert_never(action)

    def fork(self, transport: Transport | None, prepared: Iterable[Instance] = ()) -> Worker:
        """Return a worker in the same state, at a transport of its own, that goes its own way from here on.

        A server to which it belongs is copied with it; `prepared`: what that has prepared.
        """
        memo: dict[int, object] = {id(self._transport): None, id(self.timings): self.timings}
        for _, frames in (message for waiting in self._early.values() for message in waiting):
            memo.update((id(frame), frame) for frame in frames)  # nobody writes to them
        for instance in (*self._instances.values(), *prepared):
            memo.update((id(part), part) for part in instance.shared())
            memo[id(instance.anchor)] = anchor = Anchor(instance.anchor.epoch)
            memo[id(instance.tracker)] = instance.tracker.fork(anchor)
        worker = copied(self, memo)
        worker._transport = worker.credits.transport = transport
        return worker

    def compared(self) -> object:
        """Return all that decides what it will do (`comparable.py`): nothing of others or the transport."""
        told, ended = (self._broadcasters, self.telling), self._ended.compared()
        return (self._instances, *told, self._early, ended, self.forgetting, self.credits)

    def take_in(self) -> None:
        """Take in messages of other workers, and run no vertex: their decisions hold here, too."""
        self.acting.thread = get_ident()
        self._poll()

    def run_until_idle(self) -> None:
        """Step until nothing is left to do here, and no message comes from other workers."""
        while self.step():
            pass

    def idle(self) -> bool:
        """Let vertices do a little of the work that may wait; return True if more of it is left."""
        return self._in_each(lambda instance: instance.turns.idle())

    def rest(self) -> None:
        """Let vertices know that nothing has happened for a while; `idle` does what they begin."""
        self._in_each(lambda instance: instance.turns.rest())

    def _in_each(self, act: Callable[[Instance], bool | None]) -> bool:
        self.acting.thread = get_ident()
        happened = False
        for number, instance in list(self._instances.items()):
            try:
                happened = bool(act(instance)) or happened
            except BaseException as error:
                self.fail(number, error)
        return happened

    def has_work(self) -> bool:
        """Return True if a step would do something without waiting for other workers."""
        try:
            return any(instance.has_work() for instance in self._instances.values())
        except BaseException as error:  # a vertex was asked (`first_asked`); the next step ends its dataflow
            if is_interrupt(error):
                raise
            return True

    def has_rows_waiting(self) -> bool:
        """Return True if rows wait to enter at an input."""
        return any(handle.has_rows for each in self._instances.values() for handle in each.inputs.values())

    def may_step(self) -> bool:
        """Return True if a step may do something although no message has come. A worker at rest does not see
        what files and other threads bring to its event loop.
        """
        return self.acting.loop is not None or not self.is_at_rest()

    def is_at_rest(self) -> bool:
        """Return True if a step would do nothing unless messages of other workers have come."""
        if self.on_step is not None or (self.acting.loop is not None and self.acting.loop_seconds == 0.0):
            return False
        try:
            for instance in self._instances.values():
                if not instance.is_at_rest():
                    return False
        except BaseException as error:  # as in `has_work`
            if is_interrupt(error):
                raise
            return False
        return True

    def begin_forgetting(self) -> None:
        """Tell all other workers to assume no longer that this one knows any symbols; see `forgetting.py`."""
        for peer in self.forgetting.begin():
            self._send(peer, [write_withdrawal_header(is_answer=False)])

    def forget(self, others: Sequence[HoldsWords] = ()) -> int:
        """Forget symbols to which nothing here or in `others` refers; return how many. Requires:
        `forgetting.is_ready`, and nobody else uses the dictionaries of the process.
        """
        return self.forgetting.forget([self, *others])

    def symbols(self, mark: Mark) -> None:
        """Show `mark` all words that may be symbols; dataflows that are only prepared have no rows."""
        failed: list[tuple[int, BaseException]] = []
        for number, instance in self._instances.items():
            try:
                instance.symbols(mark)
            except BaseException as error:  # a dataflow that ends holds no words any more
                failed.append((number, error))
        for number, failure in failed:
            self.fail(number, failure)
        for peer, frames in (message for waiting in self._early.values() for message in waiting):
            header = read_header(frames[0], peer)
            if isinstance(header, DataHeader):
                mark.holder(decode(header.batch_kind, frames[1:], peer))

    def silent(self) -> list[str]:
        """Return the vertices that may hold symbols and have no method that shows them."""
        return [
            runner.title()
            for instance in self._instances.values()
            for runner in instance.runners
            if not runner.says_symbols()
        ]

    def _poll(self) -> bool:
        if self._transport is None:
            return False
        self._lent_to = None  # what has come is no longer in shared memory
        arrived = self._transport.recv_nowait()
        self.messages_recv += len(arrived)
        for peer, frames in arrived:
            self._receive(peer, frames)
        if self._untold:
            self._tell_news()  # before vertices run: others wait for it
        return bool(arrived)

    def _receive(self, peer: int, frames: list[memoryview]) -> None:
        if not frames:
            raise PeerError(f"worker {self.index} got an empty message from worker {peer}")
        header = read_header(frames[0], peer)
        if isinstance(header, ControlHeader):
            if self.on_control is None or len(frames) != 2:
                raise PeerError(
                    f"worker {peer} sent a control message of {len(frames)} frames that nobody expects"
                )
            self.controls_recv += 1
            self.on_control(peer, frames[1])
            return
        if isinstance(header, CreditHeader):
            self.credits.on_news(peer, header.news)
            return
        if isinstance(header, WithdrawalHeader):
            if self.forgetting.receive(peer, header.is_answer, len(frames)):
                self._send(peer, [write_withdrawal_header(is_answer=True)])
            return
        instance = self._instances.get(header.dataflow)
        if instance is None:
            if isinstance(header, DataHeader):
                try:
                    frames = [frames[0], *absorb(header.batch_kind, frames[1:], peer)]
                except BaseException as error:
                    self._fail_unless_ours(header.dataflow, peer, header.batch_kind, error)
                    return
            self._receive_early(header.dataflow, peer, frames)
            return
        instance.messages_recv += 1
        if isinstance(header, ProgressHeader):
            if self.telling is not None:
                changes = self.telling.hear(instance, peer, frames)
                self._untold.add(header.dataflow)
            elif len(frames) == 2:
                changes = self._broadcasters[header.dataflow].on_message(frames[1])
            else:
                raise PeerError(
                    f"progress of worker {peer} came as {len(frames)} frames instead of 2: all workers need "
                    "the same --progress"
                )
            try:
                instance.apply(changes)
                if instance.checker is not None:
                    instance.checker.on_progress(peer, changes)
                instance.move_anchor()
                instance.check_notifications()
            except BaseException as error:  # a vertex may call sys.exit, also when its times move
                self.fail(header.dataflow, error)
            return
        if header.connector >= len(instance.arrivals.ways):
            raise PeerError(
                f"worker {peer} sent by connector {header.connector}, but there are "
                f"{len(instance.arrivals.ways)}"
            )
        try:
            batch = decode(header.batch_kind, frames[1:], peer)
            instance.rows_recv[peer] += batch.rows
            instance.arrivals.check(header.connector, batch, peer)
        except BaseException as error:
            self._fail_unless_ours(header.dataflow, peer, header.batch_kind, error)
            return
        try:
            instance.arrivals.confirm(header.connector, batch, peer)
            instance.receive(header.connector, header.word, batch, header.anchor)
        except BaseException as error:
            self.fail(header.dataflow, error)

    def _fail_unless_ours(self, number: int, peer: int, kind: int, error: BaseException) -> None:
        """Handle the error of a batch from a peer that was refused. If our code refused it, and the class is
        ours, the peer has sent what no worker may send: raise the error, which ends this worker. If a user's
        class did, end its dataflow.
        """
        if isinstance(error, PeerError) and is_raised_by_us(error) and not is_of_user(kind):
            raise error
        add_note(error, f"while a batch of worker {peer} was read, before a vertex had it")
        self.fail(number, error)

    def _receive_early(self, dataflow: int, peer: int, frames: list[memoryview]) -> None:
        """Take a message for a dataflow that does not run here: not yet, or not any more."""
        if dataflow in self._ended or self._ended.is_long_over(dataflow):
            return
        # A faster worker may have begun already; its messages wait until this one begins, too.
        waiting = self._early.setdefault(dataflow, [])
        if len(waiting) >= EARLY_COUNT_MAX:
            raise PeerError(
                f"worker {peer} has sent {len(waiting):,} messages for dataflow {dataflow}, which has not "
                f"begun on worker {self.index}"
            )
        waiting.append((peer, frames))
