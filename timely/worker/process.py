"""One worker process: step, serve, wait.

    standard input    one line of settings; its end means that the launcher is gone
    standard output   a JSON line when ready {"ready": index, "address": …} or failed {"failed": message};
                      what user code prints goes to the error stream instead

The loop owns the sockets and looks at them between steps. What a dataflow raises ends that dataflow
(`core.py`). A lost peer, a peer that says what no worker may say, or a bug of ours ends the process: then it
tells waiting clients and the other workers why, and its exit status is not 0. Nothing that a client sends
ends it.

If the settings name no peers, the system chooses the ports: then the worker first says where it listens
({"bound": address}), and the next line of standard input lists the addresses of all workers.

After that standard input brings at most one line more: why the launcher ends this worker. The worker tells
its clients so.
"""

from __future__ import annotations

import atexit
import json
import logging
import os
import signal
import socket
import sys
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Collection
from dataclasses import replace
from pathlib import Path
from typing import IO, NoReturn
from uuid import uuid4

from ..cores import keep_to
from ..errors import InternalError, MisuseError, PeerError, RefusedError, TimelyError
from ..failure import as_refused, as_reported, bear_interrupts, full_text_of
from ..giving_back import GivingBack
from ..limits import (
    ANSWER_SECONDS_MAX,
    CALLERS_MAX,
    IDLE_SECONDS_MAX,
    POSTED_COUNT_MAX,
    REST_SECONDS_MIN,
    STOP_SECONDS_MAX,
    WAITING_COUNT_MAX,
    WAITING_OF_ONE_COUNT_MAX,
)
from ..running.core import Worker
from ..user_code.call_site import site_of
from ..user_code.trust import trust
from ..wire.addresses import is_tcp, tcp_address
from ..wire.batch import Frame
from ..wire.frames.messages import (
    FAREWELL,
    Head,
    decode_request,
    encode_error,
    encode_reply,
    head_of,
    number_of,
)
from ..wire.keys import ClusterKeys
from ..wire.requests import IN_OPEN, Deliver, Reply
from ..wire.transport.server_socket import ServerSocket
from ..wire.transport.zeromq import WorkerMesh
from .answers.later import Later
from .server import Server
from .settings import WorkerSettings
from .tasks.tidying import Tidying
from .together import begin_turn, end_turn, forget_alone, is_full, join

__all__ = ["EXIT_FAILED", "EXIT_PEER_LOST", "WorkerProcess", "main"]

EXIT_FAILED = 1
EXIT_PEER_LOST = 3
"""This worker is well, but another one is gone: the launcher looks for the cause elsewhere."""

_log = logging.getLogger("timely")
_PORT_MEND = "end the other program, or choose other ports with --client-port and --base-port"
_DRAIN_SECONDS = 0.1
_SERVE_SECONDS = 2e-4
"""While there is work the worker looks for requests of clients this often, or after each step if that takes
longer.
"""


