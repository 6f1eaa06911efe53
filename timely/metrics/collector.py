"""What `cluster.stats()` says, as metrics of Prometheus.

Nothing is kept from one question to the next: what workers count only grows within a process, and Prometheus
itself sees that a counter begins again when a process does.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from importlib.metadata import PackageNotFoundError, version
from typing import Final

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from ..client.reports.figures import DataflowFigures, Figures, Stats, figures
from ..errors import TimelyError
from ..wire.requests import Value

__all__ = ["ClusterCollector"]

_FRESH_SECONDS: Final = 0.2
"""A server that asks so soon after another one gets the same answer."""

_FLOW: Final = ["dataflow", "number"]
_FLOW_WORKER: Final = ["dataflow", "number", "worker"]
_STAGE_WORKER: Final = ["dataflow", "number", "stage", "name", "worker"]


class ClusterCollector(Collector):
    """Asks a cluster when it is scraped.

    ask     returns what `cluster.stats()` does; raises TimelyError if it does not answer
    stages  also give metrics for each stage, of which there may be very many
    """

    def __init__(self, ask: Callable[[], Stats], *, stages: bool = False) -> None:
        self._ask = ask
        self._has_stages = stages
        self._lock = threading.Lock()
        self._metrics: list[Metric] = []
        self._asked = -_FRESH_SECONDS

    def describe(self) -> Iterator[Metric]:
        """Yield nothing: a cluster that is not there yet must not keep the server from starting."""
        return iter(())

    def collect(self) -> Iterator[Metric]:
        """Yield all metrics; if the cluster does not answer, only that it is not up."""
        with self._lock:
            if time.monotonic() - self._asked >= _FRESH_SECONDS:
                try:
                    self._metrics = list(self._metrics_of(self._ask()))
                except TimelyError:
                    self._metrics = [_up(0)]
                self._asked = time.monotonic()
            yield from self._metrics

    def _metrics_of(self, stats: Stats) -> Iterator[Metric]:
        yield _up(1)
        by_worker = [figures([], [worker], 1.0) for worker in stats]  # totals since the start
        yield from _of_workers(stats, by_worker)
        yield from _of_dataflows(figures([], stats, 1.0).dataflows)
        yield from _of_dataflows_by_worker(by_worker)
        if self._has_stages:
            yield from _of_stages(by_worker)


def _up(value: int) -> Metric:
    up = GaugeMetricFamily("naiad_up", "1 if all workers have answered")
    up.add_metric([], value)
    return up


def _of_workers(stats: Stats, by_worker: Sequence[Figures]) -> Iterator[Metric]:
    info = GaugeMetricFamily(
        "naiad_worker_info", "One for each worker", labels=["worker", "process", "version"]
    )
    cpu = CounterMetricFamily("naiad_process_cpu_seconds", "Processor time of the process", labels=["worker"])
    memory = GaugeMetricFamily(
        "naiad_process_resident_memory_bytes", "Memory that the process has", labels=["worker"]
    )
    kernels = CounterMetricFamily(
        "naiad_kernels_compiled", "Kernels that the process had to compile", labels=["worker"]
    )
    messages = CounterMetricFamily(
        "naiad_messages_sent", "Messages of the worker to other workers", labels=["worker"]
    )
    for told, shown in zip(stats, by_worker, strict=True):
        (worker,) = shown.workers
        label = str(worker.worker)
        info.add_metric([label, str(worker.process), _version()], 1)
        cpu.add_metric([label], worker.cpu)
        memory.add_metric([label], worker.resident_bytes)
        kernels.add_metric([label], _used(told, "kernels_compiled"))
        messages.add_metric([label], worker.messages)
    yield from (info, cpu, memory, kernels, messages)


def _of_dataflows(flows: Sequence[DataflowFigures]) -> Iterator[Metric]:
    opened = GaugeMetricFamily("naiad_epoch_open", "The first epoch that is open at an input", labels=_FLOW)
    complete = GaugeMetricFamily(
        "naiad_epoch_complete", "The first epoch that is not complete at all outputs", labels=_FLOW
    )
    behind = GaugeMetricFamily("naiad_epochs_behind", "Epochs that are sealed, not complete", labels=_FLOW)
    lag = GaugeMetricFamily(
        "naiad_lag_seconds", "Since the first epoch was sealed that is not complete", labels=_FLOW
    )
    seconds = GaugeMetricFamily(
        "naiad_epoch_seconds", "From sealed to complete, of the last epochs", labels=[*_FLOW, "quantile"]
    )
    waiting = GaugeMetricFamily(
        "naiad_input_rows_waiting", "Rows that have not entered yet", labels=[*_FLOW, "input"]
    )
    waiting_bytes = GaugeMetricFamily(
        "naiad_input_bytes_waiting", "What these rows take, about", labels=[*_FLOW, "input"]
    )
    readers = GaugeMetricFamily(
        "naiad_reader_lag_epochs", "Epochs that the last reader has still to read", labels=[*_FLOW, "output"]
    )
    for flow in flows:
        labels = [flow.name, str(flow.dataflow)]
        if flow.epoch is not None:
            opened.add_metric(labels, flow.epoch)
        if flow.complete_before is not None:
            complete.add_metric(labels, flow.complete_before)
        behind.add_metric(labels, flow.behind_epochs)
        lag.add_metric(labels, flow.behind_seconds)
        for share, taken in flow.epoch_seconds:
            seconds.add_metric([*labels, str(share)], taken)
        for name, rows in flow.input_rows.items():
            waiting.add_metric([*labels, name], rows)
        for name, size in flow.input_bytes.items():
            waiting_bytes.add_metric([*labels, name], size)
        for name, epochs in flow.reader_lags.items():
            readers.add_metric([*labels, name], epochs)
    yield from (opened, complete, behind, lag, seconds, waiting, waiting_bytes, readers)


def _of_dataflows_by_worker(by_worker: Sequence[Figures]) -> Iterator[Metric]:
    rows = CounterMetricFamily("naiad_rows", "Rows that entered by inputs", labels=_FLOW_WORKER)
    busy = CounterMetricFamily("naiad_busy_seconds", "Time that stages have worked", labels=_FLOW_WORKER)
    storage = GaugeMetricFamily("naiad_kept_bytes", "Of rows that stages keep", labels=_FLOW_WORKER)
    waiting = GaugeMetricFamily("naiad_waiting_rows", "Rows in front of stages", labels=_FLOW_WORKER)
    waiting_bytes = GaugeMetricFamily("naiad_waiting_bytes", "What these rows take", labels=_FLOW_WORKER)
    for shown in by_worker:
        for flow in shown.dataflows:
            labels = [flow.name, str(flow.dataflow), str(shown.workers[0].worker)]
            rows.add_metric(labels, flow.rows)
            busy.add_metric(labels, flow.busy)
            storage.add_metric(labels, flow.kept_bytes)
            stages = [stage for stage in shown.stages if stage.dataflow == flow.dataflow]
            waiting.add_metric(labels, sum(stage.waiting for stage in stages))
            waiting_bytes.add_metric(labels, sum(stage.waiting_bytes for stage in stages))
    yield from (rows, busy, storage, waiting, waiting_bytes)


def _of_stages(by_worker: Sequence[Figures]) -> Iterator[Metric]:
    busy = CounterMetricFamily(
        "naiad_stage_busy_seconds", "Time that the stage has worked", labels=_STAGE_WORKER
    )
    rows = CounterMetricFamily("naiad_stage_rows", "Rows that came to the stage", labels=_STAGE_WORKER)
    waiting = GaugeMetricFamily(
        "naiad_stage_rows_waiting", "Rows in front of the stage", labels=_STAGE_WORKER
    )
    waiting_bytes = GaugeMetricFamily(
        "naiad_stage_bytes_waiting", "What these rows take, about", labels=_STAGE_WORKER
    )
    storage = GaugeMetricFamily(
        "naiad_stage_kept_bytes", "Of rows that the stage keeps", labels=_STAGE_WORKER
    )
    for shown in by_worker:
        names = {flow.dataflow: flow.name for flow in shown.dataflows}
        for stage in shown.stages:
            labels = [
                names[stage.dataflow], str(stage.dataflow), str(stage.stage), stage.name,
                str(shown.workers[0].worker),
            ]  # fmt: skip
            busy.add_metric(labels, stage.busy)
            rows.add_metric(labels, stage.rows)
            waiting.add_metric(labels, stage.waiting)
            waiting_bytes.add_metric(labels, stage.waiting_bytes)
            storage.add_metric(labels, stage.kept_bytes)
    yield from (busy, rows, waiting, waiting_bytes, storage)


def _used(told: object, name: str) -> float:
    match told:
        case {"used": {**used}}:
            value: Value = used.get(name)
            return value if isinstance(value, int | float) else 0.0
        case _:
            return 0.0


def _version() -> str:
    try:
        return version("naiad")
    except PackageNotFoundError:
        return ""
