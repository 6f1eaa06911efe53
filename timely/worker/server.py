"""What does a worker do for its clients?

`Server.handle` takes a request and returns the reply, or a `Later` if the answer depends on what other
workers do; the loop that runs the worker then asks the `Later` after each step. It raises the error that the
client shall see; then nothing has changed, and the client may repeat the request. No socket is in sight:
`worker/process.py` serves clients of other processes with it, `client/embedded/workers.py` the caller's own.

`answers/` answers requests about inputs and outputs. This file chooses between them, answers requests about
whole dataflows, and handles what other workers say apart from data.
"""

from __future__ import annotations

import sys
import time
import traceback
from collections.abc import Callable, Sequence
from dataclasses import replace

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
from ..failure import as_refused, full_text_of, is_interrupt
from ..limits import INSTALL_SECONDS_MAX, SILENCE_SECONDS_DEFAULT
from ..running.core import Worker
from ..user_code.call_site import site_of
from ..wire.handshake import (
    PROTOCOL_VERSION,
    Build,
    Decided,
    Ended,
    EndHeard,
    Farewell,
    Greeting,
    Offer,
    Switched,
    TakenOver,
    Verdict,
    check_greeting,
    decode_control,
    encode_control,
    own_hashing,
)
from ..wire.requests import (
    IN_OPEN,
    Decide,
    Deliver,
    Describe,
    Drop,
    Hello,
    Install,
    Missing,
    Progress,
    Replace,
    Reply,
    Request,
    Shutdown,
    Stats,
    Uninstall,
    Value,
)
from .answers.inputs import Inputs, inputs_named
from .answers.later import Later, now_or_later
from .answers.outputs import Outputs
from .counters import statistics
from .installation import Installations, describe
from .orders import Orders

__all__ = ["Server"]

_OF_INPUTS = (Deliver, Decide, Missing, Drop, Describe, Uninstall)
"""Requests that go to the version of a dataflow that has its inputs; others go to the one that has its
outputs.
"""
_DECIDED = (Decide, Install, Replace, Uninstall)
"""Requests that worker 0 decides for all."""


