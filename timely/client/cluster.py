"""What a program does with a cluster: install dataflows, feed them, read their answers.

    with timely.connect(workers=2) as cluster:
        flow = cluster.install("my_queries:mentions")
        flow.input("mentions").insert(table)
        flow.seal()
        changes = flow.output("components").changes()

The same for workers in this process, in processes that `connect` starts, and in a cluster that runs already.
"""

from __future__ import annotations

import re
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Self, cast

from ..building.builders import (
    Builder,
    build_dataflow,
    check_not_importing,
    is_marked,
    load_builder,
    load_function,
    spec_of,
)
from ..building.declarations import Description
from ..errors import MisuseError, PeerError, TimelyError
from ..failure import add_note
from ..limits import INSTALL_SECONDS_MAX, REPLY_SECONDS_MAX, SILENCE_SECONDS_DEFAULT
from ..user_code.short_traces import in_short, short
from ..wire.requests import Describe, Hello, Install, Replace, Reply, Shutdown, Stats, Value
from .installed import PATIENCE_SECONDS, Workers, after_work
from .session import Flow

if TYPE_CHECKING:
    from ..wire.keys import ClientKeys, ClusterKeys
    from .connection import append_target

__all__ = ["Cluster", "connect"]

_Traveller = Callable[[Description], tuple[str, Mapping[str, Value]]]
"""From a description to a builder that workers have, by name, and its arguments."""

_GOES_ON_SECONDS = 1.0
"""For workers in this process to say whether a dataflow goes on that could not be replaced."""


