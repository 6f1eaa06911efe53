"""What do workers send one another before and beside their data?

    Greeting    once, first of all: protocol version, number of workers, own index, client address, …
    Farewell    once, last of all: an orderly end (no reason), or why this worker had to stop

    Build       worker 0 to all: build this dataflow
    Offer       to worker 0: fingerprint and description of the built dataflow, or why it could not be built
    Verdict     worker 0 to all: start it (no reason), or forget it

    Decided     worker 0 to all: these staged deliveries enter, epochs up to this one are complete, and these
                inputs are closed
    SealedInput  worker 0 to all: epochs up to this one are complete at this input alone
    HoldInputs  worker 0 to all: take nothing for a dataflow of a durable cluster, and write what its new
                version has to have
    InputsHeld  to worker 0: this is on the disk
    Switched    worker 0 to all: a new version of a dataflow has its inputs from this epoch on
    TakenOver   to worker 0: the new version has its outputs on this worker, too
    Ended       any worker to all: a dataflow has ended with this error
    EndHeard    the answer to `Ended`, to the worker that sent it
    Synced      to worker 0, where workers are durable: what this worker has of these epochs is on its disk
    Durable     worker 0 to all: and so it is on all workers
    Digested    to worker 0, after a restart: the digests of what an output shows again on this worker
    Agreed      worker 0 to all: on all workers together they are those from before
    Logged      to worker 0: so many bytes were logged here
    CutLog      worker 0 to all: write the changes of outputs, and begin a segment, for a fold
    LogCut      to worker 0: that is done, and on the disk

Worker 0 decides, the others obey. Messages between two workers arrive in order, so all of them carry out the
same decisions in the same order, and a request that a client sends to worker 0 takes effect on all workers or
on none. Worker 0 alone decides when something has taken too long, so no two workers ever reach different
verdicts.

Pure: makes and reads payloads; `installation.py`, `orders.py`, `server.py` and `worker/process.py` send them.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass, fields
from itertools import zip_longest
from typing import NamedTuple

import msgpack

from progress.records import record

from ..errors import PeerError, TimelyError, revive
from ..limits import SILENCE_SECONDS_DEFAULT, WORKERS_MAX
from .batch import Frame
from .claims import shown
from .requests import ALL_PARTS

__all__ = [
    "PROTOCOL_VERSION",
    "Agreed",
    "Build",
    "Control",
    "CutLog",
    "Decided",
    "Digested",
    "Durable",
    "EndHeard",
    "Ended",
    "Entering",
    "Farewell",
    "Greeting",
    "HoldInputs",
    "InputsHeld",
    "LogCut",
    "Logged",
    "Offer",
    "SealedInput",
    "Switched",
    "Synced",
    "TakenOver",
    "Verdict",
    "check_greeting",
    "decode_control",
    "encode_control",
    "first_difference",
    "own_hashing",
]

PROTOCOL_VERSION = 17


@dataclass(frozen=True)
class Greeting:
    """The introduction of a worker to its peers: its index and address, and settings that all must share.

    `hashing` is the result of `own_hashing`: how Python hashes text in this process, and by which seed.
    `incarnation` counts the starts of a durable cluster; 0: it is not durable. `progress`: when it tells
    others of its progress (`Worker.progress_mode`).
    """

    version: int
    workers: int
    index: int
    client_address: str
    python: str = ""
    installs: tuple[str, ...] = ()
    silence_ms: int = round(1_000 * SILENCE_SECONDS_DEFAULT)
    hashing: str = ""
    incarnation: int = 0
    progress: str = "eager"


@dataclass(frozen=True)
class Farewell:
    """The last message of a worker. An empty reason: it ends in order, and its peers should end, too."""

    reason: str


@dataclass(frozen=True)
class Build:
    """Build `spec`, "module:function", with these arguments (msgpack), as dataflow `dataflow`.

    It is a new version of dataflow `replaces`; -1: of none.
    """

    dataflow: int
    spec: str
    arguments: bytes
    replaces: int = -1


@dataclass(frozen=True)
class Offer:
    """The result of building dataflow `dataflow` on a worker.

    fingerprint, lines   of the graph; the lines are those of `Graph.describe`
    failure, classes     why the worker could not build it, and the classes of the error, most special first
    imports              the exports that it reads of other dataflows, each "number export"
    since                the first epoch at which this worker can begin with these exports, which it keeps
                         from then on
    """

    dataflow: int
    fingerprint: str
    lines: tuple[str, ...]
    failure: str
    classes: tuple[str, ...] = ()
    imports: tuple[str, ...] = ()
    since: int = 0


@dataclass(frozen=True)
class Verdict:
    """Start dataflow `dataflow`, or, with a reason, forget it.

    `as_of`: the epoch with which it begins on all workers, if it imports.
    """

    dataflow: int
    reason: str = ""
    classes: tuple[str, ...] = ()
    as_of: int = 0

    def error(self) -> TimelyError:
        """Return the error that explains why the dataflow was refused."""
        return revive(list(self.classes), self.reason)


class Entering(NamedTuple):
    """The staged rows of the delivery (writer, sequence) enter `epoch`; -1: drop them, it was taken before.

    order      its number among the calls of the input, where the order of calls counts
    attempts   of a batch: the attempts that enter, with consecutive numbers from `order` on; all others at
               this batch are dropped. None for an insertion
    parts      of an insertion: how many of its parts enter. Parts behind these are left over from a client
               that did not finish, and are dropped
    """

    input: str
    writer: str
    sequence: int
    epoch: int
    order: int
    attempts: tuple[str, ...] | None
    parts: int = ALL_PARTS


@record(frozen=True)
class Decided:
    """The deliveries `enter` enter; then all epochs up to `sealed` (-1: none) are complete at all inputs that
    are not closed; then the inputs `close` are closed.
    """

    dataflow: int
    sealed: int
    enter: tuple[Entering, ...] = ()
    close: tuple[str, ...] = ()


@dataclass(frozen=True)
class SealedInput:
    """All epochs up to `sealed` are complete at the input `input` alone."""

    dataflow: int
    input: str
    sealed: int


@dataclass(frozen=True)
class HoldInputs:
    """`new` is to take the place of dataflow `old` at `epoch`, which is open. Until it has, or has ended,
    take no rows or decisions for `old`; write what `new` goes on with, and answer `InputsHeld`.
    """

    old: int
    new: int
    epoch: int


@dataclass(frozen=True)
class InputsHeld:
    """This worker's log has all with which `dataflow` goes on in place of another."""

    dataflow: int