class WorkerProcess:
    """The sockets, the clients and the end of one worker."""

    def __init__(self, settings: WorkerSettings, report: Callable[[dict[str, object]], None]) -> None:
        self._settings = settings
        self._report = report
        self._waiting: list[tuple[bytes, int, Later]] = []
        self._is_ending = False
        self._stop_reason = ""
        self._ended_count = 0
        self._rest_at = float("inf")
        self._is_resting = False
        self._is_forgetting = False
        """True from when this worker begins to forget until it has."""
        self._serve_at = 0.0
        self._unsent: dict[bytes, list[list[Frame]]] = {}
        """By client, the answers that `_send_unsent` sends later, oldest first."""
        self._callers: OrderedDict[bytes, None] = OrderedDict()  # the clients of the last requests
        self._wake_recv, self._wake_send = socket.socketpair()
        self._wake_recv.setblocking(False)
        self._wake_send.setblocking(False)
        peers = {index: address for index, address in enumerate(settings.peers) if index != settings.index}
        keys = ClusterKeys.from_text(settings.keys) if settings.keys else None
        self._mesh = WorkerMesh(
            settings.index, settings.listen, peers, _PORT_MEND, keys, settings.silence_seconds
        )
        self._clients = ServerSocket(settings.client_listen, _PORT_MEND, keys, settings.silence_seconds)
        self._mesh.watch(self._clients)
        self._mesh.watch(self._wake_recv.fileno())
        self.address = _public_address(self._clients.address, settings.client_host)
        trust(settings.token)
        self._worker = Worker(settings.index, settings.workers, self._mesh, settings.check_progress)
        session = uuid4().hex
        self._server = Server(
            self._worker,
            self.address,
            installs=settings.installs,
            session=session,
            silence_seconds=settings.silence_seconds,
        )
        self._tidying = Tidying(self._worker)
        self._giving_back = GivingBack()
        join(self)

    @property
    def mesh_address(self) -> str:
        """Where peers reach this worker, by the host's name."""
        return _public_address(self._mesh.addresses[-1], self._settings.client_host)

    def meet(self, orders: IO[str]) -> bool:
        """Say where this worker listens, and read the addresses of all workers; return False if standard
        input ends before.
        """
        self._report({"bound": self.mesh_address})
        line = orders.readline()
        if not line.endswith("\n"):  # the end, perhaps after the reason for it
            self._close()
            return False
        peers = [str(address) for address in json.loads(line)]
        if len(peers) != self._settings.workers:
            raise InternalError(f"{len(peers)} addresses for {self._settings.workers} workers")
        self._settings = replace(self._settings, peers=tuple(peers))
        self._mesh.join({index: at for index, at in enumerate(peers) if index != self._settings.index})
        return True

    def stop_soon(self, reason: str = "") -> None:
        """End after the current step; may be called from a signal handler or another thread."""
        self._stop_reason = self._stop_reason or reason
        self._is_ending = True
        try:
            self._wake_send.send(b"!")
        except OSError:
            pass  # closed already, or full of earlier bytes: the worker is awake

    def run(self) -> int:
        """Work until a client or the launcher ends this worker; return the exit status."""
        begin_turn(self)
        # Not earlier: threads of sockets may run on any core, and `Neighbours` counts all cores.
        keep_to(self._settings.core)
        try:
            self._gather()
            self._install()
            self._report({"ready": self._settings.index, "address": self.address})
            self._loop()
        except PeerError as error:
            return self._fail(error, EXIT_PEER_LOST)
        except TimelyError as error:
            return self._fail(error, EXIT_FAILED)
        except Exception as error:
            where = f"in worker {self._settings.index} of {self._settings.workers}"
            return self._fail(as_reported(error, where), EXIT_FAILED)
        finally:
            self._close()
            end_turn(self)
        return 0

    def at_rest(self) -> None:
        """Return None: this worker is always at work, so other workers of this process forget no words."""

    def _loop(self) -> None:
        while not self._must_stop():
            worked = self._worker.step()
            if len(self._worker.ended) > self._ended_count:
                self._log_ended()
            # A worker that has work looks for clients now and then: a change of one row takes several steps.
            served = (not worked or time.monotonic() >= self._serve_at) and self._serve()
            if self._waiting:
                self._answer_waiting()
            if worked or served or self._is_forgetting:
                self._forget()
            if worked:
                self._rest_at = time.monotonic() + REST_SECONDS_MIN
                self._is_resting = False
            elif time.monotonic() >= self._rest_at:
                self._rest_at = float("inf")
                if not self._is_resting:
                    self._is_resting = True
                    self._worker.rest()
                self._giving_back.rest()
            if not (worked or served):
                self._giving_back.look_behind(self._is_expected)
                if time.monotonic() >= self._tidying.look_at:
                    self._tidying.look()
                self._wait(0.0 if self._worker.idle() else min(IDLE_SECONDS_MAX, self._clients.patience))
                if self._mesh.has_other_news:  # usually a client: nothing is to do before its request is read
                    served = self._serve()
            elif self._is_resting:
                self._worker.idle()  # also between two answers: clients may ask without a pause
            # An answer leaves memory to give back, although another client may wait for an epoch meanwhile.
            if served and self._rest_at == float("inf"):
                self._rest_at = time.monotonic() + REST_SECONDS_MIN
        if self._stop_reason:
            raise PeerError(self._stop_reason)
        self._server.say_farewell("")
        who = f"worker {self._settings.index} of {self._settings.workers}"
        self._tell_clients(PeerError(f"{who} had to end, and the cluster with it"))

    def _is_expected(self) -> bool:
        """Return True if a client waits for an answer or the rest of one, or rows wait to enter."""
        return bool(self._waiting) or self._worker.has_rows_waiting() or self._clients.is_sending

    def _forget(self) -> None:
        """Begin to forget words that nothing refers to, if there are many; forget them once all peers have
        withdrawn what they believe of this worker.
        """
        if self._is_forgetting:
            if self._worker.forgetting.is_ready:
                self._is_forgetting = not forget_alone(self, self._worker.forget)
        elif is_full():
            self._worker.begin_forgetting()
            self._is_forgetting = True

    def _log_ended(self) -> None:
        """Log what has ended dataflows, on the worker on which the error arose."""
        for error in list(self._worker.ended.values())[self._ended_count :]:
            if error.__cause__ is not None:
                _log.error("worker %d: %s", self._settings.index, full_text_of(error))
        self._ended_count = len(self._worker.ended)

    def _tell_clients(self, error: TimelyError) -> None:
        """Send `error` to clients that wait, to those of the last requests, and to those that still ask
        within a moment. A client that asks later finds it, though no worker answers any more.
        """
        for client, number, _ in self._waiting:
            self._send(client, encode_error(number, error))
        for client in self._callers:
            self._send(client, encode_error(FAREWELL, error))
        self._waiting = []
        until = time.monotonic() + _DRAIN_SECONDS
        while time.monotonic() < until:
            for client, frames in self._clients.recv_nowait():
                self._send(client, encode_error(number_of(frames), error))
            self._mesh.wait(_DRAIN_SECONDS / 5)

    def _gather(self) -> None:
        """Wait until all peers have introduced themselves and agree on what must be the same everywhere."""
        self._server.greet()
        deadline = time.monotonic() + self._settings.gather_seconds
        while self._server.not_greeted and not self._must_stop():
            if not self._worker.step():
                self._wait(IDLE_SECONDS_MAX)
            if time.monotonic() > deadline:
                absent = ", ".join(
                    f"{peer} at {self._settings.peers[peer]}" for peer in self._server.not_greeted
                )
                raise PeerError(
                    f"worker {self._settings.index} waited {self._settings.gather_seconds:.0f} s for "
                    f"worker {absent}"
                )

    def _install(self) -> None:
        for dataflow, spec in enumerate(self._settings.installs):
            answer = self._server.install_at_start(dataflow, spec)
            while isinstance(answer, Later) and not self._must_stop():
                answer = answer.ready() or answer
                if isinstance(answer, Later):
                    if time.monotonic() > answer.deadline:
                        raise answer.late()
                    if not self._worker.step():
                        self._wait(IDLE_SECONDS_MAX)

    def _must_stop(self) -> bool:
        return self._is_ending or self._server.is_stopping

    def _wait(self, seconds: float) -> None:
        if self._waiting:
            seconds = min(
                seconds, max(0.0, min(later.deadline for _, _, later in self._waiting) - time.monotonic())
            )
        self._mesh.wait(seconds)
        try:
            while self._wake_recv.recv(64):
                pass
        except BlockingIOError:
            pass

    def _serve(self) -> bool:
        self._serve_at = time.monotonic() + _SERVE_SECONDS
        if refused := self._clients.taken_away():
            self._tell_refused(refused)
        requests = self._clients.recv_nowait()
        if self._unsent:
            self._send_unsent({client for client, _ in requests})
        for client, frames in requests:
            number, head = head_of(frames)
            self._callers[client] = None
            if len(self._callers) > CALLERS_MAX:
                self._callers.popitem(last=False)
            try:
                if refusal := self._clients.refusal(client):
                    raise RefusedError(refusal)
                self._answer(client, number, frames, head)
            except BaseException as error:  # nothing that a client sends or a codec raises ends the worker
                answer = (
                    error if isinstance(error, TimelyError) else self._unexpected(error, "read a request")
                )
                self._send_error(client, number, answer)
        if self._unsent and self._worker.has_work():
            self._send_unsent()
        return bool(requests)

    def _unexpected(self, error: BaseException, what: str) -> TimelyError:
        """Return the error for the client in place of an unexpected exception, and log it."""
        where = f"while worker {self._settings.index} {what}"
        if isinstance(error, PeerError) or site_of(error).line:
            answer = as_refused(error, f"a codec, or the log of an output, failed {where}")
        else:
            answer = as_reported(error, where)
        _log.error("worker %d: %s", self._settings.index, answer)
        return answer

    def _send(self, client: bytes, frames: list[Frame]) -> None:
        """Send an answer, after those that wait for this client."""
        self._clients.send(client, *self._unsent.pop(client, ()), frames)

    def _send_error(self, client: bytes, number: int, error: TimelyError) -> None:
        """Answer with `error`; if that has ended a dataflow, once all workers have ended it."""
        if not (error.ends_dataflow and self._server.is_telling_an_end):
            self._send(client, encode_error(number, error))
            return

        def ready() -> None:
            if not self._server.is_telling_an_end:
                raise error

        deadline = time.monotonic() + ANSWER_SECONDS_MAX
        self._waiting.append((client, number, Later(ready, lambda: error, deadline)))

    def _send_later(self, client: bytes, frames: list[Frame]) -> None:
        """Send an answer later (`_send_unsent`). A well-behaved client never has more than `POSTED_COUNT_MAX`
        unanswered posts. Flush at that number, so that a misbehaving one fills its socket and not our memory.
        """
        unsent = self._unsent.setdefault(client, [])
        unsent.append(frames)
        if len(unsent) >= POSTED_COUNT_MAX:
            self._clients.send(client, *self._unsent.pop(client))

    def _send_unsent(self, but: Collection[bytes] = ()) -> None:
        """Send the answers to posted insertions, except to the clients `but`. As far as the worker knows, a
        client does not wait for these: it inserts more, or seals, next. So they go with the next answer to
        the client; or when it asks nothing more at once, or this worker has other work.
        """
        for client in [client for client in self._unsent if client not in but]:
            self._clients.send(client, *self._unsent.pop(client))

    def _tell_refused(self, refused: list[bytes]) -> None:
        """Tell clients that their key was taken away, before `ServerSocket` closes their connections."""
        for client in refused:
            error = RefusedError(self._clients.refusal(client))
            _log.warning("worker %d: %s", self._settings.index, error)
            for waiting, number, _ in self._waiting:
                if waiting == client:
                    self._send(client, encode_error(number, error))
            self._send(client, encode_error(FAREWELL, error))
        self._waiting = [entry for entry in self._waiting if entry[0] not in refused]

    def _answer(self, client: bytes, number: int, frames: list[memoryview], head: Head | None) -> None:
        request, table = decode_request(frames, head)
        if table is not None:
            self._giving_back.add(table.num_rows)
        answer = self._server.handle(request, table)
        if isinstance(answer, Reply):
            reply = self._encoded(number, answer)
            if isinstance(request, Deliver) and request.counts == IN_OPEN:  # perhaps it was posted
                self._send_later(client, reply)
            else:
                self._send(client, reply)
        elif len(self._waiting) >= WAITING_COUNT_MAX:
            raise MisuseError(f"{WAITING_COUNT_MAX:,} requests wait for an answer already: ask again later")
        elif sum(client == other for other, _, _ in self._waiting) >= WAITING_OF_ONE_COUNT_MAX:
            raise MisuseError(
                f"{WAITING_OF_ONE_COUNT_MAX} requests of this client wait for an answer already: ask one "
                "after another"
            )
        else:
            self._waiting.append((client, number, answer))

    def _encoded(self, number: int, reply: Reply) -> list[Frame]:
        """Return the frames of an answer."""
        if reply.table is not None and reply.values.get("next", -1) == -1:  # no further piece follows
            self._giving_back.add_sent(reply.table.num_rows)
        return encode_reply(number, reply)

    def _answer_waiting(self) -> None:
        still: list[tuple[bytes, int, Later]] = []
        now = time.monotonic()
        for client, number, later in self._waiting:
            try:
                reply: Reply | None = later.ready()
                if reply is None and now >= later.deadline:
                    raise later.late()
                frames = None if reply is None else self._encoded(number, reply)
            except BaseException as error:
                if not isinstance(error, TimelyError) or isinstance(error, PeerError):
                    error = self._unexpected(error, "answered")
                if error.ends_dataflow and self._server.is_telling_an_end and now < later.deadline:
                    # A worker may compute for hours before it hears; the client does not wait for that.
                    deadline = min(later.deadline, now + ANSWER_SECONDS_MAX)
                    still.append((client, number, replace(later, deadline=deadline)))
                else:
                    self._send(client, encode_error(number, error))
                continue
            if frames is None:
                still.append((client, number, later))
            else:
                self._send(client, frames)
        self._waiting = still

    def _fail(self, error: TimelyError, status: int) -> int:
        """Tell the launcher, the other workers and clients why this worker ends; return the exit status."""
        message = full_text_of(error)
        # One worker logs the cause as an error; the others have only lost a peer, and would repeat it.
        level = logging.INFO if status == EXIT_PEER_LOST else logging.ERROR
        _log.log(level, "worker %d of %d: %s", self._settings.index, self._settings.workers, message)
        self._report({"failed": f"{type(error).__name__}: {message}", "is_cause": status != EXIT_PEER_LOST})
        try:
            self._server.say_farewell(f"{type(error).__name__}: {message}")
            self._tell_clients(error)
        except Exception as second:
            _log.error("worker %d could not tell the others: %s", self._settings.index, second)
        return status

    def _close(self) -> None:
        self._mesh.close()
        self._clients.close()
        self._wake_recv.close()
        self._wake_send.close()
        self._remove_folder()

    def _remove_folder(self) -> None:
        """Remove the ipc sockets of this worker, and their folder if it is empty: the launcher may have been
        killed.
        """
        for address in (*self._settings.listen, self._settings.client_listen):
            if address.startswith("ipc://"):
                path = Path(address.removeprefix("ipc://"))
                try:
                    path.unlink(missing_ok=True)
                    path.parent.rmdir()
                except OSError:
                    pass  # not empty yet, or the launcher has removed it


