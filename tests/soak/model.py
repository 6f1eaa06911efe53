"""What must be true of one dataflow, given what its clients were told?

Each insertion and removal is an *operation*: certain once its call has returned an epoch, uncertain if its
answer was lost. Of few rows that were posted to processes it is certain that they are there, once a later
call has returned, and between which epochs. What the output "same rows" says of each complete epoch must be
exactly the certain operations of that epoch, and of the uncertain ones each whole, in one epoch, or not at
all. From these rows all other outputs are computed anew.
"""

from __future__ import annotations

import threading
from collections import Counter
from dataclasses import dataclass, field

from .queries import Query, Rows, rows_of_stranger

__all__ = ["Model", "Operation", "WrongAnswer"]

STRANGERS_FROM = 1_000_000
"""Tags from here on belong to clients that may be killed: their rows follow from the tag alone."""


class WrongAnswer(AssertionError):
    """Something was read that the definition does not allow."""


@dataclass
class Operation:
    """Rows that were inserted (or, with `sign` -1, removed) by one call."""

    input: str
    tag: int
    rows: list[tuple[int, int, int]]
    sign: int
    epoch: int | None = None
    span: tuple[int, int] | None = None
    """The first and the last epoch in which it may be, if it was posted."""

    def counted(self) -> Rows:
        """Its rows with their differences."""
        total: Rows = Counter()
        for row in self.rows:
            total[row] += self.sign
        return total


