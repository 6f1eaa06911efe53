"""Interactions of a data set in a window over time, and what a slide of the window changes.

A window of width w that ends at T holds the interactions with T - w < time ≤ T. Edges of the graph are those
interactions, as often as they are there.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from bench.dataflow.sliding import Interactions, read

__all__ = ["DAY", "Window", "busiest", "interactions"]

Int64s = npt.NDArray[np.int64]

DAY = 86_400
"""Seconds."""


@dataclass(frozen=True)
class Window:
    """The interactions of `width` seconds up to `end`."""

    rows: Interactions
    width: int
    end: int

    def table(self) -> pa.Table:
        """All edges in it: columns src, dst."""
        return self._edges(self.end - self.width, self.end)

    def slid(self, seconds: int) -> tuple[Window, pa.Table, pa.Table]:
        """The window as it is later, and the edges that have come and gone."""
        later = Window(self.rows, self.width, self.end + seconds)
        come = self._edges(self.end, later.end)
        gone = self._edges(self.end - self.width, later.end - self.width)
        return later, come, gone

    def nodes(self) -> int:
        """How many different nodes have an edge."""
        table = self.table()
        ends = np.concatenate([table["src"].to_numpy(), table["dst"].to_numpy()])
        return int(np.unique(ends).shape[0])

    def _edges(self, after: int, until: int) -> pa.Table:
        first, stop = np.searchsorted(self.rows.time, [after, until], "right")
        return pa.table({"src": self.rows.source[first:stop], "dst": self.rows.target[first:stop]})


def interactions(path: Path, kind: str | None) -> Interactions:
    """Those of a file, in the order of time; of one kind, or all."""
    return read(path, kind)[0]


def busiest(rows: Interactions, width: int) -> Window:
    """The first window that holds the most interactions."""
    held = np.arange(1, rows.time.shape[0] + 1) - np.searchsorted(rows.time, rows.time - width, "right")
    return Window(rows, width, int(rows.time[int(np.argmax(held))]))
