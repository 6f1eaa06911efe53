"""What must be in every sink, and what a reader may ever find there.

A batch is a list of rows that come and go; the answer is, of each key, how many rows it has and what they add
up to. Both are computed here from lists and dicts, epoch by epoch, from nothing.

    wanted      the changes of each epoch; each of them has some
    Judge       sees the epochs of one sink as a reader finds them: each once, in order, whole, and right
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Sequence
from typing import TypeAlias

__all__ = ["Changes", "Judge", "Row", "WrongAnswer", "batches_of", "rows_after", "wanted_of"]

Row: TypeAlias = tuple[int, int, int]
"""Key, amount, and 1 if it comes or -1 if it goes."""

Answer: TypeAlias = tuple[int, int, int]
"""Key, rows, sum of their amounts."""

Changes: TypeAlias = Counter[Answer]

_KEYS = 6


class WrongAnswer(AssertionError):
    """A sink has held what it never may."""


def batches_of(seed: object, count: int, rows: int) -> list[list[Row]]:
    """So many batches of so many rows; nothing goes that has not come, and each batch changes the answer."""
    choose = random.Random(f"batches {seed}")
    held: list[tuple[int, int]] = []
    made: list[list[Row]] = []
    for _ in range(count):
        before = _answers(held)
        batch: list[Row] = []
        while not batch or _answers(held) == before:
            for _ in range(rows - len(batch)):
                if held and choose.random() < 0.3:
                    batch.append((*held.pop(choose.randrange(len(held))), -1))
                else:
                    held.append((choose.randrange(_KEYS), choose.randint(-50, 50)))
                    batch.append((*held[-1], 1))
            rows += 1  # in the case that it has changed nothing
        made.append(batch)
    return made


def wanted_of(batches: Sequence[Sequence[Row]]) -> list[Changes]:
    """What changes in each epoch."""
    found: list[Changes] = []
    for epoch in range(len(batches)):
        changes: Changes = Counter(rows_after(batches[: epoch + 1]))
        changes.subtract(rows_after(batches[:epoch]))
        found.append(Counter({row: diff for row, diff in changes.items() if diff}))
    return found


def rows_after(batches: Sequence[Sequence[Row]]) -> set[Answer]:
    """The answer when these batches have come, computed anew."""
    held: list[tuple[int, int]] = []
    for batch in batches:
        for key, amount, said in batch:
            if said > 0:
                held.append((key, amount))
            else:
                held.remove((key, amount))
    return _answers(held)


def _answers(held: Sequence[tuple[int, int]]) -> set[Answer]:
    by_key: dict[int, list[int]] = {}
    for key, amount in held:
        by_key.setdefault(key, []).append(amount)
    return {(key, len(amounts), sum(amounts)) for key, amounts in by_key.items()}


class Judge:
    """Of one sink; `seen` epochs have been found in it and were right."""

    def __init__(self, name: str, wanted: Sequence[Changes]) -> None:
        self.name = name
        self.seen = 0
        self._wanted = wanted

    def saw(self, epoch: int, changes: Changes) -> None:
        """The next epoch, as it was read; `WrongAnswer` if it is another one, or holds anything else."""
        if epoch != self.seen:
            raise WrongAnswer(f"{self.name}: epoch {epoch} is there where {self.seen} is next")
        if epoch >= len(self._wanted):
            raise WrongAnswer(f"{self.name}: there is an epoch {epoch}, and none of that number was fed")
        found = Counter({row: diff for row, diff in changes.items() if diff})
        if found != self._wanted[epoch]:
            missing, extra = dict(self._wanted[epoch] - found), dict(found - self._wanted[epoch])
            raise WrongAnswer(
                f"{self.name}: epoch {epoch} has {sorted(found.items())}, right is "
                f"{sorted(self._wanted[epoch].items())}; missing {missing}, extra {extra}"
            )
        self.seen += 1

    def check_all(self) -> None:
        """`WrongAnswer` unless all epochs have been seen."""
        if self.seen != len(self._wanted):
            raise WrongAnswer(f"{self.name}: {self.seen} epochs of {len(self._wanted)} are there in the end")
