"""A state as a value, which can be compared and looked up, although the objects change.

`comparable` goes through an object and all that it holds, and makes one value of it that never changes. Two
values are equal if the objects will do the same from here on, as far as looking can tell:

    lists, dictionaries     in their order, which a loop over them would see
    sets                    without order
    arrays                  by type, shape and contents
    functions, classes      by identity: for copies of one worker, not for two that were built apart
    values of C             such as a schema of Arrow: as they compare themselves, if they are hashable
    other objects           by class and attributes; or, if the class has a method `compared`, by its result,
                            which leaves out what follows from the rest or only people read

It cannot tell whether two equal parts are one object. Objects may refer to themselves.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Hashable, Iterable, Iterator
from types import BuiltinFunctionType, FunctionType, MethodType, ModuleType
from typing import Protocol, cast, runtime_checkable

import numpy as np

from progress.errors import MisuseError

__all__ = ["Compared", "comparable"]

_AS_THEY_ARE = (int, str, bytes, type(None))
_BY_IDENTITY = (FunctionType, BuiltinFunctionType, ModuleType, type)


@runtime_checkable
class Compared(Protocol):
    """An object that says itself which of its state counts."""

    def compared(self) -> object:
        """Return all that decides what it will do, and nothing else."""
        ...


def comparable(value: object, shared: Iterable[object] = ()) -> Hashable:
    """Return the state of `value` as it is now; raise `MisuseError` if it holds an object without
    attributes to look at.

    `shared`: objects that never change, and that all copies have in common: they compare by identity.
    """
    return _comparable(value, {id(each): (each, (type(each), id(each))) for each in shared})


def _comparable(value: object, seen: dict[int, tuple[object, Hashable]]) -> Hashable:
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
    if id(value) in seen:
        return seen[id(value)][1]
    # Keep the object, so that no other gets its id. It stands for itself if it comes again on the way down.
    seen[id(value)] = value, (type(value), "again")
    parts = (type(value), *(_comparable(part, seen) for part in _parts(value)))
    result: Hashable = (type(value), frozenset(parts[1:])) if isinstance(value, set | frozenset) else parts
    seen[id(value)] = value, result
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
    elif hasattr(type(value), "compared"):  # asking for the protocol itself takes ten times as long
        yield cast(Compared, value).compared()
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
    names: list[str] = []
    for kind in type(value).__mro__:
        slots = vars(kind).get("__slots__", ())
        names += [slots] if isinstance(slots, str) else slots
    return [name for name in names if name not in ("__dict__", "__weakref__")]


def _is_a_value_of_c(value: object) -> bool:
    """Return True if it has no attributes to look at, but an equality of its own that fits a hash."""
    kind = type(value)
    if isinstance(value, tuple):
        return False  # a named tuple: its parts may have attributes
    if kind.__module__ == "builtins" or kind.__eq__ is object.__eq__ or kind.__hash__ is None:
        return False
    return not hasattr(value, "__dict__") and not _slots(value)
