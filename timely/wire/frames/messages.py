"""What are the frames of a client's request, and of the worker's reply?

    request   frame 0: msgpack [protocol version, number of the request, its name, its fields]; a client of a
                       durable cluster adds the incarnation for which it has made the request (`life_of`)
              frame 1: the table of a delivery, as an Arrow IPC stream
    reply     frame 0: msgpack [protocol version, number of the request, "ok", values] or
                       [protocol version, number of the request, "error", [class names, message]] or the same
                       with "ended": an error that has ended the dataflow, and answers all later requests to
                       it
              frame 1: a table, if the request was for one

Where a request goes depends on the number of workers, and a durable cluster may start again with another one.
So a worker refuses a request that was made for another incarnation, before it has any effect: the answers of
several workers to requests of one incarnation are of one cluster. Another cluster may have come to the
address of the one that a client has lost without a notice, so the identity of the cluster is in that number.

An error with the number `FAREWELL` answers no request: it is the last message of a worker to all clients that
have sent it one.

A field with its default value is left out. The receiver refuses a message of any other form, or with fields
of other types than its class declares (`requests.py`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import MISSING, Field, fields
from typing import Final, TypeAlias, get_args
from zlib import crc32

import msgpack
import pyarrow as pa

from ...errors import (
    MisuseError,
    PeerError,
    RefusedError,
    RequestError,
    TimelyError,
    class_names,
    revive,
)
from ...failure import full_text_of
from ...limits import (
    FRAME_BYTES_MAX,
    HEADER_BYTES_MAX,
    NAME_CHARS_MAX,
    NESTING_LEVELS_MAX,
    REQUEST_BYTES_MAX,
)
from ..batch import Frame
from ..claims import shown
from ..handshake import PROTOCOL_VERSION
from ..nesting import is_too_deep
from ..requests import Reply, Request, Value
from .tables import frame_to_table, table_to_frame

__all__ = [
    "FAREWELL",
    "Head",
    "check_size",
    "decode_reply",
    "decode_request",
    "encode_error",
    "encode_reply",
    "encode_request",
    "head_of",
    "life_of",
    "number_of",
]

Head: TypeAlias = tuple[Value, Value, Value, Value, Value]
"""The content of the first frame, unchecked: version, number, name, fields, and of which
incarnation (0: any)."""

FAREWELL: Final = 0
"""No request has this number."""

_INCARNATION_BITS: Final = 31
_INCARNATION_MASK: Final = (1 << _INCARNATION_BITS) - 1

_REQUESTS: dict[str, type[Request]] = {request.__name__.lower(): request for request in get_args(Request)}
_TYPES: dict[str, type] = {
    "int": int,
    "bool": bool,
    "str": str,
    "float": float,
    "dict[str, Value]": dict,
    "list[Value]": list,
}
_NEEDED: Final = object()
"""Stands for the default of a field without one."""


def _default_of(one: Field[object]) -> object:
    if one.default_factory is not MISSING:
        return one.default_factory()
    return _NEEDED if one.default is MISSING else one.default


_DEFAULTS = {kind: [(one.name, _default_of(one)) for one in fields(kind)] for kind in _REQUESTS.values()}
_FIELDS = {kind: {one.name: _TYPES[str(one.type)] for one in fields(kind)} for kind in _REQUESTS.values()}
_NEEDED_FIELDS = {
    kind: [name for name, default in defaults if default is _NEEDED] for kind, defaults in _DEFAULTS.items()
}


def life_of(incarnation: int, cluster: str) -> int:
    """Return the number by which requests name an incarnation of a durable cluster. `cluster`: its identity;
    if that is empty, the number is that of the incarnation. 0: of no durable cluster.
    """
    if not (incarnation and cluster):
        return incarnation
    return incarnation | crc32(cluster.encode()) << _INCARNATION_BITS


def encode_request(
    number: int, request: Request, table: pa.Table | None = None, life: int = 0
) -> list[Frame]:
    """Return the frames of a request that was made for an incarnation, as `life_of` numbers it (0: for any);
    raises `RequestError` for an argument that msgpack cannot hold.
    """
    values = {
        name: value
        for name, default in _DEFAULTS[type(request)]
        if (value := getattr(request, name)) != default
    }
    head: list[Value] = [PROTOCOL_VERSION, number, type(request).__name__.lower(), values]
    if life:
        head.append(life)
    try:
        header: Frame = msgpack.packb(head)
    except (TypeError, ValueError, OverflowError) as error:
        raise RequestError(
            f"{type(request).__name__.lower()} takes None, bool, int (64 bits), float, str, bytes, lists "
            f"and dicts of these: {error}"
        ) from error
    return [header] if table is None else [header, table_to_frame(table)]


def check_size(frames: list[Frame]) -> list[Frame]:
    """Return the frames of a request; raises `MisuseError` if one is larger than a worker accepts.

    The client must check this, since a worker cannot answer a request that it cannot read.
    """
    if memoryview(frames[0]).nbytes > HEADER_BYTES_MAX:
        raise MisuseError(
            f"a request whose values, without its rows, take {memoryview(frames[0]).nbytes:,} bytes is too "
            f"large: {HEADER_BYTES_MAX:,} are the limit"
        )
    for frame in frames:
        if memoryview(frame).nbytes > REQUEST_BYTES_MAX:
            raise MisuseError(
                f"a request of {memoryview(frame).nbytes:,} bytes is too large: append at most "
                f"{REQUEST_BYTES_MAX:,} at once: slices of the table, each with a sequence of its own"
            )
    return frames


def decode_request(
    frames: Sequence[memoryview], head: Head | None = None, life: int | None = None
) -> tuple[Request, pa.Table | None]:
    """Return the request in `frames`, and its table if it has one; `RequestError` if it is malformed,
    `PeerError` if it was made for another incarnation or cluster than this one (None: take all).

    A caller that has read the first frame already passes it as `head`.
    """
    version, _, name, values, meant = _header(frames) if head is None else head
    if version != PROTOCOL_VERSION:
        raise RequestError(
            f"the client speaks protocol version {shown(version)}, this worker {PROTOCOL_VERSION}: use "
            "the same release"
        )
    if life is not None and (type(meant) is not int or meant not in (0, life, life & _INCARNATION_MASK)):
        raise _made_for_another(meant, life)
    request_class = _REQUESTS.get(name) if isinstance(name, str) else None
    if request_class is None:
        raise RequestError(f"there is no request {shown(name)}: there are {', '.join(sorted(_REQUESTS))}")
    if not isinstance(values, dict):
        raise RequestError(f"the fields of {name!r} come as a map, not as {type(values).__name__}")
    declared = _FIELDS[request_class]
    for one in _NEEDED_FIELDS[request_class]:
        if one not in values:
            raise RequestError(f"{name!r} has the fields {sorted(declared)}, not {shown(list(values))}")
    for one, value in values.items():
        kind = declared.get(one)
        if type(value) is not kind:
            if kind is None:
                raise RequestError(f"{name!r} has the fields {sorted(declared)}, not {shown(list(values))}")
            raise RequestError(f"{name!r}: the field {one!r} is {kind.__name__}, not {type(value).__name__}")
        if isinstance(value, int):
            if not -(1 << 62) <= value <= 1 << 62:
                raise RequestError(f"{name!r}: the field {one!r} is a number of 62 bits, not {value}")
        elif isinstance(value, str):
            if len(value) > NAME_CHARS_MAX:
                raise RequestError(f"{name!r}: the field {one!r} has more than {NAME_CHARS_MAX:,} characters")
        elif is_too_deep(value):
            raise RequestError(
                f"{name!r}: the field {one!r} is nested more than {NESTING_LEVELS_MAX} levels deep"
            )
    return request_class(**values), frame_to_table(frames[1]) if len(frames) > 1 else None


def _made_for_another(meant: Value, life: int) -> TimelyError:
    """Return the error about a request that was made for the incarnation `meant`, and not for this one."""
    if type(meant) is not int or meant < 0:
        return RequestError(f"a request is made for incarnation 1 or a later one, not {shown(meant)}")
    made_for = f"this request was made for incarnation {meant & _INCARNATION_MASK}"
    if meant >> _INCARNATION_BITS not in (0, life >> _INCARNATION_BITS):
        return PeerError(f"another cluster is at this address: {made_for} of one, and had no effect here")
    return PeerError(
        f"the cluster has started again: {made_for}, and had no effect; this is incarnation "
        f"{life & _INCARNATION_MASK}"
    )


def number_of(frames: Sequence[memoryview], header_bytes_max: int = HEADER_BYTES_MAX) -> int:
    """Return the number of a request or reply; 0 if it cannot be read.

    The answer needs the number even if the request is malformed.
    """
    return head_of(frames, header_bytes_max)[0]


def head_of(
    frames: Sequence[memoryview], header_bytes_max: int = HEADER_BYTES_MAX
) -> tuple[int, Head | None]:
    """Return the number as `number_of` does, and the content of the first frame, for `decode_request`; None
    if the frame cannot be read.
    """
    try:
        head = _header(frames, header_bytes_max)
    except RequestError:
        return 0, None
    number = head[1]
    return number if type(number) is int and 0 <= number < 1 << 63 else 0, head


def encode_reply(number: int, reply: Reply) -> list[Frame]:
    """Return the frames of a reply."""
    header: Frame = msgpack.packb([PROTOCOL_VERSION, number, "ok", reply.values])
    return [header] if reply.table is None else [header, table_to_frame(reply.table)]


def encode_error(number: int, error: TimelyError) -> list[Frame]:
    """Return the frames of a reply that raises `error` on the client."""
    message = full_text_of(error)[:_MESSAGE_CHARS_MAX]  # the user's code may have added any number of notes
    kind = "ended" if error.ends_dataflow else "error"
    return [msgpack.packb([PROTOCOL_VERSION, number, kind, [class_names(error), message]])]


_MESSAGE_CHARS_MAX = 65_536


def decode_reply(frames: Sequence[memoryview], head: Head | None = None) -> Reply | TimelyError:
    """Return a worker's reply, or the error that it reports. Raise `RefusedError` for an answer of another
    release, which no repetition mends, and `PeerError` for frames that are neither.

    A caller that has read the first frame already passes it as `head`.
    """
    try:
        version, _, kind, body, _ = _header(frames, FRAME_BYTES_MAX) if head is None else head
    except RequestError as error:
        raise PeerError(f"a worker's answer cannot be read: {error}") from error
    if version != PROTOCOL_VERSION:
        raise RefusedError(
            f"the worker speaks protocol version {shown(version)}, this client {PROTOCOL_VERSION}: use "
            "the same release"
        )
    if is_too_deep(body):
        raise PeerError(f"a worker's answer is nested more than {NESTING_LEVELS_MAX} levels deep")
    if kind == "ok" and isinstance(body, dict):
        try:
            return Reply(body, frame_to_table(frames[1]) if len(frames) > 1 else None)
        except RequestError as error:
            raise PeerError(f"a worker's answer cannot be read: {error}") from error
    match body:
        case [list(names), str(message)] if kind in ("error", "ended"):
            error_of_worker = revive([name for name in names if isinstance(name, str)], message)
            error_of_worker.ends_dataflow = kind == "ended"
            return error_of_worker
    raise PeerError(f"a worker's answer is neither a reply nor an error: {shown(kind)}")


def _header(frames: Sequence[memoryview], bytes_max: int = HEADER_BYTES_MAX) -> Head:
    if not 1 <= len(frames) <= 2:
        raise RequestError(f"a message has one or two frames, not {len(frames)}")
    if len(frames[0]) > bytes_max:
        raise RequestError(f"the header has {len(frames[0]):,} bytes, and {bytes_max:,} are the limit")
    try:
        parts: Value = msgpack.unpackb(frames[0], strict_map_key=False)
    except Exception as error:  # msgpack raises whatever a map's key or a nesting leads to
        raise RequestError(f"the header is not msgpack: {type(error).__name__}: {error}") from error
    if not isinstance(parts, list) or len(parts) not in (4, 5):
        raise RequestError("the header is not a list of four: version, number, name, fields")
    return parts[0], parts[1], parts[2], parts[3], parts[4] if len(parts) == 5 else 0
