"""A console that serves a page about a cluster, as the program has it that has started it."""

from __future__ import annotations

from collections.abc import Callable
from types import TracebackType
from typing import Self

from ...user_code.short_traces import in_short

__all__ = ["Console"]


@in_short
class Console:
    """A page about a cluster, from `Cluster.console`; `print` shows its address.

    `address` has a token, by which the page knows the browser: anybody with the address sees all rows of all
    outputs. A context manager that ends it.
    """

    def __init__(self, address: str, close: Callable[[], None]) -> None:
        self.address = address
        self._close = close

    def __repr__(self) -> str:
        """Return the address."""
        return f"<console at {self.address}>"

    def __str__(self) -> str:
        return self.address

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """End the page; the cluster goes on."""
        self._close()