@dataclass(frozen=True)
class Switched:
    """From `epoch` on the inputs of dataflow `old` belong to its new version `new`."""

    old: int
    new: int
    epoch: int


@dataclass(frozen=True)
class TakenOver:
    """This worker has finished with the version that `dataflow` replaces."""

    dataflow: int


@dataclass(frozen=True)
class Ended:
    """A dataflow has ended with an error: its message and its classes, most special first."""

    dataflow: int
    reason: str
    classes: tuple[str, ...]

    def error(self) -> TimelyError:
        """Return the error for clients."""
        return revive(list(self.classes), self.reason)


@dataclass(frozen=True)
class EndHeard:
    """This worker has ended a dataflow because the receiver of this message sent `Ended`."""

    dataflow: int


@dataclass(frozen=True)
class Synced:
    """This worker's log has all that it took for epochs of a dataflow before this one; by its inputs, or by
    the source of this name.
    """

    dataflow: int
    before: int
    source: str = ""


@dataclass(frozen=True)
class Durable:
    """The logs of all workers have all of a dataflow's epochs before this one; `source`: see `Synced`."""

    dataflow: int
    before: int
    source: str = ""


@dataclass(frozen=True)
class Digested:
    """This worker's digests of an output, for epochs before this one that are made again after a restart.

    `sums`: epoch and digest of each that is not 0 and was not told yet, as pairs of words.
    """

    dataflow: int
    output: str
    before: int
    sums: bytes


@dataclass(frozen=True)
class Agreed:
    """The digests of an output, for epochs before this one, are those from before the restart."""

    dataflow: int
    output: str
    before: int


@dataclass(frozen=True)
class Logged:
    """This worker's log has so many bytes."""

    size_bytes: int


