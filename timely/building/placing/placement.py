"""Placement: on which workers a stage has vertices, or a source sends.

A stage on some workers has no vertex on the others: nothing is delivered, asked or held there. A connector to
it carries rows to its workers alone: the buckets of keys are shared out among them. Without an exchange rows
stay on their worker if that has the stage; those of any other worker go to one that has, always the same.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import islice

from progress.errors import GraphError, MisuseError

from ...limits import WORKERS_MAX
from ...user_code.call_site import call_site
from ...wire.claims import shown

__all__ = ["ChosenWorkers", "chosen_workers"]


@dataclass(frozen=True)
class ChosenWorkers:
    """The workers on which a stage has vertices, or a source may send; None: all."""

    listed: tuple[int, ...] | None = None

    def has(self, worker: int) -> bool:
        """Return True if it is one of these workers."""
        return self.listed is None or worker in self.listed

    def count(self, workers: int) -> int:
        """Return how many of `workers` these are."""
        return workers if self.listed is None else len(self.listed)

    def describe(self) -> str:
        """Return a stable text for the fingerprint."""
        return f"on {'all workers' if self.listed is None else f'workers {list(self.listed)}'}"

    def check(self, stage: str, workers: int) -> None:
        """Raise `MisuseError` if one of these workers does not exist."""
        missing = [worker for worker in self.listed or () if worker >= workers]
        if missing:
            raise MisuseError(
                f"{stage} is to be on worker {missing[0]}, and there are {workers}: workers 0 to "
                f"{workers - 1}. Write other numbers in `workers`, or start more workers"
            )


def chosen_workers(what: str, workers: object) -> ChosenWorkers:
    """Return the workers that a user has listed, or the first ones if it is a number; raise GraphError if it
    is neither. None: all.
    """
    if workers is None:
        return ChosenWorkers()
    if type(workers) is int and 0 < workers <= WORKERS_MAX:
        return ChosenWorkers(tuple(range(workers)))
    # One more than there can be, so that an endless iterable ends, too.
    numbers = workers if isinstance(workers, Iterable) and not isinstance(workers, str) else ()
    listed: list[object] = list(islice(numbers, WORKERS_MAX + 1))
    are_numbers = all(type(each) is int and 0 <= each < WORKERS_MAX for each in listed)
    if not are_numbers or not 0 < len(listed) <= WORKERS_MAX:
        raise GraphError(
            f"{what} ({call_site()}): `workers` is a list of numbers of workers, from 0 on, as in "
            f"workers=[0], or how many of the first ones, not {shown(workers)}; there are at most "
            f"{WORKERS_MAX:,} workers"
        )
    return ChosenWorkers(tuple(sorted({each for each in listed if isinstance(each, int)})))