@in_short
class Cluster:
    """A running cluster. Made by `connect`; a context manager that ends what `connect` has started."""

    def __init__(self, workers: Workers) -> None:
        self._workers = workers

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            self.close()
        except TimelyError as second:
            if error is None:
                raise
            add_note(error, f"closing the cluster there was another error, {type(second).__name__}: {second}")

    def __repr__(self) -> str:
        """How many workers, and where; whether it can still be asked."""
        end = f", {self._workers.end}" if self._workers.end else ""
        return f"<cluster of {self.workers} worker{'s' * (self.workers != 1)}{self._workers.kind}{end}>"

    @property
    def workers(self) -> int:
        """How many workers there are."""
        return self._workers.count

    @property
    def addresses(self) -> list[str]:
        """Where other clients reach the workers, in order; empty for an embedded cluster."""
        return list(self._workers.addresses)

    def install(self, build: str | Builder, **arguments: Value) -> Flow:
        """Build and start a dataflow on all workers.

        `build` is "module:function", imported by every worker, or a function. One that `@timely.builder`
        marks is imported by workers in other processes, and called there. Any other one is called here, once,
        and what it has asked of collections travels: so a query can be written in a notebook, a REPL or
        inside of a function. Its own functions go by import name if they have one; otherwise as source with
        the plain values that they use, to workers that `connect` has started, and to no others. `arguments`
        are what msgpack holds (of a query that travels or is embedded: anything).

        Raises `GraphError` if the workers build different dataflows, naming the first stage that differs;
        `VertexError` if the builder fails. It is installed on all workers or on none.
        """
        return Flow(self._workers, self._installed(build, arguments))

    def _installed(self, build: str | Builder, arguments: dict[str, Value]) -> Reply:
        _check_build("install", build)
        install_here = getattr(self._workers, "install", None)
        if install_here is not None:
            began = time.monotonic()
            here: Reply = install_here(*_built_here(build), arguments)
            for tell in after_work[:]:
                tell(began, False)
            return here
        spec, arguments = self._travelling(build, arguments)
        # Worker 0 gives up first, and its error says who was late.
        (reply,) = self._workers.ask(
            [(0, Install(spec, arguments), None)], INSTALL_SECONDS_MAX + REPLY_SECONDS_MAX
        )
        return reply

    def replace(
        self,
        of: Flow | int | str,
        build: str | Builder,
        /,
        *,
        timeout: float | None = None,
        **arguments: Value,
    ) -> Flow:
        """Let a new version take the place of a running dataflow (a `Flow`, its number, or its name), and
        return it once it has.

        `build` and `arguments` are as in `install`. The new version runs beside the old one until it has
        caught up, and takes over at an epoch that all workers agree on: the name, and what clients append
        and read from there on, also those who know the old one only. Inputs that both have begin with what
        the old one holds, which must export them (`edges.export("edges")`); others begin empty. In that
        epoch an output that both have changes by the difference between the two. An input or output that is
        not there any more, or has other columns, is a `ReplacedError` for who asks for it.

        If the new version cannot be built, fails, or has not caught up after `timeout` seconds, the old one
        goes on as it was.
        """
        if not isinstance(of, Flow | int | str):
            raise MisuseError(
                f"replace takes a running dataflow first (a flow, its number or its name), not {of!r:.200}; "
                "then comes the builder of its new version"
            )
        old = of.index if isinstance(of, Flow) else of if isinstance(of, int) else self.flow(of).index
        try:
            _check_build("replace", build)
            return Flow(self._workers, self._replaced(old, build, arguments, timeout))
        except TimelyError as error:
            if self._goes_on(old):
                add_note(error, f"dataflow {old}, which was to be replaced, goes on as it was")
            raise

    def _replaced(
        self, old: int, build: str | Builder, arguments: dict[str, Value], timeout: float | None
    ) -> Reply:
        install_here = getattr(self._workers, "install", None)
        if install_here is not None:
            here: Reply = install_here(*_built_here(build), arguments, old, timeout)
            return here
        spec, arguments = self._travelling(build, arguments)
        seconds = -1.0 if timeout is None else max(0.0, float(timeout))
        patience = PATIENCE_SECONDS if timeout is None else seconds
        (reply,) = self._workers.ask(
            [(0, Replace(old, spec, arguments, seconds), None)],
            INSTALL_SECONDS_MAX + REPLY_SECONDS_MAX + patience,
        )
        return reply

    def _goes_on(self, dataflow: int) -> bool:
        """Whether it runs, and no other stands for it."""
        # In this process another thread may be at work: who has given a time is not to wait for that.
        seconds = REPLY_SECONDS_MAX if self._workers.addresses else _GOES_ON_SECONDS
        try:
            (reply,) = self._workers.ask([(0, Describe(dataflow), None)], seconds)
        except TimelyError:
            return False
        return reply.integer("dataflow") == dataflow

    def _travelling(self, build: str | Builder, arguments: dict[str, Value]) -> tuple[str, dict[str, Value]]:
        """What workers in other processes are asked to build."""
        if isinstance(build, str):
            return build, arguments
        if is_marked(build):
            return spec_of(build), arguments
        name = getattr(build, "__qualname__", "query")
        flow = build_dataflow(build, name, arguments)
        if not flow.descriptions or len(flow.stages) != len(flow.inputs) + len(flow.imports):
            raise MisuseError(
                f"{name} builds stages by hand, which cannot be sent to workers. Put it at the top of a "
                "module that they can import, and mark it by @timely.builder"
            )
        (description,) = flow.descriptions
        travel = cast("_Traveller", load_function(description.traveller, "a query"))
        spec, plan = travel(description)
        return spec, {**plan, "name": name, "token": getattr(self._workers, "token", "")}

    def flow(self, index: int | str = 0) -> Flow:
        """A dataflow that is installed already, by another client or at the start: by its number, or by its
        name, of which the last part does (`mentions` for "my_queries:mentions").
        """
        if isinstance(index, str):
            index = _numbered(self.flows(), index)
        (reply,) = self._workers.ask([(0, Describe(index), None)])
        return Flow(self._workers, reply)

    def flows(self) -> dict[int, str]:
        """The installed dataflows: index and "module:function"."""
        (hello,) = self._workers.ask([(0, Hello(), None)])
        found: dict[int, str] = {}
        for entry in hello.items("dataflows"):
            match entry:
                case [int(index), str(spec)]:
                    found[index] = spec
        return found

    def stats(self) -> list[dict[str, Value]]:
        """What each worker counts, in their order, as plain values: how things stand now, or, where that is
        said, so far. The table in docs/workers.md says of each name what it means, and in which unit.

        Of the worker: `worker`, `workers`, `process`; so far `steps`, `messages_sent`, `messages_recv`.
        Of what words stand for: `symbols.entries`, `symbols.bytes`, `symbols.forgotten` and `symbols.passes`
        so far, `symbols.full_at`, `symbols.bytes_full_at`, `symbols.kept_by`.
        Of each dataflow, by number: `dataflows.spec`, `dataflows.pointstamps`, `dataflows.complete_before`.
        Of its inputs: `dataflows.inputs.name`, `dataflows.inputs.epoch`, `dataflows.inputs.rows_waiting`.
        Of its imports: `dataflows.imports.dataflow`, `dataflows.imports.export`, `dataflows.imports.epoch`.
        Of its stages: `dataflows.stages.name`, `dataflows.stages.loop`; so far
        `dataflows.stages.activations`; of those that keep rows `dataflows.stages.trace_rows`,
        `dataflows.stages.trace_bytes`, `dataflows.stages.importers`,
        `dataflows.stages.rows_of_far_epochs`, `dataflows.stages.epochs_waiting`, `dataflows.stages.versions`,
        `dataflows.stages.batches_kept`, `dataflows.stages.routing_versions`; and what `counters` and `report`
        of a vertex of your own return.
        Of what is kept once for several (a table of it: `Flow.arrangements`):
        `dataflows.stages.arrangements.name`, `dataflows.stages.arrangements.rows`,
        `dataflows.stages.arrangements.bytes`, of these `dataflows.stages.arrangements.run_bytes`,
        `dataflows.stages.arrangements.head_bytes`, `dataflows.stages.arrangements.tail_bytes`,
        `dataflows.stages.arrangements.merge_bytes` and `dataflows.stages.arrangements.pinned_bytes`;
        `dataflows.stages.arrangements.since`; of each reader `dataflows.stages.arrangements.readers.name`,
        `dataflows.stages.arrangements.readers.hold`, `dataflows.stages.arrangements.readers.lag`,
        `dataflows.stages.arrangements.readers.holds_back`.
        Of what leads from stage to stage, by their places: `dataflows.connectors.source`,
        `dataflows.connectors.target`; so far `dataflows.connectors.rows`, `dataflows.connectors.messages`.
        Of its loops (a table of it: `Flow.iterations`): `dataflows.loops.name`, `dataflows.loops.rounds`.
        """
        replies = self._workers.ask([(worker, Stats(), None) for worker in range(self._workers.count)])
        return [reply.values for reply in replies]

    def append_target(self, dataflow: int = 0) -> append_target:
        """For appending from other processes, to which it can be sent: called there it is a connection, the
        `AppendClient` of `timely.client.connection`. Not for an embedded cluster.
        """
        if not self._workers.addresses:
            raise MisuseError(
                "an embedded cluster cannot be reached from other processes: connect(workers=…) without "
                "embedded"
            )
        from .connection import RemoteWorkers, append_target

        workers = self._workers
        assert isinstance(workers, RemoteWorkers)
        return append_target(workers.addresses, dataflow, workers.keys, workers.silence_seconds)

    def shutdown(self) -> None:
        """End the cluster, also one that was running already, and let go of it."""
        # It tells the others. They may be gone before they are asked, and say so before it has answered.
        with suppress(PeerError):
            self._workers.ask([(0, Shutdown(), None)])
        self.close()

    def close(self) -> None:
        """Let go of the cluster. Workers that `connect` has started end; others go on.

        An embedded cluster does what is sealed before. If that fails, or has failed and no call has said so,
        the error comes out here; and so does what was refused of rows that nobody has waited for.
        """
        self._workers.close()