class Server:
    """Serves the clients of one worker, and handles what other workers say apart from data.

    Args:
        worker: the worker; its `on_control` and `on_failure` become this server's.
        address: where clients reach it; the worker tells this to the others.
        clock: seconds, only their differences count.
        installs: the builders that this worker installs at its start; all workers must have the same.
        session: a name that no other worker has, or had before.
        silence_seconds: how long a worker of the cluster may be silent; all workers must have the same limit.
    """

    def __init__(
        self,
        worker: Worker,
        address: str = "",
        clock: Callable[[], float] = time.monotonic,
        installs: Sequence[str] = (),
        session: str = "",
        silence_seconds: float = SILENCE_SECONDS_DEFAULT,
    ) -> None:
        self._worker = worker
        self._clock = clock
        self.installations = Installations(worker)
        self._prepared = self.installations.prepared
        self.replacements = self.installations.replacements
        self._orders = Orders(worker)
        self._inputs = Inputs(worker, self._orders)
        self._outputs = Outputs(worker, self.replacements, clock, session)
        self._greeting = Greeting(
            PROTOCOL_VERSION,
            worker.workers,
            worker.index,
            address,
            f"{sys.version_info.major}.{sys.version_info.minor}",
            tuple(installs),
            round(1_000 * silence_seconds),
            own_hashing(),
        )
        self._addresses = {worker.index: address}
        self._ends_unheard: dict[int, set[int]] = {}
        """The dataflows that failed here, each with the workers that have not confirmed that they know."""
        self.is_stopping = False
        worker.on_control = self._on_control
        worker.on_failure = self._on_failure

    # Between workers.

    def greet(self) -> None:
        """Introduce this worker to all others."""
        self._worker.send_control(encode_control(self._greeting))

    @property
    def not_greeted(self) -> list[int]:
        """The workers that have not introduced themselves yet."""
        return [worker for worker in range(self._worker.workers) if worker not in self._addresses]

    def say_farewell(self, reason: str) -> None:
        """Tell the other workers why this one ends; "": on a request."""
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
                self._worker.send_control(encode_control(EndHeard(ended.dataflow)), to=peer)
            case EndHeard(dataflow):
                self._note_end_heard(dataflow, peer)
            case Offer() as offer if self._worker.index == 0:
                self.installations.receive(peer, offer)
            case TakenOver() as news if self._worker.index == 0:
                self.replacements.taken_over(peer, news)
            case (Build() | Verdict() | Decided() | Switched()) as order if peer == 0:
                self._obey(order)
            case control:
                raise PeerError(
                    f"worker {peer} told worker {self._worker.index} "
                    f"{type(control).__name__.lower()}, which only worker 0 may send or receive"
                )

    def _obey(self, order: Build | Verdict | Decided | Switched) -> None:
        if isinstance(order, Build):
            self.installations.on_build(order)
        elif isinstance(order, Verdict):
            self.installations.follow(order)
        elif isinstance(order, Switched):
            self.replacements.switch(order)
        else:
            self._orders.carry_out(order)

    def _on_failure(self, dataflow: int, error: TimelyError) -> None:
        self._worker.send_control(
            encode_control(Ended(dataflow, full_text_of(error), tuple(class_names(error))))
        )
        peers = {peer for peer in self._addresses if peer != self._worker.index}
        if peers:  # a lone worker has nobody whose answer would take the dataflow away again
            self._ends_unheard[dataflow] = peers

    def _note_end_heard(self, dataflow: int, peer: int) -> None:
        unheard = self._ends_unheard.get(dataflow, set())
        unheard.discard(peer)
        if not unheard:
            self._ends_unheard.pop(dataflow, None)

    @property
    def is_telling_an_end(self) -> bool:
        """True if a dataflow has failed here and not all workers have confirmed that they know. Until then
        this worker tells no client: a client that knew could ask another worker at once, and that worker
        would still accept its rows. A worker that has only heard of the failure tells its clients without
        waiting.
        """
        return bool(self._ends_unheard)

    # For clients.

    def handle(self, request: Request, table: pa.Table | None = None) -> Reply | Later:
        """Carry out a request. Raise a `TimelyError` for the client; then nothing has changed."""
        try:
            if self._prepared or self.replacements.were_any:
                if self.installations.is_awaited(getattr(request, "dataflow", None)):
                    return self._once_started(request, table)
                request = self._redirected(request)
            return self._handle(request, table)
        except BaseException as error:
            _check_expected(type(request), error)
            raise

    # Fast path: the most frequent requests of clients in this process, to worker 0, as calls. To make and
    # read a request and a reply would cost as much as the work itself. If some dataflow is about to begin, or
    # some may have been replaced, these calls make requests, too.

    def insert_rows(
        self, dataflow: int, name: str, epoch: int, writer: str, sequence: int, diff: int, rows: list[Value]
    ) -> int:
        """Take plain rows for the open epoch, as `Deliver` does; return their epoch, or, if they were taken
        before, the open one.
        """
        if self._prepared or self.replacements.were_any:
            reply = self.handle(Deliver(dataflow, name, writer, sequence, IN_OPEN, epoch, diff, rows))
            assert isinstance(reply, Reply), "a client that knows the dataflow knows that it has begun"
            return reply.integer("epoch")
        try:
            handle = self._worker.instance(dataflow).input(name)
            return handle.take_rows(epoch, rows, diff, writer, sequence)[1]
        except BaseException as error:
            _check_expected(Deliver, error)
            raise

    def seal(self, dataflow: int, epoch: int) -> int:
        """Seal an epoch, as `Decide` does; return the epoch that is open then."""
        if self._prepared or self.replacements.were_any:
            reply = self.handle(Decide(dataflow, epoch, seals=True))
            assert isinstance(reply, Reply), "a client that knows the dataflow knows that it has begun"
            return reply.integer("open")
        try:
            return self._orders.seal(dataflow, epoch)
        except BaseException as error:
            _check_expected(Decide, error)
            raise

    def has_done(self, dataflow: int, epoch: int) -> bool:
        """Return True if `Progress` beyond an epoch of the whole dataflow would be answered at once."""
        if self._prepared or self.replacements.were_any:
            return isinstance(self.handle(Progress(dataflow, "", epoch)), Reply)
        try:
            return self._outputs.complete(dataflow, "", epoch) > epoch
        except BaseException as error:
            _check_expected(Progress, error)
            raise

    def _handle(self, request: Request, table: pa.Table | None) -> Reply | Later:
        """Answer a request. Fast path: nearly all requests are about inputs or outputs."""
        if self._worker.index != 0:
            self._check_decides(request)
        answer: Reply | Later | None
        if isinstance(request, _OF_INPUTS):
            answer = self._inputs.handle(request, table)
        else:
            answer = self._outputs.handle(request)
        return answer or self._handle_rare(request)

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
        """Return the number of the version that has the inputs of `dataflow` now; raise `MisuseError` if it
        cannot be replaced.
        """
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
        """Build `spec`, one of `installs`, as dataflow `dataflow`."""
        self.installations.build(dataflow, spec, {})
        return self._installed(dataflow, spec)

    def _handle_rare(self, request: Request) -> Reply | Later:
        match request:
            case Uninstall(dataflow, cascade):
                return self._uninstall(dataflow, cascade)
            case Install(spec, arguments):
                return self._installed(self.installations.order(spec, arguments), spec)
            case Replace(dataflow, spec, arguments, seconds):
                current = self.check_replaceable(dataflow)
                new = self.installations.order(spec, arguments, current)
                return self._replaced(new, spec, seconds)
            case Describe(dataflow):
                return describe(
                    self.replacements.instance(dataflow), self.installations.specs.get(dataflow, "")
                )
            case Hello():
                return self._hello()
            case Stats():
                return Reply(statistics(self._worker, self.installations.specs))
            case Shutdown():
                self.is_stopping = True
                return Reply()
            case _:
                raise RequestError(f"no worker serves {type(request).__name__}")

    def _uninstall(self, dataflow: int, cascade: bool) -> Reply:
        """End a dataflow on all workers, as an error would. They hear of it after all earlier orders, and end
        the dataflows that read it, too.
        """
        name = self.replacements.instance(dataflow).frozen.name
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
                "silence_ms": self._greeting.silence_ms,
                "dataflows": [
                    [index, specs.get(index, "")]
                    for index in self._worker.instances
                    if not self.replacements.is_standby(index)
                ],
            }
        )

    def _check_decides(self, request: Request) -> None:
        if isinstance(request, _DECIDED):
            raise RequestError(
                f"{type(request).__name__.lower()} goes to worker 0, which decides for all; this is worker "
                f"{self._worker.index}"
            )

    def _once_started(self, request: Request, table: pa.Table | None) -> Reply | Later:
        """Answer once the dataflow has begun: worker 0 tells its verdict to the client and to this worker,
        and the client may come first.
        """
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
        if isinstance(request, Progress) and (request.extent or request.beyond < 0):
            seconds = INSTALL_SECONDS_MAX
        return now_or_later(ready, late, self._clock(), seconds)

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

        # Worker 0 gives up first: the others wait for its verdict.
        patience = INSTALL_SECONDS_MAX if self._worker.index == 0 else 2 * INSTALL_SECONDS_MAX
        return now_or_later(ready, late, self._clock(), patience)

    def _replaced(self, new: int, spec: str, seconds: float) -> Reply | Later:
        """Answer once the new version has taken the place of the old one on all workers."""
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

        return now_or_later(ready, late, self._clock(), seconds)

    def _redirected(self, request: Request) -> Request:
        """Return the request addressed to the version of its dataflow that has the inputs now; as it is, if
        it is not about inputs.
        """
        if not isinstance(request, _OF_INPUTS):
            return request
        current = self.replacements.inputs_of(request.dataflow)
        if current == request.dataflow:
            return request
        for name in inputs_named(request):
            self.replacements.check_input(request.dataflow, name)
        return replace(request, dataflow=current)


def _check_expected(request: type[Request], error: BaseException) -> None:
    """Raise `VertexError` in place of an unexpected error of the user's code, and `InternalError` in place of
    one of ours. Return if the error is meant for the client, or is an interrupt.
    """
    is_ours = isinstance(error, TimelyError) and not isinstance(error, PeerError)
    if is_ours or is_interrupt(error):
        return
    name = request.__name__.lower()
    if isinstance(error, PeerError) or site_of(error).line:
        refusal = as_refused(error, f"{name} was refused, since a codec, a route or a vertex failed")
        raise refusal from refusal.__cause__
    trace = "".join(traceback.format_exception(error)).rstrip()
    raise InternalError(f"{name} failed unexpectedly: {trace}") from error
