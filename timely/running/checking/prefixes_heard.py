"""How far each worker has heard of the steps of each other one, if workers do not tell of each step at once.

With `Telling` a payload sums up several steps, and in `host` mode those of several workers. Whatever is
summed up, a worker has at each moment heard of a *prefix* of the steps of each other worker. This twin keeps
books of that, beside the real messages: for each it notes how far the sender had heard of everyone whose
steps it tells of. What a worker has not heard is then msg[p][q] of the predicates, step by step, wherever it
waits: at the worker, at a hub, or on a wire.

That what a worker believes is the sum of these prefixes is what A5, B2 and E1 say of it.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence

from progress.checking.predicates import Counts
from progress.tracking.count_changes import Change

from ..core import Worker
from ..instance import Instance
from ..sending.telling import Letter

__all__ = ["Prefixes"]


class Prefixes:
    """Of one dataflow on workers that hold back; make it before anything is published."""

    def __init__(self, workers: Sequence[Worker], number: int) -> None:
        everyone = range(len(workers))
        self.steps: list[list[Counts]] = [[] for _ in everyone]
        self.heard = [[0 for _ in everyone] for _ in everyone]
        self._number = number
        self._under_way: dict[tuple[int, int], deque[dict[int, int]]] = {
            (p, q): deque() for p in everyone for q in everyone
        }
        for worker in workers:
            self._watch(worker)

    def unheard(self, p: int, q: int) -> list[Counts]:
        """What p has done, step by step, and q has not heard of."""
        return [] if p == q else self.steps[p][self.heard[q][p] :]

    def _watch(self, worker: Worker) -> None:
        telling, index = worker.telling, worker.index
        assert telling is not None
        note, hear, letters = telling.note, telling.hear, telling.letters

        def watched_note(instance: Instance, changes: Sequence[Change]) -> None:
            if instance.index == self._number:
                base = instance.anchor.epoch << instance.frozen.layout.shifts[0]
                self.steps[index].append({(where, word + base): delta for where, word, delta in changes})
                self.heard[index][index] += 1
            note(instance, changes)

        def watched_letters(instance: Instance) -> list[Letter]:
            written = letters(instance)
            if instance.index == self._number:
                for peers, _ in written:
                    told = range(len(self.steps))
                    if peers is telling.above:
                        told = telling.group if telling.is_hub else range(index, index + 1)
                    for peer in peers:
                        self._under_way[index, peer].append({p: self.heard[index][p] for p in told})
            return written

        def watched_hear(instance: Instance, peer: int, frames: Sequence[memoryview]) -> list[Change]:
            if instance.index == self._number:
                mine = self.heard[index]
                for p, count in self._under_way[peer, index].popleft().items():
                    assert p != index or count <= mine[p], "nobody hears of what it has not done"
                    mine[p] = max(mine[p], count)
            return hear(instance, peer, frames)

        telling.note = watched_note  # type: ignore[method-assign]
        telling.letters = watched_letters  # type: ignore[method-assign]
        telling.hear = watched_hear  # type: ignore[method-assign]
