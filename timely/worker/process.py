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

A worker that follows reports {"following": index} once it is abreast of the cluster that is at work. Then
standard input of worker 0 may bring the line `take over`.

The last line of standard input, without an end of line, says why the launcher ends this worker.
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
from collections.abc import Callable, Sequence
from contextlib import ExitStack, suppress
from dataclasses import replace
from functools import partial
from gc import get_count
from typing import IO, NoReturn
from uuid import uuid4

import pyarrow as pa

from ..cores import keep_to
from ..errors import FencedError, InternalError, MisuseError, PeerError, RefusedError, TimelyError
from ..failure import as_refused, as_reported, bear_interrupts, full_text_of
from ..giving_back import GivingBack
from ..limits import (
    ANSWER_SECONDS_MAX,
    CALLERS_MAX,
    IDLE_SECONDS_MAX,
    REST_SECONDS_MIN,
    STOP_SECONDS_MAX,
    WAITING_COUNT_MAX,
    WAITING_OF_ONE_COUNT_MAX,
)
from ..running.collecting import Collecting
from ..running.core import Worker
from ..running.sending.telling import telling_of
from ..running.stages.ends import close_vertices
from ..spilling.budget import SPILL
from ..user_code.call_site import site_of
from ..user_code.trust import trust
from ..wire.addresses import leave_ports_when_forked, public_address, remove_sockets
from ..wire.frames.messages import FAREWELL, decode_request, encode_error, head_of, number_of
from ..wire.keys import ClusterKeys
from ..wire.requests import IN_OPEN, Decide, Deliver, Progress, Reply, Request
from ..wire.transport.server_socket import ServerSocket
from ..wire.transport.zeromq import WorkerMesh
from .answers.later import Later
from .answers.lookout import listen_beside
from .answers.outbox import Outbox
from .durability.beginning import begun
from .durability.durability import Durability
from .durability.fold_turns import Folds
from .durability.replies import WaitingReplies, rests_on_log
from .following.follower import StandbyWorker
from .server import Server
from .settings import TAKE_OVER, WorkerSettings
from .tasks.alarm_clock import AlarmClock
from .tasks.tidying import Tidying
from .tasks.unused_words import UnusedWords
from .together import begin_turn, end_turn, is_full, join

__all__ = ["EXIT_FAILED", "EXIT_PEER_LOST", "WorkerProcess", "main"]

EXIT_FAILED = 1
EXIT_PEER_LOST = 3
"""This worker is well, but another one is gone: the launcher looks for the cause elsewhere."""

_log = logging.getLogger("timely")
_PORT_MEND = "end the other program, or choose other ports with --client-port and --base-port"
_DRAIN_SECONDS = 0.1
_FOLLOWING_COUNT = 4
"""How often a worker that has read posts alone looks for more before a step: mostly a seal follows."""
_HELD_SECONDS = 1e-3
"""How long the answer to a seal waits for the answer to the wait that goes with it."""
_SERVE_SECONDS = 2e-4
"""While there is work the worker looks for requests this often, or after each step if that takes longer."""


