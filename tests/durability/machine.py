"""Worker processes of a durable cluster, their disk, and what connects them with each other and with clients.
All of them are in this process, and take turns as a seed decides.

The processes run the code of real ones, `WorkerProcess` and the thread of its log. Only what is at the rim is
simulated: the disk, sockets, threads, and the clock. Each process has symbols of its own.

    Machine            the disk, and the incarnations of the cluster; the last one serves clients
    SimulatedCluster   the processes of one incarnation
"""

from __future__ import annotations

import errno
import itertools
import socket
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial
from threading import Lock
from types import SimpleNamespace

import pytest
from simulated_store import SimulatedDisk, SimulatedStore

from differential.columns.symbols.table import SymbolTable
from differential.columns.worker_symbols import SYMBOLS
from progress.times.time_words import TimeLayout
from timely.client.connection import greeted
from timely.client.remote import channel as channel_module
from timely.client.remote import resuming as resuming_module
from timely.client.remote.resuming import DurableWorkers
from timely.client.remote.workers import RemoteWorkers
from timely.durable import log as log_module
from timely.durable.log import Log
from timely.errors import PeerError
from timely.user_code.trust import trust
from timely.wire.batch import Frame, bytes_of
from timely.worker import process as process_module
from timely.worker.durability import beginning as beginning_module
from timely.worker.durability import replies as replies_module
from timely.worker.process import WorkerProcess
from timely.worker.server import Server
from timely.worker.settings import WorkerSettings
from timely.worker.tasks import unused_words as unused_words_module

from .baton import Baton, Killed, SimulatedCondition, SimulatedProcess, Turn

__all__ = ["Machine", "SimulatedCluster", "simulated"]

TOKEN = "of the simulation"
NEWEST = "newest"
"""In an address: a client reaches whichever incarnation is the newest as it connects."""

_FEW_ENOUGH = 0.3
"""How often a step of a worker, or an operation of its disk, lets others go on."""

Message = list[memoryview]


class WorkerInSimulation(SimulatedProcess):
    """One worker process: its symbols, and what it has reported."""

    def __init__(self, cluster: SimulatedCluster, index: int) -> None:
        super().__init__(f"incarnation {cluster.number} worker {index}")
        self.cluster = cluster
        self.index = index
        self.reports: list[dict[str, object]] = []
        self.requests: deque[tuple[bytes, Message]] = deque()
        self.is_awake = False
        self.store = SimulatedStore(cluster.machine.disk, self._before)
        self._symbols = dict(vars(SymbolTable(full_from=cluster.machine.symbols_from)))
        self._others: dict[str, object] = {}

    def on_enter(self) -> None:
        """Its own symbols are there."""
        self._others = dict(vars(SYMBOLS))
        vars(SYMBOLS).update(self._symbols)

    def on_leave(self) -> None:
        """And gone."""
        self._symbols = dict(vars(SYMBOLS))
        vars(SYMBOLS).update(self._others)

    @property
    def is_ready(self) -> bool:
        """True once it serves clients."""
        return any("ready" in report for report in self.reports)

    @property
    def is_lost(self) -> bool:
        """True if it has ended."""
        return self.is_killed or (bool(self.turns) and self.is_over)

    def _before(self, what: str, path: str) -> None:
        if self.is_killed:
            raise Killed
        self.cluster.machine.on_operation(self, what, path)


class SimulatedCluster:
    """The processes of one incarnation, and the messages between them."""

    def __init__(self, machine: Machine, number: int, workers: int) -> None:
        self.machine = machine
        self.number = number
        self.workers = [WorkerInSimulation(self, index) for index in range(workers)]
        self.messages: dict[tuple[int, int], deque[Message]] = {
            (source, target): deque() for source in range(workers) for target in range(workers)
        }
        self.answers: dict[tuple[bytes, int], deque[Message]] = {}
        """Messages to clients, by client and worker."""

    @property
    def addresses(self) -> list[str]:
        """Where clients reach the workers."""
        return [f"ipc://{self.number}/{worker.index}" for worker in self.workers]

    @property
    def is_ready(self) -> bool:
        """True once all workers serve clients."""
        return all(worker.is_ready for worker in self.workers)

    @property
    def is_lost(self) -> bool:
        """True if a worker has ended."""
        return any(worker.is_lost for worker in self.workers)

    def start(self) -> None:
        """Start the processes."""
        addresses = tuple(f"ipc://{self.number}/mesh-{worker.index}" for worker in self.workers)
        for worker in self.workers:
            settings = WorkerSettings(
                worker.index,
                len(self.workers),
                (addresses[worker.index],),
                addresses,
                self.addresses[worker.index],
                gather_seconds=60.0,
                check_progress=self.machine.checks,
                token=TOKEN,
                durable="simulated",
            )
            self.machine.baton.start(worker, "worker", partial(_run, self.machine, settings))


