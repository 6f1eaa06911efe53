"""Which records are made so often that what they are made of counts?

A frozen dataclass sets its fields by `object.__setattr__`, one call for each: 0.6 µs for seven of them, where
an ordinary one takes 0.14. A change of one row makes a dozen. So these are frozen for who checks types, and
ordinary as they run; others are frozen in both.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

__all__ = ["record"]

_Made = TypeVar("_Made")

if TYPE_CHECKING:
    from dataclasses import dataclass as record
else:

    def record(*, frozen: bool, slots: bool = False, eq: bool = True) -> Callable[[type[_Made]], type[_Made]]:
        """`dataclass(frozen=True)`, whose instances nobody keeps from being changed, and are hashed alike."""
        assert frozen, "others need no word of their own"
        return dataclass(slots=slots, eq=eq, unsafe_hash=eq)
