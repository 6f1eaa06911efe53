"""Numbers of things in messages: 1 epoch, 2 epochs, 1,000 epochs."""

from __future__ import annotations

__all__ = ["counted"]


def counted(number: int, noun: str) -> str:
    """Return `number` and `noun`, with an s unless the number is 1."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"