def _run(machine: Machine, settings: WorkerSettings) -> None:
    worker = machine.acting
    assert isinstance(worker, WorkerInSimulation)
    trust(settings.token)
    process = WorkerProcess(settings, worker.reports.append)
    process.run()


class Machine:
    """The disk, and all incarnations; `on_crash` decides at each operation of the disk what happens."""

    def __init__(self, seed: int) -> None:
        self.baton = Baton(seed)
        self.random = self.baton.random
        self.disk = SimulatedDisk()
        self.checks = self.random.random() < 0.2
        """Whether workers check their progress tracking after each step."""
        self.segment_bytes = self.random.choice([1 << 26, 4_000, 300])
        self.symbols_from = self.random.choice([1 << 20, 8])
        """From so many symbols on workers forget those that nobody needs."""
        self.epoch_bits = self.random.choice([None, None, 3])
        """How many bits words have for epochs: with few of them the epochs that they count from move."""
        self.operations = 0
        self.clusters: list[SimulatedCluster] = []
        self.before: Callable[[WorkerInSimulation, str, str], None] = lambda worker, what, path: None
        self.failing = 0
        """For so many operations the disk fails yet."""
        self.is_crashing = False

    @property
    def acting(self) -> SimulatedProcess:
        """The process whose turn it is."""
        return self.baton.holder.process

    @property
    def cluster(self) -> SimulatedCluster:
        """The newest one."""
        return self.clusters[-1]

    def on_operation(self, worker: WorkerInSimulation, what: str, path: str) -> None:
        """Called before each operation of the disk."""
        self.operations += 1
        self.before(worker, what, path)
        if self.failing:
            self.failing -= 1
            if not self.failing:
                self.disk.failing.clear()
                self.disk.room = 1 << 40
        if self.is_crashing:
            raise Killed
        self.baton.pause()

    def start(self, workers: int) -> SimulatedCluster:
        """Start the next incarnation, whatever has become of those before; return it once it serves clients,
        or one of its processes has ended.
        """
        cluster = SimulatedCluster(self, len(self.clusters) + 1, workers)
        self.clusters.append(cluster)
        cluster.start()
        self.baton.wait_until(lambda: cluster.is_ready or cluster.is_lost or self.is_crashing, 1_000.0)
        return cluster

    def connect(self) -> RemoteWorkers:
        """Return a client of the newest incarnation, which does not go on after a restart."""
        workers = RemoteWorkers(self.cluster.addresses, token=TOKEN)
        workers.incarnation = greeted(workers)[0].incarnation
        return workers

    def connect_for_good(self) -> DurableWorkers:
        """Return a client that goes on after restarts."""
        (hello, *_) = greeted(self.connect())
        addresses = [f"ipc://{NEWEST}/{worker.index}" for worker in self.cluster.workers]
        return DurableWorkers(addresses, token=TOKEN, incarnation=hello.incarnation)

    def crash(self, loses: bool) -> None:
        """End all processes; with `loses`, the disk loses what was not synced, or some of it."""
        for cluster in self.clusters:
            self.end(cluster)
        if loses:
            self.disk.crash(self.random.randrange(1 << 30))
        else:
            self.disk.holder = ""
        self.failing = 0
        self.disk.failing.clear()
        self.disk.room = 1 << 40
        self.is_crashing = False

    def fail_for(self, operations: int) -> None:
        """Let the disk fail for a while, in some way."""
        self.failing = operations
        how = self.random.randrange(3)
        if how == 0:
            self.disk.failing["sync"] = errno.EIO
        elif how == 1:
            self.disk.failing["write"] = errno.EIO
        else:
            self.disk.room = self.random.randrange(200)

    def stop(self, cluster: SimulatedCluster, is_stopped: bool = True) -> None:
        """Let the processes of an incarnation do nothing, as SIGSTOP does; or wake them."""
        for worker in cluster.workers:
            worker.is_stopped = is_stopped

    def end(self, cluster: SimulatedCluster) -> None:
        """End the processes of an incarnation."""
        for worker in cluster.workers:
            worker.is_killed = True
        for worker in cluster.workers:
            self.baton.end(worker)


