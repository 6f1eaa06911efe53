"""A worker process forgets words that nothing refers to any more, once there are many (`is_full`)."""

from __future__ import annotations

from collections.abc import Sequence

from ...running.core import Worker
from ...running.forgetting import HoldsWords
from ..together import Group, forget_alone, hides_words

__all__ = ["UnusedWords"]


class UnusedWords:
    """How far the only worker of a process is with forgetting: see `running/forgetting.py`.

    Args:
        group: the process, which is in its turn.
        worker: its worker.
    """

    def __init__(self, group: Group, worker: Worker) -> None:
        self._group = group
        self._worker = worker
        self.is_under_way = False
        """True from when the worker begins to forget until it has."""

    def go_on(self, may_forget: bool = True, others: Sequence[HoldsWords] = ()) -> None:
        """Begin to forget words; or forget them, once all peers have withdrawn what they believe of this
        worker, no vertex hides words, and `may_forget` is true. `others` hold words, too. Call it if there
        are many words, and as long as it is under way.
        """
        if not self.is_under_way:
            self._worker.begin_forgetting()
            self.is_under_way = True
        elif may_forget and self._worker.forgetting.is_ready and not hides_words(self._worker):
            self.is_under_way = not forget_alone(self._group, lambda: self._worker.forget(others))
