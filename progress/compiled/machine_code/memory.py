"""How does an image become a function that Python calls?

It is copied into memory of its own, completed by addresses, and made executable. What is called is then a
builtin function like those of Python itself: its machine code takes the arguments apart, see `calling.py`.
Numba's runtime (how arrays that a kernel makes are counted and freed) consists of three small extension
modules, which are loaded without numba.
"""

from __future__ import annotations

import builtins
import ctypes
import functools
import importlib.machinery
import importlib.util
import mmap
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from types import ModuleType
from typing import Final, Protocol, cast

import numpy as np
import numpy.typing as npt

from ..arrays import Int64s
from .image import Image, UnknownCodeError

__all__ = ["CONSTANT", "Called", "function_of"]

CONSTANT: Final = "naiad.constant."
"""Begins the name of a Python object to which machine code refers; its number follows."""

_READ, _WRITE, _EXECUTE = 1, 2, 4
_TUPLE_AND_NAMES: Final = 0x0001 | 0x0002
_kept: list[object] = []
"""What machine code refers to, and the memory in which it lies: as long as the process."""


class Called(Protocol):
    """What Python calls."""

    def __call__(self, *arguments: object, **names: object) -> object:
        """By position, as kernels are."""


class _Method(ctypes.Structure):
    """What Python asks to be told of a builtin function."""

    _fields_ = (
        ("name", ctypes.c_char_p),
        ("address", ctypes.c_void_p),
        ("flags", ctypes.c_int),
        ("doc", ctypes.c_char_p),
    )


def function_of(name: str, image: Image, constants: Sequence[object], other: Called) -> Called:
    """A builtin function whose code is `image`. It calls `other` with what it was not compiled for.

    Raises `UnknownCodeError` if the image refers to what this process does not have.
    """
    size = len(image.code)
    memory = mmap.mmap(-1, size, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS, _READ | _WRITE)
    memory[:] = image.code
    start = ctypes.addressof(ctypes.c_char.from_buffer(memory))
    addresses = [start, *(_address(symbol, constants) for symbol in image.there)]
    _add(np.frombuffer(memory, np.uint8), [image.here, *image.there.values()], addresses)
    if _protect()(start, size, _READ | _EXECUTE) != 0:
        raise UnknownCodeError("memory that was written to may not be executed here")
    method = _Method(name.encode(), start + image.entry, _TUPLE_AND_NAMES, None)
    _kept.append((memory, constants, method))
    return _builtin()(ctypes.byref(method), other, None)


def _add(code: npt.NDArray[np.uint8], places: Sequence[Int64s], addresses: Sequence[int]) -> None:
    """Add each address to the words at its `places`, which need not be aligned. Raises `UnknownCodeError` if
    two of these overlap: all are read before any is written.
    """
    at = np.concatenate(places)
    if at.size == 0:
        return
    in_order = np.sort(at)
    assert in_order[0] >= 0 and in_order[-1] <= len(code) - 8
    if np.diff(in_order).min(initial=8) < 8:
        raise UnknownCodeError("words that are to be completed overlap")
    bytes_of = at[:, None] + np.arange(8)
    words = code[bytes_of].view(np.uint64)
    words[:, 0] += np.repeat(np.array(addresses, np.uint64), [each.size for each in places])
    code[bytes_of] = words.view(np.uint8)


@functools.cache
def _builtin() -> Callable[[object, object, None], Called]:
    make = ctypes.pythonapi.PyCFunction_NewEx
    make.argtypes = (ctypes.POINTER(_Method), ctypes.py_object, ctypes.c_void_p)
    make.restype = ctypes.py_object
    return cast("Callable[[object, object, None], Called]", make)


@functools.cache
def _protect() -> Callable[[int, int, int], int]:
    protect = ctypes.CDLL(None).mprotect
    protect.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int)
    return cast("Callable[[int, int, int], int]", protect)


def _address(symbol: str, constants: Sequence[object]) -> int:
    """Where in this process a name is. Constants, None and exceptions are Python objects."""
    if symbol.startswith(CONSTANT):
        return id(constants[int(symbol.removeprefix(CONSTANT))])
    return _address_of_runtime(symbol)


@functools.cache
def _address_of_runtime(symbol: str) -> int:
    if symbol == "_Py_NoneStruct":
        return id(None)
    if symbol.startswith("PyExc_"):
        return id(getattr(builtins, symbol.removeprefix("PyExc_")))
    if symbol in _runtime():
        return _runtime()[symbol]
    for library in _libraries():
        try:
            found = ctypes.cast(getattr(library, symbol), ctypes.c_void_p).value
        except AttributeError:
            continue
        if found:
            return found
    raise UnknownCodeError(f"this process has no '{symbol}'")


@functools.cache
def _libraries() -> list[ctypes.CDLL]:
    """Python, C, and mathematics, which a Python need not have with it."""
    found: list[ctypes.CDLL] = [ctypes.pythonapi, ctypes.CDLL(None)]
    with suppress(OSError):
        found.append(ctypes.CDLL("libm.so.6"))
    return found


@functools.cache
def _runtime() -> dict[str, int]:
    """Addresses in numba's runtime, by the names that its compiler uses."""
    helpers, functions = _extension("numba._helperlib"), _extension("numba._dynfunc")
    arrays = _extension("numba.core.runtime._nrt_python")
    if "numba" not in sys.modules:
        arrays.memsys_use_cpython_allocator()  # which numba does, later: what one allocates the other frees
    known = {f"numba_{name}": at for module in (helpers, functions) for name, at in module.c_helpers.items()}
    for name, at in arrays.c_helpers.items():
        known[name if name.startswith("_") else f"NRT_{name}"] = at
    return known


def _extension(name: str) -> ModuleType:
    """A module of numba in machine code, loaded without numba. It is found where it is when that comes."""
    if name in sys.modules:
        return sys.modules[name]
    package = importlib.util.find_spec("numba")
    assert package is not None and package.submodule_search_locations is not None
    _, *folders, _ = name.split(".")
    where = Path(package.submodule_search_locations[0], *folders)
    spec = importlib.machinery.PathFinder.find_spec(name, [str(where)])
    if spec is None or spec.loader is None:
        raise UnknownCodeError(f"this numba has no '{name}'")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module
