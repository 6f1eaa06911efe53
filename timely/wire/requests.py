"""What may a client ask of a worker, and how does that look on the wire?

    request   frame 0: msgpack [protocol version, number of the request, its name, its fields]
              frame 1: the table of an append, as an Arrow IPC stream
    reply     frame 0: msgpack [protocol version, number of the request, "ok", values] or
                       [protocol version, number of the request, "error", [class names, message]] or the same
                       with "ended": an error that has ended the dataflow, and answers all that follows
              frame 1: a table, if one was asked for

An error with the number `FAREWELL` answers nothing: it is the last word of a worker to those who have asked
it before.

Fields have exactly the types that the classes below declare; anything else is a `RequestError`. Nothing is
pickled, and nothing that a client sends is executed but the builder that `Install` names.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, fields
from typing import Final, TypeAlias

import msgpack
import pyarrow as pa

from progress.records import record

from ..errors import MisuseError, PeerError, RequestError, TimelyError, class_names, revive
from ..failure import story_of
from ..limits import (
    FRAME_BYTES_MAX,
    HEADER_BYTES_MAX,
    NAME_CHARS_MAX,
    NESTING_LEVELS_MAX,
    REQUEST_BYTES_MAX,
)
from .arrow import aligned_buffer
from .batch import Frame
from .claims import check_table, check_uncompressed, shown
from .handshake import PROTOCOL_VERSION
from .nesting import is_too_deep
from .task_requests import CheckAttempts, CommitAttempts, DropAttempts, Hold, Piece, StageAttempt, Value

__all__ = [
    "FAREWELL",
    "Append",
    "AppendEpochs",
    "Arrived",
    "Changes",
    "CheckAttempts",
    "Close",
    "CommitAttempts",
    "Describe",
    "DropAttempts",
    "Enter",
    "Forget",
    "Frontier",
    "Head",
    "Hello",
    "Hold",
    "Insert",
    "InsertRows",
    "Install",
    "Leave",
    "Piece",
    "Replace",
    "Reply",
    "Request",
    "Seal",
    "Shutdown",
    "Snapshot",
    "Stage",
    "StageAttempt",
    "Stats",
    "Uninstall",
    "Value",
    "Wait",
    "check_size",
    "decode_reply",
    "decode_request",
    "encode_error",
    "encode_reply",
    "encode_request",
    "frame_to_table",
    "head_of",
    "number_of",
    "schema_from_bytes",
    "schema_to_bytes",
    "table_to_frame",
]

Head: TypeAlias = tuple[Value, Value, Value, Value]
"""What the first frame of a message says, nothing of it checked: version, number, name, fields."""

FAREWELL: Final = 0
"""No request has this number."""


@dataclass(frozen=True)
class Hello:
    """Who are you? Values: version, index, workers, addresses of all workers' client ports, dataflows by
    index.
    """


@dataclass(frozen=True)
class Install:
    """Worker 0: let all workers build and start `spec`, "module:function". Values as of `Describe`."""

    spec: str
    arguments: dict[str, Value] = field(default_factory=dict)


@dataclass(frozen=True)
class Replace:
    """Worker 0: let all workers build `spec` as the new version of a dataflow, which takes its place once it
    has caught up; not after this time (seconds < 0: for ever). Values as of `Describe`, of the new version.
    """

    dataflow: int
    spec: str
    arguments: dict[str, Value]
    timeout_seconds: float


@dataclass(frozen=True)
class Describe:
    """Values: dataflow, name, spec, epoch (the open one), fingerprint, inputs [[name, description, Arrow
    schema or None, converter or None, whether it takes plain rows], …],
    outputs [[name, description, Arrow schema or None], …], exports,
    stages (lines of text).
    """

    dataflow: int


@dataclass(frozen=True)
class Append:
    """Add the table to `epoch`, which must be open. `diff` 1 inserts, -1 removes, 0: the column `diff` says;
    `sequence` -1: it is new each time. Values: is_new.
    """

    dataflow: int
    input: str
    epoch: int
    writer: str
    sequence: int
    diff: int


@dataclass(frozen=True)
class AppendEpochs:
    """As `Append`, each row to the open epoch that the column `column` says. Values: is_new."""

    dataflow: int
    input: str
    column: str
    writer: str
    sequence: int
    diff: int


@record(frozen=True)
class Insert:
    """Add the table to `epoch`, or to the open one if that is later; `diff` as in `Append`. Values: is_new,
    epoch.
    """

    dataflow: int
    input: str
    epoch: int
    writer: str
    sequence: int
    diff: int


@record(frozen=True)
class InsertRows:
    """`Insert` of few plain rows (`operators/inputs/plain_rows.py`), which need no table. Values: is_new,
    epoch.
    """

    dataflow: int
    input: str
    epoch: int
    writer: str
    sequence: int
    diff: int
    rows: list[Value]


@dataclass(frozen=True)
class Stage:
    """Keep the table as part `part` of the insertion (writer, sequence), until `Enter`. Otherwise as
    `Insert`.
    """

    dataflow: int
    input: str
    epoch: int
    writer: str
    sequence: int
    part: int
    diff: int


@dataclass(frozen=True)
class Enter:
    """Worker 0: all parts of an insertion have arrived; it enters `epoch`, or the open one if that is later.
    Values: is_new, epoch.
    """

    dataflow: int
    input: str
    epoch: int
    writer: str
    sequence: int


@dataclass(frozen=True)
class Arrived:
    """Values: missing, those of `expected` [[input, writer, sequence], …] that this worker does not have."""

    dataflow: int
    epoch: int
    expected: list[Value]


@record(frozen=True)
class Seal:
    """Worker 0: all inputs' epochs up to `epoch` are complete, and those that were entered by the client's
    requests with the numbers of `behind`, `InsertRows`. Values: open, the epoch that is open now; sealed, the
    last one that is complete by this; -1 if it is not known that all of `behind` were done: then nothing is.
    """

    dataflow: int
    epoch: int
    behind: list[Value] = field(default_factory=list)


@dataclass(frozen=True)
class Close:
    """Worker 0: no epoch will follow at `input`; its open one is complete. Values: open."""

    dataflow: int
    input: str


@dataclass(frozen=True)
class Uninstall:
    """Worker 0: this dataflow ends on all workers, for all clients; what it kept is given back.

    With `cascade` those that import from it end, too; otherwise it is refused as long as there are any.
    """

    dataflow: int
    cascade: bool


@dataclass(frozen=True)
class Frontier:
    """Values: complete, the first epoch that is not complete at `output` (of all outputs, if empty)."""

    dataflow: int
    output: str


@record(frozen=True)
class Wait:
    """Answered once `epoch` is complete at `output` (at all, if empty). Values: complete. Seconds < 0: for
    ever. `waited_seconds`: what of the caller's limit was over before, which is said together with the rest.
    """

    dataflow: int
    output: str
    epoch: int
    timeout_seconds: float
    waited_seconds: float = 0.0


@record(frozen=True)
class Changes:
    """The changes of epochs `start` ≤ epoch < `stop`, once they are complete, or, with `is_open_ended`, of
    all from `start` on that are complete by then. `reader`, unless empty, has its place at `start` from now
    on.

    Values: complete. Table: columns, epoch, diff.
    """

    dataflow: int
    output: str
    reader: str
    start: int
    stop: int
    is_open_ended: bool
    timeout_seconds: float


@dataclass(frozen=True)
class Snapshot:
    """The collection up to `epoch`, once that is complete. Values: complete. Table: columns, diff."""

    dataflow: int
    output: str
    epoch: int
    timeout_seconds: float


@dataclass(frozen=True)
class Forget:
    """The client `reader` needs no changes of epochs before `stop`; what nobody needs is dropped."""

    dataflow: int
    output: str
    reader: str
    stop: int


@dataclass(frozen=True)
class Leave:
    """The client `reader` reads this output no more: it holds nothing back."""

    dataflow: int
    output: str
    reader: str


@dataclass(frozen=True)
class Stats:
    """Values: counters of the worker and of its dataflows, as of now."""


@dataclass(frozen=True)
class Shutdown:
    """End, and with it the whole cluster."""


Request = (
    Hello | Install | Replace | Describe | Append | AppendEpochs | Insert | InsertRows | Stage | Enter
    | Arrived | Seal | Close | Uninstall | Frontier | Wait | Changes | Snapshot | Forget | Leave | Hold
    | Piece | StageAttempt | CheckAttempts | CommitAttempts | DropAttempts | Stats | Shutdown
)  # fmt: skip

_REQUESTS: dict[str, type[Request]] = {
    known.__name__.lower(): known
    for known in (
        Hello, Install, Replace, Describe, Append, AppendEpochs, Insert, InsertRows, Stage, Enter, Arrived,
        Seal, Close, Uninstall, Frontier, Wait, Changes, Snapshot, Forget, Leave, Hold, Piece, StageAttempt,
        CheckAttempts, CommitAttempts, DropAttempts, Stats, Shutdown,
    )
}  # fmt: skip
_FIELDS = {made: {one.name: str(one.type) for one in fields(made)} for made in _REQUESTS.values()}
_TYPES: dict[str, type] = {
    "int": int,
    "bool": bool,
    "str": str,
    "float": float,
    "dict[str, Value]": dict,
    "list[Value]": list,
}


@record(frozen=True)
class Reply:
    """What a worker answers: named values, and a table where one was asked for."""

    values: dict[str, Value] = field(default_factory=dict)
    table: pa.Table | None = None

    def integer(self, name: str) -> int:
        """The value `name`, an integer; `PeerError` if the worker sent something else."""
        value = self.values.get(name)
        if not isinstance(value, int):
            raise PeerError(f"a reply says {name} = {shown(value)} where an integer belongs")
        return value

    def text(self, name: str) -> str:
        """The value `name`, a string; `PeerError` if the worker sent something else."""
        value = self.values.get(name)
        if not isinstance(value, str):
            raise PeerError(f"a reply says {name} = {shown(value)} where a text belongs")
        return value

    def items(self, name: str) -> list[Value]:
        """The value `name`, a list; `PeerError` if the worker sent something else."""
        value = self.values.get(name)
        if not isinstance(value, list):
            raise PeerError(f"a reply says {name} = {shown(value)} where a list belongs")
        return value

    def columns(self) -> pa.Table:
        """The table; `PeerError` if there is none."""
        if self.table is None:
            raise PeerError("a reply came without the table that was asked for")
        return self.table


def encode_request(number: int, request: Request, table: pa.Table | None = None) -> list[Frame]:
    """Frames of a request; raises `RequestError` for an argument that msgpack does not hold."""
    values = {name: getattr(request, name) for name in _FIELDS[type(request)]}
    try:
        header: Frame = msgpack.packb([PROTOCOL_VERSION, number, type(request).__name__.lower(), values])
    except (TypeError, ValueError, OverflowError) as error:
        raise RequestError(
            f"{type(request).__name__.lower()} takes None, bool, int (64 bits), float, str, bytes, lists "
            f"and dicts of these: {error}"
        ) from error
    return [header] if table is None else [header, table_to_frame(table)]


def check_size(frames: list[Frame]) -> list[Frame]:
    """The frames of a request, unless one is too large to be taken. What a worker cannot read it cannot
    answer.
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


