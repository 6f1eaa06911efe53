"""Do two workers run the same function? They compare its digest, since they can exchange text only.

The digest of a function covers its instructions and constants, the values that it has closed over, its
defaults, and the functions of its module that it calls by name; that of a class its methods and constants,
and those of its bases; that of a callable object its class and its attributes; that of a function of C its
name and the object that it is a method of; that of dates, patterns, arrays and other objects that are values
(`value_of`) their value. File and line are left out, so that an edited comment changes nothing, and two
lambdas on one line differ. The digest is the same in every process with the same version of Python; workers
with different versions refuse each other before.
"""

from __future__ import annotations

import builtins
import dataclasses
import datetime as dt
import re
from collections import deque
from collections.abc import Iterable, Iterator
from decimal import Decimal
from enum import Enum
from fractions import Fraction
from functools import cache, partial
from hashlib import blake2b
from operator import attrgetter, itemgetter, methodcaller
from pathlib import PurePath
from types import (
    BuiltinFunctionType,
    CellType,
    ClassMethodDescriptorType,
    CodeType,
    FunctionType,
    MethodDescriptorType,
    MethodType,
    MethodWrapperType,
    ModuleType,
    WrapperDescriptorType,
)
from typing import Final, cast
from uuid import UUID

import numpy as np

__all__ = ["ClassTexts", "calls_hash", "digest_of", "value_of"]

_DEPTH_MAX: Final = 6
_HASH_METHOD: Final = "__hash__"
_EMPTY_CELL: Final = CellType()
"""The cell of a name without a value yet."""
_OF_C: Final = (
    *(BuiltinFunctionType, MethodDescriptorType, MethodWrapperType, WrapperDescriptorType),
    *(ClassMethodDescriptorType, np.ufunc, itemgetter, attrgetter, methodcaller, type(cache(repr))),
)
"""Classes of functions of C."""
_PLAIN: Final = (int, float, complex, str, bytes, bool, type(None))
_SHOWN: Final = (
    *(dt.date, dt.time, dt.timedelta, dt.tzinfo, Decimal, Fraction, UUID),
    *(range, slice, PurePath, np.generic, np.dtype),
)
"""Classes whose `repr` shows the whole value."""


class ClassTexts(dict[tuple[type, int], tuple[tuple[str, ...], frozenset[int]]]):
    """The texts of classes, by the depth at which they stand, each with the ids of all that it describes.

    Whoever asks for many digests while no class changes, hands the same one in each time: vertices share
    most of their text, that of `Vertex`.
    """

    def __init__(self) -> None:
        super().__init__()
        self.digests: dict[type, str] = {}


class _Seen(set[int]):
    """The ids of what is described already, and the texts of classes, if they are remembered."""

    def __init__(self, texts: ClassTexts | None = None) -> None:
        super().__init__()
        self.texts = texts


def digest_of(thing: object, texts: ClassTexts | None = None) -> str:
    """Return eight hexadecimal digits for a function, a class, or a callable object."""
    if texts is not None and isinstance(thing, type) and thing in texts.digests:
        return texts.digests[thing]
    text = "\n".join(_parts(thing, 0, _Seen(texts)))
    digest = blake2b(text.encode("utf-8", "surrogatepass"), digest_size=4).hexdigest()
    if texts is not None and isinstance(thing, type):
        texts.digests[thing] = digest
    return digest


def calls_hash(thing: object) -> bool:
    """Return True if a function names Python's function `hash`, or a method `__hash__`, or calls a function
    of its module that does.
    """
    return _names_hash(thing, set())


def _names_hash(thing: object, seen: set[int]) -> bool:
    if thing is hash or getattr(thing, "__name__", None) == _HASH_METHOD:
        return True
    if id(thing) in seen or isinstance(thing, type):
        return False
    seen.add(id(thing))
    return any(_names_hash(part, seen) for part in _named_in(thing))


def _named_in(thing: object) -> Iterator[object]:
    """Yield the objects that a callable may call: those that its code names, has closed over, or holds."""
    if isinstance(thing, tuple | list):
        yield from thing
    elif isinstance(thing, partial):
        yield from (thing.func, *thing.args, *thing.keywords.values())
    elif isinstance(thing, MethodType):
        yield from (thing.__func__, thing.__self__)
    elif isinstance(thing, FunctionType):
        yield from thing.__defaults__ or ()
        yield from (cell.cell_contents for cell in thing.__closure__ or () if cell != _EMPTY_CELL)
        for name in _names_in(thing.__code__):
            value = thing.__globals__.get(name, getattr(builtins, name, None))
            value = hash if name == _HASH_METHOD else value
            if value is hash or (isinstance(value, FunctionType) and value.__module__ == thing.__module__):
                yield value
    elif callable(thing) and isinstance(type(thing).__call__, FunctionType):
        yield from (method for method in vars(type(thing)).values() if isinstance(method, FunctionType))
        yield from (type(thing).__call__, *getattr(thing, "__dict__", {}).values())