class WorkerProcess:
    """The sockets, the clients and the end of one worker."""

    def __init__(self, settings: WorkerSettings, report: Callable[[dict[str, object]], None]) -> None:
        self._settings, self._report, self._spilling = settings, report, SPILL.begin(settings.spilling)
        self._waiting: list[tuple[bytes, int, Later]] = []
        self._is_ending = self._is_to_take_over = self._is_resting = False
        self._failure: TimelyError | None = None  # what has ended this worker
        self._stop_reason, self._listens_at, silence = "", list[str](), settings.silence_seconds
        self._ended_count, self._rest_at, self._serve_at = 0, float("inf"), 0.0
        self._callers: OrderedDict[bytes, None] = OrderedDict()  # the clients of the last requests
        self._wake_recv, self._wake_send = socket.socketpair()
        self._wake_recv.setblocking(False)
        self._wake_send.setblocking(False)
        peers = {index: address for index, address in enumerate(settings.peers) if index != settings.index}
        self._keys = keys = ClusterKeys.from_text(settings.keys) if settings.keys else None
        self._mesh = WorkerMesh(settings.index, settings.listen, peers, _PORT_MEND, keys, silence)
        self._clients = self._listen_to_clients(settings.client_listen)
        self._outbox = Outbox(self._clients)
        self._mesh.watch(self._wake_recv.fileno())
        self.address = public_address(settings.follows or self._clients.address, settings.client_host)
        trust(settings.token)
        telling = telling_of(settings.progress, *settings.seat, settings.per_host)
        self._worker = Worker(*settings.seat, self._mesh, settings.check_progress, telling=telling)
        self._server = Server(
            self._worker,
            self.address,
            installs=settings.installs,
            session=uuid4().hex,
            silence_seconds=silence,
            keeps_back=True,
        )
        self._replies: WaitingReplies | None = None
        self._alarm_clock = AlarmClock(self._worker, self._wake, self._mesh)
        self._beside = ExitStack()
        self._tidying, self._unused_words = Tidying(self._worker), UnusedWords(self, self._worker)
        self._giving_back = GivingBack()
        self._collecting = Collecting(self._worker.timings.collector.add)
        join(self)

    @property
    def mesh_address(self) -> str:
        """Where peers reach this worker, by the host's name."""
        return public_address(self._mesh.addresses[-1], self._settings.client_host)

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

    def take_over_soon(self) -> None:
        """End following, and take over, after the current step; another thread may call it."""
        self._is_to_take_over = True
        self._wake()

    def stop_soon(self, reason: str = "") -> None:
        """End after the current step; may be called from a signal handler or another thread."""
        self._stop_reason = self._stop_reason or reason
        self._is_ending = True
        self._wake()

    def _wake(self) -> None:
        """End the present wait; any thread may call it."""
        try:
            self._wake_send.send(b"!")
        except OSError:
            pass  # closed already, or full of earlier bytes: the worker is awake

    def run(self) -> int:
        """Work until a client or the launcher ends this worker; return the exit status."""
        begin_turn(self)
        try:
            if self._settings.follows:
                self._follow()
            elif self._settings.durable:
                self._server.make_durable(self._begun())
            at, reasons = self._clients.address, self._server.reasons
            self._beside.callback(listen_beside(reasons, self._settings, at, lambda: self._serve_at).close)
            # Not earlier: threads of sockets may run on any core, and `Neighbours` counts all cores.
            keep_to(self._settings.core)
            self._gather()
            self._install()
            self._report({"ready": self._settings.index, "address": self.address})
            with self._collecting:
                self._loop()
        except FencedError as error:
            # A later incarnation serves the clients: whatever this one told them would only confuse them.
            self._failure = error
            self._report({"failed": f"{type(error).__name__}: {error}", "is_cause": True})
            return EXIT_FAILED
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

    def _follow(self) -> None:
        """Follow the cluster that is at work until worker 0 has the order to take over, and the others hear
        of that from it; then become what a worker that starts becomes, and listen where clients look.
        """
        self._gather()
        follower = StandbyWorker(
            self._settings.durable, self._worker, self._server, self._unused_words, self._giving_back
        )
        while not (self._must_stop() or self._is_to_take_over or self._server.first_incarnation):
            looked = follower.look()
            if self._worker.step() or looked:
                follower.tidy()
            else:
                if follower.is_newly_abreast:
                    self._report({"following": self._settings.index})
                self._wait(follower.rest())
        if not self._must_stop():
            follower.finish(self._begun())
            self._mesh.unwatch(*self._clients.sources)
            self._clients.close()
            self._clients = self._outbox.clients = self._listen_to_clients(self._settings.follows)

    def _listen_to_clients(self, address: str) -> ServerSocket:
        self._listens_at.append(address)
        clients = ServerSocket(address, _PORT_MEND, self._keys, self._settings.silence_seconds)
        self._mesh.watch(*clients.sources)
        return clients

    def _begun(self) -> Durability:
        """Begin a log of this incarnation before anybody hears of this worker. Worker 0 makes the
        incarnation, and names it to the others as it greets them.
        """
        if self._settings.index:
            self._await(lambda: self._server.first_incarnation > 0, [0])
            if not self._server.first_incarnation:
                raise PeerError(self._stop_reason or "the cluster was ended before worker 0 had begun")
        durability = begun(self._settings, self._worker, self._server.first_incarnation, self._wake)
        self._server.folds = Folds(self._worker, durability, self._settings.durable)
        self._replies = WaitingReplies(durability.log, durability.is_under_way)
        return durability

    def _loop(self) -> None:
        while not self._must_stop():
            looked = self._replies is not None and self._look_at_log(self._replies)
            worked = self._worker.step() or looked
            if get_count()[0] >= self._collecting.young_max:
                self._collecting.look()
            if self._worker.ended.count > self._ended_count:
                self._log_ended()
            # A worker that has work looks for clients now and then: a change of one row takes several steps.
            served = (not worked or time.monotonic() >= self._serve_at) and self._serve()
            if self._waiting:
                self._answer_waiting()
            if self._unused_words.is_under_way or ((worked or served) and is_full()):
                self._unused_words.go_on()
            if worked:
                self._rest_at = time.monotonic() + REST_SECONDS_MIN
                self._is_resting = False
            elif time.monotonic() >= self._rest_at:
                self._rest_at = float("inf")
                if not self._is_resting:
                    self._is_resting = True
                    self._worker.rest()
                    if self._server.durability is not None:
                        self._server.durability.mark_durable()
                self._collecting.rest(tuple(self._worker.instances))
                self._giving_back.rest()
            if self._replies is not None and self._replies.flush(served, worked, bool(self._waiting)):
                worked = self._look_at_log(self._replies) or worked
                self._answer_waiting()
            if not (worked or served):
                self._giving_back.look_behind(self._is_expected)
                if time.monotonic() >= self._tidying.look_at:
                    self._tidying.look()
                self._wait(0.0 if self._worker.idle() else min(IDLE_SECONDS_MAX, self._clients.patience))
                if self._mesh.has_other_news:  # usually a client: nothing is to do before its request is read
                    served = self._serve()
                    for _ in range(_FOLLOWING_COUNT):
                        if not (self._outbox.has_posts_only and self._serve(is_following=True)):
                            break
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

    def _look_at_log(self, replies: WaitingReplies) -> bool:
        """Let answers leave, and tell other workers, what rests on what the log has told by now."""
        folds = self._server.folds
        looked = folds is not None and folds.look(self._is_resting)
        return replies.look() or looked

    def _is_expected(self) -> bool:
        """Return True if a client waits for an answer or the rest of one, or rows wait to enter."""
        return bool(self._waiting) or self._worker.has_rows_waiting() or self._clients.is_sending

    def _log_ended(self) -> None:
        """Log what has ended dataflows, on the worker on which the error arose."""
        for error in self._worker.ended.last(self._worker.ended.count - self._ended_count):
            if error.__cause__ is not None:
                _log.error("worker %d: %s", self._settings.index, full_text_of(error))
        self._ended_count = self._worker.ended.count

    def _tell_clients(self, error: TimelyError) -> None:
        """Send `error` to clients that wait, to those of the last requests, and to those that still ask
        within a moment. A client that asks later finds it, though no worker answers any more.
        """
        for client, number, _ in self._waiting:
            self._outbox.send(client, encode_error(number, error))
        for client in self._callers:
            self._outbox.send(client, encode_error(FAREWELL, error))
        self._waiting = []
        until = time.monotonic() + _DRAIN_SECONDS
        while time.monotonic() < until:
            for client, frames in self._clients.recv_nowait():
                self._outbox.refusing(client, number_of(frames))(error)
            self._mesh.wait(_DRAIN_SECONDS / 5)

    def _gather(self) -> None:
        """Wait until all peers have introduced themselves and agree on what must be the same everywhere."""
        self._server.greet()
        self._await(lambda: not self._server.not_greeted)

    def _await(self, is_so: Callable[[], bool], peers: Sequence[int] = ()) -> None:
        """Step until something is so; raise `PeerError` if it is not in time, because of these peers, or of
        those that have not introduced themselves.
        """
        deadline = time.monotonic() + self._settings.gather_seconds
        while not is_so() and not self._must_stop():
            if not self._worker.step():
                self._wait(IDLE_SECONDS_MAX)
            if time.monotonic() > deadline:
                missing = peers or self._server.not_greeted
                absent = ", ".join(f"{peer} at {self._settings.peers[peer]}" for peer in missing)
                waited = f"worker {self._settings.index} waited {self._settings.gather_seconds:.0f} s"
                raise PeerError(f"{waited} for worker {absent}")

    def _install(self) -> None:
        for first in self._server.begin_dataflows(self._settings.installs):
            answer = first
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
        until = min([self._outbox.held_until, *[later.deadline for _, _, later in self._waiting]])
        seconds = min(seconds, max(0.0, until - time.monotonic()))
        if self._replies is not None:
            seconds = self._replies.within(seconds)
        self._mesh.wait(self._alarm_clock.within(seconds) if self._worker.acting.has_alarms else seconds)
        if self._wake_recv.fileno() in self._mesh.ready:
            self._wake_recv.recv(4096)

    def _serve(self, is_following: bool = False) -> bool:
        self._serve_at = time.monotonic() + _SERVE_SECONDS
        if refused := self._clients.taken_away():
            self._tell_refused(refused)
        requests = self._clients.recv_nowait()
        if self._outbox.has_unsent and (requests or not is_following):
            self._outbox.send_unsent({client for client, _ in requests})
        for client, frames in requests:
            number, head = head_of(frames)
            self._callers[client] = None
            if len(self._callers) > CALLERS_MAX:
                self._callers.popitem(last=False)
            try:
                if refusal := self._clients.refusal(client):
                    raise RefusedError(refusal)
                request, table = decode_request(frames, head, self._server.life)
                self._answer(client, number, request, table)
                if isinstance(request, Decide) and request.waits >= 0.0:
                    number += 1
                    wait = Progress(request.dataflow, "", request.epoch, request.waits)
                    self._answer(client, number, wait, None)
            except FencedError:
                raise  # see `run`
            except BaseException as error:  # nothing that a client sends or a codec raises ends the worker
                if not isinstance(error, TimelyError):
                    error = self._unexpected(error, "read a request")
                self._send_error(client, number, error)
        if self._outbox.has_unsent and self._worker.has_work():
            self._outbox.send_unsent()
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

    def _send_error(self, client: bytes, number: int, error: TimelyError) -> None:
        """Answer with `error`; if that has ended a dataflow, once all workers have ended it."""
        if not (error.ends_dataflow and self._server.is_telling_an_end):
            self._outbox.send(client, encode_error(number, error))
            return

        def ready() -> None:
            if not self._server.is_telling_an_end:
                raise error

        deadline = time.monotonic() + ANSWER_SECONDS_MAX
        self._waiting.append((client, number, Later(ready, lambda: error, deadline)))

    def _tell_refused(self, refused: list[bytes]) -> None:
        """Tell clients that their key was taken away, before `ServerSocket` closes their connections."""
        for client in refused:
            error = RefusedError(self._clients.refusal(client))
            _log.warning("worker %d: %s", self._settings.index, error)
            for waiting, number, _ in self._waiting:
                if waiting == client:
                    self._outbox.send(client, encode_error(number, error))
            self._outbox.send(client, encode_error(FAREWELL, error))
        self._waiting = [entry for entry in self._waiting if entry[0] not in refused]

    def _answer(self, client: bytes, number: int, request: Request, table: pa.Table | None) -> None:
        if table is not None:
            self._giving_back.add(table.num_rows)
        answer, waiting = self._server.handle(request, table), self._waiting
        if isinstance(answer, Reply):
            outbox = self._outbox
            if isinstance(request, Decide) and request.after and self._replies is None:
                outbox.answer_named(client, request, answer)  # on a durable worker each rests on the log
            send = partial(outbox.answer, client, number, answer)
            if isinstance(request, Deliver) and request.counts == IN_OPEN:  # perhaps it is posted
                send = partial(outbox.send_later, client, number, answer, request)
            elif isinstance(request, Decide) and request.waits > 0.0:
                send = partial(outbox.hold, client, number, answer, _HELD_SECONDS)
            self._send(client, number, answer, send, self._replies is not None and rests_on_log(request))
        elif len(waiting) >= WAITING_COUNT_MAX:
            raise MisuseError(f"{WAITING_COUNT_MAX:,} requests wait for an answer already: ask again later")
        elif sum(client == other for other, _, _ in waiting) >= WAITING_OF_ONE_COUNT_MAX:
            why = "requests of this client wait for an answer already: ask one after another"
            raise MisuseError(f"{WAITING_OF_ONE_COUNT_MAX} {why}")
        else:
            waiting.append((client, number, answer))

    def _send(
        self, client: bytes, number: int, reply: Reply, send: Callable[[], None], rests_on_log: bool
    ) -> None:
        """Send an answer, on a durable worker once the log has told what it `rests_on_log`."""
        if reply.table is not None and reply.values.get("next", -1) == -1:  # no further piece follows
            self._giving_back.add_sent(reply.table.num_rows)
        if self._replies is not None and rests_on_log:
            self._replies.send(send, self._outbox.refusing(client, number))
        else:
            send()

    def _answer_waiting(self) -> None:
        still: list[tuple[bytes, int, Later]] = []
        now = time.monotonic()
        for client, number, later in self._waiting:
            try:
                reply: Reply | None = later.ready()
                if reply is None and now >= later.deadline:
                    raise later.late()
                if reply is not None:
                    send = partial(self._outbox.answer, client, number, reply)
                    self._send(client, number, reply, send, not later.is_of_outputs)
                    continue
            except BaseException as error:
                if not isinstance(error, TimelyError) or isinstance(error, PeerError):
                    error = self._unexpected(error, "answered")
                if error.ends_dataflow and self._server.is_telling_an_end and now < later.deadline:
                    # A worker may compute for hours before it hears; the client does not wait for that.
                    deadline = min(later.deadline, now + ANSWER_SECONDS_MAX)
                    still.append((client, number, replace(later, deadline=deadline)))
                else:
                    self._outbox.send(client, encode_error(number, error))
                continue
            still.append((client, number, later))
        self._waiting = still

    def _fail(self, error: TimelyError, status: int) -> int:
        """Tell the launcher, the other workers and clients why this worker ends; return the exit status."""
        self._failure = error if self._stop_reason or not self._must_stop() else None  # a peer ended sooner
        message = full_text_of(error)
        # One worker logs the cause; the others have only lost a peer.
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
        self._beside.close()
        close_vertices([self._worker], self._failure, self._server.installations.prepared.values())
        if self._server.folds is not None:
            self._server.folds.close()
        if self._server.durability is not None:
            self._server.durability.log.close()
        self._mesh.close()
        self._clients.close()
        self._alarm_clock.close()
        self._wake_recv.close()
        self._wake_send.close()
        remove_sockets([*self._settings.listen, *self._listens_at])