def decode_request(frames: Sequence[memoryview], head: Head | None = None) -> tuple[Request, pa.Table | None]:
    """The request in `frames`, of which `head` may have been read before; `RequestError` says what is wrong
    with it.
    """
    version, _, name, values = _header(frames) if head is None else head
    if version != PROTOCOL_VERSION:
        raise RequestError(
            f"the client speaks protocol version {shown(version)}, this worker {PROTOCOL_VERSION}: use "
            "the same release"
        )
    made = _REQUESTS.get(name) if isinstance(name, str) else None
    if made is None:
        raise RequestError(f"there is no request {shown(name)}: there are {', '.join(sorted(_REQUESTS))}")
    if not isinstance(values, dict):
        raise RequestError(f"the fields of {name!r} come as a map, not as {type(values).__name__}")
    declared = _FIELDS[made]
    if values.keys() != declared.keys():
        raise RequestError(f"{name!r} has the fields {sorted(declared)}, not {shown(list(values))}")
    for one, kind in declared.items():
        value = values[one]
        if type(value) is not _TYPES[kind]:
            raise RequestError(f"{name!r}: the field {one!r} is {kind}, not {type(value).__name__}")
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
    return made(**values), frame_to_table(frames[1]) if len(frames) > 1 else None


def number_of(frames: Sequence[memoryview], header_bytes_max: int = HEADER_BYTES_MAX) -> int:
    """The number of a request or reply, 0 if none can be read: the answer must name it even to a malformed
    request.
    """
    return head_of(frames, header_bytes_max)[0]


