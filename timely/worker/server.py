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
from collections.abc import Callable, Container, Iterator, Sequence
from dataclasses import replace

import pyarrow as pa

from ..building.builders import Builder, build_dataflow, load_builder
from ..durable.past import PastFlow
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
from ..failure import add_note, as_refused, full_text_of, is_interrupt
from ..limits import INSTALL_SECONDS_MAX, SILENCE_SECONDS_DEFAULT
from ..running.core import Worker
from ..running.gate import Gate
from ..running.instance import Instance
from ..user_code.call_site import site_of
from ..wire.frames.messages import life_of
from ..wire.handshake import (
    PROTOCOL_VERSION,
    Agreed,
    Build,
    CutLog,
    Decided,
    Digested,
    Durable,
    Ended,
    EndHeard,
    Farewell,
    Greeting,
    HoldInputs,
    InputsHeld,
    LogCut,
    Logged,
    Offer,
    SealedInput,
    Switched,
    Synced,
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
    Hello,
    Install,
    Progress,
    Replace,
    Reply,
    Request,
    Shutdown,
    Stats,
    Uninstall,
    Value,
    Why,
)
from .answers.held_requests import HeldRequests
from .answers.inputs import Inputs
from .answers.later import Later, now_or_later
from .answers.new_versions import NewVersions
from .answers.older_clients import OF_INPUTS, OlderClients
from .answers.outputs import Outputs
from .answers.why import Reasons
from .counting.counters import statistics
from .durability.durability import Durability, check_same_query
from .durability.fold_turns import Folds
from .durability.news import take_news
from .installation import Installations, describe, key_of
from .orders import Orders

__all__ = ["Server"]

