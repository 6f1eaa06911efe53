"""A cluster as a program uses it: install dataflows, feed them, read their answers.

    with timely.connect(workers=2) as cluster:
        flow = cluster.install("my_queries:mentions")
        flow.input("mentions").insert(table)
        flow.seal()
        changes = flow.output("components").changes()

This works alike for workers in this process, in processes that `connect` starts, and in a cluster that runs
already.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
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
from ..limits import INSTALL_SECONDS_MAX, REPLY_SECONDS_MAX
from ..user_code.html_tables import html_or_text
from ..user_code.short_traces import in_short, short
from ..user_code.spellings import Spelled
from ..wire.requests import Describe, Hello, Install, Replace, Reply, Shutdown, Stats, Value, Why
from .installed import PATIENCE_SECONDS, Workers, after_work, to_all
from .other_spellings import OF_CLUSTERS
from .queries import query_of
from .reports.epoch_lists import with_epoch_lists
from .reports.served import Console
from .reports.why import at_work
from .session import Flow
from .shown.pictures import cluster_picture
from .starting import embedded_workers, running_workers, start_workers
from .statements.results import SqlChanges, SqlResult
from .statements.running import results_of

if TYPE_CHECKING:
    from ..wire.keys import ClientKeys, ClusterKeys
    from .connection import append_target

__all__ = ["Cluster", "connect"]

_Traveller = Callable[[Description], tuple[str, Mapping[str, Value]]]
"""Turns a description into the name of a builder that workers have, and its arguments."""

_CONSOLE = "timely.console.serving:console_of"

_GOES_ON_SECONDS = 1.0
"""How long workers in this process have to answer whether a dataflow goes on that could not be replaced."""


@in_short
class Cluster(Spelled):
    """A running cluster. Made by `connect`; a context manager that ends the workers that `connect`
    started.
    """

    _spellings = OF_CLUSTERS

    def __init__(self, workers: Workers) -> None:
        self._workers = workers

    def _missing(self, name: str) -> str:
        return OF_CLUSTERS.message(f"a cluster has no {name!r}", name, dir(Cluster))

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
        """Return how many workers there are, where, and, if calls raise, why."""
        end = f", {self._workers.end}" if self._workers.end else ""
        return f"<cluster of {self.workers} worker{'s' * (self.workers != 1)}{self._workers.kind}{end}>"

    def _repr_html_(self) -> str:
        return html_or_text(self, lambda: cluster_picture(repr(self), self._workers))

    @property
    def workers(self) -> int:
        """The number of workers."""
        return self._workers.count

    @property
    def addresses(self) -> list[str]:
        """Where other clients reach the workers, in order; empty for an embedded cluster."""
        return list(self._workers.addresses)

    @property
    def is_durable(self) -> bool:
        """True if the cluster has a store, from which it goes on after a restart."""
        return self._workers.incarnation > 0

    def install(
        self, build: str | Builder, *, inputs: Mapping[str, object] | None = None, **arguments: Value
    ) -> Flow:
        """Build and start a dataflow on all workers, or, after an error, on none.

        `build` is "module:function", which every worker imports, or a function of a dataflow. With `inputs`,
        schemas by name, it is a function of collections of these names, as `timely.spark.run` takes it:
        `install(components, inputs={"edges": "src: int, dst: int"})`. It may also be a collection that is
        written already, or a tuple or dict of such. The query names its outputs by `output(name)`, or returns
        them: a collection (the output "result"), a tuple ("result_0", …), or a dict by names.

        If `@timely.builder` marks the function, workers in other processes import and call it. Any other
        function is called here, once, and the operators that it has used travel to the workers: so a query
        can be written in a notebook, a REPL or inside of a function. Its own functions travel by import name
        if they have one; otherwise as source with the plain values that they use, but only to workers that
        `connect` has started. `arguments` are values that msgpack holds; for a query that travels or is
        embedded, any values.

        Raise `GraphError` if the workers build different dataflows, with the first stage that differs;
        `VertexError` if the builder fails.
        """
        return Flow(self._workers, self._installed(*query_of("install", build, inputs, arguments)))

    def _installed(self, build: str | Builder, arguments: dict[str, Value]) -> Reply:
        install_here = getattr(self._workers, "install", None)
        if install_here is not None:
            began = time.monotonic()
            here: Reply = install_here(*_built_here(build), arguments)
            for tell in after_work[:]:
                tell(began, False)
            return here
        spec, arguments = self._travelling(build, arguments)
        # Worker 0 gives up first, and its error says which worker was late.
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
        inputs: Mapping[str, object] | None = None,
        **arguments: Value,
    ) -> Flow:
        """Replace a running dataflow (a `Flow`, its number, or its name) by a new version, and return that
        once it has taken over.

        `build`, `inputs` and `arguments` are as in `install`. The new version runs beside the old one until
        it has caught up, and takes over at an epoch that all workers agree on: its name, and all that clients
        append and read from there on, also clients that know only the old one. Inputs that both have begin
        with the rows of the old version, which must export them (`edges.export("edges")`); others begin
        empty. In that epoch an output that both have changes by the difference between the two. A call for an
        input or output that is gone, or that has other columns, raises `ReplacedError`.

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
            query, arguments = query_of("replace", build, inputs, arguments)
            return Flow(self._workers, self._replaced(old, query, arguments, timeout))
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
        """Return True if a dataflow runs, and no new version has taken its place."""
        # Another thread may be at work with workers in this process: do not wait long for that.
        seconds = REPLY_SECONDS_MAX if self._workers.addresses else _GOES_ON_SECONDS
        try:
            (reply,) = self._workers.ask([(0, Describe(dataflow), None)], seconds)
        except TimelyError:
            return False
        return reply.integer("dataflow") == dataflow

    def _travelling(self, build: str | Builder, arguments: dict[str, Value]) -> tuple[str, dict[str, Value]]:
        """Return the builder and the arguments for workers in other processes."""
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
        note = {"note": flow.text} if flow.text else {}
        return spec, {**plan, "name": name, "token": getattr(self._workers, "token", ""), **note}

    def sql(
        self,
        text: str,
        /,
        *,
        dialect: str = "spark",
        timeout: float | None = None,
        **parameters: object,
    ) -> SqlResult | SqlChanges:
        """Carry out a SQL statement, or a script of several, and return the result of the last one.

            cluster.sql("create table orders (id int primary key, customer string, cents int)")
            cluster.sql("create view paid as select customer, sum(cents) c from orders group by customer")
            cluster.sql("insert into orders values (:id, 'ann', 120)", id=7)
            cluster.sql("select * from paid order by customer").show()

        Tables and views live in the cluster, as dataflows of their names: all clients see them. A view is
        kept current. `dialect` is "spark", "postgres" or "duckdb"; `parameters` are values for `:name`. A
        SELECT that waits for `timeout` seconds raises `WaitTimeoutError`. docs/sql.md has every statement.
        Needs sqlglot: `pip install 'naiad[sql]'`.

        Raise `differential.SqlError`, in one line with line and column, for a text that cannot be read or has
        no meaning; then no statement of the script has been carried out.
        """
        result: SqlResult | SqlChanges = SqlResult("")
        for result in results_of(self, text, dialect, parameters, timeout):  # noqa: B007
            pass
        return result

    def flow(self, index: int | str = 0) -> Flow:
        """Return a dataflow that is installed already, by another client or at the start: by its number, or
        by its name or the last part of that (`mentions` for "my_queries:mentions").
        """
        if isinstance(index, str):
            index = _numbered(self.flows(), index)
        try:
            (reply,) = self._workers.ask([(0, Describe(index), None)])
        except TimelyError as error:
            if error.ends_dataflow:
                flows = ", ".join(f"{number} ({name})" for number, name in self.flows().items())
                add_note(
                    error, f"cluster.flow({index}) asks for that dataflow; installed are: {flows or 'none'}"
                )
            raise
        return Flow(self._workers, reply)

    def flows(self) -> dict[int, str]:
        """Return the installed dataflows: index and "module:function"."""
        (hello,) = self._workers.ask([(0, Hello(), None)])
        flows: dict[int, str] = {}
        for entry in hello.items("dataflows"):
            match entry:
                case [int(index), str(spec)]:
                    flows[index] = spec
        return flows

    def stats(self) -> list[dict[str, Value]]:
        """Return the counters of each worker, in order, as plain values: present ones, or totals since the
        start. The table in docs/workers.md explains each name, and its unit.

        Of the worker: `worker`, `workers`, `process`, `timings.name`, `timings.within`; totals `steps`,
        `messages_sent`, `messages_recv`, `timings.count`, `timings.seconds`, `timings.buckets`.
        Of each other worker: `peers.worker`, `peers.unreceived_bytes`, `peers.ring_bytes`,
        `peers.rows_sent`, `peers.rows_recv`.
        Of its process: `used.resident_bytes`, `used.peak_bytes`; totals `used.cpu_seconds`,
        `used.kernels_compiled`, `used.compile_seconds`.
        Of large memory: `memory.plain_bytes`, `memory.file_bytes`, `memory.budget_bytes`, `memory.spill`.
        Of symbols: `symbols.entries`, `symbols.bytes`, `symbols.full_at`, `symbols.bytes_full_at`,
        `symbols.cold_entries`, `symbols.cold_bytes`,
        `symbols.kept_by`; totals `symbols.forgotten` and `symbols.passes`.
        Of the store of a durable cluster: `store.incarnation`, `store.unsynced_bytes`, `store.failing`; total
        `store.logged_bytes`; by worker 0 `store.since_base_bytes`, and of each worker that stands by
        `store.standby.worker`, `store.standby.process`, `store.standby.is_abreast`, `store.standby.behind`.
        Of each dataflow, by number: `dataflows.spec`, `dataflows.pointstamps`, `dataflows.complete_before`,
        `dataflows.epochs`.
        Of its inputs: `dataflows.inputs.name`, `dataflows.inputs.epoch`, `dataflows.inputs.rows_waiting`,
        `dataflows.inputs.bytes_waiting`, `dataflows.inputs.writers`.
        Of its imports: `dataflows.imports.dataflow`, `dataflows.imports.export`, `dataflows.imports.epoch`.
        Of its outputs: `dataflows.outputs.name`, `dataflows.outputs.complete_before`; of clients that read
        there `dataflows.outputs.readers.name`, `dataflows.outputs.readers.client`,
        `dataflows.outputs.readers.site`, `dataflows.outputs.readers.epoch`,
        `dataflows.outputs.readers.silent_seconds`, `dataflows.outputs.readers.rows_kept`,
        `dataflows.outputs.readers.bytes_kept`.
        Of its stages: `dataflows.stages.name`, `dataflows.stages.site`, `dataflows.stages.loop`,
        `dataflows.stages.frontier`, `dataflows.stages.rows_waiting`, `dataflows.stages.bytes_waiting`;
        totals `dataflows.stages.activations`, `dataflows.stages.busy_seconds`;
        of stages that keep rows `dataflows.stages.trace_rows`, `dataflows.stages.trace_bytes`,
        `dataflows.stages.trace_file_bytes`,
        `dataflows.stages.importers`, `dataflows.stages.rows_of_far_epochs`,
        `dataflows.stages.epochs_waiting`, `dataflows.stages.versions`, `dataflows.stages.batches_kept`,
        `dataflows.stages.routing_versions`; and what `counters` and `report` of your own vertex return.
        Of arrangements that several operators share (as a table: `Flow.arrangements`):
        `dataflows.stages.arrangements.name`, `dataflows.stages.arrangements.rows`,
        `dataflows.stages.arrangements.bytes`, among these `dataflows.stages.arrangements.run_bytes`,
        `dataflows.stages.arrangements.head_bytes`, `dataflows.stages.arrangements.tail_bytes`,
        `dataflows.stages.arrangements.merge_bytes` and `dataflows.stages.arrangements.pinned_bytes`;
        `dataflows.stages.arrangements.since`; of each reader `dataflows.stages.arrangements.readers.name`,
        `dataflows.stages.arrangements.readers.hold`, `dataflows.stages.arrangements.readers.lag`,
        `dataflows.stages.arrangements.readers.holds_back`.
        Of connectors from stage to stage, by the numbers of these: `dataflows.connectors.source`,
        `dataflows.connectors.target`; totals `dataflows.connectors.rows`, `dataflows.connectors.messages`.
        Of its loops (as a table: `Flow.iterations`): `dataflows.loops.name`, `dataflows.loops.rounds`.
        """
        replies = self._workers.ask_members(to_all(Stats()))
        return [with_epoch_lists(reply.values) for reply in replies]

    def at_work(self) -> list[str]:
        """Return a line for each worker that is in a long call, or does not answer: a stopped process, a slow
        Python function, a long load. Takes about a second at most; an empty list if all workers answer.
        """
        return [line.strip() for line in at_work(self._workers.reasons(Why(-1, -1)))]

    def console(self, port: int = 0, page: str | Path | None = None) -> Console:
        """Serve a page that shows how the cluster works, to browsers of this machine, and return the console:
        print it for the address. Port 0 takes a free one. It ends with the program, or by `close`. Needs
        starlette and uvicorn: `pip install 'naiad[console]'`. docs/console.md describes the page.

        `page` is the folder of a page of your own, which the address then shows; the console is at `/` there.

        Raise `MisuseError` if the port is taken, or the folder has no index.html.
        """
        serve = cast("Callable[[Cluster, int, Path | None], Console]", load_function(_CONSOLE, "the page"))
        return serve(self, port, None if page is None else Path(page))

    def append_target(self, dataflow: int = 0) -> append_target:
        """Return an object to send to other processes, for appending from there: called, it returns a
        connection, the `AppendClient` of `timely.client.connection`. Not for an embedded cluster.
        """
        if not self._workers.addresses:
            raise MisuseError(
                "an embedded cluster cannot be reached from other processes: connect(workers=…) without "
                "embedded"
            )
        from .connection import append_target
        from .remote.workers import RemoteWorkers

        workers = self._workers
        assert isinstance(workers, RemoteWorkers)
        return append_target(
            workers.addresses,
            dataflow,
            workers.keys,
            workers.silence_seconds,
            workers.incarnation,
            cluster=workers.cluster,
        )

    def rescale(self, workers: int) -> None:
        """Let a durable cluster go on with another number of workers, and return once they are ready.

        The present workers end in order, and so many new ones begin with what the store has: dataflows, rows
        and epochs, and the positions of readers. Calls of all clients wait meanwhile, as after a restart, and
        go on. Worker 0 and those that there were before keep their addresses. From then on, all restarts are
        with this number; the next `connect` with the same folder says its own. An interrupt (Ctrl-C) ends the
        wait, and not the change.

        For a cluster of processes that this program has started, by `connect(workers=…, durable=…)`. Raise
        `PeerError` if the new workers do not start; then the cluster goes on with as many as before. Raise
        `MisuseError` for a number that no cluster can have, and for a cluster that this program cannot
        rescale; the message says what to do instead.
        """
        from ..worker.settings import check_workers
        from ..worker.supervisor import Supervisor

        check_workers(workers)
        keeper = getattr(self._workers, "launcher", None)
        if not isinstance(keeper, Supervisor):
            raise MisuseError(_not_rescaled(self._workers, keeper is not None))
        self._workers.settle()  # or raise that the cluster is closed
        keeper.rescale(workers)
        self._workers.ask([(0, Hello(), None)])  # from now on this client knows the new workers

    def shutdown(self) -> None:
        """End the cluster, also one that was running already, and disconnect."""
        # Worker 0 tells the others. They may end first, so that their end is known before its answer.
        with suppress(PeerError):
            self._workers.ask([(0, Shutdown(), None)])
        self.close()

    def close(self) -> None:
        """Disconnect from the cluster. Workers that `connect` has started end; others go on.

        An embedded cluster first does the work on all sealed epochs. If that fails, or has failed and no call
        has raised it, this raises the error; and so it does for refused rows that no call has raised.
        """
        self._workers.close()