@short
def connect(
    *addresses: str,
    workers: int | None = None,
    embedded: bool = False,
    threads: bool = False,
    log_level: str = "warning",
    check_progress: bool = False,
    silence_seconds: float | None = None,
    keys: ClientKeys | ClusterKeys | Path | str | None = None,
) -> Cluster:
    """A cluster to work with.

        connect(workers=2)                    starts two worker processes on this machine, which end with it
        connect(workers=1, embedded=True)     runs in this process: no sockets, no other process
        connect(workers=2, threads=True)      the same with two workers, each in a thread of its own
        connect("host:7401", …)               joins a cluster that runs; one address of it is enough
        connect("host:7401", keys=FOLDER)     the same, where workers have keys: with those of this client

    Workers that `connect` starts import modules from where this program does (`sys.path`, working directory);
    those of a running cluster from where they were started. Embedded workers without `threads` take turns, in
    the same order each time; in threads they work at the same time, as far as their work is compiled, and
    your own functions run one at a time, in the thread of their worker or in that of who asks. With
    `check_progress` each worker checks its progress tracking after each step, which is slow
    (docs/progress_tracking.md). One that is stopped, or kept from running, for longer than `silence_seconds`
    (2.5) counts as lost, and ends the cluster; one that ends is noticed at once. `keys` is a folder that
    `python -m timely.keys client` has made, by default what NAIAD_KEYS says, or `ClientKeys` themselves
    (docs/keys.md). Raises `PeerError` if a worker does not start or cannot be reached, `RefusedError` if it
    does not let this client in, and `MisuseError` in a module that is being imported for a builder in it: a
    script that installs its own builders begins under `if __name__ == "__main__":`.
    """
    check_not_importing()
    if addresses:
        _check_addresses(addresses)
        if workers is not None or embedded or threads or check_progress or silence_seconds is not None:
            raise MisuseError(
                "connect takes either addresses of a running cluster or a number of workers to start, and "
                "how: whether they check_progress was decided when those that run were started, and so was "
                "silence_seconds"
            )
        from ..keys.folder import client_keys
        from .connection import RemoteWorkers, discover

        held = client_keys(keys)
        found = discover(addresses, held)
        return Cluster(RemoteWorkers(found.addresses, keys=held, silence_seconds=found.silence_seconds))
    if keys is not None:
        raise MisuseError(
            "connect takes keys for the addresses of a running cluster: workers that it starts itself are "
            "reached by nobody else, and need none"
        )
    count = 1 if workers is None else workers
    if embedded or threads:
        from .embedded.workers import EmbeddedWorkers

        if silence_seconds is not None:
            raise MisuseError(
                "connect takes silence_seconds for workers in processes of their own: embedded ones run in "
                "this one, which cannot lose them"
            )
        return Cluster(EmbeddedWorkers(count, check_progress=check_progress, threads=threads))
    silence = SILENCE_SECONDS_DEFAULT if silence_seconds is None else silence_seconds
    return Cluster(_start_workers(count, log_level, check_progress, silence))


