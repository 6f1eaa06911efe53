"""Counters of a worker and of its dataflows, as plain values that a client can read."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Mapping, Sequence
from heapq import nsmallest
from itertools import islice
from operator import attrgetter
from typing import Protocol

import msgpack

from ...dictionaries import dictionaries
from ...failure import is_interrupt, text_of
from ...limits import TOLD_READERS_COUNT_MAX, TOLD_WRITERS_COUNT_MAX
from ...mapped import bytes_in_use
from ...operators.capture import CaptureVertex
from ...operators.inputs.handle import InputHandle
from ...operators.outputs.places import ReaderTold
from ...operators.vertex import Vertex
from ...running.core import Worker
from ...running.instance import Instance
from ...running.stages.vertex_runner import VertexRunner
from ...spilling.budget import SPILL
from ...spilling.file_memory import bytes_in_files
from ...wire.requests import Value
from ...wire.transport.neighbours import Neighbours
from .busy import busy_nanoseconds, bytes_at_input, waiting
from .epoch_times import epoch_times
from .process_use import process_use

__all__ = ["loop_under_way", "statistics"]


class _DurablePart(Protocol):
    """The durable part of a worker."""

    def report(self) -> dict[str, Value]:
        """Return what `stats()` says of the store."""
        ...


def statistics(
    worker: Worker, specs: Mapping[int, str], store: _DurablePart | None = None
) -> dict[str, Value]:
    """Return the answer to `Stats`: numbers that only grow, and a few that describe the present. `store`:
    the durable part of the worker, if it has one.
    """
    return {
        "worker": worker.index,
        "workers": worker.workers,
        "process": os.getpid(),
        "used": process_use(),
        "steps": worker.steps,
        "messages_sent": worker.messages_sent,
        "messages_recv": worker.messages_recv,
        "peers": _of_peers(worker),
        "timings": worker.timings.report(),
        "memory": _of_memory(),
        "symbols": _of_symbols(worker),
        **({} if store is None else {"store": store.report()}),
        "dataflows": {
            index: _of_dataflow(instance, specs.get(index, ""))
            for index, instance in worker.instances.items()
        },
    }


def _of_peers(worker: Worker) -> list[Value]:
    """Return what is on the way to each other worker."""
    neighbours: object = getattr(worker.credits.transport, "neighbours", None)  # some transports have none
    rings: Mapping[int, int] = neighbours.ring_bytes() if isinstance(neighbours, Neighbours) else {}
    return [
        {
            "worker": peer,
            "unreceived_bytes": size,
            "ring_bytes": rings.get(peer, 0),
            "rows_sent": sum(instance.rows_sent.get(peer, 0) for instance in worker.instances.values()),
            "rows_recv": sum(instance.rows_recv.get(peer, 0) for instance in worker.instances.values()),
        }
        for peer, size in worker.credits.on_the_way()
    ]


def _of_memory() -> dict[str, Value]:
    """Return how much large memory this process has, where it is, and how much of it may be plain memory."""
    place = SPILL.place
    return {
        "plain_bytes": bytes_in_use(),
        "file_bytes": bytes_in_files(),
        "budget_bytes": 0 if place is None else place.memory,
        "spill": "" if place is None else place.folder,
    }


def _of_symbols(worker: Worker) -> dict[str, Value]:
    """Return the counters of symbols, added up over all dictionaries; and, as `kept_by`, what keeps the
    dictionaries from forgetting anything, since it does not tell which words it holds.
    """
    counters: dict[str, Value] = {}
    for dictionary in dictionaries():
        for name, number in dictionary.report().items():
            before = counters.get(name, 0)
            assert isinstance(before, int)
            counters[name] = before + number
    silent = worker.silent()
    others = (name for name in worker.forgetting.not_known if name not in silent)
    return {**counters, "kept_by": [*silent, *others]}


def _of_dataflow(instance: Instance, spec: str) -> Value:
    outputs = [runner.vertex for runner in instance.runners if isinstance(runner.vertex, CaptureVertex)]
    busy = busy_nanoseconds(instance)
    waits = [waiting(instance, place) for place in range(len(instance.runners))]
    return {
        "spec": spec,
        "pointstamps": instance.tracker.active_count,
        "complete_before": _complete_before(instance, outputs),
        "inputs": [
            {
                "name": handle.name,
                "epoch": handle.epoch,
                "rows_waiting": handle.rows_waiting,
                "bytes_waiting": bytes_at_input(handle),
                "writers": _writers(handle),
            }
            for handle in instance.inputs.values()
        ],
        "imports": [
            {"dataflow": one.exported.dataflow, "export": one.exported.name, "epoch": one.epoch}
            for one in instance.imports
        ],
        "outputs": [_of_output(instance, name) for name in instance.frozen.outputs],
        "epochs": epoch_times(
            [runner.moves for runner in instance.runners if runner.moves is not None],
            [output.moves for output in outputs],
            time.monotonic(),
        ),
        "stages": [
            {
                "name": runner.name,
                "loop": stage.scope.path_inside(),
                "site": runner.site,
                "activations": runner.activations,
                "busy_seconds": busy[place] / 1e9,
                "rows_waiting": waits[place][0],
                "bytes_waiting": waits[place][1],
                "frontier": _frontier(runner),
                **({} if runner.vertex is None else _of_vertex(runner.vertex)),
            }
            for place, (stage, runner) in enumerate(
                zip(instance.frozen.stages, instance.runners, strict=True)
            )
        ],
        "connectors": [
            {
                "source": spec.source,
                "target": spec.target,
                "rows": connector.rows_sent,
                "messages": connector.messages_sent,
            }
            for spec, connector in zip(instance.frozen.connectors, instance.connectors, strict=True)
        ],
        "loops": _of_loops(instance),
    }


def _writers(handle: InputHandle) -> list[Value]:
    """Return the writers of an input that were heard last, each with the last number that was taken of it."""
    last = islice(reversed(handle.deliveries.writers.items()), TOLD_WRITERS_COUNT_MAX)
    return [[writer, numbers.lasts[-1]] for writer, numbers in last if numbers.lasts]


def _of_output(instance: Instance, name: str) -> Value:
    """Return how far an output is here, and its clients, which may hold its changes back."""
    capture = instance.output(name)
    readers = nsmallest(TOLD_READERS_COUNT_MAX, capture.places.told(), key=attrgetter("epoch"))
    return {
        "name": name,
        "complete_before": _complete_before(instance, [capture]),
        "readers": [_of_reader(capture, reader) for reader in readers],
    }


def _of_reader(capture: CaptureVertex, reader: ReaderTold) -> Value:
    rows, size = capture.held_from(reader.epoch)
    return {
        "name": reader.name,
        "client": reader.client,
        "site": reader.site,
        "epoch": reader.epoch,
        "silent_seconds": reader.seconds,
        "rows_kept": rows,
        "bytes_kept": size,
    }


def _frontier(runner: VertexRunner) -> Value:
    """Return the first time at which rows may still come in, as a list; None if none can."""
    words = [word for port in range(len(runner.ports)) if (word := runner.first(port)) is not None]
    return list(runner.code.unpack_wide(min(words))) if words else None


def _of_vertex(vertex: Vertex) -> dict[str, Value]:
    """Return what a vertex counts and reports. If it fails, or returns values that cannot be sent to clients,
    return the entry `failed` in their place: the client still gets the numbers of all others.
    """
    try:
        values: dict[str, Value] = {**vertex.counters(), **vertex.report()}
        msgpack.packb(values)
    except BaseException as error:
        if is_interrupt(error):
            raise
        return {"failed": f"counters, or report, of its vertex: {type(error).__name__}: {text_of(error)}"}
    return values


def _complete_before(instance: Instance, outputs: Sequence[CaptureVertex]) -> int:
    """Return the first epoch that is not complete at all outputs; that of the dataflow if a log fails."""
    try:
        return min((capture.complete_before for capture in outputs), default=instance.epochs_done())
    except BaseException as error:
        if is_interrupt(error):
            raise
        return instance.epochs_done()


def loop_under_way(instance: Instance, complete: int) -> str:
    """Return which loop has gone furthest at the epochs from `complete` on, for a message; "" if none has."""
    far = [
        (counters[-1], counters[0], loop)
        for loop, rounds in _rounds(instance)
        for counters, _ in rounds
        if counters[0] >= complete
    ]
    if not far:
        return ""
    iteration, epoch, loop = max(far)
    return f"the loop {loop!r} has come to iteration {iteration:,} of epoch {epoch}"


def _of_loops(instance: Instance) -> list[Value]:
    """Return the loops, one entry for each way round, with the rows of its last times: [counters, rows]."""
    return [
        {"name": loop, "rounds": [[list(counters), rows] for counters, rows in rounds]}
        for loop, rounds in _rounds(instance)
    ]


def _rounds(instance: Instance) -> Iterator[tuple[str, list[tuple[Sequence[int], int]]]]:
    """Yield each way round a loop: the name of the loop, and counters and rows of its last times."""
    for spec, connector in zip(instance.frozen.connectors, instance.connectors, strict=True):
        if spec.counting is None or connector.iteration_counts is None:
            continue
        # The stage that counts may be in a loop within this one.
        code, coordinates = instance.runners[spec.target].code, spec.counting.coordinates
        yield (
            spec.counting.loop,
            [(code.unpack_wide(word)[:coordinates], rows) for word, rows in connector.iteration_counts],
        )