def main() -> int:
    """Run the worker that standard input describes; the entry point of processes that a launcher starts."""
    reports = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)
    # Ctrl-C reaches the whole group; the launcher decides what it means.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    bear_interrupts()
    leave_ports_when_forked()
    if not (line := sys.stdin.readline()):
        return EXIT_PEER_LOST

    def report(values: dict[str, object]) -> None:
        with suppress(OSError):  # the launcher is gone; the watch on standard input ends this process
            print(json.dumps(values), file=reports, flush=True)

    settings = WorkerSettings.from_json(line)
    logging.basicConfig(
        level=settings.log_level.upper(), format="%(asctime)s %(name)s %(levelname)s %(message)s"
    )
    sys.path[:0] = [path for path in settings.paths if path not in sys.path]
    with suppress(OSError):  # the directory may be gone, and few functions need it
        os.chdir(settings.directory or ".")
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
    with suppress(OSError):
        while piece := os.read(stream.fileno(), 65_536):
            reason += piece
            if reason == TAKE_OVER.encode():
                process.take_over_soon()
                reason = b""
    process.stop_soon(reason.decode(errors="replace").strip())
    time.sleep(STOP_SECONDS_MAX)
    os._exit(EXIT_PEER_LOST)


def _end(status: int) -> NoReturn:
    """End without taking the interpreter apart, which takes 0.3 s. What user code gave to `atexit` runs."""
    atexit._run_exitfuncs()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(status)


if __name__ == "__main__":
    if sys.argv[1:]:
        sys.exit("this is one worker, started by others: write python -m timely.worker --help")
    _end(main())
