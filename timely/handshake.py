"""What do workers say to one another before and beside their data?

    Greeting    once, first of all: protocol version, number of workers, own index, where clients reach it
    Offer       once per dataflow: fingerprint and description of what this worker built, or why it could not
    Farewell    once, last of all: an orderly end (no reason), or why this worker had to stop

Workers that differ must not start: a dataflow that differs would wait for ever. Each worker gets all offers
and judges them by the same rule (`first_difference`), so that all come to the same verdict without another
round.

Pure: makes and reads payloads; `server.py` and `worker/process.py` send them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import zip_longest
from typing import TypeVar

import msgpack

from .batch import Frame
from .errors import PeerError
from .limits import WORKERS_MAX

__all__ = [
    "PROTOCOL_VERSION",
    "Control",
    "Farewell",
    "Greeting",
    "Offer",
    "check_greeting",
    "decode_control",
    "encode_control",
    "first_difference",
]

PROTOCOL_VERSION = 1


@dataclass(frozen=True)
class Greeting:
    """Who a worker is, as it introduces itself to its peers."""

    version: int
    workers: int
    index: int
    client_address: str


@dataclass(frozen=True)
class Offer:
    """What a worker has built for dataflow `dataflow`: `lines` of `Graph.describe`; or the reason why it
    could not.
    """

    dataflow: int
    fingerprint: str
    lines: tuple[str, ...]
    failure: str


@dataclass(frozen=True)
class Farewell:
    """The last word of a worker. An empty reason: it was told to end, and so should its peers."""

    reason: str


Control = Greeting | Offer | Farewell

_FORMS: dict[str, tuple[type[Control], tuple[type, ...]]] = {
    "greeting": (Greeting, (int, int, int, str)),
    "offer": (Offer, (int, str, tuple, str)),
    "farewell": (Farewell, (str,)),
}

T = TypeVar("T")


def encode_control(control: Control) -> bytes:
    """One frame; `decode_control` is the inverse."""
    if isinstance(control, Greeting):
        fields: list[object] = [
            "greeting",
            control.version,
            control.workers,
            control.index,
            control.client_address,
        ]
    elif isinstance(control, Offer):
        fields = ["offer", control.dataflow, control.fingerprint, list(control.lines), control.failure]
    else:
        fields = ["farewell", control.reason]
    packed: bytes = msgpack.packb(fields)
    return packed


def decode_control(frame: Frame, peer: int) -> Control:
    """What worker `peer` said; `PeerError` when it is nothing of the above."""
    try:
        fields: object = msgpack.unpackb(frame, use_list=False)
    except (ValueError, msgpack.UnpackException) as error:
        raise PeerError(f"worker {peer} sent a control message that is not msgpack: {error}") from error
    if not isinstance(fields, tuple) or not fields or fields[0] not in _FORMS:
        raise PeerError(f"worker {peer} sent a control message of no known kind: {str(fields)[:200]}")
    made, types = _FORMS[fields[0]]
    values = fields[1:]
    if len(values) != len(types) or not all(type(v) is t for v, t in zip(values, types, strict=True)):
        raise PeerError(f"worker {peer} sent a malformed {fields[0]}: {str(values)[:200]}")
    if made is Offer and not all(isinstance(line, str) for line in values[2]):
        raise PeerError(f"worker {peer} sent an offer whose lines are no text")
    return made(*values)


def check_greeting(mine: Greeting, theirs: Greeting, peer: int) -> None:
    """Raise `PeerError` if the worker that connected as `peer` may not work with this one."""
    assert 0 < mine.workers <= WORKERS_MAX
    who = f"worker {peer} (client address {theirs.client_address})"
    if theirs.version != mine.version:
        raise PeerError(
            f"{who} speaks protocol version {theirs.version}, worker {mine.index} version {mine.version}: "
            "run the same release on all hosts"
        )
    if theirs.workers != mine.workers:
        raise PeerError(
            f"{who} was started for {theirs.workers} workers, worker {mine.index} for {mine.workers}: "
            "give -n, -w and the host file the same values on all hosts"
        )
    if theirs.index != peer or not 0 <= peer < mine.workers:
        raise PeerError(f"{who} calls itself worker {theirs.index}: start each host with its own -p")


def first_difference(offers: Mapping[int, Offer]) -> str | None:
    """Why these offers, one per worker, cannot work together; `None` if they can.

    The first line of the description that differs names the first differing stage.
    """
    assert offers
    failed = [
        f"worker {worker} could not build it: {offer.failure}"
        for worker, offer in sorted(offers.items())
        if offer.failure
    ]
    if failed:
        return "\n".join(failed)
    first = min(offers)
    for worker in sorted(offers):
        if offers[worker].fingerprint != offers[first].fingerprint:
            return _difference(worker, offers[worker], first, offers[first])
    return None


def _difference(worker: int, offer: Offer, other: int, reference: Offer) -> str:
    for number, (line, expected) in enumerate(zip_longest(offer.lines, reference.lines)):
        if line != expected:
            # Line 0 is the layout of times, stage s is line s + 1.
            what = "the layout of times" if number == 0 else f"stage {number - 1}"
            return (
                f"the dataflow differs between workers: worker {worker} built {what} as\n    "
                f"{line or 'nothing: it has fewer stages'}\n"
                f"  worker {other} as\n    {expected or 'nothing: it has fewer stages'}\n"
                "  Every worker must build the same: the builder may depend on its arguments only, not on "
                "the host, the environment or the order of a set"
            )
    return (
        f"the dataflow differs between workers {worker} and {other}: "
        f"fingerprints {offer.fingerprint} and {reference.fingerprint}"
    )
