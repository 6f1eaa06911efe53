"""A chain of linear operators as a transform of connectors.

If the chain only moves words, `projection` says how, and the stage in front may write its rows in that layout
directly.

Two connectors run a chain that has no answer for some rows: `LinearTransform` passes on the answers,
`FailureTransform` the failures (`failing.py`). Both get the same batches, one right after the other, and run
the chain only once: the one that comes first keeps the other's results.
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
        places: number of each operator in rows of `FAILURES`.
        shape: of the times in the loops that the chain is in.
        times: how often the operator gets each row of a batch; failures count as often.
        counters: the bits of a time word that count iterations of these loops; set once times have a layout.
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

    def __deepcopy__(self, memo: dict[int, object]) -> ChainFailures:
        """Return itself: copies of workers share transforms, and nothing is kept between two turns."""
        return self

    def put(self, batch: Batch, failed: list[Failed]) -> None:
        """Keep the failures of `batch` until all readers have taken them."""
        if self.readers:
            self._batch, self._failed, self._left = batch, failed, self.readers

    def has(self, batch: Batch) -> bool:
        """True if the failures of `batch` are here."""
        return self._batch is batch

    def take(self) -> list[Failed]:
        """Return the failures of the batch that was put last, to one more reader."""
        failed = self._failed
        self._left -= 1
        if self._left <= 0:
            self.clear()
        return failed

    def take_all(self) -> list[Failed]:
        """Return the same to all readers together."""
        failed = self._failed
        self.clear()
        return failed

    def clear(self) -> None:
        """Drop failures that no reader has taken."""
        self._batch, self._failed = None, []

    def as_batch(self, failed: Sequence[Failed], rounds: int) -> UpdateBatch | None:
        """Return failed rows as rows of `FAILURES`; where the chain stands, times are later by `rounds`."""
        if not failed:
            return None
        multiplied = (
            [one._replace(diff=one.diff * self.times) for one in failed] if self.times > 1 else failed
        )
        words = failure_words(self.places, multiplied, (rounds, self.counters), SYMBOLS)
        return UpdateBatch(words, FAILURES.symbol_words)


class AtPlace:
    """Marks failures that an operator has found with the operator's number."""

    def __init__(self, place: int) -> None:
        self.place = place

    def __call__(self, batch: Batch) -> Batch:
        """Return the same rows of `FAILURES`, with the number in `place`."""
        words = words_of(batch).copy()
        place, iteration = FAILURES.offset("place"), FAILURES.offset("iteration")
        words[iteration] ^= words[place] << 40  # rows that differed by place still differ
        words[place] = self.place
        return UpdateBatch(words, FAILURES.symbol_words)


class LinearTransform:
    """Update batch in, update batch or nothing out.

    `failures`: takes the rows that fail; None: a row that fails ends the dataflow.
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
        """The chain in a form for kernels that take rows one by one, if it has one."""

    @classmethod
    def of(cls, chain: LinearChain) -> LinearTransform | None:
        """Return the transform of `chain`; None if the chain changes nothing."""
        projection = chain.as_projection(SYMBOLS)
        if projection is not None and projection.is_identity(chain.schema_in.width):
            return None
        return cls(chain)

    def __call__(self, batch: Batch) -> Batch | None:
        """Return the rows of `batch` after the chain, or None for no rows.

        Packed rows that are only moved stay packed; sums of many packed rows are packed, too.
        """
        if isinstance(batch, PackedBatch) and (moves := self.projection) is not None:
            moved = batch.projected(moves.sources, moves.constants, moves.sign, self._symbol_words)
            if moved is not None:
                return moved
        if isinstance(batch, PackedBatch) and self._accumulation is not None:
            moves, step = self._accumulation
            # Symbols are declared for the result, not for its input.
            projected = batch.projected(moves.sources, moves.constants, moves.sign, ())
            blocks = None if projected is None else step.packed(projected.packed())
            if blocks is not None:
                return self._as_packed(blocks, batch)
        if self.failures is not None:
            return self._beside(batch, self.failures)
        words = self._function(words_of(batch))
        return None if words is None else UpdateBatch(words, self._symbol_words)

    def _beside(self, batch: Batch, failures: ChainFailures) -> Batch | None:
        """Return the rows of `batch` that the chain has an answer for; the others wait in `failures`."""
        words, failed = words_of(batch), list[Failed]()
        try:
            rows = self._function(words)
        except _FAILING:
            rows, failed = self.apart(words)
        failures.put(batch, failed)
        return None if rows is None else UpdateBatch(rows, self._symbol_words)

    def apart(self, words: Int64s) -> Apart:
        """Return the rows that the chain makes of `words`, and the rows that it has no answer for."""
        return apart(self._passes, words, SYMBOLS)

    def _as_packed(self, blocks: Sequence[Block], batch: PackedBatch) -> PackedBatch | None:
        """Return blocks with time and diff, all at the time of `batch`, as a batch without the time."""
        if not blocks:
            return None
        width = blocks[0].columns - 2
        sources = [*range(width), width + 1]
        without_time = tuple(block.with_columns(sources, [0] * len(sources)) for block in blocks)
        return PackedBatch(without_time, width, batch.only_time(), None, self._symbol_words, batch.moved)


class FailureTransform:
    """Update batch in, the failures of a chain out, as rows of `FAILURES`; or nothing.

    `answers` runs the same chain for the rows that have an answer; both share `failures`. `rounds`: what is
    added to times on the path up to the chain.
    """

    def __init__(self, answers: LinearTransform, failures: ChainFailures, rounds: int = 0) -> None:
        self.answers = answers
        self.failures = failures
        self.rounds = rounds

    def on_path(self, layout: TimeLayout, rounds: int) -> FailureTransform:
        """Return the same transform for the end of a path, whose batches it reads."""
        failures = self.failures
        mask = TimeCode(layout, failures.shape).keep_mask(failures.shape.levels)
        failures.counters = mask & ((1 << layout.shifts[0]) - 1)
        return FailureTransform(self.answers, failures, rounds)

    def __call__(self, batch: Batch) -> Batch | None:
        """Return the failures of the rows of `batch`."""
        failures = self.failures
        if failures.has(batch):
            failed = failures.take()
        else:  # this connector has a chain in front, which made the batch for it alone
            failed = self.answers.apart(words_of(batch)).failed
        return failures.as_batch(failed, self.rounds)
