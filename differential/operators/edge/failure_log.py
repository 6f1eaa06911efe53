"""The failures of an output: which epochs have no answer, and the error that readers get.

Failures come from the connectors on which chains run, in any order and with differences
(`linear/failures/failing.py`). They are summed up epoch by epoch. While the count of some failure is not 0,
the output has no answer.

Cost: a dictionary entry for each failure that is there, and a line for each epoch in which failures changed,
until that epoch is forgotten.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

import numpy as np

from differential.columns.column_types import Int64s
from differential.columns.rows import decode_rows
from differential.columns.worker_symbols import SYMBOLS
from differential.linear.failures.failing import FAILURES
from progress.times.anchor import EPOCH_MAX, Rebase
from progress.times.time_words import TimeCode
from timely.counted import counted
from timely.dictionaries import Mark
from timely.durable.versions import ToldFailure
from timely.errors import InternalError, TimelyError, revive
from timely.operators.failures import FailureLog, Without
from timely.operators.outputs.output_digests import hash_of
from timely.operators.outputs.told_failures import ToldFailures
from timely.wire.batch import Batch

from ...columns.update_batch import words_of

__all__ = ["FailuresOut", "TableFailures"]

_KEY: Final = [FAILURES.offset(name) for name in ("place", "iteration", "row", "kind", "expression")]
"""The columns that identify a failure. The texts do not: the message of a function may name the time, or the
number of attempts, and differ when the row is removed.
"""
_ROW: Final = [FAILURES.offset(name) for name in ("row", "kind", "expression")]
_KIND: Final = slice(8, 16)
"""The kind of a failure, among the bytes of these words."""

_MEND: Final = {
    "RowError": "  Filter such rows out before, choose with when(...).then(...).otherwise(...), or take them "
    "apart with attempt(...).",
    "UserFunctionError": "  Catch the exception in the function, or take such rows apart with attempt(...).",
    "SumOverflowError": "  Use larger units, smaller groups, or filter such rows out before.",
}
"""A hint on what the user can write, by kind of failure."""

_COMING_MAX: Final = 256
"""At most this many batches wait until somebody reads."""


class _Standing(NamedTuple):
    """The state from `epoch` on: how many rows fail, the words of one failure, and the output whose places
    these words name; and the words of the kinds of failures.
    """

    epoch: int
    rows: int
    sample: bytes
    out: FailuresOut
    kinds: bytes = b""
    told: ToldFailure | None = None
    """The error in the form of its reports, if its words are gone."""


@dataclass(frozen=True)
class FailuresOut:
    """Makes logs of failures.

    Args:
        title: of the output, as messages say it: "output 'totals'".
        sites: for each place, by the text of an expression, where it was written.
        is_strict: an epoch without an answer ends the dataflow.
    """

    title: str
    sites: Sequence[Mapping[str, str]]
    is_strict: bool = False

    def describe(self) -> str:
        """Return the number of places, and what a failure leads to, as text."""
        return f"failures of {len(self.sites)} places{', strict' if self.is_strict else ''}"

    def new_log(self) -> FailureLog:
        """Return an empty log."""
        return TableFailures(self)


class TableFailures:
    """The failures of one output, on one worker."""

    def __init__(self, out: FailuresOut) -> None:
        self._out = out
        self._code: TimeCode | None = None
        self._coming: list[Int64s] = []
        """Rows of `FAILURES`, perhaps of epochs that are not complete."""
        self._there: dict[bytes, int] = {}
        """The count of each failure, by the words that identify it; never 0."""
        self._samples: dict[bytes, bytes] = {}
        """All words of each failure, by the words that identify it."""
        self._rows: dict[bytes, int] = {}
        """The number of failures with the same row, kind and expression, by these words."""
        self._kinds: Counter[bytes] = Counter()
        """The number of these of each kind."""
        self._standing: list[_Standing] = []
        """The state from each epoch on at which it changed, epochs ascending."""
        self._complete = 0

    def start(self, code: TimeCode) -> None:
        """Learn how words pack epochs."""
        self._code = code

    def add(self, batch: Batch) -> None:
        """Let failures wait until their epoch is complete."""
        self._coming.append(words_of(batch))

    @property
    def is_settled(self) -> bool:
        """True if `complete` only notes the epoch: readers sum up the failures that have come."""
        return not (self._out.is_strict and self._coming)

    def complete(self, epoch: int) -> None:
        """Note that all failures before `epoch` have come. A strict output raises the error of the first
        epoch without an answer.
        """
        self._complete = epoch
        if not self._out.is_strict:
            if len(self._coming) > _COMING_MAX:
                self.settle()
        elif self._coming:
            self.settle()
            first = next((each for each in self._standing if each.rows), None)
            if first is not None:
                raise self._error(first, first.epoch)

    def settle(self) -> None:
        """Sum up the failures of complete epochs."""
        if not self._coming:
            return
        assert self._code is not None
        words = np.concatenate(self._coming, axis=1)
        epochs = np.array([self._code.epoch_of(word) for word in words[-2].tolist()], np.int64)
        later = epochs >= self._complete
        self._coming = [np.ascontiguousarray(words[:, later])] if later.any() else []
        for epoch in np.unique(epochs[~later]).tolist():
            self._take_in(epoch, np.ascontiguousarray(words[:, epochs == epoch]))

    def _take_in(self, epoch: int, words: Int64s) -> None:
        """Take in the failures that changed in one epoch."""
        wholes, keys, rows = (_each(words[which]) for which in (slice(-2), _KEY, _ROW))
        gone: list[bytes] = []
        for whole, key, row, diff in zip(wholes, keys, rows, words[-1].tolist(), strict=True):
            before = self._there.pop(key, 0)
            if before + diff:
                self._there[key] = before + diff
            else:
                gone.append(key)
            self._note(row, bool(before + diff) - bool(before))
            self._samples[key] = min(whole, self._samples.get(key, whole))  # the same on all workers
        for key in gone:
            if key not in self._there:
                self._samples.pop(key, None)
        last = self._standing[-1] if self._standing else None
        sample = last.sample if last is not None else b""
        if sample and _key_of(sample) not in self._there:
            sample = b""
        if not sample and self._there:
            sample = self._samples[min(self._there)]  # the same on all workers
        if last is not None and last.epoch == epoch:
            self._standing.pop()
            last = self._standing[-1] if self._standing else None
        now = _Standing(epoch, len(self._rows), sample, self._out, b"".join(sorted(self._kinds)))
        if last is None or last[1:] != now[1:]:
            self._standing.append(now)

    def _note(self, key: bytes, change: int) -> None:
        before = self._rows.pop(key, 0)
        if before + change:
            self._rows[key] = before + change
        if is_other := bool(before + change) - bool(before):
            self._kinds[key[_KIND]] += is_other
            if not self._kinds[key[_KIND]]:
                del self._kinds[key[_KIND]]

    def _at(self, epoch: int) -> int:
        """Return the index of the state at an epoch; -1: it is before the first failure."""
        return bisect_right(self._standing, epoch, key=lambda each: each.epoch) - 1

    def error_at(self, epoch: int) -> TimelyError | None:
        """Return why there is no answer at a complete epoch; None if there is one."""
        self.settle()
        at = self._at(epoch)
        if at < 0 or not self._standing[at].rows:
            return None
        return self._error(self._standing[at], epoch)

    def good_from(self, epoch: int, stop: int) -> int | None:
        """Return the first epoch from `epoch` on and before `stop` that has an answer; None if none has."""
        self.settle()
        at = self._at(epoch)
        while epoch < stop:
            if at < 0 or not self._standing[at].rows:
                return epoch
            at += 1
            if at == len(self._standing):
                return None
            epoch = self._standing[at].epoch
        return None

    def without(self, start: int, stop: int) -> list[Without]:
        """Return the complete epochs from `start` on and before `stop` that have no answer, in order."""
        self.settle()
        stop = min(stop, self._complete)
        spans: list[Without] = []
        ends = [each.epoch for each in self._standing[1:]] + [stop]
        for each, end in zip(self._standing, ends, strict=False):
            first, last = max(each.epoch, start), min(end, stop)
            if each.rows and first < last:
                error = self._error(each, first)
                kinds = hash_of(each.kinds) if each.told is None else each.told.kinds
                spans.append(Without(first, last, error, each.epoch, kinds))
        return spans

    def changed_before(self) -> int:
        """See `FailureLog`."""
        self.settle()
        return self._standing[-1].epoch + 1 if self._standing else 0

    def forget(self, stop: int) -> None:
        """Drop states that no reader needs: readers ask for no changes of epochs before `stop`, but perhaps
        for a snapshot of the last of these.
        """
        self.settle()
        del self._standing[: max(0, self._at(stop - 1))]

    def rebase(self, by: Rebase) -> None:
        """Move the times of failures that wait; iterations do not change."""
        coming = [words.copy() for words in self._coming]  # others may hold the same arrays
        for words in coming:
            words[-2] = by.words(words[-2])
        self._coming = coming

    def take_over(self, other: FailureLog | None, epoch: int) -> None:
        """Go on at `epoch` where `other` stops. It is None if all epochs had an answer there."""
        self.settle()
        before: list[_Standing] = []
        if isinstance(other, TableFailures):
            other.settle()
            before = other._standing
        elif isinstance(other, ToldFailures):
            before = [_Standing(e.epoch, int(bool(e.classes)), b"", self._out, b"", e) for e in other.told]
        else:
            assert other is None
        at = self._at(epoch)
        here = self._standing[at]._replace(epoch=epoch) if at >= 0 else _Standing(epoch, 0, b"", self._out)
        before = [each for each in before if each.epoch < epoch]
        self._standing = [*before, here, *self._standing[at + 1 :]]

    def end(self, epoch: int) -> None:
        """Note that nothing fails from `epoch` on, since a new version of the dataflow has taken over."""
        self.settle()
        self._coming, self._there, self._samples, self._rows = [], {}, {}, {}
        self._kinds.clear()
        self._standing = [each for each in self._standing if each.epoch < epoch]
        self._standing.append(_Standing(epoch, 0, b"", self._out))

    def symbols(self, mark: Mark) -> None:
        """Show the words of failures that wait, that are there, and that the error of an epoch shows."""
        for words in self._coming:
            mark.words(words[:-2])
        failures = [*self._samples.values(), *(each.sample for each in self._standing)]
        mark.words(np.frombuffer(b"".join(failures), np.int64).reshape(-1, FAILURES.width).T.copy())

    def compared(self) -> object:
        """Return all that decides what readers get."""
        return (
            sorted(self._there.items()),
            sorted(self._samples.items()),
            [words.tolist() for words in self._coming],
        )

    def _error(self, standing: _Standing, epoch: int) -> TimelyError:
        """Return the error that a reader of `epoch` gets while `standing` is the state."""
        if standing.told is not None and (error := standing.told.error()) is not None:
            return error
        out = standing.out
        words = np.zeros((FAILURES.width + 2, 1), np.int64)
        words[:-2, 0] = np.frombuffer(standing.sample, np.int64)
        (row,) = decode_rows(FAILURES, words, SYMBOLS)
        place, _, _, kind, expression, record, message, line = row
        assert isinstance(place, int) and isinstance(expression, str)
        if not 0 <= place < len(out.sites):
            raise InternalError(f"{out.title} has no place {place} where something can fail")
        site = out.sites[place].get(expression, "")
        text = _text(str(kind), expression, site, str(record), str(message), str(line))
        more = f" ({counted(standing.rows - 1, 'more row')} failed, too)" if standing.rows > 1 else ""
        when = f"at epoch {epoch}" + (f" since epoch {standing.epoch}" if epoch > standing.epoch else "")
        if epoch > EPOCH_MAX:  # no rows can come any more
            when = f"from epoch {standing.epoch} on"
        lines = [f"{out.title} has no answer {when}: {text}{more}"]
        if not out.is_strict:
            lines.append(
                "  It answers again from the epoch on in which such rows are removed or corrected; others "
                "go on."
            )
        if str(kind) in _MEND:
            lines.append(_MEND[str(kind)])
        return revive([str(kind), "MisuseError"], "\n".join(lines))


def _each(words: Int64s) -> list[bytes]:
    """Return the words of each row."""
    rows = np.ascontiguousarray(words.T)
    return [row.tobytes() for row in rows]


def _key_of(whole: bytes) -> bytes:
    """Return, of all words of a failure, those that identify it."""
    return np.frombuffer(whole, np.int64)[_KEY].tobytes()


def _text(kind: str, expression: str, site: str, record: str, error: str, line: str) -> str:
    """Return a sentence that says what failed, where, and on which row."""
    if kind == "NotEmptyError":
        return f"{site or expression} does not hold, for there is the row {record}."
    where = f" ({site})" if site else ""
    if kind == "SumOverflowError":
        return f"{expression}{where} of the group {record} {error}."
    if kind == "UserFunctionError":
        why = f"{error}, in {line}" if line else error
        return f"{expression}{where} failed on {record}:\n  {why.removesuffix('.')}."
    row = f" in the row with {record}" if record else ""
    return f"{expression}{where} {error}{row}."
