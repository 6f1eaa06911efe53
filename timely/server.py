"""What does a worker do for its clients?

`Server.handle` takes a request and returns the reply, or a `Later` where the answer depends on what other
workers do; whoever runs the worker asks it again after each step. It raises the error that the client shall
see. No socket is in sight: `worker/process.py` serves clients of other processes by it, `embedded.py` the
caller's own.
"""

from __future__ import annotations

import time
import traceback
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import pyarrow as pa

from .builders import Builder, load_builder
from .capture import FOREVER, CaptureVertex
from .counters import statistics
from .errors import InternalError, MisuseError, PeerError, RequestError, TimelyError, WaitTimeoutError
from .handshake import (
    PROTOCOL_VERSION,
    Farewell,
    Greeting,
    Offer,
    check_greeting,
    decode_control,
    encode_control,
)
from .input import AppendId
from .installation import Installations, describe
from .limits import INSTALL_SECONDS_MAX
from .requests import (
    Append,
    Arrived,
    Changes,
    Describe,
    Forget,
    Frontier,
    Hello,
    Install,
    Reply,
    Request,
    Reserve,
    Seal,
    Shutdown,
    Snapshot,
    Stats,
    Value,
    Wait,
)
from .worker.core import Worker
from .worker.instance import Instance

__all__ = ["Later", "Server"]


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
        worker: the worker; its `on_control` becomes this server's.
        address: where clients reach it, as told to the other workers.
        clock: seconds, only their differences count.
    """

    def __init__(
        self, worker: Worker, address: str = "", clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._worker = worker
        self._clock = clock
        self.installations = Installations(worker)
        self._greeting = Greeting(PROTOCOL_VERSION, worker.workers, worker.index, address)
        self._addresses = {worker.index: address}
        self.is_stopping = False
        worker.on_control = self._on_control

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
        control = decode_control(payload, peer)
        if isinstance(control, Greeting):
            check_greeting(self._greeting, control, peer)
            self._addresses[peer] = control.client_address
        elif isinstance(control, Offer):
            self.installations.receive(peer, control)
        elif control.reason:
            raise PeerError(f"worker {peer} failed: {control.reason}")
        else:
            self.is_stopping = True

    # For clients.

    def handle(self, request: Request, table: pa.Table | None = None) -> Reply | Later:
        """Do what is asked. Raises a `TimelyError` for the client; all else is a failure of the worker."""
        try:
            return self._handle(request, table)
        except TimelyError:
            raise
        except Exception as error:
            if isinstance(request, Seal):
                raise  # some inputs may be sealed and others not: this worker cannot go on
            trace = "".join(traceback.format_exception(error)).rstrip()
            raise InternalError(f"{type(request).__name__.lower()} failed unexpectedly: {trace}") from error

    def _handle(self, request: Request, table: pa.Table | None) -> Reply | Later:
        match request:
            case Append():
                return self._append(request, table)
            case Seal():
                return self._seal(request)
            case Wait(dataflow, output, epoch, seconds):
                return self._once_complete(
                    dataflow, output, epoch, seconds, lambda complete: Reply({"complete": complete})
                )
            case Changes():
                return self._changes(request)
            case Snapshot(dataflow, output, epoch, seconds):
                capture = self._output(dataflow, output)
                return self._once_complete(
                    dataflow,
                    output,
                    epoch,
                    seconds,
                    lambda complete: Reply({"complete": complete}, capture.log.snapshot()),
                )
            case Frontier(dataflow, output):
                return Reply({"complete": self._complete(dataflow, output)})
            case Arrived(dataflow, epoch, expected):
                return Reply({"missing": self._missing(self._instance(dataflow), epoch, expected)})
            case Forget(dataflow, output, stop):
                self._output(dataflow, output).log.forget(stop)
                return Reply()
            case Install(dataflow, spec, arguments):
                return self._install_spec(dataflow, spec, arguments)
            case Describe(dataflow):
                return describe(self._instance(dataflow), self.installations.specs[dataflow])
            case _:
                return self._handle_rare(request)

    def install(
        self, dataflow: int, spec: str, builder: Builder, arguments: dict[str, Value]
    ) -> Reply | Later:
        """Build and start a dataflow, together with all other workers."""
        self.installations.begin(dataflow, spec, builder, arguments)
        return self._installed(dataflow, spec)

    def _handle_rare(self, request: Request) -> Reply:
        match request:
            case Hello():
                return Reply(
                    {
                        "version": PROTOCOL_VERSION,
                        "index": self._worker.index,
                        "workers": self._worker.workers,
                        "addresses": [
                            self._addresses.get(index, "") for index in range(self._worker.workers)
                        ],
                        "dataflows": [
                            [index, self.installations.specs[index]] for index in self._worker.instances
                        ],
                    }
                )
            case Reserve():
                return Reply({"dataflow": self.installations.reserve()})
            case Stats():
                return Reply(statistics(self._worker, self.installations.specs))
            case Shutdown():
                self.is_stopping = True
                return Reply()
            case _:
                raise RequestError(f"no worker serves {type(request).__name__}")

    def _install_spec(self, dataflow: int, spec: str, arguments: dict[str, Value]) -> Reply | Later:
        try:
            builder = load_builder(spec)
        except TimelyError as error:
            self.installations.fail(dataflow, spec, error)
            return self._installed(dataflow, spec)
        return self.install(dataflow, spec, builder, arguments)

    def _installed(self, dataflow: int, spec: str) -> Reply | Later:
        def ready() -> Reply | None:
            instance = self.installations.finish(dataflow)
            return None if instance is None else describe(instance, spec)

        def late() -> TimelyError:
            waiting = ", ".join(map(str, self.installations.missing(dataflow)))
            return WaitTimeoutError(
                f"dataflow {dataflow} ({spec}) was not built within {INSTALL_SECONDS_MAX:.0f} s by worker "
                f"{waiting}"
            )

        return ready() or Later(ready, late, self._clock() + INSTALL_SECONDS_MAX)

    def _append(self, request: Append, table: pa.Table | None) -> Reply:
        handle = self._instance(request.dataflow).input(request.input)
        if table is None:
            raise RequestError(f"an append to {request.input!r} came without a table")
        identity = AppendId(request.writer, request.sequence)
        word = handle.epoch_word(request.epoch)
        if not handle.is_wanted(request.epoch, identity):
            return Reply({"is_new": False})
        batches = handle.encode(table, request.diff, word)
        return Reply({"is_new": handle.append_all(request.epoch, batches, identity)})

    def _seal(self, request: Seal) -> Reply:
        instance = self._instance(request.dataflow)
        missing = self._missing(instance, request.epoch, request.expected)
        if missing:
            listed = "; ".join(
                f"input {name!r}, writer {writer!r}, sequence {sequence}"
                for name, writer, sequence in missing[:10]
            )
            raise MisuseError(
                f"epoch {request.epoch} cannot be sealed on worker {self._worker.index}: {len(missing)} of "
                f"the expected appends have not arrived ({listed}{'; …' if len(missing) > 10 else ''}). "
                "Append them again, then seal"
            )
        for handle in instance.inputs.values():
            handle.epoch_word(request.epoch + 1)  # before the first is sealed: all or none
        for handle in instance.inputs.values():
            handle.seal(request.epoch)
        return Reply({"epoch": request.epoch})

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
        capture = self._output(request.dataflow, request.output)

        def answer(complete: int) -> Reply:
            stop = complete if request.stop < 0 else request.stop
            return Reply({"complete": complete}, capture.log.changes(request.start, max(stop, request.start)))

        if request.stop < 0:
            return answer(self._complete(request.dataflow, request.output))
        return self._once_complete(
            request.dataflow, request.output, request.stop - 1, request.timeout_seconds, answer
        )

    def _once_complete(
        self, dataflow: int, output: str, epoch: int, seconds: float, answer: Callable[[int], Reply]
    ) -> Reply | Later:
        def ready() -> Reply | None:
            complete = self._complete(dataflow, output, epoch)
            return answer(complete) if complete > epoch else None

        def late() -> TimelyError:
            complete = self._complete(dataflow, output)
            where = f"output {output!r}" if output else f"dataflow {dataflow}"
            opened = min((handle.epoch for handle in self._instance(dataflow).inputs.values()), default=0)
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
        names = instance.frozen.dataflow.outputs
        at_outputs = min((instance.output(name).complete_before for name in names), default=FOREVER)
        # To look at all pointstamps after each step would be dear; an output that lacks the epoch decides.
        return at_outputs if at_outputs <= wanted else min(at_outputs, instance.epochs_done())

    def _instance(self, dataflow: int) -> Instance:
        return self._worker.instance(dataflow)

    def _output(self, dataflow: int, name: str) -> CaptureVertex:
        return self._instance(dataflow).output(name)
