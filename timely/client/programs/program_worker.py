"""What a program that runs on a worker can do there."""

from __future__ import annotations

from collections.abc import Sequence

from ...errors import MisuseError
from ...user_code.short_traces import in_short
from ...user_code.spellings import Spelled
from ..cluster import Cluster, connect
from ..other_spellings import OF_PROGRAM_WORKERS, OF_SEQUENCERS
from .common_order import SEQUENCED, CommonOrder

__all__ = ["ProgramWorker", "Sequencer"]


@in_short
class Sequencer(Spelled):
    """Values of all workers in one order, which is the same on each of them. Made by
    `ProgramWorker.sequencer`.
    """

    _spellings = OF_SEQUENCERS

    def __init__(self, order: CommonOrder, name: str) -> None:
        self._order = order
        self.name = name

    def _missing(self, name: str) -> str:
        return OF_SEQUENCERS.message(f"a sequencer has no {name!r}", name, dir(self))

    def __repr__(self) -> str:
        return f"Sequencer({self.name!r}, worker {self._order.worker} of {self._order.workers})"

    def push(self, value: object) -> None:
        """Put a value in. It comes out on all workers, this one too; values of one worker stay in order."""
        self._order.say(SEQUENCED, self.name, value)

    def pull(self, timeout: float | None = None) -> tuple[int, object]:
        """Return the next value, with the worker that has pushed it: (worker, value). Each worker gets every
        value once. Raise `WaitTimeoutError` if none comes within `timeout` seconds, and `MisuseError` if none
        can come any more, since the programs on all other workers have returned.
        """
        return self._order.next_value(self.name, timeout)


@in_short
class ProgramWorker(Spelled):
    """The worker that a program runs on: the argument of the function that `timely.run` runs.

    index     its number, from 0 on
    workers   how many there are
    """

    _internal = frozenset({"close"})
    _spellings = OF_PROGRAM_WORKERS

    def __init__(self, order: CommonOrder, cluster: Cluster | Sequence[str]) -> None:
        self._order = order
        self._addresses = () if isinstance(cluster, Cluster) else cluster
        self._cluster = cluster if isinstance(cluster, Cluster) else None
        self.index = order.worker
        self.workers = order.workers

    def _missing(self, name: str) -> str:
        return OF_PROGRAM_WORKERS.message(f"the worker of a program has no {name!r}", name, dir(self))

    def __repr__(self) -> str:
        return f"ProgramWorker({self.index} of {self.workers})"

    @property
    def cluster(self) -> Cluster:
        """The cluster that this worker belongs to, as any client has it."""
        if self._cluster is None:
            self._cluster = connect(*self._addresses)
        return self._cluster

    def barrier(self, timeout: float | None = None) -> None:
        """Return once the programs on all workers have called this as often. Raise `WaitTimeoutError` after
        `timeout` seconds, and `MisuseError` if a program has returned and will never call it.
        """
        self._order.meet(timeout)

    def sequencer(self, name: str = "") -> Sequencer:
        """Return the sequencer of that name: one queue of values that all workers share."""
        if not isinstance(name, str):
            raise MisuseError(f"a sequencer has a name, a text, not {name!r:.80}")
        return Sequencer(self._order, name)

    def close(self) -> None:
        """Close the connection to the cluster, if this made one. Called when the program has returned."""
        if self._addresses and self._cluster is not None:
            self._cluster.close()
