"""How far has a stream come?

A probe is a stage that looks at the frontier of its input and drops what comes in.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

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
        word = self.code.pack(time)
        guards = self.code.guards
        return not any(((word | guards) - int(f)) & guards == guards for f in self.frontier(0))
