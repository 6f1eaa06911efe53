"""How are appends told apart, and which worker takes one?

An append is known by (input, epoch, writer, sequence): a repeated one must meet the first. So its worker
depends on writer and sequence alone, by a function that is the same in every process.
"""

from __future__ import annotations

import os
import uuid
import zlib

__all__ = ["ExpectedAppend", "new_writer", "place_of"]

ExpectedAppend = tuple[str, str, int]
"""(input, writer, sequence) of an append that must have arrived before its epoch is sealed."""


def place_of(writer: str, sequence: int, workers: int) -> int:
    """The worker that an append goes to."""
    assert workers > 0
    return zlib.crc32(f"{writer}\0{sequence}".encode()) % workers


def new_writer() -> str:
    """A name that no other writer has."""
    return f"{os.getpid()}-{uuid.uuid4().hex[:12]}"
