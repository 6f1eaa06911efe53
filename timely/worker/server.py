"""What does a worker do for its clients?

`Server.handle` takes a request and returns the reply, or a `Later` where the answer depends on what other
workers do; whoever runs the worker asks it again after each step. It raises the error that the client shall
see; then nothing has changed, and the request may be repeated. No socket is in sight: `worker/process.py`
serves clients of other processes by it, `embedded.py` the caller's own.
"""

from __future__ import annotations

import sys
import time
import traceback
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import pyarrow as pa

from ..building.builders import Builder
from ..errors import (
    InternalError,
    MisuseError,
    PeerError,
    RequestError,
    TimelyError,
    UninstalledError,
    WaitTimeoutError,
    class_names,
)
from ..failure import is_interrupt, story_of
from ..limits import INSTALL_SECONDS_MAX
from ..operators.capture import FOREVER, CaptureVertex
from ..operators.inputs.appends import AppendId
from ..running.core import Worker
from ..running.instance import Instance
from ..wire.handshake import (
    PROTOCOL_VERSION,
    Build,
    Closed,
    Committed,
    Ended,
    Entered,
    Farewell,
    Greeting,
    Offer,
    Sealed,
    Switched,
    TakenOver,
    Verdict,
    check_greeting,
    decode_control,
    encode_control,
)
from ..wire.requests import (
    Append,
    Arrived,
    Changes,
    CheckAttempts,
    Close,
    CommitAttempts,
    Describe,
    DropAttempts,
    Enter,
    Forget,
    Frontier,
    Hello,
    Hold,
    Insert,
    Install,
    Leave,
    Piece,
    Replace,
    Reply,
    Request,
    Seal,
    Shutdown,
    Snapshot,
    Stage,
    StageAttempt,
    Stats,
    Uninstall,
    Value,
    Wait,
)
from .counters import statistics
from .installation import Installations, describe
from .orders import Orders, open_epoch
from .tasks.pieces import hold, piece
from .tasks.staging import check_attempts, drop_attempts, names_of, stage_attempt

__all__ = ["Later", "Server"]

_OF_TASKS = (CheckAttempts, CommitAttempts, DropAttempts, StageAttempt)
_OF_INPUTS = (Append, Arrived, Close, Describe, Enter, Insert, Seal, Stage, Uninstall, *_OF_TASKS)
"""Requests that are answered by what feeds a dataflow, and not by what it has put out."""


@dataclass(frozen=True)
class Later:
    """An answer that is not known yet.

    ready      the answer, or None if it is still not known; raises what the client shall see
    late       what to raise after the deadline
    deadline   by the server's clock, in seconds
    """

    ready: Callable[[], Reply | None]
    late: Callable[[], TimelyError]
    deadline: float


