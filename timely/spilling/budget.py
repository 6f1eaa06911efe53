"""How much large memory may a process keep in memory, and in which folder lies what exceeds that?

Each cluster that has workers in this process and a folder to spill to adds its *budget*. As long as the
process has no such cluster, `SPILL.place` is None, and all memory is plain memory.

The budget is of large memory (runs of traces, rows that wait, rows on their way) and of texts. A block that
stays goes into a file once plain memory has half of the budget, and a block that is soon dropped once it has
all of it: so the half that changes most, what is being sorted and sent, does not wait for a disk.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from .settings import SpillSettings

__all__ = ["SPILL", "BudgetShare", "is_beyond"]

_STAYING_SHARE: Final = 2
"""Memory that stays has 1 / `_STAYING_SHARE` of the budget; see `bench/results/spill.md`."""


class BudgetShare:
    """What one cluster adds to the budget, until `end`, or until nothing refers to it any more."""

    def __init__(self, end: Callable[[int], None] = lambda share: None) -> None:
        self._end = end

    def end(self) -> None:
        """Let the cluster be gone. Blocks in files stay there until they are dropped."""
        self._end(id(self))

    __del__ = end


class _Spill:
    """The folders and budgets of the clusters in this process."""

    def __init__(self) -> None:
        self.place: SpillSettings | None = None
        """The folder for new blocks, that of the cluster which began last, and the bytes of plain memory of
        all clusters together; None: nothing is put into files.
        """
        self.besides = 0
        """Bytes of the budget that others than `mapped.py` have taken: about those of texts."""
        self._shares: dict[int, SpillSettings] = {}

    def begin(self, settings: SpillSettings | None, workers: int = 1) -> BudgetShare:
        """Let the process have a cluster with that many workers here, until its share ends. Without settings
        nothing changes.
        """
        share = BudgetShare(self._end)
        if settings is not None:
            self._shares[id(share)] = SpillSettings(settings.folder, workers * settings.memory)
            self._sum_up()
        return share

    def _end(self, share: int) -> None:
        if self._shares.pop(share, None) is not None:
            self._sum_up()

    def _sum_up(self) -> None:
        shares = list(self._shares.values())
        memory = sum(share.memory for share in shares)
        self.place = SpillSettings(shares[-1].folder, memory) if shares else None
        if not shares:
            self.besides = 0


SPILL: Final = _Spill()


def is_beyond(budget: int, used: int, size: int, stays: bool) -> bool:
    """Return True if `size` more bytes go into a file, where plain memory has `used` of its budget."""
    return used + size > (budget // _STAYING_SHARE if stays else budget)