"""Requests to the version of a dataflow that has its inputs; others go to the one that has its outputs."""
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
        keeps_back: whether rows and seals of clients wait while the gate of the worker is closed
            (`running/credits.py`). A client in this process would wait for itself.
    """

    def __init__(
        self,
        worker: Worker,
        address: str = "",
        clock: Callable[[], float] = time.monotonic,
        installs: Sequence[str] = (),
        session: str = "",
        silence_seconds: float = SILENCE_SECONDS_DEFAULT,
        keeps_back: bool = False,
    ) -> None:
        self._worker, self._instances = worker, worker.instances
        self._clock = clock
        self.durability: Durability | None = None
        self.folds: Folds | None = None
        self.life = 0
        """By which number requests name this incarnation of a durable cluster."""
        self.first_incarnation = 0
        """The incarnation that worker 0 has named; 0: it has named none."""
        self.installations = Installations(worker)
        self._prepared = self.installations.prepared
        self.replacements = self.installations.replacements
        self._orders = Orders(worker)
        self.new_versions = NewVersions(worker, self.installations, clock, describe)
        self._gate = worker.acting.gate if keeps_back else Gate()
        self._older_clients = OlderClients(self.replacements, self._handle)
        self._held = HeldRequests(self._is_held, self._older_clients.handle, clock, worker)
        self._inputs = Inputs(worker, self._orders)
        self._outputs = Outputs(worker, self.replacements, clock, session)
        awaited, entries = self.installations.is_awaited, (Server.handle.__code__,)
        self.reasons = Reasons(worker, address, self.replacements, self._outputs, awaited, entries)
        self._greeting = Greeting(
            PROTOCOL_VERSION,
            worker.workers,
            worker.index,
            address,
            f"{sys.version_info.major}.{sys.version_info.minor}",
            tuple(installs),
            round(1_000 * silence_seconds),
            own_hashing(),
            progress=worker.progress_mode,
        )
        self._addresses = self.reasons.addresses = {worker.index: address}
        self._greeted: dict[int, int] = {}  # the incarnation that each other worker has named last
        self._ends_unheard: dict[int, set[int]] = {}
        """The dataflows that failed here, each with the workers that have not confirmed that they know."""
        self.is_stopping = False
        worker.on_control = self._on_control
        worker.on_failure = self._on_failure

    def make_durable(self, durability: Durability) -> None:
        """Be durable from now on. Call it before any request."""
        self.durability = durability
        self.installations.make_durable(durability)
        self._orders.ledger = durability
        self._outputs.durability = durability
        self._orders.incarnation = durability.number
        self.life = life_of(durability.number, durability.cluster)
        self._greeting = replace(self._greeting, incarnation=durability.number)

    @property
    def incarnation(self) -> int:
        """The incarnation of the cluster; 0 if it is not durable."""
        return self._orders.incarnation

    # Between workers.

    def greet(self) -> None:
        """Introduce this worker to all others."""
        self._worker.send_control(encode_control(self._greeting))

    @property
    def not_greeted(self) -> list[int]:
        """The workers that have not introduced themselves as of this incarnation yet."""
        own = self._greeting.incarnation
        others = (worker for worker in range(self._worker.workers) if worker != self._worker.index)
        return [worker for worker in others if self._greeted.get(worker) != own]

    def say_farewell(self, reason: str) -> None:
        """Tell the other workers why this one ends; "": on a request."""
        self._worker.send_control(encode_control(Farewell(reason)))

    def _on_control(self, peer: int, payload: memoryview) -> None:
        match decode_control(payload, peer):
            case Greeting() as greeting:
                check_greeting(self._greeting, greeting, peer)
                self._addresses[peer] = greeting.client_address
                self._greeted[peer] = greeting.incarnation
                if peer == 0:
                    self.first_incarnation = greeting.incarnation
            case Farewell(reason):
                if reason:
                    raise PeerError(f"worker {peer} failed: {reason}")
                self.is_stopping = True
            case Ended() as ended:
                self._worker.end(ended.dataflow, ended.error(), peer)
                self._worker.send_control(encode_control(EndHeard(ended.dataflow)), to=peer)
            case EndHeard(dataflow):
                self._note_end_heard(dataflow, peer)
            case (Agreed() | CutLog() | Digested() | Durable() | LogCut() | Logged() | Synced()) as news if (
                self.durability is not None and 0 in (peer, self._worker.index)
            ):
                take_news(self.durability, self.folds, peer, news)
            case Offer() as offer if self._worker.index == 0:
                self.installations.receive(peer, offer)
            case InputsHeld() as news if self._worker.index == 0:
                self.replacements.held(peer, news)
            case TakenOver() as news if self._worker.index == 0:
                self.replacements.taken_over(peer, news)
            case (Build() | Verdict() | Decided() | SealedInput() | HoldInputs() | Switched()) as order if (
                peer == 0
            ):
                self._obey(order)
            case control:
                raise PeerError(
                    f"worker {peer} told worker {self._worker.index} "
                    f"{type(control).__name__.lower()}, which only worker 0 may send or receive"
                )

    def _obey(self, order: Build | Verdict | Decided | SealedInput | HoldInputs | Switched) -> None:
        if isinstance(order, Build):
            self.installations.on_build(order)
        elif isinstance(order, Verdict):
            self.installations.follow(order)
        elif isinstance(order, HoldInputs):
            self.replacements.hold(order)
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
            if self._prepared or self.replacements.were_any or self._held.waiting or not self._gate.is_open:
                if self.durability is not None and self.durability.waits:
                    self.durability.feed_all()
                self._held.look()
                if isinstance(request, Why):
                    return self.reasons.answer(request)
                if self.installations.is_awaited(getattr(request, "dataflow", None)):
                    return self._once_started(request, table)
                if self._is_held(request):
                    return self._held.hold(request, table)
                return self._older_clients.handle(request, table)
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
            instance = self._instances.get(dataflow)
            handle = None if instance is None else instance.inputs.get(name)
            if handle is None:
                handle = self._worker.instance(dataflow).input(name)  # raises what is wrong
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

    def holds_inputs_of(self, dataflow: int) -> bool:
        """Return True if requests about inputs of a dataflow wait: a new version is about to have them."""
        replacements = self.replacements
        return replacements.were_any and replacements.is_held(replacements.inputs_of(dataflow))

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
        if isinstance(request, OF_INPUTS):
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
            return self.new_versions.answer(dataflow, spec, seconds)
        return self._installed(dataflow, spec)

    def begin_dataflows(self, specs: Sequence[str]) -> Iterator[Reply | Later]:
        """Let the dataflows of the logs begin, and those that are to be installed at the start, if they are
        not among them; yield the answer about each. All workers do so in the same order.
        """
        durability = self.durability
        for flow in durability.past.flows.values() if durability is not None else ():
            if durability is not None and flow.number not in durability.begun:
                yield self.begin_again(flow, durability.begun)
        for spec in specs:
            if durability is None or not durability.has_key(spec):
                number = self.installations.reserve()
                self.installations.note_key(number, spec, spec)
                yield self.install_at_start(number, spec)

    def begin_again(self, flow: PastFlow, begun: Container[int]) -> Reply | Later:
        """Let a dataflow of the logs begin, unless it is about to. Answer when it is in `begun`: it may fail
        right behind that, as it has before; the cluster goes on then."""
        number, key = flow.number, flow.key
        if not flow.spec:
            raise MisuseError(
                f"the store has a dataflow {number} ({key}) that a program has installed in embedded "
                "workers, and only that program has its functions. Start the program with embedded workers, "
                "as before (connect(…, embedded=True, durable=FOLDER)); or give worker processes a folder of "
                "their own, and feed them"
            )
        if number not in self._prepared:
            self.installations.build_again(flow)

        def ready() -> Reply | None:
            if number not in begun:
                try:
                    self.installations.outcome(number)
                except TimelyError as error:
                    add_note(error, f"the store has this dataflow under the name {key!r}, number {number}")
                    raise
            return Reply() if number in begun else None

        late = WaitTimeoutError(f"dataflow {number} ({key}) of the store has not begun in time")
        return now_or_later(ready, lambda: late, self._clock(), 2 * INSTALL_SECONDS_MAX)

    def install_at_start(self, dataflow: int, spec: str) -> Reply | Later:
        """Build `spec` as dataflow `dataflow`, as all workers do."""
        self.installations.build(dataflow, spec, {})
        return self._installed(dataflow, spec)

    def _handle_rare(self, request: Request) -> Reply | Later:
        match request:
            case Uninstall(dataflow, cascade):
                return self._uninstall(dataflow, cascade)
            case Install(spec, arguments):
                if self.durability is not None and (known := self._known(spec, arguments)) is not None:
                    return known
                return self._installed(self.installations.order(spec, arguments), spec)
            case Replace(dataflow, spec, arguments, seconds):
                if self.durability is not None:
                    asked = self.new_versions.asked_before(dataflow, spec, arguments, seconds)
                    if asked is not None:
                        return asked
                current = self.new_versions.check_replaceable(dataflow)
                new = self.installations.order(spec, arguments, current)
                return self.new_versions.answer(new, spec, seconds)
            case Describe(dataflow):
                instance = self.replacements.instance(dataflow)
                described = self.describe(instance, self.installations.specs.get(dataflow, ""))
                durable = -1 if self.durability is None else self.durability.epochs.before(instance)
                described.values["durable"] = durable
                return described
            case Hello():
                return self._hello()
            case Why():
                return self.reasons.answer(request)
            case Stats():
                return Reply(statistics(self._worker, self.installations.specs, self.durability))
            case Shutdown():
                self.is_stopping = True
                return Reply()
            case _:
                raise RequestError(f"no worker serves {type(request).__name__}")

    def describe(self, instance: Instance, spec: str) -> Reply:
        """Return the description of a dataflow, with the epoch that is open once it has its rows."""
        described = describe(instance, spec)
        if self.durability is not None:
            described.values["epoch"] = max(described.integer("epoch"), self.durability.open_epoch(instance))
        return described

    def _known(self, spec: str, arguments: dict[str, Value]) -> Reply | Later | None:
        """Return the answer about the dataflow that is installed under the same key; None if there is none.
        Raise `MisuseError` if it is another query.
        """
        assert self.durability is not None
        key = key_of(spec, arguments)
        number = self.durability.number_of(key)
        if number is None:
            return None
        frozen = build_dataflow(load_builder(spec), spec, arguments).freeze()
        answer = self._installed(number, spec)

        def ready() -> Reply | None:
            reply = answer if isinstance(answer, Reply) else answer.ready()
            if reply is not None:
                check_same_query(key, self._worker.instance(number).frozen, frozen)
            return reply

        late = WaitTimeoutError(f"dataflow {number} ({key}) has not begun yet")
        return now_or_later(ready, lambda: late, self._clock(), INSTALL_SECONDS_MAX)

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
        if self.durability is not None:
            self.durability.note_gone(self.installations.with_importers(dataflow), error)
        self._worker.end(dataflow, error, self._worker.index)
        self._on_failure(dataflow, error)
        return Reply()

    def _hello(self) -> Reply:
        addresses = [self._addresses.get(index, "") for index in range(self._worker.workers)]
        return Reply(
            {
                "version": PROTOCOL_VERSION,
                "index": self._worker.index,
                "workers": self._worker.workers,
                "addresses": addresses,
                "silence_ms": self._greeting.silence_ms,
                "incarnation": self.incarnation,
                "cluster": "" if self.durability is None else self.durability.cluster,
                "dataflows": [
                    [index, self.installations.specs.get(index, "")]
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

    def _is_held(self, request: Request) -> bool:
        """Return True if a request has to wait until a new version has the inputs, or has ended."""
        if not isinstance(request, OF_INPUTS) or isinstance(request, Describe):
            return False
        is_new_work = isinstance(request, (Deliver, Decide)) and not self._gate.is_open
        return is_new_work or self.holds_inputs_of(request.dataflow)

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
            return None if instance is None else self.describe(instance, spec)

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