@dataclass(frozen=True)
class CutLog:
    """Write the changes that the outputs of these dataflows keep, up to an epoch of each, into the log; then
    begin a segment, whose first record has this name. It comes twice; the segment begins behind the second.
    """

    name: str
    dataflows: tuple[int, ...]
    epochs: tuple[int, ...]
    stored: tuple[int, ...] = ()
    """For each dataflow, the epoch as of which its stored outputs are written, too; -1, or none: not at all.
    """


@dataclass(frozen=True)
class LogCut:
    """This worker's log is cut under this name, and what is in front of the cut is on the disk."""

    name: str


Control = (
    Greeting
    | Farewell
    | Build
    | Offer
    | Verdict
    | Decided
    | SealedInput
    | HoldInputs
    | InputsHeld
    | Switched
    | TakenOver
    | Ended
    | EndHeard
    | Synced
    | Durable
    | Digested
    | Agreed
    | Logged
    | CutLog
    | LogCut
)

_KINDS: dict[str, type[Control]] = {
    message.__name__.lower(): message
    for message in (
        Greeting, Farewell, Build, Offer, Verdict, Decided, SealedInput, HoldInputs, InputsHeld, Switched,
        TakenOver, Ended, EndHeard, Synced, Durable, Digested, Agreed, Logged, CutLog, LogCut,
    )
}  # fmt: skip
_DECLARED = {
    message: tuple((declared.name, str(declared.type)) for declared in fields(message))
    for message in _KINDS.values()
}
"""The names of the fields of each message, and their types as declared."""
_TYPES: dict[str, type] = {
    "int": int,
    "str": str,
    "bytes": bytes,
    "tuple[str, ...]": tuple,
    "tuple[int, ...]": tuple,
    "tuple[str, ...] | None": tuple,
    "tuple[Entering, ...]": tuple,
}
_ENTERING_FIELDS = ("str", "str", "int", "int", "int", "tuple[str, ...] | None", "int")
_TEXT_ERRORS = "surrogatepass"


def encode_control(control: Control) -> bytes:
    """Return the message as one frame; `decode_control` is the inverse."""
    values = [getattr(control, name) for name, _ in _DECLARED[type(control)]]
    # Errors quote text of users. Text that is not valid UTF-8 must not prevent their delivery.
    packed: bytes = msgpack.packb([type(control).__name__.lower(), *values], unicode_errors=_TEXT_ERRORS)
    return packed


def decode_control(frame: Frame, peer: int) -> Control:
    """Return the message in a frame of worker `peer`; `PeerError` if it is none of the above."""
    try:
        parts: object = msgpack.unpackb(frame, use_list=False, unicode_errors=_TEXT_ERRORS)
    except Exception as error:  # msgpack raises whatever a map's key or a nesting leads to
        raise PeerError(f"worker {peer} sent a control message that is not msgpack: {error}") from error
    kind = parts[0] if isinstance(parts, tuple) and parts else None
    message_class = _KINDS.get(kind) if isinstance(kind, str) else None
    if message_class is None or not isinstance(parts, tuple):
        raise PeerError(f"worker {peer} sent a control message of no known kind: {shown(parts)}")
    declared, values = _DECLARED[message_class], parts[1:]
    if len(values) != len(declared) or not all(
        _fits(value, type_) for value, (_, type_) in zip(values, declared, strict=True)
    ):
        raise PeerError(f"worker {peer} sent a malformed {kind}: {shown(values)}")
    if message_class is Decided:
        dataflow, sealed, enter, close = values
        return Decided(dataflow, sealed, tuple([Entering(*field) for field in enter]), close)
    return message_class(*values)


def _fits(value: object, declared: str) -> bool:
    if value is None:
        return declared.endswith("None")
    if type(value) is not _TYPES[declared]:
        return False
    if not isinstance(value, tuple):
        return True
    if declared == "tuple[Entering, ...]":
        return all(map(_is_entering, value))
    kind = int if declared == "tuple[int, ...]" else str
    return all(type(entry) is kind for entry in value)


