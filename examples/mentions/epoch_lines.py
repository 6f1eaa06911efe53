"""The report on each committed epoch: a line on the screen, or one of JSON."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from datetime import UTC, datetime

import pyarrow as pa
from component_sizes import ComponentSizes
from rich.console import Console

import timely.spark

__all__ = ["EpochLines", "EpochReport"]


@dataclass(frozen=True)
class EpochReport:
    """The report on one epoch; the fields of a `--json` line."""

    epoch: int
    end: int
    interactions: int
    nodes: int
    components: int
    largest: int
    changes: int
    seconds: float


class EpochLines:
    """Called with each epoch, in order, and its changes (node, component, epoch, diff)."""

    def __init__(self, console: Console, as_json: bool) -> None:
        self._console = console
        self._as_json = as_json
        self._sizes = ComponentSizes()
        self._in_window = 0

    def __call__(self, epoch: timely.spark.Epoch, changes: pa.Table) -> None:
        """One line."""
        report = self._report(epoch, changes)
        if self._as_json:
            print(json.dumps(asdict(report)), flush=True)
            return
        end = datetime.fromtimestamp(report.end, UTC).strftime("%a %d %b %H:%M")
        self._console.print(
            f"{end}  +{epoch.entered:<6,} -{epoch.left:<6,} interactions  {report.nodes:>7,} nodes  "
            f"{report.components:>6,} components  largest {report.largest:>7,}  "
            f"{report.changes:>7,} changes  {report.seconds * 1000:>7.1f} ms",
            highlight=False,
            soft_wrap=True,
        )

    def _report(self, epoch: timely.spark.Epoch, changes: pa.Table) -> EpochReport:
        self._sizes.apply(changes)
        self._in_window += epoch.entered - epoch.left
        assert isinstance(epoch.value, int), "the window is over unix seconds"
        return EpochReport(
            int(epoch),
            epoch.value,
            self._in_window,
            self._sizes.nodes,
            self._sizes.components,
            self._sizes.largest,
            changes.num_rows,
            round(epoch.seconds, 6),
        )
