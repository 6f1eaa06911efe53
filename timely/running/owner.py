"""The worker as its dataflows see it."""

from __future__ import annotations

from typing import Protocol

from ..wire.batch import Batch
from ..wire.transport import Lent
from .stages.making import Exporter
from .stages.rights import Acting

__all__ = ["Owner"]


class Owner(Exporter, Protocol):
    """The worker that a dataflow runs on; `core.py` implements it."""

    @property
    def index(self) -> int:
        """The index of the worker."""
        ...

    @property
    def workers(self) -> int:
        """The number of all workers."""
        ...

    @property
    def acting(self) -> Acting:
        """The thread in which it runs vertices."""
        ...

    @property
    def compiles_loops(self) -> bool:
        """True if loops may be compiled (`stages/compiled_loop.py`)."""
        ...

    @property
    def logs_sources(self) -> bool:
        """True if what sources send is logged: they begin once they know what logs have of them."""
        ...

    def send_data(self, peer: int, dataflow: int, connector: int, word: int, batch: Batch) -> None:
        """Send a message to another worker."""
        ...

    def lend(self, dataflow: int, actor: int) -> Lent | None:
        """See `Transport`; for a compiled loop, by the number of its actor in a dataflow."""
        ...

    def take_back(self) -> tuple[int, int]:
        """See `Transport`."""
        ...