def _public_address(address: str, host: str) -> str:
    """Return the address that clients use: with the name of the host instead of the interface."""
    return tcp_address(host, int(address.rpartition(":")[2])) if host and is_tcp(address) else address


def main() -> int:
    """Run the worker that standard input describes; the entry point of processes that a launcher starts."""
    reports = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)
    # Ctrl-C reaches the whole group; the launcher decides what it means.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    bear_interrupts()
    line = sys.stdin.readline()
    if not line:
        return EXIT_PEER_LOST

    def report(values: dict[str, object]) -> None:
        try:
            print(json.dumps(values), file=reports, flush=True)
        except OSError:
            pass  # the launcher is gone; the watch on standard input ends this process

    settings = WorkerSettings.from_json(line)
    logging.basicConfig(
        level=settings.log_level.upper(), format="%(asctime)s %(name)s %(levelname)s %(message)s"
    )
    sys.path[:0] = [path for path in settings.paths if path not in sys.path]
    try:
        process = WorkerProcess(settings, report)
        if not settings.peers and not process.meet(sys.stdin):
            return EXIT_PEER_LOST
    except TimelyError as error:
        report({"failed": f"{type(error).__name__}: {error}", "is_cause": True})
        return EXIT_FAILED
    signal.signal(signal.SIGTERM, lambda number, frame: process.stop_soon())
    threading.Thread(target=_watch_launcher, args=(sys.stdin, process), daemon=True).start()
    return process.run()


def _watch_launcher(stream: IO[str], process: WorkerProcess) -> None:
    """End with the launcher, even if a vertex never returns."""
    reason = b""
    try:
        while piece := os.read(stream.fileno(), 65_536):
            reason += piece
    except OSError:
        pass
    process.stop_soon(reason.decode(errors="replace").strip())
    time.sleep(STOP_SECONDS_MAX)
    os._exit(EXIT_PEER_LOST)


def _end(status: int) -> NoReturn:
    """End the process without taking the interpreter apart, which takes a third of a second for nothing: the
    sockets are closed, and the memory goes back to the system anyhow. Functions that user code has registered
    with `atexit` run.
    """
    atexit._run_exitfuncs()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(status)


if __name__ == "__main__":
    if sys.argv[1:]:
        sys.exit("this is one worker, started by others: write python -m timely.worker --help")
    _end(main())