class _Mesh:
    """In place of `WorkerMesh`."""

    def __init__(self, machine: Machine, index: int, listen: Sequence[str]) -> None:
        worker = machine.acting
        assert isinstance(worker, WorkerInSimulation)
        self._machine = machine
        self._worker = worker
        self._cluster = worker.cluster
        self._index = index
        self._lost_at: dict[int, float] = {}
        self.addresses = list(listen)
        self.has_other_news = False
        self.ready: Sequence[int] = []

    def join(self, peers: Mapping[int, str]) -> None:
        pass

    def watch(self, *sources: object) -> None:
        pass

    def send(self, peer: int, frames: Sequence[Frame]) -> None:
        if self._worker.is_killed:
            raise Killed
        self._cluster.messages[self._index, peer].append([memoryview(bytes(frame)) for frame in frames])

    def recv_nowait(self) -> list[tuple[int, Message]]:
        if self._machine.random.random() < _FEW_ENOUGH:
            self._machine.baton.pause()
        arrived: list[tuple[int, Message]] = []
        for peer in range(len(self._cluster.workers)):
            queue = self._cluster.messages[peer, self._index]
            for _ in range(self._machine.random.randint(0, len(queue))):
                arrived.append((peer, queue.popleft()))
            if not queue and self._cluster.workers[peer].is_lost and self._is_noticed(peer):
                raise PeerError(f"worker {self._index} lost worker {peer}: its process has ended")
        return arrived

    def wait(self, timeout_seconds: float) -> None:
        self._machine.baton.wait_until(self._has_news, timeout_seconds)
        self.has_other_news = bool(self._worker.requests)
        # The bell of the real process is never rung here: what wakes a worker is `is_awake`.
        self._worker.is_awake = False

    def lend(self) -> None:
        return None

    def take_back(self) -> tuple[int, int]:
        return 0, 0

    def close(self) -> None:
        pass

    def _has_news(self) -> bool:
        queues = (self._cluster.messages[peer, self._index] for peer in range(len(self._cluster.workers)))
        return (
            self._worker.is_awake
            or bool(self._worker.requests)
            or any(queues)
            or any(worker.is_lost for worker in self._cluster.workers)
        )

    def _is_noticed(self, peer: int) -> bool:
        """A loss is noticed a moment later."""
        now = self._machine.baton.now
        return now >= self._lost_at.setdefault(peer, now + self._machine.random.random() / 100)


class _ServerSocket:
    """In place of `ServerSocket`."""

    is_sending = False
    sources: tuple[int, ...] = ()
    patience = float("inf")

    def __init__(self, machine: Machine, address: str) -> None:
        worker = machine.acting
        assert isinstance(worker, WorkerInSimulation)
        self._machine = machine
        self._worker = worker
        self.address = address

    def recv_nowait(self) -> list[tuple[bytes, Message]]:
        requests = list(self._worker.requests)
        self._worker.requests.clear()
        return requests

    def send(self, client: bytes, *answers: Sequence[Frame]) -> None:
        if self._worker.is_killed:
            raise Killed
        queue = self._worker.cluster.answers.setdefault((client, self._worker.index), deque())
        for frames in answers:
            queue.append([memoryview(bytes(bytes_of(frame))) for frame in frames])

    def refusal(self, client: bytes) -> str:
        return ""

    def taken_away(self) -> list[bytes]:
        return []

    def close(self) -> None:
        pass


_clients = itertools.count()


class _ClientSockets:
    """In place of `ClientSockets`."""

    def __init__(self, machine: Machine, addresses: Sequence[str]) -> None:
        number = addresses[0].split("/")[2]
        self._machine = machine
        self._is_for_good = number == NEWEST
        self._cluster = machine.cluster if self._is_for_good else machine.clusters[int(number) - 1]
        self._name = b"client %d" % next(_clients)

    def send(self, worker: int, frames: Sequence[Frame]) -> None:
        message = [memoryview(bytes(bytes_of(frame))) for frame in frames]
        self._cluster.workers[worker].requests.append((self._name, message))

    def has_unsent(self, worker: int) -> bool:
        return False

    def choose(self, worker: int) -> None:
        pass

    def recv_nowait(self, worker: int) -> Message | None:
        queue = self._cluster.answers.get((self._name, worker))
        return queue.popleft() if queue else None

    def has_arrived(self) -> bool:
        return False

    def heard(self, worker: int) -> list[Message]:
        return []

    def loss(self, worker: int) -> str:
        has_answers = self._cluster.answers.get((self._name, worker))
        return "its process has ended" if self._cluster.workers[worker].is_lost and not has_answers else ""

    def is_joined(self, worker: int) -> bool:
        if self._is_for_good and self._cluster.is_lost:
            self._cluster = self._machine.cluster  # sockets connect again by themselves
        return not self.loss(worker)

    def refusal(self, worker: int) -> str:
        return ""

    def is_losing(self) -> bool:
        return self._cluster.is_lost

    def has_broken(self, worker: int) -> bool:
        return self._cluster.workers[worker].is_lost

    def forgive(self, worker: int) -> None:
        pass

    def wait(self, timeout_seconds: float) -> None:
        workers = range(len(self._cluster.workers))
        answers = self._cluster.answers
        self._machine.baton.wait_until(
            lambda: any(answers.get((self._name, worker)) for worker in workers),
            timeout_seconds,
        )

    def watch(self, descriptor: int) -> None:
        pass

    def unwatch(self, descriptor: int) -> None:
        pass

    def close(self) -> None:
        pass