def _check_addresses(addresses: Sequence[object]) -> None:
    """Raise MisuseError for what is no address, a number of workers above all."""
    for address in addresses:
        if not isinstance(address, str):
            count = address if type(address) is int else 2
            raise MisuseError(
                f"connect takes addresses as texts, 'host:7401', not {address!r:.80}. To start workers on "
                f"this machine write connect(workers={count})"
            )


def _built_here(build: str | Builder) -> tuple[str, Builder]:
    """The name and the builder of what is built in this process."""
    if isinstance(build, str):
        return build, load_builder(build)
    return getattr(build, "__name__", "dataflow"), build


def _check_build(call: str, build: object) -> None:
    """Raise `MisuseError` unless it can be a builder."""
    if not isinstance(build, str) and not callable(build):
        raise MisuseError(
            f"{call} takes a function of a dataflow, as def query(flow): …, or 'module:function', not "
            f"{build!r:.80}"
        )


def _numbered(flows: Mapping[int, str], name: str) -> int:
    found = [index for index, known in flows.items() if known == name]
    found = found or [index for index, known in flows.items() if re.split("[:.]", known)[-1] == name]
    if len(found) == 1:
        return found[0]
    listed = ", ".join(f"{known!r} (number {index})" for index, known in flows.items()) or "none"
    raise MisuseError(f"{len(found) or 'no'} dataflows are called {name!r}: there are {listed}")


def _start_workers(count: int, log_level: str, check_progress: bool, silence_seconds: float) -> Workers:
    from ..worker.launcher import Launcher, LocalFolder
    from ..worker.settings import check_silence, check_workers, local_settings
    from .connection import RemoteWorkers

    check_workers(count)
    silence = check_silence(silence_seconds, "silence_seconds")
    folder = LocalFolder()
    try:
        settings = local_settings(
            count, folder.path, paths=[path for path in sys.path if path], log_level=log_level
        )
        settings = [
            replace(each, check_progress=check_progress, silence_seconds=silence) for each in settings
        ]
    except BaseException:
        folder.remove()
        raise
    launcher = Launcher(settings, _show, folder)
    try:
        return RemoteWorkers(launcher.wait_ready(), launcher, settings[0].token, silence_seconds=silence)
    except BaseException:
        launcher.stop()
        raise


def _show(index: int, line: str) -> None:
    """What a worker writes belongs on the error stream of whoever started it."""
    sys.stderr.write(f"worker {index}: {line}\n")
