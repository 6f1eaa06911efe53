"""A program of a simulated durable cluster whose client goes on after restarts."""

from __future__ import annotations

from timely.client.cluster import Cluster
from timely.errors import PeerError, TimelyError

from .baton import SimulatedProcess
from .judging import WrongAnswer
from .program import Program

__all__ = ["ResumingProgram"]


class ResumingProgram(Program):
    """A program whose client goes on after restarts; a supervisor starts the next incarnations."""

    def _start(self) -> None:
        baton = self.machine.baton
        if not self.machine.clusters:
            self._workers = self.random.choice([1, 2, 3])
            baton.start(SimulatedProcess("supervisor"), "supervisor", self._supervise)
        for _ in range(40):
            baton.wait_until(lambda: bool(self.machine.clusters) and self.machine.cluster.is_ready, 1_000.0)
            try:
                self._cluster = Cluster(self.machine.connect_for_good())
                return
            except PeerError:
                baton.wait_until(None, 0.1)
        raise WrongAnswer("no incarnation begins")

    def _supervise(self) -> None:
        while True:
            self.restarts += 1
            self.on_restart()
            self.machine.start(self._workers)
            self.machine.baton.wait_until(
                lambda: self.machine.is_crashing or self.machine.cluster.is_lost, float("inf")
            )
            if self.machine.is_crashing or self.random.random() < 0.3:
                self.machine.crash(loses=self.crashes_with_loss and self.random.random() < 0.7)
            else:
                self.machine.end(self.machine.cluster)

    def _failed(self, error: TimelyError) -> None:
        if isinstance(error, PeerError):
            raise WrongAnswer("the client was to go on") from error
        self._wait_for_the_disk()

    def restart(self, is_alive: bool = False) -> None:
        """Let the supervisor start the next incarnation."""
        number = len(self.machine.clusters)
        self.machine.cluster.workers[0].is_killed = True
        self.machine.baton.wait_until(lambda: len(self.machine.clusters) > number, 100.0)
