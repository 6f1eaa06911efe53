"""The files in which a kernel's code is stored, and the stamps that tie them to its source.

Everything lies in the cache folder (`progress/compiled/cache_folder.py`), which holds files of several
releases. The name of a file contains the name of its kernel and the beginning of the kernel's *stamp*: a
digest of all that the machine code depends on. That is contents, never times, sizes or paths:

- of the kernel and of each one that it calls: the instructions, constants and names that Python has compiled
  from the source, from which the compiler starts (`instructions_of`), and the values of constants from its
  module;
- of `build`: the versions of Python, numpy, numba and llvmlite, numba's settings, the processor and its
  features, and the files of this folder that influence the code.

So a comment, another checkout of the same source, or a copy of it in a zip changes nothing. The file contains
the full stamp, too, which is compared.
"""

from __future__ import annotations

import functools
import hashlib
import importlib.util
import itertools
import json
import os
import platform
import sys
from collections.abc import Iterable
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from types import CodeType, FunctionType
from typing import Final, NamedTuple

import numpy as np

from .. import cache_folder
from .image import Image

__all__ = [
    "Code",
    "build",
    "content_of",
    "file_name",
    "instructions_of",
    "keep",
    "keep_bytes",
    "keep_list",
    "look_up",
    "look_up_bytes",
    "look_up_list",
    "name_of",
    "names_in",
    "stamp_of",
]

_BUILDERS: Final = ("numba", "llvmlite")
_MAKERS: Final = ("calling", "compiling", "counting", "image", "parts", "shortcuts")
"""Files of this folder that influence the code."""
_NOT_OF_THE_CODE: Final = {"NUMBA_CACHE_DIR", "NUMBA_NUM_THREADS"}
"""Settings of numba that do not influence the code: no kernel has threads of its own.

Workers that Spark hosts have a setting for the number of threads, and others have none: with it in the stamp
they would compile for themselves.
"""
_NAME_LENGTH_MAX: Final = 150
_STAMP_BYTES: Final = 24
_STAMP_LENGTH: Final = 24
"""Number of hexadecimal digits of a stamp in the name of a file."""


class Code(NamedTuple):
    """The stored form of a kernel: its signature, its machine code, the Python objects in that."""

    signature: str
    image: Image
    constants: list[object]


def name_of(function: FunctionType) -> str:
    """Return the beginning of the names of a kernel's files, before the digest of its stamp."""
    return f"{function.__module__}.{function.__qualname__}"


def stamp_of(*parts: str) -> str:
    """Return a digest of these texts, in this order."""
    digest = hashlib.blake2b(digest_size=_STAMP_BYTES)
    for part in parts:
        data = part.encode()
        digest.update(b"%d " % len(data))
        digest.update(data)
    return digest.hexdigest()


def file_name(name: str, kind: str, stamp: str) -> str:
    """Return the name of a file of that kind (`machine`, `object`, `part`) for a kernel with that stamp."""
    return f"{name[:_NAME_LENGTH_MAX]}-{stamp[:_STAMP_LENGTH]}.{kind}"


def look_up(file: str, stamp: str) -> Code | None:
    """Return the machine code that Python calls, if it is stored with this stamp; otherwise None."""
    data = look_up_bytes(file, stamp)
    return None if data is None else _read(data)


def keep(file: str, stamp: str, code: Code) -> None:
    """Store machine code. Where that is impossible (no folder, no space), the next process compiles anew."""
    keep_bytes(file, stamp, _serialized(code))


def look_up_bytes(file: str, stamp: str) -> bytes | None:
    """Return the content of another kind of file, if it has this stamp; otherwise None."""
    data, head = cache_folder.read(file), stamp.encode()
    return data[len(head) :] if data is not None and data.startswith(head) else None


def keep_bytes(file: str, stamp: str, data: bytes) -> None:
    """Store the content of another kind of file, as `keep`."""
    if cache_folder.write(file, stamp.encode() + data):
        _sweep_once()


def look_up_list(file: str) -> list[str] | None:
    """Return the lines that `keep_list` has written, or None if they are not stored."""
    data = cache_folder.read(file)
    return None if data is None else data.decode().splitlines()


def keep_list(file: str, lines: Iterable[str]) -> None:
    """Store lines of text."""
    cache_folder.write(file, "".join(f"{line}\n" for line in lines).encode())


@functools.cache
def _sweep_once() -> None:
    cache_folder.sweep()


def _serialized(code: Code) -> bytes:
    """Return a line of JSON with the lengths of what follows: the code, and the offsets of words by name."""
    image = code.image
    head = {
        "signature": code.signature,
        "constants": [_name_of(each) for each in code.constants],
        "entry": image.entry,
        "code": len(image.code),
        "here": len(image.here),
        "there": {name: len(places) for name, places in image.there.items()},
    }
    words = [image.here, *image.there.values()]
    return b"".join([json.dumps(head).encode(), b"\n", image.code, *(each.tobytes() for each in words)])


