"""Names of deliveries, and the worker that takes each.

Every batch of rows that comes in is a *delivery*, and (writer, sequence) is its name: a repeated delivery
must meet the first. So its worker depends on its name alone, by a function that is the same in every process.
`deliveries.py` remembers the names that have come.
"""

from __future__ import annotations

import os
import uuid
import zlib
from numbers import Integral
from typing import Final, NamedTuple

from ...errors import InputClosedError, MisuseError

__all__ = [
    "UNNAMED",
    "DeliveryName",
    "ExpectedAppend",
    "closed_error",
    "name_of",
    "named",
    "new_writer",
    "worker_of",
]

ExpectedAppend = tuple[str, str, int]
"""(input, writer, sequence) of an append that must have arrived before its epoch is sealed."""


class DeliveryName(NamedTuple):
    """The name of one delivery to an input. A second delivery of the same name is a repetition."""

    writer: str
    sequence: int


_SEQUENCE_MAX: Final = 1 << 62
"""The largest number that a request carries."""

UNNAMED: Final = -1
"""The sequence, in a request, of an append without a name, which nobody can repeat."""


def name_of(writer: str, sequence: int) -> DeliveryName | None:
    """Return the name of an append to named epochs; None if it has none, and so is new each time."""
    return None if sequence == UNNAMED else DeliveryName(writer, sequence)


def named(writer: object, sequence: object) -> tuple[str, int]:
    """Check the name that a caller gives to rows. A sequence below 0 is refused: a caller that writes -1 for
    "unknown" would lose all but the first of its deliveries.
    """
    number = -1 if isinstance(sequence, bool) or not isinstance(sequence, Integral) else int(sequence)
    if isinstance(writer, str) and 0 <= number <= _SEQUENCE_MAX:
        return writer, number
    raise MisuseError(
        "an insertion is known by a writer, a text, and a sequence, a whole number from 0 to 2⁶²: not by "
        f"writer={writer!r:.80}, sequence={sequence!r:.80}. Number those of a writer 0, 1, 2, …"
    )


def worker_of(writer: str, sequence: int, workers: int) -> int:
    """Return the worker that takes a delivery."""
    assert workers > 0
    return zlib.crc32(f"{writer}\0{sequence}".encode("utf-8", "surrogatepass")) % workers


def closed_error(name: str) -> InputClosedError:
    """Make the error about rows for a closed input, for workers, and for a client that has closed it."""
    return InputClosedError(
        f"input {name!r} is closed: nothing can be added to it any more. To complete an epoch and go on, "
        "write flow.seal() in place of close(), which is for behind the last rows; to begin again, uninstall "
        "the dataflow and install it anew"
    )


def new_writer() -> str:
    """Make a name that no other writer has."""
    return f"{os.getpid()}-{uuid.uuid4().hex[:12]}"