class Server:
    """Serves the clients of one worker, and judges what other workers say apart from data.

    Args:
        worker: the worker; its `on_control` and `on_failure` become this server's.
        address: where clients reach it, as told to the other workers.
        clock: seconds, only their differences count.
        installs: the builders that this worker installs at its start; all workers must have the same.
    """

    def __init__(
        self,
        worker: Worker,
        address: str = "",
        clock: Callable[[], float] = time.monotonic,
        installs: Sequence[str] = (),
    ) -> None:
        self._worker = worker
        self._clock = clock
        self.installations = Installations(worker)
        self.replacements = self.installations.replacements
        self._orders = Orders(worker)
        self._greeting = Greeting(
            PROTOCOL_VERSION,
            worker.workers,
            worker.index,
            address,
            f"{sys.version_info.major}.{sys.version_info.minor}",
            tuple(installs),
        )
        self._addresses = {worker.index: address}
        self.is_stopping = False
        worker.on_control = self._on_control
        worker.on_failure = self._on_failure

    # Between workers.

    def greet(self) -> None:
        """Introduce this worker to all others."""
        self._worker.send_control(encode_control(self._greeting))

    @property
    def not_greeted(self) -> list[int]:
        """Workers that have not introduced themselves yet."""
        return [worker for worker in range(self._worker.workers) if worker not in self._addresses]

    def say_farewell(self, reason: str) -> None:
        """The last word to the other workers: why this one ends; empty: because it was told to."""
        self._worker.send_control(encode_control(Farewell(reason)))

    def _on_control(self, peer: int, payload: memoryview) -> None:
        match decode_control(payload, peer):
            case Greeting() as greeting:
                check_greeting(self._greeting, greeting, peer)
                self._addresses[peer] = greeting.client_address
            case Farewell(reason):
                if reason:
                    raise PeerError(f"worker {peer} failed: {reason}")
                self.is_stopping = True
            case Ended() as ended:
                self._worker.end(ended.dataflow, ended.error(), peer)
            case Offer() as offer if self._worker.index == 0:
                self.installations.receive(peer, offer)
            case TakenOver() as news if self._worker.index == 0:
                self.replacements.taken_over(peer, news)
            case (
                Build() | Verdict() | Sealed() | Entered() | Committed() | Closed() | Switched()
            ) as order if peer == 0:
                self._obey(order)
            case control:
                raise PeerError(
                    f"worker {peer} told worker {self._worker.index} "
                    f"{type(control).__name__.lower()}, which only "
                    "worker 0 says, or is told"
                )

    def _obey(self, order: Build | Verdict | Sealed | Entered | Committed | Closed | Switched) -> None:
        if isinstance(order, Build):
            self.installations.on_build(order)
        elif isinstance(order, Verdict):
            self.installations.follow(order)
        elif isinstance(order, Switched):
            self.replacements.switch(order)
        else:
            self._orders.carry_out(order)

    def _on_failure(self, dataflow: int, error: TimelyError) -> None:
        self._worker.send_control(encode_control(Ended(dataflow, story_of(error), tuple(class_names(error)))))

    # For clients.

    def handle(self, request: Request, table: pa.Table | None = None) -> Reply | Later:
        """Do what is asked. Raises a `TimelyError` for the client; nothing has changed then."""
        try:
            if self.installations.is_awaited(getattr(request, "dataflow", None)):
                return self._once_started(request, table)
            return self._handle(self._redirected(request), table)
        except TimelyError:
            raise
        except BaseException as error:
            if is_interrupt(error):
                raise
            trace = "".join(traceback.format_exception(error)).rstrip()
            raise InternalError(f"{type(request).__name__.lower()} failed unexpectedly: {trace}") from error

    def _handle(self, request: Request, table: pa.Table | None) -> Reply | Later:
        match request:
            case Insert() | Append() | Stage():
                return self._take_rows(request, table)
            case Seal(dataflow, epoch):
                self._check_decides(request)
                return Reply({"open": self._orders.seal(dataflow, epoch)})
            case Wait(dataflow, output, epoch, seconds):
                return self._once_complete(
                    dataflow, output, epoch, seconds, lambda complete: Reply({"complete": complete})
                )
            case StageAttempt(dataflow, name):
                return stage_attempt(self._instance(dataflow).input(name), request, table)
            case Changes():
                return self._changes(request)
            case Frontier(dataflow, output):
                return Reply({"complete": self._complete(dataflow, output)})
            case Snapshot(dataflow, output, epoch, seconds):
                return self._once_complete(
                    dataflow,
                    output,
                    epoch,
                    seconds,
                    lambda complete: Reply(
                        {"complete": complete}, self._output(dataflow, output).log.snapshot(epoch)
                    ),
                )
            case Forget(dataflow, output, reader, stop):
                return self._forget(self._output(dataflow, output), reader, stop)
            case Piece(dataflow, output):
                return self._once_complete(
                    dataflow,
                    output,
                    request.stop - 1,
                    request.timeout_seconds,
                    lambda _: piece(self._output(dataflow, output), request),
                )
            case _:
                return self._handle_rare(request)

    def install(
        self,
        dataflow: int,
        spec: str,
        builder: Builder,
        arguments: dict[str, Value],
        replaces: int = -1,
        seconds: float = -1.0,
    ) -> Reply | Later:
        """Build and start a dataflow, together with all other workers, perhaps to replace another."""
        self.installations.begin(dataflow, spec, builder, arguments, replaces)
        if replaces >= 0 and self._worker.index == 0:
            return self._replaced(dataflow, spec, seconds)
        return self._installed(dataflow, spec)

    def check_replaceable(self, dataflow: int) -> int:
        """The number of the dataflow that is asked for by `dataflow` now; raises if it cannot be replaced."""
        current = self.replacements.inputs_of(dataflow)
        instance = self._worker.instance(current)
        if self.installations.is_replaced(current):
            raise MisuseError(f"dataflow {current} ({instance.frozen.name}) is being replaced: wait for that")
        self.replacements.check_replaceable(instance)
        coming = [
            one for one in self.installations.importers(current) if one.index not in self._worker.instances
        ]
        if coming:
            listed = ", ".join(f"{one.index} ({one.frozen.name})" for one in coming)
            raise MisuseError(
                f"dataflow {current} ({instance.frozen.name}) cannot be replaced: it is about to be read by "
                f"dataflow {listed}"
            )
        return current

    def install_at_start(self, dataflow: int, spec: str) -> Reply | Later:
        """Build `spec`, which all workers were started with, as dataflow `dataflow`."""
        self.installations.build(dataflow, spec, {})
        return self._installed(dataflow, spec)

    def _handle_rare(self, request: Request) -> Reply | Later:
        match request:
            case Enter(dataflow, name, epoch, writer, sequence):
                self._check_decides(request)
                is_new, entered = self._orders.enter(dataflow, name, epoch, AppendId(writer, sequence))
                return Reply({"is_new": is_new, "epoch": entered})
            case CheckAttempts(dataflow, name):
                return check_attempts(self._instance(dataflow).input(name), request)
            case DropAttempts(dataflow, name):
                return drop_attempts(self._instance(dataflow).input(name), request)
            case CommitAttempts():
                return self._commit(request)
            case Close(dataflow, name):
                self._check_decides(request)
                return Reply({"open": self._orders.close(dataflow, name)})
            case Uninstall(dataflow, cascade):
                self._check_decides(request)
                return self._uninstall(dataflow, cascade)
            case Arrived(dataflow, epoch, expected):
                return Reply({"missing": self._missing(self._instance(dataflow), epoch, expected)})
            case Hold(dataflow, output):
                return hold(self._output(dataflow, output), request)
            case Leave(dataflow, output, reader):
                self._output(dataflow, output).places.leave(reader)
                return Reply()
            case Install(spec, arguments):
                self._check_decides(request)
                return self._installed(self.installations.order(spec, arguments), spec)
            case Replace(dataflow, spec, arguments, seconds):
                self._check_decides(request)
                current = self.check_replaceable(dataflow)
                new = self.installations.order(spec, arguments, current)
                return self._replaced(new, spec, seconds)
            case Describe(dataflow):
                return describe(self._instance(dataflow), self.installations.specs.get(dataflow, ""))
            case Hello():
                return self._hello()
            case Stats():
                return Reply(statistics(self._worker, self.installations.specs))
            case Shutdown():
                self.is_stopping = True
                return Reply()
            case _:
                raise RequestError(f"no worker serves {type(request).__name__}")

    def _commit(self, request: CommitAttempts) -> Reply:
        """Make a batch of what was staged, and complete its epoch with it: one decision, so that no other
        comes between.
        """
        self._check_decides(request)
        attempts = names_of(request.attempts)
        is_new, epoch = self._orders.commit(
            request.dataflow, request.input, request.query, request.batch, attempts, request.may_skip
        )
        if is_new and request.seals:
            self._orders.seal(request.dataflow, epoch)
        return Reply({"is_new": is_new, "epoch": epoch, "open": open_epoch(self._instance(request.dataflow))})

    def _uninstall(self, dataflow: int, cascade: bool) -> Reply:
        """End a dataflow as an error would, on all workers; they hear of it after all orders of before, and
        let those that read it end with it.
        """
        name = self._instance(dataflow).frozen.name
        importers = self.installations.importers(dataflow)
        if importers and not cascade:
            listed = ", ".join(f"{one.index} ({one.frozen.name})" for one in importers)
            raise MisuseError(
                f"dataflow {dataflow} ({name}) is read by dataflow {listed}: uninstall what reads it first, "
                "or all at once with uninstall(cascade=True)"
            )
        error = UninstalledError(f"dataflow {dataflow} ({name}) was uninstalled by a client")
        self._worker.end(dataflow, error, self._worker.index)
        self._on_failure(dataflow, error)
        return Reply()

    def _hello(self) -> Reply:
        addresses = [self._addresses.get(index, "") for index in range(self._worker.workers)]
        specs = self.installations.specs
        return Reply(
            {
                "version": PROTOCOL_VERSION,
                "index": self._worker.index,
                "workers": self._worker.workers,
                "addresses": addresses,
                "dataflows": [
                    [index, specs.get(index, "")]
                    for index in self._worker.instances
                    if not self.replacements.is_standby(index)
                ],
            }
        )

    def _check_decides(self, request: Request) -> None:
        if self._worker.index != 0:
            raise RequestError(
                f"{type(request).__name__.lower()} is asked of worker 0, which decides for all; this "
                "is worker "
                f"{self._worker.index}"
            )

    def _once_started(self, request: Request, table: pa.Table | None) -> Later:
        """A client may come here before the verdict does, which worker 0 has told both of them."""
        dataflow = getattr(request, "dataflow", None)
        begun: list[Reply | Later] = []

        def ready() -> Reply | None:
            if not begun:
                if self.installations.is_awaited(dataflow):
                    return None
                begun.append(self.handle(request, table))
            answer = begun[0]
            return answer if isinstance(answer, Reply) else answer.ready()

        def late() -> TimelyError:
            if begun and isinstance(begun[0], Later):
                return begun[0].late()
            return WaitTimeoutError(f"dataflow {dataflow} has not begun on worker {self._worker.index}")

        seconds = getattr(request, "timeout_seconds", INSTALL_SECONDS_MAX)
        return Later(ready, late, self._clock() + seconds if seconds >= 0 else float("inf"))

    def _installed(self, dataflow: int, spec: str) -> Reply | Later:
        def ready() -> Reply | None:
            instance = self.installations.outcome(dataflow)
            return None if instance is None else describe(instance, spec)

        def late() -> TimelyError:
            if self._worker.index == 0:
                self.installations.give_up(dataflow)
            try:
                ready()
            except TimelyError as error:
                return error
            return WaitTimeoutError(f"worker 0 has not judged dataflow {dataflow} ({spec}) in time")

        # Worker 0 is the first to lose patience: its verdict is what the others wait for.
        patience = INSTALL_SECONDS_MAX if self._worker.index == 0 else 2 * INSTALL_SECONDS_MAX
        return ready() or Later(ready, late, self._clock() + patience)

    def _replaced(self, new: int, spec: str, seconds: float) -> Reply | Later:
        """Once the new version has taken the place of the old one everywhere."""
        built_by = self._clock() + INSTALL_SECONDS_MAX

        def ready() -> Reply | None:
            instance = self.installations.outcome(new)
            if instance is None and self._clock() > built_by:
                self.installations.give_up(new)
            if instance is None or self.replacements.is_under_way(new):
                return None
            return describe(instance, spec)

        def late() -> TimelyError:
            if self.replacements.is_switched(new):
                return WaitTimeoutError(f"dataflow {new} has the inputs by now, and will have the outputs")
            error = WaitTimeoutError(
                f"dataflow {new} ({spec}) has not caught up in time with the one that it was to replace: "
                "that goes on as before"
            )
            if self.installations.is_awaited(new) and new in self._worker.instances:
                self._worker.fail(new, error)
            else:
                self.installations.give_up(new)
            return error

        return ready() or Later(ready, late, self._clock() + seconds if seconds >= 0 else float("inf"))

    def _redirected(self, request: Request) -> Request:
        """What is asked of the inputs of a dataflow that was replaced goes to the new version."""
        if not isinstance(request, _OF_INPUTS):
            return request
        current = self.replacements.inputs_of(request.dataflow)
        if current == request.dataflow:
            return request
        name = getattr(request, "input", None)
        if name is not None:
            self.replacements.check_input(request.dataflow, name)
        return replace(request, dataflow=current)

    def _take_rows(self, request: Insert | Append | Stage, table: pa.Table | None) -> Reply:
        """Rows of a client. Everything that can be wrong with them is found before they are kept."""
        handle = self._instance(request.dataflow).input(request.input)
        if table is None:
            raise RequestError(f"rows for {request.input!r} came without a table")
        identity = AppendId(request.writer, request.sequence)
        if isinstance(request, Append):
            word = handle.epoch_word(request.epoch)
            if not handle.is_wanted(request.epoch, identity):
                return Reply({"is_new": False})
            batches = handle.encode(table, request.diff, word)
            return Reply({"is_new": handle.append_all(request.epoch, batches, identity)})
        if not handle.is_new(identity):
            return Reply({"is_new": False, "epoch": handle.epoch})
        word = handle.epoch_word(max(request.epoch, handle.epoch))
        if isinstance(request, Stage):
            handle.check_room(table.nbytes)
            handle.stage(identity, request.part, word, handle.encode(table, request.diff, word), table.nbytes)
            return Reply({"is_new": True, "epoch": handle.epoch})
        batches = handle.encode(table, request.diff, word)
        return Reply({"is_new": True, "epoch": handle.insert(request.epoch, batches, identity)})

    def _missing(
        self, instance: Instance, epoch: int, expected: Sequence[Value]
    ) -> list[tuple[str, str, int]]:
        missing: list[tuple[str, str, int]] = []
        for entry in expected:
            match entry:
                case [str(name), str(writer), int(sequence)]:
                    if instance.input(name).missing(epoch, [AppendId(writer, sequence)]):
                        missing.append((name, writer, sequence))
                case _:
                    raise RequestError(f"an expected append is [input, writer, sequence], not {entry!r}")
        return missing

    def _changes(self, request: Changes) -> Reply | Later:
        if request.reader:
            capture = self._output(request.dataflow, request.output)
            capture.places.come(request.reader, request.start)

        def answer(complete: int) -> Reply:
            capture = self._output(request.dataflow, request.output)  # perhaps of a new version by now
            stop = complete if request.is_open_ended else request.stop
            return Reply({"complete": complete}, capture.log.changes(request.start, max(stop, request.start)))

        return self._once_complete(
            request.dataflow, request.output, request.stop - 1, request.timeout_seconds, answer
        )

    def _forget(self, capture: CaptureVertex, reader: str, stop: int) -> Reply:
        complete = min(stop, capture.complete_before)
        if reader:
            capture.places.come(reader, complete)
        bound = capture.places.forget(complete)
        capture.log.forget(bound)
        return Reply({"kept": bound})

    def _once_complete(
        self, dataflow: int, output: str, epoch: int, seconds: float, answer: Callable[[int], Reply]
    ) -> Reply | Later:
        def ready() -> Reply | None:
            complete = self._complete(dataflow, output, epoch)
            return answer(complete) if complete > epoch else None

        def late() -> TimelyError:
            complete = self._complete(dataflow, output)
            where = f"output {output!r}" if output else f"dataflow {dataflow}"
            opened = open_epoch(self._instance(dataflow))
            why = (
                f"it is not sealed yet (the open epoch is {opened})"
                if opened <= epoch
                else "the work on it is not done yet"
            )
            return WaitTimeoutError(
                f"epoch {epoch} of {where} is not complete on worker "
                f"{self._worker.index}{f' after {seconds:g} s' * (seconds >= 0)}: {why}; "
                f"complete are the epochs before {complete}"
            )

        deadline = self._clock() + seconds if seconds >= 0 else float("inf")
        return ready() or Later(ready, late, deadline)

    def _complete(self, dataflow: int, output: str, wanted: int = -1) -> int:
        """The first epoch that is not complete, in this worker's view; one ≤ `wanted` may be too high."""
        if output:
            return self._output(dataflow, output).complete_before
        instance = self._instance(dataflow)
        names = instance.frozen.outputs
        at_outputs = min((instance.output(name).complete_before for name in names), default=FOREVER)
        # To look at all pointstamps after each step would be dear; an output that lacks the epoch decides.
        return at_outputs if at_outputs <= wanted else min(at_outputs, instance.epochs_done())

    def _instance(self, dataflow: int) -> Instance:
        """The dataflow, or the new version of it, as far as that has taken its place here."""
        return self._worker.instance(self.replacements.outputs_of(dataflow))

    def _output(self, dataflow: int, name: str) -> CaptureVertex:
        self.replacements.check_output(dataflow, name)
        return self._instance(dataflow).output(name)
