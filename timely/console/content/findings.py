"""What may keep a dataflow from keeping up, as sentences: a stage that is always busy, one worker that does
most, an input that nobody seals, a reader that has stopped, rows that pile up.

A finding says what to look at, from the counters alone. What holds an epoch for certain says `Flow.why`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from ...client.reports.figures import DataflowFigures, StageFigures, WorkerFigures
from ...limits import SPREAD_ROWS_MIN

__all__ = ["Finding", "computing", "findings"]

_BUSY_SHARE: Final = 0.7
"""Of a worker's time: a stage that has more of it holds up all others there."""

_UNEVEN_SKEW: Final = 1.5
_UNEVEN_BUSY: Final = 0.2
"""Workers share a stage unevenly if one takes this much longer than their mean, and it matters only if the
stage has this much of that worker's time."""

_COMPUTING_SHARE: Final = 0.6
"""Of the time of stages by the clock. If the process had a processor for less of it, times of workers differ
without a difference of their work: other programs take the processors, or a function waits.
"""

_UNEVEN_KEPT: Final = 1.5
"""A worker that keeps so many times the mean number of rows has more rows of the keys, not only more work."""

_WAITING_ROWS: Final = 100_000
_BEHIND_SECONDS: Final = 1.0
_SILENT_SECONDS: Final = 5.0
_EPOCHS_APART: Final = 2


@dataclass(frozen=True)
class Finding:
    """One thing to look at.

    kind    what it is: busy, uneven, waiting, input, reader
    stage   its stage; -1 if it is none
    text    what is the case
    advice  what helps
    """

    kind: str
    stage: int
    text: str
    advice: str


def findings(
    flow: DataflowFigures,
    stages: Sequence[StageFigures],
    shares: Sequence[Sequence[StageFigures]],
    inputs: Sequence[Mapping[str, object]],
    outputs: Sequence[Mapping[str, object]],
    computed: Sequence[float] = (),
) -> list[Finding]:
    """Return what there is to look at, the likeliest cause first. `shares` are the stages of each worker;
    `computed` is what `computing` returns.
    """
    return [
        *_of_inputs(inputs),
        *_of_work(stages, shares, computed),
        *_of_rows(flow, stages),
        *_of_readers(outputs),
    ]


def _of_inputs(inputs: Sequence[Mapping[str, object]]) -> Iterator[Finding]:
    epochs = {str(each["name"]): epoch for each in inputs if isinstance(epoch := each["epoch"], int)}
    first, last = min(epochs.values(), default=0), max(epochs.values(), default=0)
    for name, epoch in epochs.items():
        if last - first >= _EPOCHS_APART and epoch == first:
            yield Finding(
                "input",
                -1,
                f"input {name!r} is at epoch {epoch:,}, another one at {last:,}",
                "Nothing behind both is complete before all of them are sealed: seal it, or close it.",
            )


def computing(workers: Sequence[WorkerFigures], stages: Sequence[Sequence[StageFigures]]) -> list[float]:
    """Return for each worker the share of the time of its stages in which its process had a processor, 1 at
    most. `stages` are those of each worker, of all dataflows. Workers of one process have one share.
    """
    busy: dict[int, float] = {}
    for worker, share in zip(workers, stages, strict=True):
        busy[worker.process] = busy.get(worker.process, 0.0) + sum(stage.busy for stage in share)
    return [min(1.0, worker.cpu / max(busy[worker.process], worker.cpu, 1e-9)) for worker in workers]


