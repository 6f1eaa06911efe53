"""Probes: how far a stream has come.

A probe is a stage that looks at the frontier of its input and drops all rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from progress.times.anchor import Rebase
from progress.times.timestamp import Timestamp

from ..dictionaries import Mark
from ..wire.batch import Batch
from .vertex import Vertex


class ProbeVertex(Vertex):
    """Watches one stream."""

    word_times: ClassVar[bool] = True
    wants_frontier: ClassVar[bool] = True
    keeps: ClassVar[str] = "nothing"

    def recv_all(self, port: int, messages: Sequence[tuple[int, Batch]]) -> None:
        """Drop the rows: only the frontier matters."""

    def symbols(self, mark: Mark) -> None:
        """Show nothing: it keeps nothing."""

    def is_past(self, time: Timestamp) -> bool:
        """Return True if nothing at or before `time` can appear in the stream any more."""
        # Compare tuples: the time may be of any epoch, also of one that no word holds.
        before, unpack = self.code.shape.less_equal, self.code.unpack
        return not any(before(unpack(int(front)), time) for front in self.frontier_words(0))

    def is_at_least(self, time: Timestamp) -> bool:
        """Return True if nothing before `time` can appear in the stream any more; at `time` it may."""
        before, unpack = self.code.shape.less_equal, self.code.unpack
        fronts = (unpack(int(front)) for front in self.frontier_words(0))
        return not any(front != time and before(front, time) for front in fronts)

    def front(self) -> list[Timestamp]:
        """Return the earliest times that may still appear in the stream."""
        return [self.code.unpack(int(front)) for front in self.frontier_words(0)]

    def rebase(self, by: Rebase) -> None:
        """Do nothing: it keeps nothing."""