@short
def connect(  # noqa: PLR0913  # users give few of them, each by its name
    *addresses: str,
    workers: int | None = None,
    embedded: bool = False,
    threads: bool = False,
    log_level: str = "warning",
    check_progress: bool = False,
    silence_seconds: float | None = None,
    keys: ClientKeys | ClusterKeys | Path | str | None = None,
    durable: Path | str | None = None,
    sync: str | None = None,
    standby: bool = False,
    progress: str | None = None,
    spill: Path | str | None = None,
    memory: int | str | None = None,
) -> Cluster:
    """Start workers, or join a running cluster, and return the cluster.

        connect(workers=2)                    starts two worker processes on this machine, which end with it
        connect(workers=1, embedded=True)     runs in this process: no sockets, no other process
        connect(workers=2, threads=True)      the same with two workers, each in a thread of its own
        connect(workers=2, durable=FOLDER)    the same, and the folder keeps what comes in
        connect("host:7401", …)               joins a running cluster; the address of one worker is enough
        connect("host:7401", keys=FOLDER)     the same, if workers have keys: with the keys of this client

    Workers that `connect` starts import modules from the same places as this program (`sys.path`, working
    directory); those of a running cluster from where they were started. Embedded workers without `threads`
    take turns, in the same order each time; in threads they work at the same time, as far as their work is
    compiled, and your own functions run one at a time, in the thread of their worker or in the calling one.
    With `check_progress` each worker checks its progress tracking after each step, which is slow
    (docs/progress_tracking.md). A worker that is stopped, or kept from running, for longer than
    `silence_seconds` (2.5) counts as lost, and ends the cluster; the end of a worker is noticed at once.
    `progress`: when workers tell one another of it, "eager", "demand" or "host" (docs/progress_modes.md).
    `keys`: the folder of `python -m timely.keys client` (default: NAIAD_KEYS) or `ClientKeys` (docs/keys.md).

    The folder `durable` keeps rows, epochs and dataflows. If a worker process ends unasked, all start again
    with what it has, and calls go on; so does the next `connect` with that folder. Rows are kept once the
    disk has them or, with `sync="system"`, once the operating system has: then they survive the end of any
    process, but not that of the machine. With `standby` as many more processes do the same work from the
    folder, and take over after the end of a worker: that takes a moment, however much the workers hold.

    With the folder `spill` (default: NAIAD_SPILL) each worker keeps about `memory` bytes of rows in memory,
    such as "2GiB" (default: NAIAD_MEMORY, or half of this machine's for all workers), and the rest in files
    of that folder, which nobody else sees, and which end with the workers (docs/workers.md).

    Raise `PeerError` if a worker does not start or cannot be reached, `RefusedError` if it does not let this
    client in, and `MisuseError` in a module that is being imported for a builder in it: a script that
    installs its own builders begins under `if __name__ == "__main__":`.
    """
    check_not_importing()
    if addresses:
        _check_addresses(addresses)
        _check_running(
            is_durable=durable is not None or sync is not None or standby,
            is_started=(workers, silence_seconds, progress) != (None, None, None)
            or embedded
            or threads
            or check_progress
            or (spill, memory) != (None, None),
        )
        return Cluster(running_workers(addresses, keys))
    _check_started(keys is not None, silence_seconds is not None and (embedded or threads))
    count = 1 if workers is None else workers
    _check_standby(standby, is_possible=durable is not None and not (embedded or threads))
    if embedded or threads:
        how = check_progress, threads, durable, sync, progress, (spill, memory)
        return Cluster(embedded_workers(count, *how))
    options = check_progress, silence_seconds, durable, sync, standby, progress, (spill, memory)
    return Cluster(start_workers(count, log_level, *options))


