"""Two answers of `cluster.stats()` as figures: how much each stage works, what waits, how late epochs are.

What workers count only grows, so the difference of two answers is what has happened between them. The shares
of all workers are put together: times and rows are summed up, and the skew says how unevenly they lie.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, TypeAlias

from ...operators.capture import FOREVER
from ...wire.requests import Value
from .epoch_figures import Told, behind_seconds, epoch_seconds, reader_lags, waiting_at_inputs

__all__ = ["DataflowFigures", "Figures", "StageFigures", "Stats", "WorkerFigures", "figures"]

Stats: TypeAlias = Sequence[Mapping[str, Value]]
"""What `cluster.stats()` returns."""

_Entry: TypeAlias = Told

_NOTHING: Final[_Entry] = {}


@dataclass(frozen=True)
class WorkerFigures:
    """One worker, with its process. Embedded workers share that of the program.

    cpu             processor seconds of the process for each second; more than 1 if several threads work
    resident_bytes  memory that it has
    messages        to other workers, for each second
    coming_rows     on their way from other workers, not yet received
    ring_bytes      on the rings from other workers
    """

    worker: int
    process: int
    cpu: float
    resident_bytes: int
    messages: float
    coming_rows: int = 0
    ring_bytes: int = 0


@dataclass(frozen=True)
class DataflowFigures:
    """One dataflow.

    epoch           the first that is open at an input; None without inputs, or when all are closed
    complete_before the first that is not complete at all outputs, with all workers; None when all are
    behind_epochs   how many epochs are sealed and not complete
    behind_seconds  how long ago the first of these was sealed; 0 if there is none
    rows            that entered by its inputs, for each second
    busy            seconds that its stages have worked for each second, all workers together
    kept_bytes      of rows that its stages keep
    epoch_seconds   (share, seconds): that share of the last epochs took at most so long, sealed to complete
    input_rows      by the name of an input: rows that wait there; input_bytes  what they take, about
    reader_lags     by the name of an output with readers: complete epochs that the last one has not read
    ahead_epochs    how many epochs the input that is furthest ahead is before the first open one
    """

    dataflow: int
    name: str
    epoch: int | None
    complete_before: int | None
    behind_epochs: int
    behind_seconds: float
    rows: float
    busy: float
    kept_bytes: int
    epoch_seconds: list[tuple[float, float]] = field(default_factory=list)
    input_rows: dict[str, int] = field(default_factory=dict)
    reader_lags: dict[str, int] = field(default_factory=dict)
    ahead_epochs: int = 0
    input_bytes: dict[str, int] = field(default_factory=dict)


@dataclass(frozen=True)
class StageFigures:
    """One stage.

    site      file and line where the program wrote it
    busy      seconds that it has worked for each second, all workers together
    skew      how long the worker that worked longest took, beside the mean of all; 1 if they took the same
    rows      that came to it, for each second
    waiting   rows in front of it; waiting_bytes  what they take, about
    kept_rows, kept_bytes   of its traces and arrangements
    """

    dataflow: int
    stage: int
    name: str
    site: str
    loop: str
    busy: float
    skew: float
    rows: float
    waiting: int
    kept_rows: int
    kept_bytes: int
    waiting_bytes: int = 0


@dataclass(frozen=True)
class Figures:
    """A cluster between two answers that lie `seconds` apart."""

    seconds: float
    workers: list[WorkerFigures]
    dataflows: list[DataflowFigures]
    stages: list[StageFigures]


def figures(before: Stats, after: Stats, seconds: float) -> Figures:
    """Return the figures of the time between two answers. Raises ValueError unless `seconds` is positive.

    What was not there before counts from its start, as a dataflow does that was installed meanwhile.
    """
    if not seconds > 0:
        raise ValueError(f"figures of {seconds} s: two answers lie some time apart")
    olds_of, news_of = _of_any(before), _of_any(after)
    numbers = sorted({number for worker in news_of for number in _table(worker, "dataflows")}, key=repr)
    workers = [_worker(old, new, seconds, news_of) for old, new in _paired(olds_of, news_of)]
    dataflows: list[DataflowFigures] = []
    stages: list[StageFigures] = []
    for number in numbers:
        olds = [_table(_table(worker, "dataflows"), number) for worker in olds_of]
        news = [_table(_table(worker, "dataflows"), number) for worker in news_of]
        of_stages = list(_stages(_int(number), olds, news, seconds))
        stages += of_stages
        dataflows.append(_dataflow(_int(number), news, of_stages))
    return Figures(seconds, workers, dataflows, stages)


def _worker(old: _Entry, new: _Entry, seconds: float, all_workers: Sequence[_Entry]) -> WorkerFigures:
    used, used_before = _table(new, "used"), _table(old, "used")
    worker = _int(new.get("worker"))
    received = {_int(peer.get("worker")): _int(peer.get("rows_recv")) for peer in _entries(new, "peers")}
    to_it = [
        (_int(other.get("worker")), peer)
        for other in all_workers
        for peer in _entries(other, "peers")
        if _int(peer.get("worker")) == worker
    ]
    return WorkerFigures(
        worker,
        _int(new.get("process")),
        max(0.0, _number(used.get("cpu_seconds")) - _number(used_before.get("cpu_seconds"))) / seconds,
        _int(used.get("resident_bytes")),
        max(0, _int(new.get("messages_sent")) - _int(old.get("messages_sent"))) / seconds,
        sum(max(0, _int(peer.get("rows_sent")) - received.get(sender, 0)) for sender, peer in to_it),
        sum(_int(peer.get("ring_bytes")) for _, peer in to_it),
    )


def _dataflow(number: int, news: Sequence[_Entry], stages: Sequence[StageFigures]) -> DataflowFigures:
    by_input: dict[object, int] = {}  # the first that is open at some worker
    for each in (each for new in news for each in _entries(new, "inputs")):
        by_input[each.get("name")] = min(by_input.get(each.get("name"), FOREVER), _int(each.get("epoch")))
    complete = min((_int(new.get("complete_before")) for new in news if new), default=0)
    still_open = [each for each in by_input.values() if each < FOREVER]
    epoch = min(still_open, default=None)
    inputs = {stage.stage for stage in stages if stage.name.startswith("input ")}
    return DataflowFigures(
        number,
        next((str(new["spec"]) for new in news if new), ""),
        epoch,
        None if complete >= FOREVER else complete,
        0 if epoch is None or complete >= FOREVER else max(0, epoch - complete),
        behind_seconds(news, complete),
        sum(stage.rows for stage in stages if stage.stage in inputs),
        sum(stage.busy for stage in stages),
        sum(stage.kept_bytes for stage in stages),
        epoch_seconds(news),
        waiting_at_inputs(news, "rows"),
        reader_lags(news),
        0 if epoch is None else max(still_open) - epoch,
        waiting_at_inputs(news, "bytes"),
    )


def _stages(
    number: int, olds: Sequence[_Entry], news: Sequence[_Entry], seconds: float
) -> Iterator[StageFigures]:
    there = next((new for new in news if new), _NOTHING)
    came = [0] * len(_entries(there, "stages"))
    for old, new in _paired(olds, news):
        _count_rows(came, old, new)
    for stage, first in enumerate(_entries(there, "stages")):
        of_new = [_at(_entries(new, "stages"), stage) for new in news]
        of_old = [_at(_entries(old, "stages"), stage) for old in olds]
        busy = [
            max(0.0, _number(new.get("busy_seconds")) - _number(old.get("busy_seconds"))) / seconds
            for old, new in _paired(of_old, of_new)
        ]
        keepers = [each for new in of_new for each in (new, *_entries(new, "arrangements"))]
        yield StageFigures(
            number,
            stage,
            str(first.get("name", "")),
            str(first.get("site", "")),
            str(first.get("loop", "")),
            sum(busy),
            max(busy) * len(busy) / sum(busy) if sum(busy) else 1.0,
            came[stage] / seconds,
            sum(_int(new.get("rows_waiting")) for new in of_new),
            sum(_int(each.get("trace_rows")) + _int(each.get("rows")) for each in keepers),
            sum(_int(each.get("trace_bytes")) + _int(each.get("bytes")) for each in keepers),
            sum(_int(new.get("bytes_waiting")) for new in of_new),
        )


def _count_rows(came: list[int], old: _Entry, new: _Entry) -> None:
    """Add the rows that one worker has sent between two answers to the stages that they came to, and those
    that left an input to that: the most that left by one of its connectors, since all have the same rows but
    for those that were not wanted there.
    """
    left: dict[int, int] = {}
    connectors = _paired(_entries(old, "connectors"), _entries(new, "connectors"))
    for before, connector in connectors:
        rows = max(0, _int(connector.get("rows")) - _int(before.get("rows")))
        came[_int(connector.get("target"))] += rows
        source = _int(connector.get("source"))
        if _is_input(new, source):
            left[source] = max(left.get(source, 0), rows)
    for source, rows in left.items():
        came[source] += rows


def _is_input(dataflow: _Entry, stage: int) -> bool:
    return str(_at(_entries(dataflow, "stages"), stage).get("name", "")).startswith("input ")


def _of_any(stats: Stats) -> list[_Entry]:
    return [dict(worker.items()) for worker in stats]


def _paired(olds: Sequence[_Entry], news: Sequence[_Entry]) -> Iterator[tuple[_Entry, _Entry]]:
    """Yield each new entry beside the old one of that place, which may be missing."""
    for place, new in enumerate(news):
        yield _at(olds, place), new


def _at(entries: Sequence[_Entry], place: int) -> _Entry:
    return entries[place] if place < len(entries) else _NOTHING


def _table(entry: _Entry, name: object) -> _Entry:
    match entry.get(name):
        case {**values}:
            return values
        case _:
            return _NOTHING


def _items(entry: _Entry, name: str) -> Sequence[Value]:
    match entry.get(name):
        case [*items]:
            return items
        case _:
            return []


def _entries(entry: _Entry, name: str) -> list[_Entry]:
    return [each if isinstance(each, dict) else _NOTHING for each in _items(entry, name)]


def _int(value: object) -> int:
    return value if isinstance(value, int) else 0


def _number(value: object) -> float:
    return value if isinstance(value, int | float) else 0.0
