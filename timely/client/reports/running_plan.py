"""The stages of a dataflow as they run, as a text; with what each has done, if a user wants that."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from ...limits import SPREAD_ROWS_MIN
from ...wire.requests import Reply, Value
from .arrangements import dataflow_in
from .epoch_lists import with_epoch_lists
from .figures import StageFigures, figures

__all__ = ["running_plan"]

_SKEW_UNEVEN: Final = 1.5
_SHARE_OF_ALL: Final = 0.2
_SECONDS_WORTH: Final = 0.1
"""A stage is named as uneven if one worker works so much longer in it than the mean, and if it has so much of
the time of all stages, and more than a moment: else it hardly matters."""


def running_plan(replies: Sequence[Reply], dataflow: int, *, analyze: bool) -> str:
    """Return the text of `Flow.explain` from the answers of all workers to `Stats`."""
    told = [dataflow_in(reply, dataflow) for reply in replies]
    shown = figures([], [with_epoch_lists(reply.values) for reply in replies], 1.0)  # all since the start
    stages = [stage for stage in shown.stages if stage.dataflow == dataflow]
    (flow,) = [each for each in shown.dataflows if each.dataflow == dataflow]
    came = _rows_between(told)
    lines = [f"{flow.name!r} on {len(replies)} {'worker' if len(replies) == 1 else 'workers'}"]
    if analyze:
        open_epoch = "no input is open" if flow.epoch is None else f"epoch {flow.epoch} is open"
        complete = "all is complete"
        if flow.complete_before is not None:
            complete = f"what is before {flow.complete_before} is complete"
        lines[0] += f": {open_epoch}, {complete}"
        lines.append(_HEADER)
    for stage in stages:
        where = f"   in {stage.loop}" if stage.loop else ""
        lines.append(
            f"{_figures(stage) if analyze else ''}{stage.stage:>3}  {stage.name}{where}   {stage.site}"
        )
        for (source, target), rows in came.items():
            if target == stage.stage:
                line = f"{' ' * len(_HEADER) if analyze else ''}       from {source} {stages[source].name}"
                lines.append(line + (f": {rows:,} rows" if analyze else ""))
    return "\n".join([*lines, *(_advice(stages) if analyze and len(replies) > 1 else ())])


_HEADER: Final = f"{'busy s':>10}{'skew':>7}{'waiting':>10}{'kept rows':>13}{'kept bytes':>14}  "


def _figures(stage: StageFigures) -> str:
    columns = f"{stage.kept_rows:>13,}{stage.kept_bytes:>14,}"
    return f"{stage.busy:>10.3f}{stage.skew:>7.2f}{stage.waiting:>10,}{columns}  "


def _rows_between(told: Sequence[Value]) -> Mapping[tuple[int, int], int]:
    """Return how many rows all workers have sent from stage to stage; several ways between two are one."""
    came: dict[tuple[int, int], int] = {}
    for dataflow in told:
        match dataflow:
            case {"connectors": [*connectors]}:
                for connector in connectors:
                    match connector:
                        case {"source": int(source), "target": int(target), "rows": int(rows)}:
                            came[source, target] = came.get((source, target), 0) + rows
    return came


def _advice(stages: Sequence[StageFigures]) -> Iterator[str]:
    """Yield a line for each stage in which one worker does most of the work, if it matters."""
    total = sum(stage.busy for stage in stages)
    for stage in stages:
        if stage.skew >= _SKEW_UNEVEN and stage.busy >= max(_SECONDS_WORTH, _SHARE_OF_ALL * total):
            what = "docs/skew_joins.md says what helps"
            if stage.name.startswith("join"):
                what = "join(…, balance='auto') may pay: docs/skew_joins.md"
            elif stage.name.startswith("input "):
                what = (
                    "map, filter and select behind an input run in it; insertions of "
                    f"{SPREAD_ROWS_MIN:,} rows or more are spread"
                )
            took = f"one worker took {stage.skew:.2f} times the mean of all"
            yield f"stage {stage.stage} is uneven: {took}; {what}"
