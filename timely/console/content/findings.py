"""What may keep a dataflow from keeping up, as sentences: a stage that is always busy, one worker that does
most, an input that nobody seals, a reader that has stopped, rows that pile up.

A finding says what to look at, from the counters alone. What holds an epoch for certain says `Flow.why`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from ...client.reports.figures import DataflowFigures, StageFigures

__all__ = ["Finding", "findings"]

_BUSY_SHARE: Final = 0.7
"""Of a worker's time: a stage that has more of it holds up all others there."""

_UNEVEN_SKEW: Final = 1.5
_UNEVEN_BUSY: Final = 0.2
"""Workers share a stage unevenly if one takes this much longer than their mean, and it matters only if the
stage has this much of that worker's time."""

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
) -> list[Finding]:
    """Return what there is to look at, the likeliest cause first. `shares` are the stages of each worker."""
    return [
        *_of_inputs(inputs),
        *_of_work(stages, shares),
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


def _of_work(stages: Sequence[StageFigures], shares: Sequence[Sequence[StageFigures]]) -> Iterator[Finding]:
    for place, stage in sorted(enumerate(stages), key=lambda each: -each[1].busy):
        by_worker = [share[place].busy if place < len(share) else 0.0 for share in shares]
        most = max(by_worker, default=0.0)
        if len(by_worker) > 1 and most >= _UNEVEN_BUSY and stage.skew >= _UNEVEN_SKEW:
            worker, share = by_worker.index(most), most / sum(by_worker)
            what = "A key has most rows, or rows come to one worker only"
            if stage.name.startswith("join"):
                what = "A key has most rows: balance='auto' may pay"
            elif stage.name.startswith("input "):
                what = "Rows enter at one worker: larger insertions are spread"
            yield Finding(
                "uneven",
                stage.stage,
                f"{stage.name} takes {most:.0%} of worker {worker}'s time, {share:.0%} of all work in it",
                f"{what}. docs/skew.md says what helps.",
            )
        elif most >= _BUSY_SHARE:
            yield Finding(
                "busy",
                stage.stage,
                f"{stage.name} takes {most:.0%} of a worker's time",
                "Look at its line: a Python function for each row? A join that meets very many rows? More "
                "workers share the work.",
            )


def _of_rows(flow: DataflowFigures, stages: Sequence[StageFigures]) -> Iterator[Finding]:
    for stage in stages:
        if stage.waiting >= _WAITING_ROWS or (stage.waiting and flow.behind_seconds > _BEHIND_SECONDS):
            yield Finding(
                "waiting",
                stage.stage,
                f"{stage.waiting:,} rows wait in front of {stage.name}",
                "It, or what comes before it in the same worker's turn, is slower than the rows come.",
            )


def _of_readers(outputs: Sequence[Mapping[str, object]]) -> Iterator[Finding]:
    for output in outputs:
        complete, readers = output["complete"], output["readers"]
        assert isinstance(readers, list)
        for reader in readers:
            behind = complete - reader["epoch"] if isinstance(complete, int) else 0
            if reader["silent"] >= _SILENT_SECONDS and behind > 0:
                yield Finding(
                    "reader",
                    -1,
                    f"a reader of output {output['name']!r} has been silent for {reader['silent']:.0f} s, "
                    f"{behind:,} epochs behind",
                    "Workers keep these changes for it. Let it read, or leave: output.leave().",
                )
