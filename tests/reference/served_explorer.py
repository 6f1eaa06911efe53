"""The explorer of workers with their servers: clients install, end and replace dataflows, and a dataflow may
fail, at any moment.

What is judged at each end, beside progress tracking on the way: a dataflow runs on all workers or on none;
all workers have the reason of the same worker for its end; and nobody waits for an answer, or keeps anything
of a dataflow that has ended, or that was refused.

Each request is made once, and nobody waits for its reply: replies are tested elsewhere. A worker that builds
the same dataflow in several states gets the same stages each time, so that these states can be equal.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import ClassVar

import pyarrow as pa
import pytest

from timely import Dataflow
from timely.building.builders import Builder, build_dataflow
from timely.building.freeze import FrozenDataflow
from timely.errors import TimelyError
from timely.running import core
from timely.running.checking.explorer import Explorer
from timely.running.checking.reached import Client, Doing, Door, Explored, Local, Move, Reached
from timely.running.core import Worker
from timely.running.instance import Instance
from timely.wire.handshake import encode_control
from timely.wire.requests import Request
from timely.worker import installation
from timely.worker.server import Server

__all__ = ["Asks", "ServedExplorer"]


@dataclass(frozen=True, eq=False)
class _OfServer:
    """Something that happens to the server of a worker."""

    def act(self, instance: Instance) -> None:
        """Raise: `ServedExplorer` lets it happen."""
        raise AssertionError(f"{self} needs a server, and {instance.worker} has none")

    def happen(self, server: Server) -> None:
        """Let it happen."""
        raise NotImplementedError


@dataclass(frozen=True, eq=False)
class Asks(_OfServer):
    """A request of a client. If the server refuses it, it changes nothing."""

    request: Request
    table: pa.Table | None = None

    def __str__(self) -> str:
        return f"a client asks: {self.request}"

    def happen(self, server: Server) -> None:
        """Make the request."""
        try:
            server.handle(self.request, self.table)
        except TimelyError:
            pass


@dataclass(frozen=True, eq=False)
class _Looks(_OfServer):
    """What a server does behind each step of its worker while dataflows are replaced."""

    def __str__(self) -> str:
        return "see how far new versions have come"

    def happen(self, server: Server) -> None:
        """Do it."""
        server.replacements.look()


class _Built:
    """A dataflow that is frozen once for each name."""

    def __init__(self, dataflow: Dataflow) -> None:
        self._dataflow = dataflow
        self._frozen: dict[str, FrozenDataflow] = {}
        self.name = dataflow.name

    def freeze(self) -> FrozenDataflow:
        """Return it, frozen under its present name."""
        self._dataflow.name = self.name
        if self.name not in self._frozen:
            self._frozen[self.name] = self._dataflow.freeze()
        return self._frozen[self.name]


def server_of(worker: Worker) -> Server:
    """Return the server that a worker belongs to."""
    server = getattr(worker.on_control, "__self__", None)
    assert isinstance(server, Server), "each worker has a server"
    return server


def _no_time() -> float:
    return 0.0


class ServedExplorer(Explorer):
    """Explores what clients do with dataflows. `expected` of its scenario is what `result` makes of all
    dataflows that run at an end; with `closes` all of these are complete then.
    """

    closes: ClassVar[bool] = True
    _LOOKS: ClassVar[_Looks] = _Looks()

    def run(self) -> Explored:
        """Visit all states, the nearest first."""
        with self._remembering():
            return super().run()

    @contextmanager
    def _remembering(self) -> Iterator[None]:
        built: dict[tuple[int, str, str], _Built] = {}

        def build(builder: Builder, name: str, arguments: Mapping[str, object]) -> _Built:
            key = self._acting, name, repr(sorted(arguments.items()))
            if key not in built:
                built[key] = _Built(build_dataflow(builder, name, arguments))
            built[key].name = name
            return built[key]

        with pytest.MonkeyPatch.context() as patches:
            patches.setattr(installation, "build_dataflow", build)
            patches.setattr(core, "collect_dropped", lambda is_now=True: None)  # nothing is dropped for good
            yield

    def _install(self, worker: Worker) -> None:
        self._acting = worker.index
        super()._install(worker)
        server = Server(worker, f"worker {worker.index}", _no_time)
        for number, instance in worker.instances.items():
            assert server.installations.reserve() == number
            server.installations.specs[number] = instance.frozen.name
        for peer in range(self._size):
            if peer != worker.index:
                other = Server(Worker(peer, self._size, Door({})), f"worker {peer}", _no_time)
                server._on_control(peer, memoryview(encode_control(other._greeting)))

    # -- going from state to state --

    def _moves(self, state: Reached) -> list[Move]:
        moves = super()._moves(state)
        for who, local in enumerate(state.workers):
            is_busy = self._orderly and local.enabled
            if local.worker.on_step is not None and not is_busy:
                if self._act(local, self._LOOKS, None) != (local, ()):
                    moves.append((who, self._LOOKS))
        return moves

    def _fork(self, local: Local, door: Door) -> Worker:
        return local.worker.fork(door, server_of(local.worker).installations.prepared.values())

    def _do(self, worker: Worker, doing: Doing) -> None:
        self._acting = worker.index
        if isinstance(doing, _OfServer):
            doing.happen(server_of(worker))
        elif not (isinstance(doing, Client) and doing.dataflow in worker.ended):
            super()._do(worker, doing)

    def _instances(self, worker: Worker) -> list[Instance]:
        return [*worker.instances.values(), *server_of(worker).installations.prepared.values()]

    def _compared(self, worker: Worker) -> object:
        server = server_of(worker)
        built, versions = server.installations, server.replacements
        return (
            worker,
            (built._offers, built.prepared, built._replaces, built._reserved, sorted(built.specs)),
            (versions._under_way, versions._inputs_of, versions._outputs_of, sorted(versions._lost)),
            server._ends_unheard,
        )

    # -- judging --

    def _judge_end(self, state: Reached) -> None:
        workers = [local.worker for local in state.workers]
        running = [sorted(worker.instances) for worker in workers]
        if running != [running[0]] * self._size:
            self._fail(state, f"workers run different dataflows: {running}", [])
        ended = [(sorted(worker.ended), worker.ended._ranks) for worker in workers]
        if ended != [ended[0]] * self._size:
            self._fail(state, f"workers have different reasons for ends: {ended}", [])
        for worker in workers:
            server = server_of(worker)
            built = server.installations
            kept = {
                "built without a verdict": built.prepared or built._offers or built._replaces,
                "early messages": worker._early,
                "ends of which others have not confirmed that they know": server._ends_unheard,
                "replacements": server.replacements._under_way,
                "what it tells of progress": worker._broadcasters.keys() - worker.instances.keys(),
            }
            for what, left in kept.items():
                if left:
                    self._fail(
                        state, f"nothing can happen, and worker {worker.index} keeps {what}: {left}", []
                    )
        if self.closes:
            super()._judge_end(state)
        else:
            self.explored.ends += 1
            self._judge_result(state)