def _parts(thing: object, depth: int, seen: _Seen) -> Iterator[str]:
    """Yield the definition of `thing` as lines of text that are the same in every process."""
    if isinstance(thing, _PLAIN):
        yield f"{type(thing).__name__} {thing!r}"
    elif depth > _DEPTH_MAX or id(thing) in seen:
        yield f"{type(thing).__name__} again"
    elif isinstance(thing, tuple | list):
        yield type(thing).__name__
        for entry in thing:
            yield from _parts(entry, depth + 1, seen)
    elif isinstance(thing, frozenset | set):
        yield type(thing).__name__
        yield from sorted("\n".join(_parts(entry, depth + 1, seen)) for entry in thing)
    elif isinstance(thing, dict):
        yield "dict"
        yield from sorted("\n".join(_parts(entry, depth + 1, seen)) for entry in thing.items())
    else:
        seen.add(id(thing))
        if isinstance(thing, CodeType):
            yield from _parts_of_code(thing, depth, seen)
        elif isinstance(thing, FunctionType):
            yield from _parts_of_function(thing, depth, seen)
        elif isinstance(thing, MethodType):
            yield from _parts(thing.__func__, depth + 1, seen)
        elif isinstance(thing, partial):
            yield from _parts(
                (thing.func, thing.args, tuple(sorted(thing.keywords.items()))), depth + 1, seen
            )
        elif isinstance(thing, type):
            yield from _remembered(thing, depth, seen)
        else:
            yield f"a {type(thing).__module__}.{type(thing).__qualname__}"
            if isinstance(thing, _OF_C):
                yield from _parts(_called_of_c(thing), depth + 1, seen)
            elif callable(thing) and isinstance(type(thing).__call__, FunctionType):
                yield from _parts((type(thing), getattr(thing, "__dict__", None)), depth + 1, seen)
            else:
                yield from _parts(value_of(thing), depth + 1, seen)


def _called_of_c(thing: object) -> tuple[object, ...]:
    """Return what tells a function of C, which has no instructions to look at, from others: its name, and the
    object that it is a method of, unless that is a list or set, to which it adds.
    """
    if isinstance(thing, itemgetter | attrgetter | methodcaller):
        made_by, arguments = cast("tuple[object, object]", thing.__reduce__())
        if isinstance(made_by, partial):  # a new one on each call
            return made_by.func, made_by.args, tuple(sorted(made_by.keywords.items())), arguments
        return made_by, arguments
    owner = getattr(thing, "__self__", None)
    owner = None if isinstance(owner, ModuleType | list | set | deque) else owner
    name = getattr(thing, "__qualname__", "") or getattr(thing, "__name__", "")
    wrapped = getattr(thing, "__wrapped__", None)  # by a cache
    return getattr(thing, "__module__", None), name, owner, wrapped


def value_of(thing: object) -> tuple[object, ...]:
    """Return the value of a date, pattern, array, member of an enumeration or dataclass, which tells it from
    others of its class. Empty for other objects: their attributes need not define them.
    """
    if isinstance(thing, _SHOWN):
        return (repr(thing),)
    if isinstance(thing, re.Pattern):
        return thing.pattern, thing.flags
    if isinstance(thing, Enum):
        return thing.name, thing.value
    if isinstance(thing, np.ndarray) and not thing.dtype.hasobject:
        return thing.dtype.str, thing.shape, thing.tobytes()
    if dataclasses.is_dataclass(thing) and not isinstance(thing, type):
        return tuple((field.name, getattr(thing, field.name, None)) for field in dataclasses.fields(thing))
    return ()


def _parts_of_code(code: CodeType, depth: int, seen: _Seen) -> Iterator[str]:
    yield code.co_name
    yield code.co_code.hex()
    yield " ".join((*code.co_names, "|", *code.co_varnames, "|", *code.co_freevars))
    for constant in code.co_consts:
        yield from _parts(constant, depth + 1, seen)


def _parts_of_function(function: FunctionType, depth: int, seen: _Seen) -> Iterator[str]:
    yield from _parts_of_code(function.__code__, depth, seen)
    yield from _parts(
        (function.__defaults__, tuple(sorted((function.__kwdefaults__ or {}).items()))), depth, seen
    )
    for cell in function.__closure__ or ():
        try:
            yield from _parts(cell.cell_contents, depth + 1, seen)
        except ValueError:  # a name without a value yet
            yield "empty cell"
    for name in _names_in(function.__code__):
        called = function.__globals__.get(name)
        if isinstance(called, FunctionType) and called.__module__ == function.__module__:
            yield from _parts(called, depth + 1, seen)


def _names_in(code: CodeType) -> Iterator[str]:
    """Yield the names that a function looks up, also in comprehensions and functions within it."""
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _names_in(constant)


def _remembered(class_: type, depth: int, seen: _Seen) -> Iterable[str]:
    """Return `_parts_of_class`, from the texts that are remembered if that makes no difference: if nothing
    that they describe was described before.
    """
    if seen.texts is None:
        return _parts_of_class(class_, depth, seen)
    if (class_, depth) not in seen.texts:
        alone = _Seen(seen.texts)
        alone.add(id(class_))
        parts = tuple(_parts_of_class(class_, depth, alone))
        seen.texts[class_, depth] = parts, frozenset(alone)
    parts, described = seen.texts[class_, depth]
    if not seen.isdisjoint(described - {id(class_)}):
        return _parts_of_class(class_, depth, seen)
    seen |= described
    return parts


def _parts_of_class(class_: type, depth: int, seen: _Seen) -> Iterator[str]:
    yield f"class {class_.__module__}.{class_.__qualname__}"
    for name, value in sorted(vars(class_).items()):
        if isinstance(value, FunctionType | staticmethod | classmethod):
            yield name
            yield from _parts(getattr(value, "__func__", value), depth + 1, seen)
        elif isinstance(value, _PLAIN) and not name.startswith("__"):
            yield f"{name} {value!r}"
    for base in class_.__bases__:
        if base is not object:
            yield from _parts(base, depth + 1, seen)
