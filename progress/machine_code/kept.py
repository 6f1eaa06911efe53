"""Where is the machine code of a kernel kept, and is it still that of its source?

Below `NUMBA_CACHE_DIR`, if set; in `__pycache__` beside the source; if that is not writable (an installed
package that belongs to root), in the user's cache directory. It is looked for in all of these, and written to
the first that can be. Who can write there can have code executed, as with Python's own compiled files.

A file begins with a digest of the rest: one that is damaged, as after a power failure, is as none. Then comes
a *stamp*, what the code depends on. Machines of several kinds may share a folder: the processor is part of a
file's name, and whatever else the code depends on is part of the stamp.
"""

from __future__ import annotations

import functools
import hashlib
import importlib.util
import json
import os
import platform
import sys
import uuid
from collections.abc import Iterator
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from types import FunctionType
from typing import Final, NamedTuple

import numpy as np

from .image import Image

__all__ = [
    "Code",
    "build",
    "is_whole",
    "keep",
    "keep_object",
    "look_up",
    "look_up_object",
    "name_of",
    "stamp_of_file",
    "with_digest",
]

_DIGEST_BYTES: Final = 16
_FORM: Final = 1
"""Of these files; another number for another form."""
_BUILDERS: Final = ("numba", "llvmlite")
_MAKERS: Final = ("calling", "compiling", "counting", "image", "parts", "shortcuts")
"""Files of this folder by which the code would be another one."""
_NOT_OF_THE_CODE: Final = {"NUMBA_CACHE_DIR", "NUMBA_NUM_THREADS"}
"""What numba is told that its code does not depend on: no kernel has threads of its own. Workers that Spark
hosts are told a number of threads, and others are not: they would replace each other's files at every start.
"""


class Code(NamedTuple):
    """What is kept of a kernel: for which arguments, its machine code, the Python objects in that."""

    signature: str
    image: Image
    constants: list[object]


def name_of(function: FunctionType) -> str:
    """What a kernel's files are called, as numba calls its own."""
    code = function.__code__
    return f"{Path(code.co_filename).stem}.{function.__qualname__}-{code.co_firstlineno}"


def look_up(source: str, name: str, stamp: tuple[str, ...]) -> Code | None:
    """The machine code of the kernel `name` of the file `source`, if it is kept and of this stamp."""
    for data in _found(source, _file_name(name, "machine")):
        if (code := _read(data, stamp)) is not None:
            return code
    return None


def keep(source: str, name: str, stamp: tuple[str, ...], code: Code) -> None:
    """Where it can be. Where it cannot (no folder, no space), the next process makes it anew."""
    _write(source, _file_name(name, "machine"), _written(code, stamp))


def look_up_object(source: str, name: str, stamp: tuple[str, ...]) -> bytes | None:
    """The same of machine code as a compiler writes it, to which others are linked."""
    head = _line_of(stamp)
    for data in _found(source, _file_name(name, "object")):
        if data.startswith(head):
            return data[len(head) :]
    return None


def keep_object(source: str, name: str, stamp: tuple[str, ...], code: bytes) -> None:
    """As `keep`."""
    _write(source, _file_name(name, "object"), _line_of(stamp) + code)


def _line_of(stamp: tuple[str, ...]) -> bytes:
    return json.dumps(stamp).encode() + b"\n"


def _found(source: str, file_name: str) -> Iterator[bytes]:
    """What whole files of that name say."""
    for folder in _folders(source):
        try:
            data = (folder / file_name).read_bytes()
        except OSError:
            continue
        digest, rest = data[:_DIGEST_BYTES], data[_DIGEST_BYTES:]
        if digest == _digest(rest):
            yield rest


def _write(source: str, file_name: str, data: bytes) -> None:
    """To the first place where it can be written; others read the old one or the new one, whole."""
    for folder in _folders(source):
        path = folder / file_name
        new = path.with_suffix(f".{uuid.uuid4().hex[:12]}")
        try:
            folder.mkdir(parents=True, exist_ok=True)
            new.write_bytes(_digest(data) + data)
            new.replace(path)
            return
        except OSError:
            with suppress(OSError):
                new.unlink(missing_ok=True)


def _written(code: Code, stamp: tuple[str, ...]) -> bytes:
    """A line of JSON that says how long what is: the code, the words to be completed, by name."""
    image = code.image
    head = {
        "stamp": stamp,
        "signature": code.signature,
        "constants": [_name_of(each) for each in code.constants],
        "entry": image.entry,
        "code": len(image.code),
        "here": len(image.here),
        "there": {name: len(places) for name, places in image.there.items()},
    }
    words = [image.here, *image.there.values()]
    return b"".join([json.dumps(head).encode(), b"\n", image.code, *(each.tobytes() for each in words)])


