"""Answers that are not known yet, and how long a client waits for them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from ...errors import TimelyError
from ...wire.requests import Reply

__all__ = ["Later", "now_or_later"]


@dataclass(frozen=True)
class Later:
    """An answer that is not known yet.

    ready      returns the answer, or None if it is still not known; raises the error for the client
    late       returns the error to raise after the deadline
    deadline   by the server's clock, in seconds
    is_of_outputs   True if it shows only durable epochs, and so rests on no log
    """

    ready: Callable[[], Reply | None]
    late: Callable[[], TimelyError]
    deadline: float
    is_of_outputs: bool = False


def now_or_later(
    ready: Callable[[], Reply | None], late: Callable[[], TimelyError], now: float, seconds: float
) -> Reply | Later:
    """Return the answer if it is ready, otherwise one that may be ready within `seconds` from `now`; below 0:
    that may take any time.
    """
    return ready() or Later(ready, late, now + seconds if seconds >= 0 else float("inf"))