def _read(data: bytes) -> Code:
    begin = data.index(b"\n") + 1
    head = json.loads(data[:begin])
    end = begin + head["code"]
    words = np.frombuffer(data[end:], np.int64)
    at: int = head["here"]
    here, there = words[:at], {}
    for name, count in head["there"].items():
        there[name] = words[at : at + count]
        at += count
    image = Image(data[begin:end], head["entry"], here, there)
    return Code(head["signature"], image, [_constant_of(each) for each in head["constants"]])


def _name_of(constant: object) -> str:
    """Return the name of a class, or of a kind of array. Machine code compares both by identity."""
    if isinstance(constant, np.dtype):
        return f"dtype of {constant.name}"
    assert isinstance(constant, type), "only classes can be looked up by their names"
    return f"{constant.__module__} {constant.__qualname__}"


def _constant_of(name: str) -> object:
    if name.startswith("dtype of "):
        return np.dtype(name.removeprefix("dtype of "))
    module, inner = name.split(" ")
    return functools.reduce(getattr, inner.split("."), import_module(module))


@functools.cache
def _processor() -> str:
    """Return a digest of the processor's instruction set, as this machine's first processor describes it."""
    description = platform.machine()
    with suppress(OSError), Path("/proc/cpuinfo").open("rb") as file:
        first = file.read(8192).split(b"\n\n")[0].splitlines()
        fixed = (b"vendor_id", b"cpu family", b"model", b"flags", b"stepping", b"CPU ", b"Features")
        description += repr([line for line in first if line.startswith(fixed)])
    return hashlib.sha256(description.encode()).hexdigest()[:16]


@functools.cache
def build() -> str:
    """Return the stamp of what all machine code depends on: the compiler, the libraries and the processor."""
    parts = [sys.version, np.__version__, _processor()]
    for name in _BUILDERS:
        spec = importlib.util.find_spec(name)  # which does not import it
        assert spec is not None and spec.origin is not None, f"{name} is not installed"
        version = Path(spec.origin).with_name("_version.py").read_bytes()
        parts.append(f"{name} {hashlib.sha256(version).hexdigest()[:16]}")
    numba_s = {name for name in os.environ if name.startswith("NUMBA_")} - _NOT_OF_THE_CODE
    parts += [f"{name} {_digest_of_module(name)}" for name in _MAKERS]
    return stamp_of(*parts, *(f"{name}={os.environ[name]}" for name in sorted(numba_s)))


def _digest_of_module(name: str) -> str:
    """Return a digest of the source of a module of this folder, or of its bytecode if there is no source."""
    spec = importlib.util.find_spec(f"{__name__.rpartition('.')[0]}.{name}")
    assert spec is not None and spec.origin is not None and spec.loader is not None
    data: bytes = spec.loader.get_data(spec.origin)  # type: ignore[attr-defined]  # every loader of files has it
    return hashlib.sha256(data).hexdigest()[:16]


def content_of(function: FunctionType) -> str:
    """Return a digest of what a function does: of its instructions, not of their lines.

    It includes the functions, numbers and texts that it names, of its module and of the function around it,
    and what those name.
    """
    content = repr([_content_parts(each) for each in _reach(function, {})])
    return hashlib.blake2b(content.encode(), digest_size=12).hexdigest()


def _reach(function: FunctionType, reached: dict[FunctionType, None]) -> dict[FunctionType, None]:
    """Add the function and those that it reaches to `reached`, in order of the first visit; return it."""
    if function not in reached:
        reached[function] = None
        for value in _uses(function).values():
            if isinstance(value, FunctionType):
                _reach(value, reached)
    return reached


def _uses(function: FunctionType) -> dict[str, object]:
    """Return by name what a function uses of its module, and of the function around it."""
    code = function.__code__
    uses = {name: function.__globals__[name] for name in names_in(code) if name in function.__globals__}
    cells = zip(code.co_freevars, function.__closure__ or (), strict=True)
    return {**uses, **{name: cell.cell_contents for name, cell in cells}}


def _content_parts(function: FunctionType) -> tuple[object, ...]:
    numbers = {name: value for name, value in _uses(function).items() if isinstance(value, int | float | str)}
    return instructions_of(function.__code__), function.__defaults__, numbers


def names_in(code: CodeType) -> list[str]:
    """Return, sorted, the names that a function, and those within it, may use of its module."""
    inner = [names_in(each) for each in code.co_consts if isinstance(each, CodeType)]
    return sorted({*code.co_names, *itertools.chain.from_iterable(inner)})


def instructions_of(code: CodeType) -> tuple[object, ...]:
    """Return what Python has compiled from a function's source, without the line numbers."""
    constants = [
        instructions_of(each)
        if isinstance(each, CodeType)
        else sorted(map(repr, each))  # a set: each process has it in another order
        if isinstance(each, frozenset)
        else each
        for each in code.co_consts
    ]
    names = code.co_names, code.co_varnames, code.co_freevars, code.co_cellvars
    counts = code.co_argcount, code.co_posonlyargcount, code.co_kwonlyargcount, code.co_flags
    return code.co_code, constants, names, counts, getattr(code, "co_exceptiontable", b"")