class _LogThread:
    """In place of `Thread`, for the thread of a log."""

    def __init__(self, machine: Machine, target: Callable[[], None], name: str, daemon: bool) -> None:
        self._machine = machine
        self._target = target
        self._turn: Turn | None = None

    def start(self) -> None:
        self._turn = self._machine.baton.start(self._machine.acting, "log", self._target)

    def join(self, timeout: float | None = None) -> None:
        turn = self._turn
        assert turn is not None
        self._machine.baton.wait_until(lambda: turn.is_over, float("inf") if timeout is None else timeout)


def few_epochs(patch: pytest.MonkeyPatch, bits: int) -> None:
    """Let words of times have so few bits for epochs."""
    patch.setattr(TimeLayout, "default", staticmethod(lambda levels: TimeLayout((bits, *[9] * (levels - 1)))))


@contextmanager
def simulated(machine: Machine) -> Iterator[Machine]:
    """Let workers and clients that begin within the block belong to `machine`."""

    class Process(WorkerProcess):
        def _wake(self) -> None:
            worker = machine.acting
            assert isinstance(worker, WorkerInSimulation)
            worker.is_awake = True

    def store_of(folder: str) -> SimulatedStore:
        worker = machine.acting
        assert isinstance(worker, WorkerInSimulation)
        return worker.store

    def condition(lock: Lock) -> SimulatedCondition:
        return SimulatedCondition(machine.baton, lock)

    def forget(group: object, forget: Callable[[], object]) -> bool:
        forget()  # no other process has these symbols
        return True

    def socket_pair() -> tuple[socket.socket, socket.socket]:
        one, other = socket.socketpair()
        return sockets.enter_context(one), sockets.enter_context(other)  # killed processes close none

    clock = SimpleNamespace(
        monotonic=lambda: machine.baton.now, sleep=lambda seconds: machine.baton.wait_until(None, seconds)
    )
    with ExitStack() as sockets, pytest.MonkeyPatch.context() as patch:
        if machine.epoch_bits is not None:
            few_epochs(patch, machine.epoch_bits)
        patch.setattr(process_module, "WorkerMesh", lambda index, listen, *_: _Mesh(machine, index, listen))
        patch.setattr(process_module, "ServerSocket", lambda address, *_: _ServerSocket(machine, address))
        patch.setattr(process_module, "time", clock)
        patch.setattr(replies_module, "time", clock)
        patch.setattr(process_module, "socket", SimpleNamespace(socketpair=socket_pair))
        patch.setattr(process_module, "Server", partial(Server, clock=clock.monotonic))
        patch.setattr(f"{__name__}.WorkerProcess", Process)
        patch.setattr(unused_words_module, "forget_alone", forget)
        patch.setattr(beginning_module, "FolderStore", store_of)
        patch.setattr(beginning_module, "Log", partial(Log, segment_bytes=machine.segment_bytes))
        patch.setattr(log_module, "Thread", lambda **about: _LogThread(machine, **about))
        patch.setattr(log_module, "Condition", condition)
        patch.setattr(log_module, "monotonic", clock.monotonic)
        patch.setattr(
            channel_module, "ClientSockets", lambda addresses, *_: _ClientSockets(machine, addresses)
        )
        patch.setattr(channel_module, "time", clock)
        patch.setattr(resuming_module, "time", clock)
        try:
            yield machine
        finally:
            machine.before = lambda worker, what, path: None
            machine.is_crashing = False
            machine.baton.end_all()
