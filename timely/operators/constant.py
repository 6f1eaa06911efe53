"""Constants: rows that are there from the first epoch on and never change.

In its dataflow a constant is an input: open on every worker at the first epoch. Worker 0 lets its rows enter
there, and then every worker closes its share. So it holds nothing up, and a dataflow that begins later (one
that imports) has it from its own first epoch on.
"""

from __future__ import annotations

from typing import Protocol

from progress.times.time_words import TimeCode

from ..wire.batch import Batch

__all__ = ["ConstantCodec", "ConstantHandle"]


class ConstantCodec(Protocol):
    """Knows the rows."""

    def batch(self, word: int) -> Batch:
        """Return the rows, at the time `word`."""
        ...

    def describe(self) -> str:
        """Return a stable text for the fingerprint."""
        ...


class _ConstantStage(Protocol):
    """The stage that stands for a constant; see `Entrance` of inputs."""

    @property
    def code(self) -> TimeCode:
        """How words pack epochs."""
        ...

    def wake(self) -> None:
        """Ask for an activation, which calls `ConstantHandle.let_rows_in`."""
        ...

    def let_in(self, batch: Batch, word: int) -> None:
        """Let rows enter."""
        ...

    def advance(self, old: int, new: int | None) -> None:
        """Move the open epoch on; `None`: no rows will come any more."""
        ...


class ConstantHandle:
    """One constant on one worker."""

    def __init__(self, codec: ConstantCodec, entry: _ConstantStage, worker: int) -> None:
        self.codec = codec
        self.epoch = 0
        self.is_complete = False
        self._entry = entry
        self._worker = worker

    @property
    def held_epoch(self) -> int | None:
        """The epoch at which its rows may still enter here; None once they have."""
        return None if self.is_complete else self.epoch

    def begin(self, epoch: int) -> None:
        """Let `epoch` be the first."""
        self.epoch = epoch
        self._entry.wake()

    def let_rows_in(self) -> None:
        """Let the rows enter: the activation of the stage."""
        if self.is_complete:
            return
        self.is_complete = True
        if self._worker == 0:
            word = self._entry.code.pack((self.epoch,))
            self._entry.let_in(self.codec.batch(word), word)
        self._entry.advance(self.epoch, None)
