"""Runs a program on all workers: a function that each of them calls, beside what clients ask."""

from __future__ import annotations

from collections.abc import Mapping
from inspect import signature

from ...building.builders import spec_of
from ...building.dataflow import Dataflow
from ...errors import MisuseError
from ...user_code.short_traces import short
from ..cluster import Cluster, connect
from .stages import OUTPUT, Program, build, of_name

__all__ = ["run"]


@short
def run(
    main: Program,
    /,
    *,
    on: Cluster | None = None,
    arguments: Mapping[str, object] | None = None,
    timeout: float | None = None,
    **workers: object,
) -> list[object]:
    """Call `main(worker, **arguments)` on each worker, in a thread beside the work of the worker, and return
    what it returns there, in the order of workers.

        run(main, workers=2)                  on two worker processes, which end with it
        run(main, workers=2, embedded=True)   on workers in this process
        run(main, on=cluster)                 on the workers of a cluster that runs already

    Other keywords are those of `connect`. Worker processes import `main` by its name: mark it with
    `@timely.program`. `worker` is a `ProgramWorker`: its number, how many there are, `barrier()`,
    `sequencer()`, and `cluster`, by which it is a client of its own cluster. Clients of the cluster go on
    meanwhile. Results and arguments are values that records may hold.

    If `main` raises on one worker, the error is raised here with its lines, and the others hear of the end in
    their next call of `worker`. Raise `WaitTimeoutError` after `timeout` seconds. A durable cluster refuses
    programs: it cannot run them again as they were.
    """
    _check_keywords(workers)
    if on is None:
        with connect(**workers) as cluster:  # type: ignore[arg-type]  # as the user has written them
            return _run_on(cluster, main, arguments or {}, timeout)
    if workers:
        raise MisuseError(
            f"run takes the cluster as on=…, or {', '.join(workers)} for workers to start: not both"
        )
    return _run_on(on, main, arguments or {}, timeout)


def _check_keywords(named: Mapping[str, object]) -> None:
    """Raise MisuseError for a keyword that `connect` does not take: most often an argument of the program."""
    others = [name for name in named if name not in signature(connect).parameters]
    if others:
        written = ", ".join(f"{name!r}: …" for name in others)
        raise MisuseError(
            f"run has no keyword {', '.join(map(repr, others))}: arguments of the program are one dict. "
            f"Write run(main, arguments={{{written}}}, …)"
        )


def _run_on(
    cluster: Cluster, main: Program, arguments: Mapping[str, object], timeout: float | None
) -> list[object]:
    if cluster.addresses:
        flow = cluster.install(
            of_name, main=spec_of(main), arguments=dict(arguments), addresses=list(cluster.addresses)
        )
    else:

        def program(dataflow: Dataflow) -> None:
            build(dataflow, main, arguments, cluster)

        flow = cluster.install(program)
    try:
        flow.finish(timeout)
        results = {int(worker): result for _, (worker, result) in flow.output(OUTPUT).changes()}
    finally:
        flow.uninstall()
    return [results[worker] for worker in sorted(results)]
