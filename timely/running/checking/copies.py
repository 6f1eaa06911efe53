"""Copies of workers, as `copy.deepcopy` makes them, in a third of the time.

The explorer copies a worker for each thing that it might do. A worker is some hundred plain objects, lists
and dictionaries with a thousand numbers and names in them, and `copy.deepcopy` calls itself for each name.
What has a say in how it is copied (`__deepcopy__`, `__reduce_ex__`, `__getstate__`) is left to it.
"""

from __future__ import annotations

import copy
import copyreg
from collections import deque
from types import BuiltinFunctionType, FunctionType, MethodType, NoneType
from typing import TypeAlias, TypeVar, cast

__all__ = ["copied"]

_Entries: TypeAlias = dict[object, object]
_T = TypeVar("_T")
_ATOMS = frozenset({NoneType, int, float, bool, bytes, str, type, BuiltinFunctionType, FunctionType})
"""Types whose objects never change; copies share them."""


def copied(value: _T, memo: dict[int, object]) -> _T:
    """Return a copy that shares nothing with `value` but what never changes, and what `memo` has by `id`.

    `memo` is that of `copy.deepcopy`: an object that occurs twice is copied once.
    """
    return cast("_T", _copied(value, memo))


def _copied(value: object, memo: dict[int, object]) -> object:
    kind = type(value)
    if kind in _ATOMS:
        return value
    number = id(value)
    if number in memo:
        return memo[number]
    if kind is list:
        items: list[object] = []
        memo[number] = items
        items += [
            each if type(each) in _ATOMS else _copied(each, memo) for each in cast("list[object]", value)
        ]
        return items
    if kind is dict:
        entries: _Entries = {}
        memo[number] = entries
        _copy_entries(cast("_Entries", value), entries, memo)
        return entries
    if kind is tuple:
        return _copied_tuple(cast("tuple[object, ...]", value), memo)
    if kind is set:
        memo[number] = others = {_copied(each, memo) for each in cast("set[object]", value)}
        return others
    if kind is deque:
        queue = cast("deque[object]", value)
        memo[number] = waiting = deque[object](maxlen=queue.maxlen)
        waiting.extend(_copied(each, memo) for each in queue)
        return waiting
    if kind is MethodType:
        method = cast("MethodType", value)
        memo[number] = bound = MethodType(method.__func__, _copied(method.__self__, memo))
        return bound
    slots = _SLOTS[kind] if kind in _SLOTS else _SLOTS.setdefault(kind, _slots(kind))
    if slots is None:
        return copy.deepcopy(value, memo)
    memo[number] = twin = kind.__new__(kind)
    if kind.__dictoffset__:
        _copy_entries(cast("_Entries", vars(value)), cast("_Entries", vars(twin)), memo)
    for name in slots:
        if hasattr(value, name):
            object.__setattr__(twin, name, _copied(getattr(value, name), memo))
    return twin


def _copy_entries(source: _Entries, target: _Entries, memo: dict[int, object]) -> None:
    for key, each in source.items():
        new = key if type(key) in _ATOMS else _copied(key, memo)
        target[new] = each if type(each) in _ATOMS else _copied(each, memo)


def _copied_tuple(value: tuple[object, ...], memo: dict[int, object]) -> object:
    """Return the tuple itself if none of its parts changes."""
    parts = tuple([each if type(each) in _ATOMS else _copied(each, memo) for each in value])
    if id(value) in memo:  # one of its parts led back to it
        return memo[id(value)]
    if all(new is old for new, old in zip(parts, value, strict=True)):
        return value
    memo[id(value)] = parts
    return parts


def _slots(kind: type) -> tuple[str, ...] | None:
    """Return the slots of objects that are nothing but their attributes; None if there may be more."""
    is_plain = kind.__flags__ & _IS_MADE_BY_CLASS_STATEMENT and kind not in copyreg.dispatch_table
    if not is_plain or any(hasattr(kind, name) for name in _OWN_WAYS):
        return None
    if any(getattr(kind, name) is not getattr(object, name) for name in _COMMON_WAYS):
        return None
    return tuple(copyreg._slotnames(kind))  # type: ignore[attr-defined]


_OWN_WAYS = ("__deepcopy__", "__setstate__", "__getnewargs__", "__getnewargs_ex__")
_COMMON_WAYS = ("__new__", "__reduce_ex__", "__reduce__", "__getstate__")
_IS_MADE_BY_CLASS_STATEMENT = 1 << 9  # Py_TPFLAGS_HEAPTYPE
_SLOTS: dict[type, tuple[str, ...] | None] = {}
