"""Arrangements: a stage that keeps a collection by key lets others read its trace, and tells them of inserts.

An *arrangement* is a shared trace together with a stream of `ArrangedBatch`, one for each insert. The stage
that *builds* it inserts and sends in one activation; stages that *read* it sit on the same worker, behind
connectors without route and transform, and find the trace through these connectors when they start.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar, NoReturn, Self

from differential.columns.overflow import ShowRow, show_words
from differential.kernels.history.times import latest_counter, shift_times
from differential.trace.readers import Path, Reader
from differential.trace.shared import SharedTrace
from progress.compiled.arrays import Int64s
from timely.dictionaries import Mark
from timely.errors import InternalError
from timely.wire.batch import Batch, Frame

if TYPE_CHECKING:
    from progress.times.time_words import TimeCode
    from timely.operators.vertex import Vertex

__all__ = ["ArrangedBatch", "Arrangement", "arranged", "read_arrangement"]


class ArrangedBatch:
    """The rows of insert number `sequence`, sorted and consolidated; the trace holds the same array.

    The envelope is ≤ the times of all rows. It never leaves its worker.
    """

    __slots__ = ("sequence", "words")

    KIND: ClassVar[int] = 3

    def __init__(self, words: Int64s, sequence: int) -> None:
        self.words = words
        self.sequence = sequence

    @property
    def rows(self) -> int:
        """The number of updates."""
        return int(self.words.shape[1])

    @property
    def size_bytes(self) -> int:
        """The bytes of the rows."""
        return int(self.words.nbytes)

    def shifted(self, keep: int, add: int) -> Self:
        """Return the same insert with every time `t` at `(t & keep) + add`; itself if it only enters a
        loop.
        """
        return self if add == 0 else type(self)(shift_times(self.words, keep, add), self.sequence)

    def rebased(self, step: int) -> Self:
        """Return the same insert with every time later by `step`."""
        return type(self)(shift_times(self.words, -1, step), self.sequence)

    def latest(self, shift: int, mask: int) -> int:
        """Return the largest value of the counter at `shift` and `mask` in the times of its rows."""
        return latest_counter(self.words, shift, mask)

    def until(self, shift: int, mask: int, last: int) -> Self | None:
        """Raise InternalError: the trace has all rows, also those beyond `last`."""
        self._refuse("goes round a loop that stops")

    def to_frames(self, peer: int) -> list[Frame]:
        """Raise InternalError: the trace is on this worker."""
        self._refuse(f"is sent to worker {peer}")

    def on_sent(self, peer: int) -> None:
        """Raise InternalError, as `to_frames`."""
        self._refuse(f"is sent to worker {peer}")

    def symbols(self, mark: Mark) -> None:
        """Show all words of the rows."""
        mark.words(self.words[:-2])

    @classmethod
    def from_frames(cls, frames: Sequence[memoryview], peer: int) -> Self:
        """Raise InternalError, as `to_frames`."""
        cls._refuse(f"comes from worker {peer} as {len(frames)} frames")

    @classmethod
    def absorb(cls, frames: Sequence[memoryview], peer: int) -> Sequence[memoryview]:
        """Raise InternalError, as `to_frames`."""
        cls._refuse(f"comes from worker {peer} as {len(frames)} frames")

    @classmethod
    def _refuse(cls, what: str) -> NoReturn:
        raise InternalError(
            f"a batch of an arrangement {what}: only stages of the same worker read an arrangement"
        )


def arranged(batch: Batch) -> ArrangedBatch:
    """Return `batch`, which must be one of an arrangement; raise `InternalError` if it is not."""
    if not isinstance(batch, ArrangedBatch):
        raise InternalError(f"a reader of an arrangement got a {type(batch).__name__}")
    return batch


class Arrangement:
    """The trace that a vertex offers: made at the first call of `trace`, perhaps before the vertex starts."""

    def __init__(self, kw: int, vw: int, show: ShowRow = show_words) -> None:
        self.kw = kw
        self.vw = vw
        self._show = show
        self._trace: SharedTrace | None = None

    def trace(self, code: TimeCode, name: str) -> SharedTrace:
        """Return the trace, for times of `code`; `name`: that of the stage that writes it."""
        if self._trace is None:
            self._trace = SharedTrace(self.kw, self.vw, code.guards, name)
            self._trace.show = self._show
        assert self._trace.guards == code.guards
        return self._trace


def read_arrangement(vertex: Vertex, port: int, *, by_position: bool) -> tuple[SharedTrace, Reader]:
    """Begin to read, as `vertex`, the arrangement whose batches come in at `port`. Call it in `on_start`.

    Raises InternalError unless one connector brings them, from the same worker and unchanged. The connector
    may enter loops and go round the innermost of the arrangement's, but not leave any: that would collapse
    times.
    """
    feeding = vertex.feeding(port)
    if len(feeding) != 1:
        raise InternalError(f"{vertex!r} reads one arrangement at input {port}, not {len(feeding)}")
    (feeder,) = feeding
    arrangement: Arrangement | None = getattr(feeder.vertex, "arrangement", None)
    if arrangement is None:
        raise InternalError(f"{vertex!r} reads what {feeder.name!r} keeps, which offers no arrangement")
    if not feeder.is_plain:
        raise InternalError(
            f"{vertex!r} reads {feeder.name!r} behind a connector with a route or a transform"
        )
    code = feeder.code
    keep = code.keep_mask(code.shape.levels)
    if feeder.keep & keep != keep:
        raise InternalError(f"{vertex!r} reads {feeder.name!r} from outside the loop that it is in")
    path = Path(keep, feeder.add, _field_of(code, feeder.add))
    trace = arrangement.trace(code, feeder.name)
    return trace, trace.read(vertex.name, by_position=by_position, path=path)


def _field_of(code: TimeCode, add: int) -> int:
    """Return the value bits of the counter that a delay advances; 0 without a delay."""
    for shift, bits in code.fields:
        if add >> shift & ((1 << bits) - 1):
            return ((1 << bits) - 1) << shift
    return 0
