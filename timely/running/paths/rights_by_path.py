"""The runner of a vertex whose inputs lead to its outputs by paths of their own: see `Dataflow.stage`.

    send by output q      at or after the path from p to q, of the time of what has come in at p
    hold, ask             at or after the latest of the paths from p, if all outputs can be reached
    what is held          gives the right to send by every output

So what comes in at one input may never lead to anything at some output, whose readers need not wait for it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from threading import get_ident
from typing import TypeAlias

from progress.graph.graph import Graph
from progress.times.path_summary import PathSummary
from progress.times.time_words import TimeCode

from ...wire.batch import Batch
from ..stages.rights import Acting
from ..stages.surroundings import WithAlarms
from ..stages.vertex_runner import VertexRunner

__all__ = ["PathRunner", "Paths"]

_Words: TypeAlias = tuple[int, int] | None
"""What a path does to a word, (word & keep) + add; None: it leads nowhere."""


@dataclass(frozen=True)
class Paths:
    """The paths of one stage, in words: by input, to what it may hold; by input and output, to what it may
    send.
    """

    holds: tuple[_Words, ...]
    sends: tuple[tuple[_Words, ...], ...]

    @staticmethod
    def of(graph: Graph, stage: int) -> Paths:
        """Return the paths of a stage."""
        spec, code = graph.stages[stage], graph.codes[stage]

        def words(summary: PathSummary | None) -> _Words:
            return None if summary is None else summary.to_words(code, code)

        return Paths(
            tuple(words(graph.hold_summary(stage, port)) for port in range(spec.inputs)),
            tuple(
                tuple(words(graph.internal(stage, port, output)) for output in range(spec.outputs))
                for port in range(spec.inputs)
            ),
        )


class PathRunner(VertexRunner):
    """One stage on one worker, whose rights depend on the input and the output."""

    __slots__ = ("_paths", "_port_now", "_sendable")

    def __init__(
        self,
        paths: Paths,
        surroundings: WithAlarms[VertexRunner],
        stage: int,
        name: str,
        site: str,
        code: TimeCode,
        outputs: int,
        acting: Acting | None = None,
    ) -> None:
        super().__init__(surroundings, stage, name, site, code, outputs, acting)
        self._paths = paths
        self._port_now = 0
        """The input whose messages are being delivered."""
        self._sendable: list[set[int]] = [set() for _ in range(outputs)]
        """By output, the words at or after which it may send for what is being delivered."""

    def one_by_one(self, messages: Sequence[tuple[int, Batch]]) -> Iterator[tuple[int, Batch]]:
        """See `Rights`."""
        received, sendable = self._received, self._sendable
        try:
            for word, batch in messages:
                self._grant([word])
                yield word, batch
        finally:
            self._received, self._received_minimal, self._sendable = received, None, sendable

    def send(self, output: int, batch: Batch, word: int) -> None:
        """Send `batch` at `word` by every connector of `output`."""
        if get_ident() != self._acting.thread:
            self._acting.refuse(self.title(), "sent")
        if type(output) is not int or not 0 <= output < len(self.outputs):
            output = self._port(output, "sends by output", "outputs", len(self.outputs))
        guards, sendable = self.code.guards, self._sendable[output]
        may_send = word >= 0 and any(((word | guards) - owned) & guards == guards for owned in sendable)
        if not may_send and not self._has_right(word):
            received, self._received = self._received, sendable
            try:
                self._refuse(word, f"sent by output {output}")
            finally:
                self._received = received
        for connector in self.outputs[output]:
            connector.send(batch, word)

    def _deliver(self) -> None:
        vertex, lasting = self.vertex, self._lasting
        assert vertex is not None
        inbox, self.inbox = self.inbox, []
        by_port: dict[int, list[tuple[int, Batch]]] = {}
        for port, _, word, batch in inbox:
            by_port.setdefault(port, []).append((word, batch))
        for port, messages in by_port.items():
            self.events.extend(("on_recv", word) for word, _ in messages)
            self._port_now = port
            self._grant([word for word, _ in messages])
            vertex.recv_all(port, messages if lasting is None else lasting.outward(messages))
        self._grant([])
        for _, location, word, _ in inbox:
            self._surroundings.count(location, word, -1)

    def _grant(self, words: Iterable[int]) -> None:
        """Let the vertex act for messages at these words, which came in at the input that is delivered."""
        port, words = self._port_now, list(words)
        self._received = _after(self._paths.holds[port], words)
        self._received_minimal = None
        self._sendable = [_after(path, words) for path in self._paths.sends[port]]


def _after(path: _Words, words: Iterable[int]) -> set[int]:
    """Return the words behind a path."""
    if path is None:
        return set()
    keep, add = path
    return {(word & keep) + add for word in words}
