"""Workers that follow a durable cluster, on a simulated disk, and take over."""

from __future__ import annotations

from types import TracebackType

from dataflows import settle
from durable_workers import SECONDS, DurableWorkers, Gate
from simulated_store import SimulatedDisk, SimulatedStore

from timely.durable.incarnations import announce, hello_of
from timely.durable.log import Log
from timely.running.core import Worker
from timely.wire.requests import Reply
from timely.wire.transport.memory import MemoryNetwork
from timely.worker.answers.later import Later
from timely.worker.durability.durability import Durability
from timely.worker.following.following import Following
from timely.worker.server import Server

__all__ = ["Followers", "as_cluster"]


class Followers:
    """Workers that follow the cluster on a disk, as if they were in processes of their own."""

    def __init__(self, disk: SimulatedDisk, count: int = 1) -> None:
        self.store = SimulatedStore(disk)
        self.network = MemoryNetwork(count)
        transports = [self.network.transport(index) if count > 1 else None for index in range(count)]
        self.workers = [Worker(index, count, each) for index, each in enumerate(transports)]
        self.servers = [Server(worker, f"worker {worker.index}") for worker in self.workers]
        self.following = [Following(worker, self.store) for worker in self.workers]
        for server, following in zip(self.servers, self.following, strict=True):
            server.installations.make_durable(following)
            server.greet()
        self.settle()
        self.logs: list[Log] = []

    def __enter__(self) -> Followers:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for log in self.logs:
            log.close()

    def settle(self) -> None:
        """Do all work."""
        settle(self.workers)
        while self.network.in_flight():
            settle(self.workers)

    def begin(self, worker: int) -> Reply | Later | None:
        """Let the next dataflow begin on one worker, if there is one that has not."""
        following = self.following[worker]
        if following.next_flow() is None:
            following.look()
        flow = following.next_flow()
        return None if flow is None else self.servers[worker].begin_again(flow, following.begun)

    def follow(self) -> None:
        """Do all that there is to do."""
        moved = True
        while moved:
            begun = [self.begin(worker) for worker in range(len(self.workers))]
            self.settle()
            looked = [each.next_flow() is None and each.look() for each in self.following]
            self.settle()
            moved = any(looked) or any(each is not None for each in begun)

    def take_over(self) -> list[Durability]:
        """Become the next incarnation."""
        count = len(self.workers)
        present = announce(self.store, count)
        self.logs = [Log(self.store, present.cluster, present.number, index) for index in range(count)]
        taken: list[Durability] = []
        for worker, server, log in zip(self.workers, self.servers, self.logs, strict=True):
            log.wait(log.add(hello_of(present, worker.index)), SECONDS)
            durability = Durability(worker, self.store, present, log, begins_together=True)
            server.make_durable(durability)
            following = self.following[worker.index]
            durability.adopt(following.finish(present, durability.past))
            taken.append(durability)
        for server in self.servers:
            server.greet()
        self.settle()
        for answers in zip(*[server.begin_dataflows([]) for server in self.servers], strict=True):
            self.settle()
            assert all(isinstance(each, Reply) or each.ready() is not None for each in answers)
        return taken


def as_cluster(followers: Followers, durable: list[Durability]) -> DurableWorkers:
    """Workers that have taken over."""
    taken = DurableWorkers.__new__(DurableWorkers)
    taken.store, taken.network = followers.store, followers.network
    taken.workers, taken.servers, taken.logs = followers.workers, followers.servers, followers.logs
    taken.gate, taken.durable = Gate(followers.store), durable
    return taken
