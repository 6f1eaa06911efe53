"""How far has a stream come?

A probe is a stage that looks at the frontier of its input and drops what comes in.
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

    def recv_all(self, port: int, messages: Sequence[tuple[int, Batch]]) -> None:
        """Nothing: only the frontier matters."""

    def symbols(self, mark: Mark) -> None:
        """None: it keeps nothing."""

    def is_past(self, time: Timestamp) -> bool:
        """Whether nothing at or before `time` can appear in the stream any more."""
        # As tuples: the time may be of any epoch, also of one that no word holds.
        before, unpack = self.code.shape.less_equal, self.code.unpack
        return not any(before(unpack(int(front)), time) for front in self.frontier(0))

    def rebase(self, by: Rebase) -> None:
        """It keeps nothing."""
