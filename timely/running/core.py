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

import copy
import gc
import os
import time
from collections.abc import Callable, Mapping
from threading import get_ident
from typing import assert_never

from progress.errors import InternalError, MisuseError, PeerError, TimelyError
from progress.times.anchor import Anchor
from progress.tracking.broadcast import Broadcaster

from ..building.freeze import FrozenDataflow
from ..dictionaries import Mark
from ..errors import UninstalledError
from ..failure import add_note, as_reported, fresh_copy, is_interrupt, is_raised_by_us
from ..limits import EARLY_COUNT_MAX
from ..operators.imported import Exported
from ..wire.batch import Batch, Frame, absorb, decode, frames_of, is_of_user
from ..wire.transport import Lent, Transport
from .checking.actions import Action, Activate, Idle, Notify, OneByOne, Publish, Receive, Resume
from .checking.checker import ProgressChecker, is_switched_on
from .forgetting import Forgetting
from .importing import exported_by, importers_of, lost_owner
from .instance import Instance
from .progress_messages import (
    ControlHeader,
    DataHeader,
    ProgressHeader,
    WithdrawalHeader,
    read_header,
    write_control_header,
    write_data_header,
    write_progress_header,
    write_withdrawal_header,
)
from .stages.rights import Acting

ACTIVATIONS_PER_STEP_MAX = 256
"""Activations before sockets are looked at again."""

ALONE_SECONDS_MAX = 1e-3
"""How long one step may keep running follow-up work. Small changes finish within it; a load does not, since
each stage may take seconds, and then clients get their turn."""


