"""What the programs of a round have told, in the models of their dataflows.

Beside what `Model` asks, a durable cluster must show the same again after each restart, and its open epoch
lies behind all that were sealed for good.
"""

from __future__ import annotations

import threading
from collections import Counter

from ..model import Model, Operation, WrongAnswer
from ..queries import Query, Rows
from .plan import Event, Unanswered

__all__ = ["DurableModel", "Judge"]


class DurableModel(Model):
    """A dataflow that is read from its first epoch on by one program after another."""

    sealed: int = -1
    """The last epoch that is sealed for good, as a worker has told a client."""

    def saw_truth(self, input: str, start: int, stop: int, by_epoch: dict[int, Rows]) -> None:
        """See `Model`; what was read before must be the same."""
        known = self.complete.get(input, 0)
        for epoch in range(start, min(stop, known)):
            before = self.truth.get(input, {}).get(epoch, Counter())
            if before != by_epoch.get(epoch, Counter()):
                raise WrongAnswer(
                    f"{self.query.name}.{input}, epoch {epoch}: shown as {before} before a restart, and as "
                    f"{by_epoch.get(epoch, Counter())} now"
                )
        if stop > known:
            later = {epoch: rows for epoch, rows in by_epoch.items() if epoch >= known}
            super().saw_truth(input, max(start, known), stop, later)


class Judge:
    """All models of a round. Programs tell it from threads."""

    def __init__(self, queries: list[Query]) -> None:
        self.models = [DurableModel(query, -1) for query in queries]
        self.numbers: dict[str, int] = {}
        self.took = self.read = 0
        """How many insertions have an answer, and how often anything was read."""
        self._named: dict[tuple[int, int], Unanswered] = {}
        self._lock = threading.Lock()

    @property
    def unanswered(self) -> list[Unanswered]:
        """Named insertions without an answer, oldest first."""
        with self._lock:
            return [*self._named.values()]

    def take(self, event: Event) -> None:
        """Note what a program has told."""
        with self._lock:
            getattr(self, f"_{event[0]}")(*event[1:])

    def _ready(self, indices: list[int], epochs: list[int], sealed: list[int]) -> None:
        """`sealed` was sealed as the program started; others may have sealed more since it has looked."""
        for model, index, epoch, last in zip(self.models, indices, epochs, sealed, strict=True):
            if model.index not in (-1, index):
                raise WrongAnswer(f"{model.query.name} had number {model.index}, and has {index} now")
            model.index = index
            if epoch <= last:
                raise WrongAnswer(
                    f"{model.query.name}: after epoch {last} was sealed, a restart opens {epoch}"
                )

    def _begin(self, at: int, input: str, tag: int, rows: list[tuple[int, int, int]], sign: int) -> None:
        self.models[at].begin(input, tag, rows, sign)

    def _name(self, at: int, tag: int, writer: str, number: int) -> None:
        operation = self._operation(at, tag, 1)
        self._named[at, tag] = Unanswered(at, operation.input, tag, operation.rows, writer, number)
        self.numbers[writer] = max(self.numbers.get(writer, 0), number + 1)

    def _took(self, at: int, tag: int, sign: int, first: int, last: int) -> None:
        self.models[at].took(self._operation(at, tag, sign), first, last)
        self._named.pop((at, tag), None)
        self.took += 1

    def _sealed(self, at: int, epoch: int) -> None:
        self.models[at].sealed = max(self.models[at].sealed, epoch)

    def _truth(self, at: int, input: str, start: int, stop: int, by_epoch: dict[int, Rows]) -> None:
        self.models[at].saw_truth(input, start, stop, by_epoch)
        self.read += 1

    def _saw(self, at: int, output: str, start: int, stop: int, by_epoch: dict[int, Rows], who: str) -> None:
        self.models[at].saw(output, start, stop, by_epoch, who)

    def _snapshot(self, at: int, output: str, epoch: int, rows: Rows) -> None:
        self.models[at].saw_snapshot(output, epoch, rows)

    def _frontier(self, at: int, output: str, complete: int, who: str) -> None:
        self.models[at].saw_frontier(output, 0, complete, who)

    def _operation(self, at: int, tag: int, sign: int) -> Operation:
        return next(
            each for each in reversed(self.models[at].operations) if (each.tag, each.sign) == (tag, sign)
        )