def _read(data: bytes, stamp: tuple[str, ...]) -> Code | None:
    begin = data.index(b"\n") + 1
    head = json.loads(data[:begin])
    if tuple(head["stamp"]) != stamp:
        return None
    end = begin + head["code"]
    words = np.frombuffer(data[end:], np.int64)
    at: int = head["here"]
    here, there = words[:at], {}
    for name, count in head["there"].items():
        there[name] = words[at : at + count]
        at += count
    image = Image(data[begin:end], head["entry"], here, there)
    return Code(head["signature"], image, [_named(each) for each in head["constants"]])


def _name_of(constant: object) -> str:
    """Of a class, or of a kind of array. Machine code compares both by identity."""
    if isinstance(constant, np.dtype):
        return f"dtype of {constant.name}"
    assert isinstance(constant, type), "classes are found by their names, other objects are not"
    return f"{constant.__module__} {constant.__qualname__}"


def _named(name: str) -> object:
    if name.startswith("dtype of "):
        return np.dtype(name.removeprefix("dtype of "))
    module, inner = name.split(" ")
    return functools.reduce(getattr, inner.split("."), import_module(module))


def with_digest(data: bytes) -> bytes:
    """What `is_whole` knows: the digest is behind the data, for files that numba begins. Their form is none
    of ours.
    """
    return data + _digest(data, b"numba's")


def is_whole(data: bytes) -> bool:
    """Whether none of it is damaged."""
    return data[-_DIGEST_BYTES:] == _digest(data[:-_DIGEST_BYTES], b"numba's")


def _digest(data: bytes, form: bytes = b"") -> bytes:
    """Of data in a form, by default this one: files in another one are as none, too."""
    person = form or b"naiad %d" % _FORM
    return hashlib.blake2b(data, digest_size=_DIGEST_BYTES, person=person).digest()


def _folders(source: str) -> Iterator[Path]:
    own, apart = _folder_of(str(Path(source).parent))
    chosen = os.environ.get("NUMBA_CACHE_DIR")
    if chosen:
        yield Path(chosen, apart)
        if _can_be_written(Path(chosen)):
            return
    yield own / "__pycache__"
    with suppress(RuntimeError):  # nobody's home
        yield Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "naiad" / apart


@functools.cache
def _folder_of(folder: str) -> tuple[Path, str]:
    """A folder's own path, and a name for it that is no other one's."""
    own = Path(folder).resolve()
    return own, f"{own.name}_{hashlib.sha256(bytes(own)).hexdigest()[:16]}"


def _can_be_written(folder: Path) -> bool:
    with suppress(OSError):
        folder.mkdir(parents=True, exist_ok=True)
    return os.access(folder, os.W_OK | os.X_OK)


def _file_name(name: str, kind: str) -> str:
    return f"{name}.{sys.implementation.cache_tag}.{_processor()}.{kind}"


@functools.cache
def _processor() -> str:
    """Which instructions there are: what the first processor of this machine says of itself."""
    said = platform.machine()
    with suppress(OSError), Path("/proc/cpuinfo").open("rb") as file:
        first = file.read(8192).split(b"\n\n")[0].splitlines()
        fixed = (b"vendor_id", b"cpu family", b"model", b"flags", b"stepping")
        said += repr([line for line in first if line.startswith(fixed)])
    return hashlib.sha256(said.encode()).hexdigest()[:8]


@functools.cache
def build() -> tuple[str, ...]:
    """What all machine code depends on: who compiles it, what it runs with, what they are told."""
    parts = [sys.version, np.__version__]
    for name in _BUILDERS:
        spec = importlib.util.find_spec(name)  # which does not import it
        assert spec is not None and spec.origin is not None, f"{name} is not installed"
        parts.append(f"{name} {stamp_of_file(str(Path(spec.origin).with_name('_version.py')))}")
    numba_s = {name for name in os.environ if name.startswith("NUMBA_")} - _NOT_OF_THE_CODE
    here = Path(__file__).parent
    parts += [stamp_of_file(str(here / f"{name}.py")) for name in _MAKERS]
    return (*parts, *(f"{name}={os.environ[name]}" for name in sorted(numba_s)))


@functools.cache
def stamp_of_file(path: str) -> str:
    """When it was written, and how long it is."""
    status = Path(path).stat()
    return f"{Path(path).name} {status.st_mtime_ns} {status.st_size}"