def _of_work(
    stages: Sequence[StageFigures], shares: Sequence[Sequence[StageFigures]], computed: Sequence[float]
) -> Iterator[Finding]:
    for place, stage in sorted(enumerate(stages), key=lambda each: -each[1].busy):
        by_worker = [share[place].busy if place < len(share) else 0.0 for share in shares]
        most = max(by_worker, default=0.0)
        worker = by_worker.index(most) if by_worker else 0
        had = computed[worker] if worker < len(computed) else 1.0
        is_uneven = len(by_worker) > 1 and most >= _UNEVEN_BUSY and stage.skew >= _UNEVEN_SKEW
        rows_by_worker = [share[place].kept_rows for share in shares if place < len(share)]
        if had < _COMPUTING_SHARE and most >= _BUSY_SHARE and not (is_uneven and _keeps_most(rows_by_worker)):
            yield Finding(
                "busy",
                stage.stage,
                f"{stage.name} takes {most:.0%} of worker {worker}'s time, but its process has a processor "
                f"for {had:.0%} of that only",
                (f"{_OF_ROWS} " if stage.name.startswith("input ") else "")
                + "A function waits (sleep, disk, network), or other programs take the processors.",
            )
        elif is_uneven and (had >= _COMPUTING_SHARE or _keeps_most(rows_by_worker)):
            yield Finding(
                "uneven",
                stage.stage,
                f"{stage.name} takes {most:.0%} of worker {worker}'s time, {most / sum(by_worker):.0%} of "
                "all work in it",
                _why_uneven(stage.name, rows_by_worker),
            )
        elif most >= _BUSY_SHARE:
            yield Finding(
                "busy",
                stage.stage,
                f"{stage.name} takes {most:.0%} of a worker's time",
                f"{_OF_ROWS} “What holds it” names the function that runs."
                if stage.name.startswith("input ")
                else "Look at its line: a Python function for each row? A join that meets very many rows? "
                "More workers share the work.",
            )


_OF_ROWS: Final = "What follows an input for each row (map, filter, select) runs in it."


def _keeps_most(rows_by_worker: Sequence[int]) -> bool:
    """Return True if one worker keeps many more rows than the mean."""
    return max(rows_by_worker, default=0) * len(rows_by_worker) >= _UNEVEN_KEPT * sum(rows_by_worker) > 0


def _why_uneven(name: str, rows_by_worker: Sequence[int]) -> str:
    """Return why one worker does most of the work of a stage, and what helps."""
    if name.startswith("input "):
        return (
            f"{_OF_ROWS} “What holds it” names the function that runs. These rows enter at one worker; "
            f"insertions of {SPREAD_ROWS_MIN:,} rows or more are spread."
        )
    what = "One key has most of the work, or few keys have all of it."
    if _keeps_most(rows_by_worker):
        most = max(rows_by_worker)
        part = f"{most / sum(rows_by_worker):.0%} of its rows"
        share = f"Worker {rows_by_worker.index(most)} keeps {part}"
        what = f"{share}: one key has most of them, or few keys have all."
    if name.startswith(("join", "group")):
        what += " balance= spreads such keys."
    return f"{what} docs/skew_joins.md says what helps."


def _of_rows(flow: DataflowFigures, stages: Sequence[StageFigures]) -> Iterator[Finding]:
    for stage in stages:
        if stage.waiting >= _WAITING_ROWS or (stage.waiting and flow.behind_seconds > _BEHIND_SECONDS):
            yield Finding(
                "waiting",
                stage.stage,
                f"{stage.waiting:,} rows wait in front of {stage.name}",
                "It, or what comes before it in the same worker's turn, is slower than the rows come.",
            )


def _reader_of(reader: Mapping[str, object]) -> str:
    """Return who a reader is."""
    site = f", at {reader['site']}" if reader["site"] else ""
    return f"{reader['client'] or reader['name']}{site}"


def _of_readers(outputs: Sequence[Mapping[str, object]]) -> Iterator[Finding]:
    for output in outputs:
        readers = output["readers"]
        assert isinstance(readers, list)
        for reader in readers:
            behind = reader["behind"]
            if reader["silent"] >= _SILENT_SECONDS and behind > 0:
                yield Finding(
                    "reader",
                    -1,
                    f"a reader of output {output['name']!r} has been silent for {reader['silent']:.0f} s, "
                    f"{behind:,} epochs behind: {_reader_of(reader)}",
                    f"Workers keep about {reader['rows']:,} rows in {reader['bytes']:,} bytes for it. Let it "
                    "read, or leave: output.leave().",
                )
