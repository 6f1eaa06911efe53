"""Does a target bear these bytes? And the messages that are kept because they once were too much for one.

A file of the corpus holds the frames of one message, each after its length as 32 bits, little-endian. Its
name says what is odd about it.
"""

from __future__ import annotations

import contextlib
import hashlib
import struct
import sys
import time
import tracemalloc
import warnings
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa

from .mutations import Frames
from .targets import TARGETS, Target

__all__ = ["CORPUS", "Defect", "keep", "kept", "probe", "read_kept"]

CORPUS = Path(__file__).parent / "corpus"

_MEMORY_FLOOR_BYTES = 96 << 20
_MEMORY_PER_BYTE = 100
"""An empty map has one byte on the wire and 64 in Python; what msgpack sets aside is the floor."""

_SECONDS_MAX = 5.0


class Defect(AssertionError):
    """A target did with some bytes what it must not; the message says what."""


def probe(target: Target, frames: Frames) -> str:
    """Let `target` read `frames`; returns how that ended, raises `Defect` if it must not end so."""
    allowed = _MEMORY_FLOOR_BYTES + _MEMORY_PER_BYTE * sum(map(len, frames))
    pool = pa.default_memory_pool()
    before = pool.max_memory()
    started = time.process_time()  # whatever else the machine has to do
    tracemalloc.start()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            target.read([memoryview(frame) for frame in frames])
        ended = "read"
    except target.may_raise as error:
        ended = type(error).__name__
    except BaseException as error:
        if isinstance(error, KeyboardInterrupt):
            raise
        raise Defect(f"{target.name} raised {type(error).__name__}: {str(error)[:300]}") from error
    finally:
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
    # Arrow tells the highest mark of the process only: one that is passed by far has been passed by this.
    if pool.max_memory() > before:
        peak += max(0, pool.max_memory() - before)
    if peak > allowed:
        raise Defect(f"{target.name} took {peak:,} bytes for {sum(map(len, frames)):,}")
    seconds = time.process_time() - started
    if seconds > _SECONDS_MAX and (seconds := _seconds_alone(target, frames)) > _SECONDS_MAX:
        raise Defect(f"{target.name} took {seconds:.1f} s for {sum(map(len, frames)):,} bytes")
    return ended


def _seconds_alone(target: Target, frames: Frames) -> float:
    """The processor time without what watches memory and lines: of a text of SQL that is a twentieth."""
    watching = sys.gettrace()
    sys.settrace(None)
    started = time.process_time()
    try:
        with contextlib.suppress(*target.may_raise):
            target.read([memoryview(frame) for frame in frames])
    finally:
        sys.settrace(watching)
    return time.process_time() - started


def kept(name: str) -> list[Path]:
    """The corpus of one target."""
    return sorted((CORPUS / name).glob("*.bin"))


def read_kept(path: Path) -> Frames:
    """The frames in a file of the corpus."""
    return list(_cut(path.read_bytes()))


def keep(name: str, frames: Frames, stem: str = "") -> Path:
    """Add a message to the corpus of a target."""
    assert name in TARGETS
    content = b"".join(struct.pack("<I", len(frame)) + frame for frame in frames)
    path = CORPUS / name / f"{stem or hashlib.blake2b(content, digest_size=6).hexdigest()}.bin"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    return path


def _cut(content: bytes) -> Iterator[bytes]:
    at = 0
    while at < len(content):
        (size,) = struct.unpack_from("<I", content, at)
        yield content[at + 4 : at + 4 + size]
        at += 4 + size