def _check_running(is_durable: bool, is_started: bool) -> None:
    """Raise `MisuseError` for arguments of `connect` that say how workers start, beside addresses."""
    if is_durable:
        raise MisuseError(
            "connect takes durable, sync and standby for workers that it starts: whether a running "
            "cluster is durable was decided when it was started, by 'python -m timely.worker "
            "--durable FOLDER'"
        )
    if is_started:
        raise MisuseError(
            "connect takes either addresses of a running cluster or a number of workers to start, and "
            "how: whether they check_progress was decided when those that run were started, and so were "
            "silence_seconds, progress, spill and memory"
        )


def _check_started(has_keys: bool, has_idle_silence: bool) -> None:
    """Raise `MisuseError` for arguments of `connect` that workers which it starts have no use for."""
    if has_keys:
        raise MisuseError(
            "connect takes keys for the addresses of a running cluster: workers that it starts itself are "
            "reached by nobody else, and need none"
        )
    if has_idle_silence:
        raise MisuseError(
            "connect takes silence_seconds for workers in processes of their own: embedded ones run in "
            "this one, which cannot lose them"
        )


def _check_standby(standby: bool, is_possible: bool) -> None:
    if standby and not is_possible:
        raise MisuseError(
            "standby=True is for workers in processes of their own with a store: embedded workers end with "
            "this program, and what workers without a store hold ends with them. Write connect(workers=2, "
            "durable=FOLDER, standby=True)"
        )