class Worker:
    """Worker `index` of `workers`; `transport` may be `None` for a single worker.

    With `check_progress` it checks its progress tracking after each step (`checking/`); an environment
    variable asks for that, too. Without `compiled_loops`, or with `NAIAD_REGIONS=0`, loops run stage by
    stage: copies of workers need that.
    """

    def __init__(
        self,
        index: int = 0,
        workers: int = 1,
        transport: Transport | None = None,
        check_progress: bool = False,
        compiled_loops: bool = True,
    ) -> None:
        if not 0 <= index < workers:
            raise InternalError(f"worker {index} of {workers}")
        if workers > 1 and transport is None:
            raise InternalError(f"{workers} workers need a transport")
        self.index = index
        self.workers = workers
        self.acting = Acting()
        self._transport = transport
        self._instances: dict[int, Instance] = {}
        self._broadcasters: dict[int, Broadcaster] = {}
        self._early: dict[int, list[tuple[int, list[memoryview]]]] = {}
        self._ended: dict[int, TimelyError] = {}
        self._ended_by: dict[int, int] = {}
        self._checks_progress = check_progress or is_switched_on()
        self._compiles_loops = compiled_loops and os.environ.get("NAIAD_REGIONS", "1") not in ("", "0")
        self._lends = os.environ.get("NAIAD_ROUNDS_COMPILED", "1") not in ("", "0")
        self.forgetting = Forgetting(index, workers)
        self.steps = 0
        self.messages_sent = 0
        self.messages_recv = 0
        self.controls_sent = 0  # control messages among these
        self.controls_recv = 0
        self.on_control: Callable[[int, memoryview], None] | None = None
        # Called with a dataflow and the error that has ended it here. If None, no other worker could hear of
        # it, so `step` raises the error.
        self.on_failure: Callable[[int, TimelyError], None] | None = None
        # Called after each step while a client waits for progress of dataflows; returns True if it did
        # anything.
        self.on_step: Callable[[], bool] | None = None

    def install(self, frozen: FrozenDataflow, index: int | None = None) -> Instance:
        """Instantiate a dataflow; all workers install the same ones under the same index."""
        instance = self.prepare(frozen, index)
        self.start(instance)
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
                raise lost_owner(instance, owner, self._ended[owner])
        instance.begin(epoch)
        if self._checks_progress:
            instance.checker = ProgressChecker(instance, epoch)
        self._broadcasters[number] = Broadcaster(
            self.index,
            self.workers,
            instance.frozen.graph.location_count,
            instance.anchor,
            instance.frozen.layout.shifts[0],
        )
        for peer, frames in self._early.pop(number, []):
            self._receive(peer, frames)

    def instance(self, index: int = 0) -> Instance:
        """Return an installed dataflow; raise the error that has ended it, if one has."""
        instance = self._instances.get(index)
        if instance is None:
            if index in self._ended:
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
        """True if loops may be compiled: not if progress is checked, since compiled loops count nothing."""
        return self._compiles_loops and not self._checks_progress

    @property
    def instances(self) -> dict[int, Instance]:
        """All running dataflows by index."""
        return self._instances

    @property
    def ended(self) -> dict[int, TimelyError]:
        """The dataflows that have ended, or that were never begun, each with the reason."""
        return self._ended

    def end(self, number: int, error: TimelyError, origin: int = 0) -> None:
        """Drop a dataflow, and later messages for it; requests for it get the error from now on. Dataflows
        that read it end with it; each worker ends them by itself.

        If several errors arise at the same time, all workers keep the one whose `origin` is the first worker.
        """
        instance = self._instances.pop(number, None)
        if instance is not None:
            for importer in importers_of(self._instances, number):
                self.end(importer.index, lost_owner(importer, number, error), origin)
            instance.drop()
            if isinstance(error, UninstalledError):
                # Vertices and runners refer to each other: a worker that then rests would keep them.
                gc.collect()
        self._broadcasters.pop(number, None)
        self._early.pop(number, None)
        if origin < self._ended_by.get(number, self.workers):
            self._ended[number], self._ended_by[number] = error, origin
            error.ends_dataflow = True

    def fail(self, number: int, error: BaseException) -> None:
        """End a dataflow because of `error`, here and, by `on_failure`, on all other workers."""
        if self.on_failure is None or (number in self._ended and is_interrupt(error)):
            raise error
        if number in self._ended:
            return  # later errors are no news
        name = self._instances[number].frozen.name if number in self._instances else ""
        reported = as_reported(
            error, f"in dataflow {number} ({name}) on worker {self.index} of {self.workers}"
        )
        reported.add_note(
            f"dataflow {number} ({name}) has ended with this error, which arose on worker {self.index} of "
            f"{self.workers}: nothing of it can be read any more. Other dataflows go on"
        )
        self.end(number, reported, self.index)
        self.on_failure(number, reported)
        if is_interrupt(error):
            raise error

    def early(self, dataflow: int) -> list[tuple[int, list[memoryview]]]:
        """Return, for reading only, messages to a dataflow that is not installed here yet, oldest first."""
        return self._early.get(dataflow, [])

    def step(self) -> bool:
        """Poll, then run, publish and notify for each dataflow; return True if anything happened."""
        self.acting.thread = get_ident()  # if the worker is embedded, callers have different threads
        self.steps += 1
        happened = self._transport is not None and self._poll()
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
        return happened or failed is not None

    def _step_of(self, number: int, instance: Instance) -> bool:
        if self.workers == 1 and self._run_alone(number, instance):
            return True
        happened = instance.has_work()
        if happened:
            instance.turns.run(ACTIVATIONS_PER_STEP_MAX)
        if self._publish(number, instance):
            happened = True
        instance.check_notifications()
        return happened

    def _run_alone(self, number: int, instance: Instance) -> bool:
        """Do several steps as one, while vertices are ready; no other worker waits for news between them.
        Return True if any vertex ran. It ends when a vertex has much to do, and resumes, or when it takes
        long: clients come first then.
        """
        turns = instance.turns
        ran, until = 0, time.monotonic() + ALONE_SECONDS_MAX
        while turns.ready and not turns.resumed and ran < ACTIVATIONS_PER_STEP_MAX:
            ran += turns.run(ACTIVATIONS_PER_STEP_MAX - ran)
            self._publish(number, instance)
            if instance.recheck:
                instance.check_notifications()
            if not turns.ready or time.monotonic() > until:
                break
        return ran > 0

    def _publish(self, number: int, instance: Instance) -> bool:
        changes = instance.changes.take()
        if not changes:
            instance.follow()
            return False
        instance.apply(changes)
        if instance.checker is not None:
            instance.checker.on_step_done(changes)
        if self.workers > 1:
            self._tell_all(number, changes)
        instance.follow()
        return True

    def enabled(self) -> list[Action]:
        """Return the actions that are possible now: messages to receive, in the order of peers, then the
        work of each dataflow, in the order of a step. `step` does all of it, `perform` one action.

        Requires: no transport, or one that hands over single messages.
        """
        actions: list[Action] = []
        if self._transport is not None:
            actions += [Receive(peer) for peer in self._one_by_one().heard()]
        for number in sorted(self._instances):
            actions += self._instances[number].enabled()
        return actions

    def perform(self, action: Action) -> None:
        """Do one of the actions that are `enabled`, with the code that `step` uses."""
        self.acting.thread = get_ident()
        if action not in self.enabled():
            raise InternalError(f"worker {self.index} cannot {action} now")
        if isinstance(action, Receive):
            self.messages_recv += 1
            self._receive(action.peer, self._one_by_one().recv_one(action.peer))
            return
        try:
            self._perform_in(self._instances[action.dataflow], action)
        except BaseException as error:  # a vertex may call sys.exit
            self.fail(action.dataflow, error)

    def _perform_in(self, instance: Instance, action: Resume | Activate | Publish | Notify | Idle) -> None:
        match action:
            case Resume():
                instance.turns.resume(action.stage)
            case Activate():
                instance.turns.activate(action.stage)
            case Publish():
                self._publish(action.dataflow, instance)
            case Notify():
                instance.check_notifications()
            case Idle():
                instance.turns.idle()
            case _:
                assert_never(action)

    def fork(self, transport: Transport | None) -> Worker:
        """Return a worker in the same state, at a transport of its own, that goes its own way from here on.

        Requires: the worker belongs to no server, which would be copied with it.
        """
        if self.on_control is not None:
            raise InternalError(f"worker {self.index} belongs to a server and cannot be copied")
        if any(instance.loops for instance in self._instances.values()):
            raise InternalError(f"worker {self.index} runs compiled loops and cannot be copied")
        memo: dict[int, object] = {id(self._transport): None}
        for instance in self._instances.values():
            memo.update((id(part), part) for part in instance.shared())
            memo[id(instance.anchor)] = anchor = Anchor(instance.anchor.epoch)
            memo[id(instance.tracker)] = instance.tracker.fork(anchor)
        worker = copy.deepcopy(self, memo)
        worker._transport = transport
        return worker

    def compared(self) -> object:
        """Return all that decides what it will do (`comparable.py`): no counters, no texts for people, and no
        state of other workers or the transport. Workers forked from one are alike if this is.
        """
        ended = sorted(self._ended), self._ended_by
        return (self._instances, self._broadcasters, self._early, *ended, self.forgetting)

    def _one_by_one(self) -> OneByOne:
        transport: object = self._transport
        if not isinstance(transport, OneByOne):
            raise InternalError(f"a {type(transport).__name__} hands over no single messages")
        return transport

    def take_in(self) -> None:
        """Take in messages of other workers, and run no vertex: their decisions hold here, too."""
        self.acting.thread = get_ident()
        self._poll()

    def run_until_idle(self) -> None:
        """Step until nothing is left to do here; with other workers, until no message comes from them
        either.
        """
        while self.step():
            pass

    def idle(self) -> bool:
        """Let vertices do a little of the work that may wait; return True if more of it is left."""
        self.acting.thread = get_ident()
        more = False
        for number, instance in list(self._instances.items()):
            try:
                more = instance.turns.idle() or more
            except BaseException as error:
                self.fail(number, error)
        return more

    def rest(self) -> None:
        """Let vertices know that nothing has happened for a while; `idle` does what they begin."""
        self.acting.thread = get_ident()
        for number, instance in list(self._instances.items()):
            try:
                instance.turns.rest()
            except BaseException as error:
                self.fail(number, error)

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
        inputs = (handle for instance in self._instances.values() for handle in instance.inputs.values())
        return any(handle.has_rows for handle in inputs)

    def is_at_rest(self) -> bool:
        """Return True if a step would do nothing unless messages of other workers have come."""
        if self.on_step is not None:
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

    def send_data(self, peer: int, dataflow: int, connector: int, word: int, batch: Batch) -> None:
        """Hand a message for another worker to the transport."""
        assert self._transport is not None
        instance = self._instances[dataflow]
        anchor = instance.anchor.epoch
        header = write_data_header(DataHeader(dataflow, connector, word, batch.KIND, anchor))
        frames = frames_of(batch, peer)
        self.messages_sent += 1
        instance.messages_sent += 1
        self._transport.send(peer, [header, *frames])
        batch.on_sent(peer)

    def lend(self) -> Lent | None:
        """Return memory by which a compiled loop exchanges round messages until `take_back`, if any."""
        lent = None if self._transport is None or not self._lends else self._transport.lend()
        return lent.without_looking_out() if lent is not None and self.has_work() else lent

    def take_back(self) -> tuple[int, int]:
        """Undo `lend`; return the numbers of messages that were sent and taken meanwhile."""
        assert self._transport is not None
        sent, received = self._transport.take_back()
        self.messages_sent += sent
        self.messages_recv += received
        return sent, received

    def send_control(self, payload: Frame, to: int | None = None) -> None:
        """Send a message of `handshake.py` to one other worker, or to all; their `on_control` gets it."""
        if self._transport is not None:
            for peer in range(self.workers) if to is None else (to,):
                if peer != self.index:
                    self.messages_sent += 1
                    self.controls_sent += 1
                    self._transport.send(peer, [write_control_header(), payload])

    def begin_forgetting(self) -> None:
        """Tell all other workers to assume no longer that this one knows any symbols; see `forgetting.py`."""
        for peer in self.forgetting.begin():
            self._tell_withdrawal(peer, is_answer=False)

    def forget(self) -> int:
        """Forget symbols that nothing here refers to; return how many. Requires: `forgetting.is_ready`, and
        this worker is the only user of the dictionaries of the process.
        """
        return self.forgetting.forget([self])

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

    def _tell_withdrawal(self, peer: int, is_answer: bool) -> None:
        assert self._transport is not None
        self.messages_sent += 1
        self._transport.send(peer, [write_withdrawal_header(is_answer)])

    def _poll(self) -> bool:
        if self._transport is None:
            return False
        arrived = self._transport.recv_nowait()
        self.messages_recv += len(arrived)
        for peer, frames in arrived:
            self._receive(peer, frames)
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
        if isinstance(header, WithdrawalHeader):
            self._receive_withdrawal(peer, header, frames)
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
            if len(frames) != 2:
                raise PeerError(f"progress of worker {peer} came as {len(frames)} frames instead of 2")
            changes = self._broadcasters[header.dataflow].on_message(frames[1])
            try:
                instance.apply(changes)
                if instance.checker is not None:
                    instance.checker.on_progress(peer, changes)
                instance.follow()
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

    def _receive_withdrawal(self, peer: int, header: WithdrawalHeader, frames: list[memoryview]) -> None:
        if len(frames) != 1:
            raise PeerError(f"worker {peer} sent a withdrawal of {len(frames)} frames instead of 1")
        if header.is_answer:
            self.forgetting.on_answer(peer)
        else:
            self.forgetting.withdraw(peer)
            self._tell_withdrawal(peer, is_answer=True)

    def _receive_early(self, dataflow: int, peer: int, frames: list[memoryview]) -> None:
        """Take a message for a dataflow that does not run here: not yet, or not any more."""
        if dataflow in self._ended:
            return
        # A faster worker may have begun already; its messages wait until this one begins, too.
        waiting = self._early.setdefault(dataflow, [])
        if len(waiting) >= EARLY_COUNT_MAX:
            raise PeerError(
                f"worker {peer} has sent {len(waiting):,} messages for dataflow {dataflow}, which has not "
                f"begun on worker {self.index}"
            )
        waiting.append((peer, frames))

    def _tell_all(self, dataflow: int, changes: list[tuple[int, int, int]]) -> None:
        assert self._transport is not None
        payload: Frame | None = self._broadcasters[dataflow].on_step_done(changes)
        assert payload is not None
        header = write_progress_header(ProgressHeader(dataflow))
        for peer in range(self.workers):
            if peer != self.index:
                self.messages_sent += 1
                self._instances[dataflow].messages_sent += 1
                self._transport.send(peer, [header, payload])
