"""Reads values out of what workers tell, whatever a worker of another version has put there."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, TypeAlias

from ...operators.capture import FOREVER
from ...wire.requests import Value

__all__ = ["Entry", "Json", "entries", "entry", "epoch_or_none", "number", "text", "whole"]

Json: TypeAlias = "None | bool | int | float | str | Sequence[Json] | Mapping[str, Json]"
"""What JSON has."""

Entry: TypeAlias = Mapping[object, Value]

_NOTHING: Final[Entry] = {}


def entry(value: object, name: object) -> Entry:
    """Return the table `name` of a table; an empty one if there is none."""
    item = value.get(name) if isinstance(value, Mapping) else None
    return item if isinstance(item, dict) else _NOTHING


def entries(value: object, name: object) -> Sequence[Value]:
    """Return the list `name` of a table; an empty one if there is none."""
    item = value.get(name) if isinstance(value, Mapping) else None
    return item if isinstance(item, list | tuple) else []


def whole(value: object, name: object) -> int:
    """Return the whole number `name` of a table; 0 if there is none."""
    item = value.get(name) if isinstance(value, Mapping) else None
    return item if isinstance(item, int) else 0


def number(value: object, name: object) -> float:
    """Return the number `name` of a table; 0 if there is none."""
    item = value.get(name) if isinstance(value, Mapping) else None
    return float(item) if isinstance(item, int | float) else 0.0


def text(value: object, name: object) -> str:
    """Return the text `name` of a table; an empty one if there is none."""
    item = value.get(name) if isinstance(value, Mapping) else None
    return item if isinstance(item, str) else ""


def epoch_or_none(epoch: int) -> int | None:
    """Return an epoch; None for the one behind all."""
    return None if epoch >= FOREVER else epoch