def _check_addresses(addresses: Sequence[object]) -> None:
    """Raise `MisuseError` for anything but texts; most often it is a number of workers."""
    for address in addresses:
        if not isinstance(address, str):
            count = address if type(address) is int else 2
            raise MisuseError(
                f"connect takes addresses as texts, 'host:7401', not {address!r:.80}. To start workers on "
                f"this machine write connect(workers={count})"
            )


def _built_here(build: str | Builder) -> tuple[str, Builder]:
    """Return the name and the builder of a dataflow that is built in this process."""
    if isinstance(build, str):
        return build, load_builder(build)
    return getattr(build, "__name__", "dataflow"), build


def _numbered(flows: Mapping[int, str], name: str) -> int:
    matches = [index for index, spec in flows.items() if spec == name]
    matches = matches or [index for index, spec in flows.items() if re.split("[:.]", spec)[-1] == name]
    if len(matches) == 1:
        return matches[0]
    listed = ", ".join(f"{spec!r} (number {index})" for index, spec in flows.items()) or "none"
    raise MisuseError(f"{len(matches) or 'no'} dataflows are called {name!r}: there are {listed}")


def _not_rescaled(workers: Workers, is_started_here: bool) -> str:
    """Return the message about a cluster that cannot be rescaled: why, and what to do."""
    if not workers.addresses:
        how = "close this cluster, and connect again with another number of workers"
        if workers.incarnation:
            return f"embedded workers cannot be rescaled: {how} and the same folder"
        return f"embedded workers cannot be rescaled: {how}. A cluster with durable=FOLDER keeps its rows"
    if not workers.incarnation:
        return (
            "only a durable cluster can be rescaled: what the workers of this one hold would be lost with "
            "them. Start it by connect(workers=…, durable=FOLDER)"
        )
    if is_started_here:
        return (
            "a cluster in Spark cannot be rescaled: close it, and start one with another number of workers "
            "and the same folder"
        )
    return (
        "this program has not started the workers, and cannot rescale them. A program that has started them "
        "calls rescale. If it was 'python -m timely.worker', end it, and start it with another number, -w, "
        "and the same folder and ports. Clients go on"
    )
