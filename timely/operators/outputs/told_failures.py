"""What is known of failures that an output had before a restart, in an older version of its dataflow: which
epochs had no answer, and the errors as they were told.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence

from progress.errors import InternalError
from progress.times.anchor import Rebase
from progress.times.time_words import TimeCode

from ...dictionaries import Mark
from ...durable.versions import ToldFailure
from ...errors import TimelyError, class_names
from ...wire.batch import Batch
from ..failures import FailureLog, Without

__all__ = ["ToldFailures", "told"]


class ToldFailures:
    """A `FailureLog` that nothing comes to. `told`: epochs ascending."""

    def __init__(self, told: Sequence[ToldFailure]) -> None:
        self.told = list(told)

    def start(self, code: TimeCode) -> None:
        """Do nothing: it has no words of times."""
        del code

    def add(self, batch: Batch) -> None:
        """Raise: the version that could fail is gone."""
        raise InternalError(f"{batch.rows} failures come to an output whose version is gone")

    @property
    def is_settled(self) -> bool:
        """True: nothing comes."""
        return True

    def complete(self, epoch: int) -> None:
        """Do nothing: nothing comes."""
        del epoch

    def settle(self) -> None:
        """Do nothing: nothing comes."""

    def _at(self, epoch: int) -> int:
        return bisect_right(self.told, epoch, key=lambda each: each.epoch) - 1

    def error_at(self, epoch: int) -> TimelyError | None:
        """See `FailureLog`."""
        at = self._at(epoch)
        return None if at < 0 else self.told[at].error()

    def good_from(self, epoch: int, stop: int) -> int | None:
        """See `FailureLog`."""
        at = self._at(epoch)
        while epoch < stop:
            if at < 0 or not self.told[at].classes:
                return epoch
            at += 1
            if at == len(self.told):
                return None
            epoch = self.told[at].epoch
        return None

    def without(self, start: int, stop: int) -> list[Without]:
        """See `FailureLog`."""
        spans: list[Without] = []
        for number, each in enumerate(self.told):
            end = self.told[number + 1].epoch if number + 1 < len(self.told) else stop
            first, last = max(each.epoch, start), min(end, stop)
            error = each.error()
            if error is not None and first < last:
                spans.append(Without(first, last, error, each.epoch, each.kinds))
        return spans

    def changed_before(self) -> int:
        """See `FailureLog`."""
        return self.told[-1].epoch + 1 if self.told else 0

    def take_over(self, other: FailureLog | None, epoch: int) -> None:
        """Raise: nothing begins as such a log."""
        raise InternalError(f"an output without failures was to take over those of {other!r} at {epoch}")

    def end(self, epoch: int) -> None:
        """See `FailureLog`."""
        self.told = [*(each for each in self.told if each.epoch < epoch), ToldFailure(epoch)]

    def forget(self, stop: int) -> None:
        """See `FailureLog`."""
        del self.told[: max(0, self._at(stop - 1))]

    def rebase(self, by: Rebase) -> None:
        """Do nothing: it has no words of times."""
        del by

    def symbols(self, mark: Mark) -> None:
        """Show nothing: it has texts, and no words."""
        del mark


def told(failures: FailureLog | None, stop: int) -> tuple[ToldFailure, ...]:
    """Return what is known of the epochs before `stop`, which are complete."""
    result: list[ToldFailure] = []
    for each in [] if failures is None else failures.without(0, stop):
        if result and result[-1].epoch == each.start:
            result.pop()
        result += [
            ToldFailure(each.start, str(each.error), tuple(class_names(each.error)), each.kinds),
            ToldFailure(each.stop),
        ]
    return tuple(result)
