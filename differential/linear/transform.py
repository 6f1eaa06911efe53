"""A chain of linear operators as what a connector runs.

If the chain only moves words, `projection` says how, and the stage in front may write its rows in that layout
at once.

A chain that has no answer for some rows is run by two connectors: `LinearTransform` gives the answers, and
`FailureTransform` the failures (`failing.py`). Both are given the same batches, one right after the other, so
that the chain is run once: whoever comes first keeps the other's part.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from differential.columns.packed.block import Block
from differential.errors import NotEmptyError, RowError, UserFunctionError
from differential.expressions.projection import Projection
from differential.linear.chain import LinearChain
from differential.linear.failures.failing import FAILURES, Apart, Failed, apart, failure_words
from differential.linear.passes import as_one
from differential.linear.short import Short, short_of
from progress.compiled.arrays import Int64s
from progress.times.time_words import TimeCode, TimeLayout
from progress.times.timestamp import TimeShape
from timely.wire.batch import Batch

from ..columns.update_batch import PackedBatch, UpdateBatch, words_of
from ..columns.worker_symbols import SYMBOLS

__all__ = ["AtPlace", "ChainFailures", "FailureTransform", "LinearTransform"]

_FAILING: Final = (RowError, UserFunctionError, NotEmptyError)


class ChainFailures:
    """The failures of one chain, on their way from the connector with the answers to those with the failures.

    Attributes:
        places: by operator its number in rows of `FAILURES`.
        shape: of the times in the loops that the chain is in.
        times: how often each row of a batch is in what the operator gets; its failures are there as often.
        counters: the bits of a time word that count iterations of these loops; known once times have a
            layout.
        readers: how many connectors take the failures of each batch.
    """

    def __init__(self, places: Mapping[bytes, int], shape: TimeShape, times: int = 1) -> None:
        self.places = places
        self.shape = shape
        self.times = times
        self.counters = 0
        self.readers = 0
        self._batch: Batch | None = None
        self._failed: list[Failed] = []
        self._left = 0

    def put(self, batch: Batch, failed: list[Failed]) -> None:
        """Keep what failed of `batch` until all readers have asked for it."""
        if self.readers:
            self._batch, self._failed, self._left = batch, failed, self.readers

    def has(self, batch: Batch) -> bool:
        """Whether it is known what failed of `batch`."""
        return self._batch is batch

    def take(self) -> list[Failed]:
        """What failed of the batch that was put last, for one more reader."""
        failed = self._failed
        self._left -= 1
        if self._left <= 0:
            self.clear()
        return failed

    def take_all(self) -> list[Failed]:
        """The same for all readers together."""
        failed = self._failed
        self.clear()
        return failed

    def clear(self) -> None:
        """Let go of what nobody has asked for."""
        self._batch, self._failed = None, []

    def as_batch(self, failed: Sequence[Failed], rounds: int) -> UpdateBatch | None:
        """Rows that failed, as rows of `FAILURES`; where the chain stands, times are later by `rounds`."""
        if not failed:
            return None
        many = [one._replace(diff=one.diff * self.times) for one in failed] if self.times > 1 else failed
        words = failure_words(self.places, many, (rounds, self.counters), SYMBOLS)
        return UpdateBatch(words, FAILURES.symbol_words)


class AtPlace:
    """Failures that an operator has found, with their place."""

    def __init__(self, place: int) -> None:
        self.place = place

    def __call__(self, batch: Batch) -> Batch:
        """The same rows of `FAILURES`, which name the place."""
        words = words_of(batch).copy()
        place, iteration = FAILURES.offset("place"), FAILURES.offset("iteration")
        words[iteration] ^= words[place] << 40  # what was of different places stays different
        words[place] = self.place
        return UpdateBatch(words, FAILURES.symbol_words)


class LinearTransform:
    """Update batch in, update batch or nothing out.

    `failures`: where failures go; None: they end the dataflow.
    """

    def __init__(self, chain: LinearChain) -> None:
        self.chain = chain
        self.failures: ChainFailures | None = None
        self._passes = chain.passes(SYMBOLS)
        self._function = as_one(self._passes)
        self._symbol_words = chain.schema_out.symbol_words
        self._accumulation = chain.as_accumulation(SYMBOLS)
        self.projection: Projection | None = chain.as_projection(SYMBOLS)
        self.short: Short | None = short_of(chain.steps, chain.schema_in, SYMBOLS)
        """The same for kernels, if there is such a form."""

    @classmethod
    def of(cls, chain: LinearChain) -> LinearTransform | None:
        """The transform of `chain`; None if the chain changes nothing."""
        projection = chain.as_projection(SYMBOLS)
        if projection is not None and projection.is_identity(chain.schema_in.width):
            return None
        return cls(chain)

    def __call__(self, batch: Batch) -> Batch | None:
        """The rows of `batch` after the chain. Many that are packed, and only moved, stay packed; what very
        many add up to is packed, too.
        """
        if isinstance(batch, PackedBatch) and (moves := self.projection) is not None:
            moved = batch.projected(moves.sources, moves.constants, moves.sign, self._symbol_words)
            if moved is not None:
                return moved
        if isinstance(batch, PackedBatch) and self._accumulation is not None:
            moves, step = self._accumulation
            # Symbols are said of what comes out.
            going = batch.projected(moves.sources, moves.constants, moves.sign, ())
            made = None if going is None else step.packed(going.packed())
            if made is not None:
                return self._as_packed(made, batch)
        if self.failures is not None:
            return self._beside(batch, self.failures)
        words = self._function(words_of(batch))
        return None if words is None else UpdateBatch(words, self._symbol_words)

    def _beside(self, batch: Batch, failures: ChainFailures) -> Batch | None:
        """The rows of `batch` that the chain has an answer for; the others wait at `failures`."""
        words, failed = words_of(batch), list[Failed]()
        try:
            rows = self._function(words)
        except _FAILING:
            rows, failed = self.apart(words)
        failures.put(batch, failed)
        return None if rows is None else UpdateBatch(rows, self._symbol_words)

    def apart(self, words: Int64s) -> Apart:
        """The rows that the chain makes of `words`, and the rows that it has no answer for."""
        return apart(self._passes, words, SYMBOLS)

    def _as_packed(self, blocks: Sequence[Block], batch: PackedBatch) -> PackedBatch | None:
        """Rows with time and diff, of the time of `batch`, in which they are still."""
        if not blocks:
            return None
        width = blocks[0].columns - 2
        sources = [*range(width), width + 1]
        kept = tuple(block.with_columns(sources, [0] * len(sources)) for block in blocks)
        return PackedBatch(kept, width, batch.only_time(), None, self._symbol_words, batch.moved)


class FailureTransform:
    """Update batch in, the failures of a chain out, as rows of `FAILURES`; or nothing.

    `answers` runs the same chain for the rows that have an answer, and `failures` is theirs together.
    `rounds`: by how much times become later before they are where the chain stands.
    """

    def __init__(self, answers: LinearTransform, failures: ChainFailures, rounds: int = 0) -> None:
        self.answers = answers
        self.failures = failures
        self.rounds = rounds

    def on_path(self, layout: TimeLayout, rounds: int) -> FailureTransform:
        """The same at the end of a path, whose batches it reads."""
        failures = self.failures
        kept = TimeCode(layout, failures.shape).keep_mask(failures.shape.levels)
        failures.counters = kept & ((1 << layout.shifts[0]) - 1)
        return FailureTransform(self.answers, failures, rounds)

    def __call__(self, batch: Batch) -> Batch | None:
        """The failures of the rows of `batch`."""
        failures = self.failures
        if failures.has(batch):
            failed = failures.take()
        else:  # behind another chain, which has made this batch for this connector alone
            failed = self.answers.apart(words_of(batch)).failed
        return failures.as_batch(failed, self.rounds)
