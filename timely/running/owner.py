"""Who a dataflow runs on: what it asks of its worker."""

from __future__ import annotations

from typing import Protocol

from ..wire.batch import Batch
from ..wire.transport import Lent
from .stages.making import Exporter
from .stages.rights import Acting

__all__ = ["Owner"]


class Owner(Exporter, Protocol):
    """The worker that a dataflow runs on. In use is `core.py`."""

    @property
    def index(self) -> int:
        """Which worker it is."""
        ...

    @property
    def workers(self) -> int:
        """How many there are in all."""
        ...

    @property
    def acting(self) -> Acting:
        """The thread in which it runs vertices."""
        ...

    @property
    def compiles_loops(self) -> bool:
        """Whether loops may be compiled (`stages/compiled_loop.py`)."""
        ...

    def send_data(self, peer: int, dataflow: int, connector: int, word: int, batch: Batch) -> None:
        """A message leaves for another worker."""
        ...

    def lend(self) -> Lent | None:
        """See `Transport`."""
        ...

    def take_back(self) -> tuple[int, int]:
        """See `Transport`."""
        ...
