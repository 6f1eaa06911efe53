"""Two answers of `cluster.stats()` as what a page shows: a *shape*, which changes when dataflows come and go,
and a *frame* of numbers, which refers to the places of stages and connectors in the shape.

All pages get the same bytes, so a frame is packed once, however many pages there are.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from typing import Final

from ...client.reports.figures import DataflowFigures, Figures, StageFigures, Stats, figures
from ...operators.capture import FOREVER
from ...wire.requests import Value
from .findings import computing, findings
from .told import Entry, Json, entries, entry, epoch_or_none, number, text, whole

__all__ = ["frame_of", "shape_of", "stage_of"]

_NOTHING: Final[Entry] = {}

_TOLD_OTHERWISE: Final = ("epoch_seconds", "input_rows", "input_bytes", "reader_lags")
"""Figures that a page has with more of what belongs to them, or of another time."""

_SHARES: Final = (0.5, 0.99)


def shape_of(stats: Stats) -> dict[str, Json]:
    """Return which dataflows there are, with their stages and connectors."""
    return {str(index): _shape(flow) for index, flow in _flows(stats)}


def _shape(flow: Entry) -> Json:
    return {
        "name": text(flow, "spec"),
        "stages": [
            {
                "name": text(stage, "name"),
                "loop": text(stage, "loop"),
                "site": text(stage, "site"),
                "keeps": bool(entries(stage, "arrangements")) or whole(stage, "trace_bytes") > 0,
            }
            for stage in entries(flow, "stages")
        ],
        "edges": [[whole(each, "source"), whole(each, "target")] for each in entries(flow, "connectors")],
    }


def frame_of(before: Stats, after: Stats, seconds: float, watched_seconds: float) -> dict[str, Json]:
    """Return the numbers of the time between two answers, which lie so many seconds apart. Somebody has asked
    for `watched_seconds`: what epochs before took is not known.
    """
    total = figures(before, after, seconds)
    by_worker = [
        figures([before[place]] if place < len(before) else [], [worker], seconds)
        for place, worker in enumerate(after)
    ]
    computed = computing(total.workers, [one.stages for one in by_worker])
    return {
        "seconds": seconds,
        "workers": [asdict(worker) for worker in total.workers],
        "flows": [
            {
                **_flow(before, after, total, by_worker, computed, flow, seconds),
                "latency": _latency(after, flow.dataflow, watched_seconds),
            }
            for flow in total.dataflows
        ],
    }


def _flow(
    before: Stats,
    after: Stats,
    total: Figures,
    by_worker: Sequence[Figures],
    computed: Sequence[float],
    flow: DataflowFigures,
    seconds: float,
) -> dict[str, Json]:
    index = flow.dataflow
    olds = [entry(entry(worker, "dataflows"), index) for worker in before]
    news = [entry(entry(worker, "dataflows"), index) for worker in after]
    stages = [stage for stage in total.stages if stage.dataflow == index]
    shares = [[stage for stage in one.stages if stage.dataflow == index] for one in by_worker]
    inputs, outputs = _inputs(news), _outputs(news)
    return {
        **{name: value for name, value in asdict(flow).items() if name not in _TOLD_OTHERWISE},
        "stages": _columns(stages, shares),
        "edges": list(_edges(olds, news, seconds)),
        "inputs": inputs,
        "outputs": outputs,
        "imports": [
            {
                "dataflow": whole(each, "dataflow"),
                "export": text(each, "export"),
                "epoch": whole(each, "epoch"),
            }
            for each in entries(_first(news), "imports")
        ],
        "findings": [asdict(each) for each in findings(flow, stages, shares, inputs, outputs, computed)],
    }


def _latency(stats: Stats, dataflow: int, watched_seconds: float) -> list[Json]:
    """Return within how many seconds after they were sealed half of the epochs were complete, and 99 % of
    them. An output notes when it is complete only when somebody asks: so only epochs count that were sealed
    while somebody has asked, and the figures are too large by up to the time between two questions.
    """
    longest: dict[int, float] = {}
    for worker in stats:
        for each in entries(entry(entry(worker, "dataflows"), dataflow), "epochs"):
            match each:
                case [int(epoch), float(sealed), float(complete)] if sealed <= watched_seconds:
                    longest[epoch] = max(longest.get(epoch, 0.0), sealed - complete)
    taken = sorted(longest.values())
    return [round(taken[min(len(taken) - 1, int(share * len(taken)))], 4) for share in _SHARES if taken]


def _columns(stages: Sequence[StageFigures], shares: Sequence[Sequence[StageFigures]]) -> Json:
    """Return the figures of stages by their names, each a list in the order of the stages."""
    return {
        "busy": [round(stage.busy, 5) for stage in stages],
        "skew": [round(stage.skew, 3) for stage in stages],
        "rows": [round(stage.rows, 1) for stage in stages],
        "waiting": [stage.waiting for stage in stages],
        "waiting_bytes": [stage.waiting_bytes for stage in stages],
        "kept": [stage.kept_bytes for stage in stages],
        "kept_rows": [stage.kept_rows for stage in stages],
        "busy_by": [[round(stage.busy, 5) for stage in share] for share in shares],
    }


def _edges(olds: Sequence[Entry], news: Sequence[Entry], seconds: float) -> Iterator[Json]:
    """Yield [rows a second, rows since the start] of each connector, all workers together."""
    for place in range(len(entries(_first(news), "connectors"))):
        new = sum(_rows(flow, place) for flow in news)
        old = sum(_rows(flow, place) for flow in olds)
        yield [round(max(0, new - old) / seconds, 1), new]


def _rows(flow: Entry, place: int) -> int:
    connectors = entries(flow, "connectors")
    return whole(connectors[place], "rows") if place < len(connectors) else 0


def _inputs(news: Sequence[Entry]) -> list[dict[str, Json]]:
    there = entries(_first(news), "inputs")
    epochs = [min(whole(at, "epoch") for at in _at(news, "inputs", place)) for place in range(len(there))]
    last = max((epoch for epoch in epochs if epoch < FOREVER), default=0)
    return [
        {
            "name": text(each, "name"),
            "epoch": epoch_or_none(epoch),
            "behind": max(0, last - epoch),  # here, where numbers are exact
            "waiting": sum(whole(at, "rows_waiting") for at in _at(news, "inputs", place)),
            "waiting_bytes": sum(whole(at, "bytes_waiting") for at in _at(news, "inputs", place)),
        }
        for place, (each, epoch) in enumerate(zip(there, epochs, strict=True))
    ]


def _outputs(news: Sequence[Entry]) -> list[dict[str, Json]]:
    outputs: list[dict[str, Json]] = []
    for place, each in enumerate(entries(_first(news), "outputs")):
        there = list(_at(news, "outputs", place))
        complete = min(whole(at, "complete_before") for at in there)
        readers: list[Json] = list(_readers(there, complete))
        outputs.append({"name": text(each, "name"), "complete": epoch_or_none(complete), "readers": readers})
    return outputs


def _readers(there: Sequence[object], complete: int) -> Iterator[dict[str, Json]]:
    """Yield the readers of an output. Each worker keeps its share of the rows for them."""
    shares: dict[str, list[Value]] = {}
    for output in there:
        for reader in entries(output, "readers"):
            shares.setdefault(text(reader, "name"), []).append(reader)
    for name, share in shares.items():
        epoch = min(whole(reader, "epoch") for reader in share)
        yield {
            "name": name,
            "client": text(share[0], "client"),
            "site": text(share[0], "site"),
            "epoch": epoch,
            "behind": 0 if complete >= FOREVER else max(0, complete - epoch),
            "silent": round(min(number(reader, "silent_seconds") for reader in share), 2),
            "rows": sum(whole(reader, "rows_kept") for reader in share),
            "bytes": sum(whole(reader, "bytes_kept") for reader in share),
        }


def _at(news: Sequence[Entry], name: str, place: int) -> Iterator[object]:
    for flow in news:
        listed = entries(flow, name)
        if place < len(listed):
            yield listed[place]


def stage_of(stats: Stats, dataflow: int, stage: int) -> Json:
    """Return all that workers tell of a stage: its counters, arrangements and readers; None if there is
    no such stage.
    """
    shown: list[Json] = []
    for worker in stats:
        stages = entries(entry(entry(worker, "dataflows"), dataflow), "stages")
        if not 0 <= stage < len(stages):
            return None
        shown.append({"worker": whole(worker, "worker"), "told": _plain(stages[stage])})
    return shown


def _plain(value: object) -> Json:
    """Return a value as JSON has it: bytes and what else there may be as texts, such as `nan`."""
    match value:
        case float() if not math.isfinite(value):
            return str(value)
        case None | bool() | int() | float() | str():
            return value
        case dict():
            return {str(name): _plain(each) for name, each in value.items()}
        case list() | tuple():
            return [_plain(each) for each in value]
        case _:
            return str(value)


def _flows(stats: Stats) -> Iterator[tuple[int, Entry]]:
    """Yield the number of each dataflow, and what the first worker tells that has it."""
    seen: set[int] = set()
    for worker in stats:
        for index in entry(worker, "dataflows"):
            if isinstance(index, int) and index not in seen:
                seen.add(index)
                yield index, entry(entry(worker, "dataflows"), index)


def _first(news: Sequence[Entry]) -> Entry:
    return next((flow for flow in news if flow), _NOTHING)