def _is_entering(value: object) -> bool:
    return (
        isinstance(value, tuple)
        and len(value) == len(_ENTERING_FIELDS)
        and all(map(_fits, value, _ENTERING_FIELDS))
    )


def own_hashing() -> str:
    """Return how Python hashes text in this process: the algorithm, PYTHONHASHSEED, and the hash of one text.

    Two processes return the same exactly if all texts hash alike in both.
    """
    algorithm, seed = sys.hash_info.algorithm, os.environ.get("PYTHONHASHSEED", "")
    return f"{algorithm}, {f'PYTHONHASHSEED={seed}' if seed else 'no PYTHONHASHSEED'}: {hash('timely')}"


def check_greeting(mine: Greeting, theirs: Greeting, peer: int) -> None:
    """Raise `PeerError` if the worker that connected as `peer` cannot work with this one."""
    assert 0 < mine.workers <= WORKERS_MAX
    who = f"worker {peer} (client address {theirs.client_address})"
    if theirs.version != mine.version:
        raise PeerError(
            f"{who} speaks protocol version {theirs.version}, worker {mine.index} version {mine.version}: "
            "run the same release on all hosts"
        )
    if theirs.python != mine.python:
        raise PeerError(
            f"{who} runs Python {theirs.python}, worker {mine.index} Python {mine.python}: the same "
            "functions are "
            "compared by their code, so run the same version on all hosts"
        )
    if theirs.hashing != mine.hashing:
        raise PeerError(
            f"{who} hashes text otherwise ({theirs.hashing}) than worker {mine.index} ({mine.hashing}), so "
            "functions that call hash() would send equal keys to different workers: give all hosts the "
            "same PYTHONHASHSEED, or none"
        )
    if theirs.workers != mine.workers:
        raise PeerError(
            f"{who} was started for {theirs.workers} workers, worker {mine.index} for {mine.workers}: "
            "give -n, -w and the host file the same values on all hosts"
        )
    if mine.incarnation and theirs.incarnation != mine.incarnation:
        raise PeerError(
            f"{who} is of incarnation {theirs.incarnation} of a durable cluster, worker {mine.index} of "
            f"incarnation {mine.incarnation} (0: not durable): give all hosts the same --durable, and start "
            "all of them again"
        )
    if theirs.index != peer or not 0 <= peer < mine.workers:
        raise PeerError(f"{who} calls itself worker {theirs.index}: start each host with its own -p")
    if theirs.installs != mine.installs:
        raise PeerError(
            f"{who} was started with {_installs_text(theirs)}, worker {mine.index} with "
            f"{_installs_text(mine)}: give "
            "all hosts the same --install, in the same order"
        )
    if theirs.silence_ms != mine.silence_ms:
        raise PeerError(
            f"{who} bears a silence of {theirs.silence_ms / 1_000:g} s, worker {mine.index} one of "
            f"{mine.silence_ms / 1_000:g} s: give all hosts the same --silence"
        )
    if theirs.progress != mine.progress:
        raise PeerError(
            f"{who} tells progress by mode {theirs.progress}, worker {mine.index} by mode {mine.progress}: "
            "give all hosts the same --progress, -w and -n"
        )


def _installs_text(greeting: Greeting) -> str:
    return " ".join(f"--install {spec}" for spec in greeting.installs) or "no --install"


def first_difference(offers: Mapping[int, Offer]) -> str | None:
    """Return why these offers, one per worker, cannot work together; `None` if they can.

    The text quotes the first line in which the descriptions differ, and with it the first differing stage.
    """
    assert offers
    first = min(offers)
    for worker in sorted(offers):
        if offers[worker].fingerprint != offers[first].fingerprint:
            return _difference(worker, offers[worker], first, offers[first])
        if offers[worker].imports != offers[first].imports:
            return (
                f"the dataflow would read other dataflows on worker {worker} "
                f"({', '.join(offers[worker].imports)}) than on worker {first} "
                f"({', '.join(offers[first].imports)}): say by number what it imports"
            )
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
        f"fingerprints {offer.fingerprint} and {reference.fingerprint}. Where only loops differ, "
        "NAIAD_REGIONS does: it must be the same for every worker"
    )