@dataclass
class Model:
    """One dataflow of the soak: what was asked for, and what was read."""

    query: Query
    index: int
    operations: list[Operation] = field(default_factory=list)
    truth: dict[str, dict[int, Rows]] = field(default_factory=dict)  # input, epoch: changes
    complete: dict[str, int] = field(default_factory=dict)  # input: epochs before are in `truth`
    read: dict[tuple[str, int], Rows] = field(
        default_factory=dict
    )  # output, epoch: changes that a client saw
    snapshots: list[tuple[str, int, Rows]] = field(default_factory=list)
    forgotten: dict[str, int] = field(default_factory=dict)
    shown: dict[str, int] = field(default_factory=dict)
    """For each output, the latest epoch before which a client was told that all is complete."""
    lock: threading.Lock = field(default_factory=threading.Lock)
    is_poisoned: bool = False
    is_closed: bool = False
    end: str = ""

    def begin(self, input: str, tag: int, rows: list[tuple[int, int, int]], sign: int) -> Operation:
        """An operation is about to be asked for."""
        operation = Operation(input, tag, rows, sign)
        with self.lock:
            self.operations.append(operation)
        return operation

    def took(self, operation: Operation, first: int, last: int) -> None:
        """The rows of an operation are in one of these epochs, or in the only one."""
        if first == last:
            operation.epoch = first
        else:
            operation.span = first, last

    def saw_truth(self, input: str, start: int, stop: int, by_epoch: dict[int, Rows]) -> None:
        """The epochs `start` to `stop` of the output that repeats an input."""
        with self.lock:
            if start != self.complete.get(input, 0):
                raise WrongAnswer(
                    f"{input}: epochs from {start}, after those before {self.complete.get(input)}"
                )
            self.truth.setdefault(input, {}).update(by_epoch)
            self.complete[input] = stop

    def saw(self, output: str, start: int, stop: int, by_epoch: dict[int, Rows], who: str) -> None:
        """A client was given the changes of the epochs `start` to `stop` of an output."""
        outside = [epoch for epoch in by_epoch if not start <= epoch < stop]
        if outside:
            raise WrongAnswer(f"{who}, {output}: epochs {outside} in an answer for {start} to {stop}")
        with self.lock:
            for epoch in range(start, stop):
                rows = by_epoch.get(epoch, Counter())
                known = self.read.setdefault((output, epoch), rows)
                if known != rows:
                    raise WrongAnswer(
                        f"{who}, {output}, epoch {epoch}: read {_cut(rows)}, before {_cut(known)}"
                    )

    def saw_snapshot(self, output: str, epoch: int, rows: Rows) -> None:
        """A client was given the collection as of an epoch."""
        with self.lock:
            self.snapshots.append((output, epoch, rows))

    def forgets(self, output: str, epoch: int) -> None:
        """A client is about to forget the epochs before this one."""
        with self.lock:
            self.forgotten[output] = max(self.forgotten.get(output, 0), epoch)

    def saw_frontier(self, output: str, shown: int, complete: int, who: str) -> None:
        """A client was told that epochs before `complete` are complete; `shown`: what some client had been
        told before it asked.
        """
        with self.lock:
            self.shown[output] = max(self.shown.get(output, 0), complete)
        if complete < shown:
            raise WrongAnswer(f"{who}, {output}: complete before {complete}, and was before {shown}")

    def check(self) -> int:
        """Hold all that was read against the definition; returns how many epochs that were."""
        with self.lock:
            for name in self.query.inputs:
                self._check_operations(name)
            return self._check_answers()

    def _check_operations(self, input: str) -> None:
        complete = self.complete.get(input, 0)
        left = {epoch: Counter(rows) for epoch, rows in self.truth.get(input, {}).items()}
        uncertain: dict[tuple[int, int], Operation] = {}
        posted: dict[tuple[int, int], tuple[int, int]] = {}
        for operation in self.operations:
            if operation.input != input:
                continue
            if operation.epoch is None:
                uncertain[operation.tag, operation.sign] = operation
                if operation.span is not None:
                    posted[operation.tag, operation.sign] = operation.span
            elif operation.epoch < complete:
                left.setdefault(operation.epoch, Counter()).subtract(operation.counted())
        seen: dict[tuple[int, int], int] = {}
        for epoch, rows in sorted(left.items()):
            by_operation: dict[tuple[int, int], Rows] = {}
            for row, times in rows.items():
                if times:
                    key = (int(str(row[2])), 1 if times > 0 else -1)
                    by_operation.setdefault(key, Counter())[row] += times
            for key, found in by_operation.items():
                self._check_uncertain(input, epoch, key, found, uncertain.get(key))
                if key in seen:
                    raise WrongAnswer(f"{self.query.name}.{input}: {key} in epochs {seen[key]} and {epoch}")
                seen[key] = epoch
        for key, (first, last) in posted.items():
            opposite = key[0], -key[1]
            other = uncertain.get(opposite)
            if other is not None and key not in seen and opposite not in seen:
                until = (0, complete) if other.span is None else other.span
                if until[0] <= last and first <= until[1]:
                    continue  # in one epoch both of them are nothing
            if (key in seen and not first <= seen[key] <= last) or (key not in seen and last < complete):
                raise WrongAnswer(
                    f"{self.query.name}.{input}: {key} was posted and acknowledged between the epochs "
                    f"{first} and {last}, and is in {seen.get(key, 'none')}"
                )

    def _check_uncertain(
        self, input: str, epoch: int, key: tuple[int, int], found: Rows, known: Operation | None
    ) -> None:
        tag, sign = key
        if known is None and tag >= STRANGERS_FROM and sign > 0:
            known = Operation(input, tag, rows_of_stranger(tag), 1)
        if known is None or found != known.counted():
            of_tag = [each for each in self.operations if each.tag == tag]
            raise WrongAnswer(
                f"{self.query.name}.{input}, epoch {epoch}: {_cut(found)} is there beyond what was "
                f"acknowledged, and of tag {tag} "
                f"{'nothing is open' if known is None else f'only {_cut(known.counted())}'}; "
                f"operations with this tag are {of_tag}"
            )

    def _check_answers(self) -> int:
        complete = min(self.complete.get(name, 0) for name in self.query.inputs)
        before: dict[str, Rows] = {name: Counter() for name in self.query.inputs}
        totals: dict[str, Rows] = {name: Counter() for name in self.query.answers}
        wanted: dict[tuple[str, int], list[Rows]] = {}
        for output, epoch, rows in self.snapshots:
            wanted.setdefault((output, epoch), []).append(rows)
        for epoch in range(complete):
            added = {name: self.truth[name].get(epoch, Counter()) for name in self.query.inputs}
            for output, answer in self.query.answers.items():
                expected = answer(before, added) if any(added.values()) else Counter()
                _add(totals[output], expected)
                got = self.read.get((output, epoch))
                if got is not None and got != expected:
                    raise WrongAnswer(
                        f"{self.query.name}.{output}, epoch {epoch}: read {_cut(got)}, right is "
                        f"{_cut(expected)}"
                    )
                for snapshot in wanted.get((output, epoch), ()):
                    if snapshot != totals[output]:
                        raise WrongAnswer(
                            f"{self.query.name}.{output}, snapshot of epoch {epoch}: {_cut(snapshot)}, "
                            f"right is {_cut(totals[output])}"
                        )
            for name, rows in added.items():
                _add(before[name], rows)
        return complete


def _add(total: Rows, rows: Rows) -> None:
    for row, times in rows.items():
        total[row] += times
        if not total[row]:
            del total[row]


def _cut(rows: Rows) -> str:
    return str(dict(sorted(rows.items(), key=str)[:12])) + "…" * (len(rows) > 12)
