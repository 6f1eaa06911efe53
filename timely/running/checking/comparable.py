"""A state as a value: what can be compared and looked up, of objects that change.

`comparable` goes through an object and all that it holds, and makes one value of it that does not change any
more. Two values are equal if the objects will do the same from here on, as far as can be told by looking:

    lists, dictionaries     in their order, which a loop over them would see
    sets                    without order
    arrays                  by type, shape and contents
    functions, classes      by identity: for copies of one worker, not for two that were built apart
    values of C             such as a schema of Arrow: as they compare themselves, if they are hashable
    other objects           by class and attributes; or, where the class has a method `compared`, by what that
                            returns: without what follows from the rest or is only told to people

What it cannot tell: whether two equal parts are one object. Objects that refer to themselves are allowed.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Hashable, Iterator
from types import BuiltinFunctionType, FunctionType, MethodType, ModuleType
from typing import Protocol, runtime_checkable

import numpy as np

from progress.errors import MisuseError

__all__ = ["Compared", "comparable"]

_AS_THEY_ARE = (int, str, bytes, type(None))
_BY_IDENTITY = (FunctionType, BuiltinFunctionType, ModuleType, type)


@runtime_checkable
class Compared(Protocol):
    """An object that says itself what of it counts."""

    def compared(self) -> object:
        """All that decides what it will do, and nothing else."""
        ...


def comparable(value: object) -> Hashable:
    """`value` as it is now; `MisuseError` if it holds something that has no attributes to look at."""
    return _comparable(value, {})


def _comparable(value: object, known: dict[int, tuple[object, Hashable]]) -> Hashable:
    if type(value) in _AS_THEY_ARE:
        return value
    if isinstance(value, bool | float | np.generic):
        return type(value), repr(value)  # 1, True and 1.0 are equal, and not the same
    if isinstance(value, _BY_IDENTITY):
        return value
    if isinstance(value, bytearray | memoryview):
        return type(value), bytes(value)
    if isinstance(value, np.ndarray) and value.dtype != object:
        return value.dtype.str, value.shape, value.tobytes()
    if _is_a_value_of_c(value):
        return value
    if id(value) in known:
        return known[id(value)][1]
    # The object is kept, so that its number is not given to another; and stands for itself where it is met
    # again on the way down.
    known[id(value)] = value, (type(value), "again")
    made = (type(value), *(_comparable(part, known) for part in _parts(value)))
    result: Hashable = (type(value), frozenset(made[1:])) if isinstance(value, set | frozenset) else made
    known[id(value)] = value, result
    return result


def _parts(value: object) -> Iterator[object]:
    if isinstance(value, dict):
        for key, entry in value.items():
            yield key
            yield entry
    elif isinstance(value, list | tuple | set | frozenset | deque):
        yield from value
    elif isinstance(value, np.ndarray):
        yield from value.tolist()
    elif isinstance(value, MethodType):
        yield value.__func__
        yield value.__self__
    elif isinstance(value, Compared) and not isinstance(value, type):
        yield value.compared()
    else:
        yield from _attributes(value)


def _attributes(value: object) -> Iterator[object]:
    slots = _slots(value)
    if not slots and not hasattr(value, "__dict__"):
        raise MisuseError(
            f"a {type(value).__name__} cannot be compared, for nothing can be seen of it: let the vertex "
            "that holds it have a method `compared`"
        )
    for name in slots:
        yield getattr(value, name, None)
    for name, part in sorted(getattr(value, "__dict__", {}).items()):
        yield name
        yield part


def _slots(value: object) -> list[str]:
    found: list[str] = []
    for kind in type(value).__mro__:
        slots = vars(kind).get("__slots__", ())
        found += [slots] if isinstance(slots, str) else slots
    return [name for name in found if name not in ("__dict__", "__weakref__")]


def _is_a_value_of_c(value: object) -> bool:
    """Whether there are no attributes to look at, but an equality of its own that fits a hash."""
    kind = type(value)
    if isinstance(value, tuple):
        return False  # a named one: what is in it has attributes
    if kind.__module__ == "builtins" or kind.__eq__ is object.__eq__ or kind.__hash__ is None:
        return False
    return not hasattr(value, "__dict__") and not _slots(value)