def head_of(
    frames: Sequence[memoryview], header_bytes_max: int = HEADER_BYTES_MAX
) -> tuple[int, Head | None]:
    """The same, and what else the first frame says, for `decode_request`, if it says anything."""
    try:
        head = _header(frames, header_bytes_max)
    except RequestError:
        return 0, None
    number = head[1]
    return number if type(number) is int and 0 <= number < 1 << 63 else 0, head


def encode_reply(number: int, reply: Reply) -> list[Frame]:
    """Frames of a reply."""
    header: Frame = msgpack.packb([PROTOCOL_VERSION, number, "ok", reply.values])
    return [header] if reply.table is None else [header, table_to_frame(reply.table)]


def encode_error(number: int, error: TimelyError) -> list[Frame]:
    """Frames of a reply that raises `error` on the client."""
    # A message may quote text that is no UTF-8, and be as long as what the user's code put into it.
    message = story_of(error)[:_MESSAGE_CHARS_MAX].encode("utf-8", "replace").decode()
    kind = "ended" if error.ends_dataflow else "error"
    return [msgpack.packb([PROTOCOL_VERSION, number, kind, [class_names(error), message]])]


_MESSAGE_CHARS_MAX = 65_536


def decode_reply(frames: Sequence[memoryview], head: Head | None = None) -> Reply | TimelyError:
    """A worker's answer, or the error that it reports; `PeerError` for frames that are neither. `head` may
    have been read before.
    """
    try:
        version, _, kind, body = _header(frames, FRAME_BYTES_MAX) if head is None else head
    except RequestError as error:
        raise PeerError(f"a worker's answer cannot be read: {error}") from error
    if version != PROTOCOL_VERSION:
        raise PeerError(
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
            told = revive([name for name in names if isinstance(name, str)], message)
            told.ends_dataflow = kind == "ended"
            return told
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
    if not isinstance(parts, list) or len(parts) != 4:
        raise RequestError("the header is not a list of four: version, number, name, fields")
    return parts[0], parts[1], parts[2], parts[3]


_SIZED_BYTES_MIN: Final = 1 << 18
"""The size of a larger table is found before it is written."""


def table_to_frame(table: pa.Table) -> Frame:
    """The table as one Arrow IPC stream."""
    if table.nbytes < _SIZED_BYTES_MIN:
        sink = pa.BufferOutputStream()
        _write(table, sink)
        return memoryview(sink.getvalue())
    # A stream that grows takes up to three times as much on its way.
    size = pa.MockOutputStream()
    _write(table, size)
    buffer = pa.allocate_buffer(size.size())
    _write(table, pa.FixedSizeBufferWriter(buffer))
    return memoryview(buffer)


def _write(table: pa.Table, sink: pa.NativeFile) -> None:
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)


def frame_to_table(frame: memoryview) -> pa.Table:
    """The table in an Arrow IPC stream, checked in full; `RequestError` if it is none."""
    try:
        stream = aligned_buffer(frame)
        check_uncompressed(stream)
        table = pa.ipc.open_stream(stream).read_all()
        table.validate()  # a length below zero would end the process in what comes next
        check_table(table, stream.size)
        table.validate(full=True)
    except Exception as error:  # damaged bytes make Arrow raise more than its own errors
        raise RequestError(f"the table is not a valid Arrow IPC stream: {str(error)[:500]}") from error
    return table


def schema_to_bytes(schema: pa.Schema) -> bytes:
    """An Arrow schema as bytes, for `Describe`."""
    return bytes(schema.serialize())


def schema_from_bytes(packed: bytes) -> pa.Schema:
    """The inverse of `schema_to_bytes`; `PeerError` for bytes that are no schema."""
    try:
        return pa.ipc.read_schema(pa.py_buffer(packed))
    except Exception as error:  # damaged bytes make Arrow raise more than its own errors
        raise PeerError(f"a worker sent an Arrow schema that cannot be read: {error}") from error
