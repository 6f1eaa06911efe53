"""How an image becomes a function that Python calls.

The image is copied into memory of its own, completed by addresses, and made executable. Python calls it as a
builtin function like its own: the function's machine code takes the arguments apart, see `calling.py`.
Numba's runtime (which counts and frees the arrays that a kernel makes) consists of three small extension
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
"""Prefix of the name of a Python object to which machine code refers; its number follows."""

_READ, _WRITE, _EXECUTE = 1, 2, 4
_TUPLE_AND_NAMES: Final = 0x0001 | 0x0002
_alive: list[object] = []
"""Objects to which machine code refers, and the memory in which it lies: alive as long as the process."""


class Called(Protocol):
    """A function that Python calls."""

    def __call__(self, *arguments: object, **names: object) -> object:
        """Call by position, as kernels are."""


class _Method(ctypes.Structure):
    """Python's description of a builtin function (`PyMethodDef`)."""

    _fields_ = (
        ("name", ctypes.c_char_p),
        ("address", ctypes.c_void_p),
        ("flags", ctypes.c_int),
        ("doc", ctypes.c_char_p),
    )


def function_of(name: str, image: Image, constants: Sequence[object], other: Called) -> Called:
    """Return a builtin function whose code is `image`; it passes arguments that it was not compiled for to
    `other`.

    Raises `UnknownCodeError` if the image refers to a symbol that this process does not have.
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
    _alive.append((memory, constants, method))
    return _builtin()(ctypes.byref(method), other, None)


def _add(code: npt.NDArray[np.uint8], offsets: Sequence[Int64s], addresses: Sequence[int]) -> None:
    """Add each address to the words at its `offsets`, which need not be aligned.

    Raises `UnknownCodeError` if two of these words overlap: all are read before any is written.
    """
    at = np.concatenate(offsets)
    if at.size == 0:
        return
    in_order = np.sort(at)
    assert in_order[0] >= 0 and in_order[-1] <= len(code) - 8
    if np.diff(in_order).min(initial=8) < 8:
        raise UnknownCodeError("words that are to be completed overlap")
    bytes_of = at[:, None] + np.arange(8)
    words = code[bytes_of].view(np.uint64)
    words[:, 0] += np.repeat(np.array(addresses, np.uint64), [each.size for each in offsets])
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
    """Return the address of a symbol in this process. Constants, None and exceptions are Python objects."""
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
            address = ctypes.cast(getattr(library, symbol), ctypes.c_void_p).value
        except AttributeError:
            continue
        if address:
            return address
    raise UnknownCodeError(f"this process has no '{symbol}'")


@functools.cache
def _libraries() -> list[ctypes.CDLL]:
    """Return the libraries of Python, C, and mathematics; Python may be built without the last."""
    libraries: list[ctypes.CDLL] = [ctypes.pythonapi, ctypes.CDLL(None)]
    with suppress(OSError):
        libraries.append(ctypes.CDLL("libm.so.6"))
    return libraries


@functools.cache
def _runtime() -> dict[str, int]:
    """Return the addresses in numba's runtime, by the names that its compiler uses."""
    helpers, functions = _extension("numba._helperlib"), _extension("numba._dynfunc")
    arrays = _extension("numba.core.runtime._nrt_python")
    if "numba" not in sys.modules:
        # numba does this later; one side frees what the other allocates
        arrays.memsys_use_cpython_allocator()
    addresses = {
        f"numba_{name}": at for module in (helpers, functions) for name, at in module.c_helpers.items()
    }
    for name, at in arrays.c_helpers.items():
        addresses[name if name.startswith("_") else f"NRT_{name}"] = at
    return addresses


def _extension(name: str) -> ModuleType:
    """Load a module of numba in machine code without numba. A later import of numba finds it."""
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
