"""What reads bytes of others, and which errors may come out of it?

A *target* has valid messages to begin with, a function that reads one, and the classes of errors that it may
raise. Anything else that comes out, and memory or time out of proportion, is a defect (`probing.py`).
"""

from __future__ import annotations

import json
import struct
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from functools import cache
from pathlib import Path
from typing import cast
from zlib import crc32

import msgpack
import numpy as np
import pyarrow as pa
from fixed_members import FixedMembers

import timely
from differential import input as table_input
from differential.columns.packed.block import Block
from differential.columns.symbols.entries import SymbolEntries
from differential.columns.symbols.table import SymbolTable
from differential.columns.update_batch import PackedBatch, UpdateBatch
from differential.columns.worker_symbols import SYMBOLS
from differential.errors import SqlError
from progress.tracking.broadcast import Broadcaster
from timely.building.builders import build_dataflow
from timely.client.posting import Refusals
from timely.client.session import Flow
from timely.client.tables import records_of
from timely.errors import CaptureError, InternalError, MisuseError, PeerError, RequestError, TimelyError
from timely.operators.captured import capture_files
from timely.operators.captured.capture_files import FRONT, HEADER, TABLE, times_in
from timely.operators.captured.capture_folder import CapturedStream, epoch_of_front
from timely.operators.captured.replaying import message_of
from timely.running.core import Worker
from timely.running.instance import Instance
from timely.running.progress_messages import (
    DataHeader,
    ProgressHeader,
    read_header,
    write_control_header,
    write_data_header,
    write_progress_header,
)
from timely.user_code.call_site import CallSite
from timely.wire.batch import Records
from timely.wire.frames.messages import (
    decode_reply,
    decode_request,
    encode_error,
    encode_reply,
    encode_request,
    head_of,
    number_of,
)
from timely.wire.frames.record_values import pack_value
from timely.wire.frames.tables import frame_to_table, table_to_frame
from timely.wire.handshake import (
    Build,
    Control,
    Decided,
    Ended,
    EndHeard,
    Entering,
    Farewell,
    Greeting,
    HoldInputs,
    InputsHeld,
    Offer,
    Switched,
    TakenOver,
    Verdict,
    check_greeting,
    decode_control,
    encode_control,
)
from timely.wire.requests import (
    BY_COLUMN,
    IN_EPOCH,
    WHEN_NAMED,
    Decide,
    Deliver,
    Drop,
    Install,
    Missing,
    Read,
    Reply,
    Request,
    Stats,
    Why,
)
from timely.worker.launcher import read_report
from timely.worker.settings import WorkerSettings

from .mutations import Frames
from .odd_tables import bombs
from .sql_texts import read_sql_text, sql_seeds

__all__ = ["TARGETS", "Target"]


@dataclass(frozen=True)
class Target:
    """One reader of others' bytes."""

    name: str
    form: str
    seeds: Sequence[Frames]
    read: Callable[[list[memoryview]], object]
    may_raise: tuple[type[TimelyError], ...]


RECORDS = pa.table({"record": pa.array([b"\x01", b"\xa1a", b"\x92\x01\xc0"])})
ROWS = pa.table(
    {
        "key": pa.array([1, 2, 3]),
        "text": pa.array(["a", None, "c"]),
        "number": pa.array([0.5, 1.0, -1.0]),
        "truth": pa.array([True, False, True]),
        "moment": pa.array([1, 2, 3], pa.timestamp("us", "UTC")),
        "blob": pa.array([b"", b"a", b"bc"]),
        "diff": pa.array([1, 2, -1]),
    }
)
_COLUMNS = "key: int, text: string?, number: float, truth: bool, moment: timestamp, blob: bytes"


def _frames(frames: Sequence[bytes | bytearray | memoryview]) -> Frames:
    return [bytes(frame) for frame in frames]


def _requests() -> list[Frames]:
    plain: list[Request] = [
        Install("dataflows:word_count", {"a": [1, {"b": None}], "c": 2.5}),
        Decide(0, 7, True),
        Decide(0, 7, True, [["lines", "writer", 0]], [["lines", "q", 1, ["a"], "s", False, 9]], ["rows"]),
        Missing(0, 3, [["lines", "writer", 0], ["lines", "q", 1, "a", 2]], [["lines", "q"]]),
        Drop(0, [["lines", "q", 1, "a"], ["lines", "q", 1]]),
        Read(0, "counts", 0, 5, 1.5, reader="reader", is_open_ended=True),
        Read(1, "sums", -1, 4, -1.0),
        Stats(),
    ]
    appends: list[Request] = [
        Deliver(0, "lines", "writer", 1, IN_EPOCH, 0, 0),
        Deliver(1, "rows", "writer", 1, IN_EPOCH, 0, 1),
        Deliver(1, "rows", "writer", 2, BY_COLUMN, 0, 0, column="key"),
        Deliver(1, "rows", "q", 2, WHEN_NAMED, 0, 0, part=1, attempt="a"),
    ]
    tables = [RECORDS, ROWS, ROWS, ROWS]
    return [_frames(encode_request(number, request)) for number, request in enumerate(plain)] + [
        _frames(encode_request(9, request, table, life=number % 2))
        for number, (request, table) in enumerate(zip(appends, tables, strict=True))
    ]


def _read_request(frames: list[memoryview]) -> object:
    number, head = head_of(frames)
    assert type(number) is int and 0 <= number < 1 << 63
    request, _ = decode_request(frames, head, 1)
    for declared in fields(request):
        hash(declared.name)
    return request


@cache
def _instance() -> Instance:
    """A dataflow with an input of records and one of tables, of which only the inputs are used."""

    def build(dataflow: timely.Dataflow) -> None:
        dataflow.output("records", dataflow.input("records"))
        table_input(dataflow, "rows", _COLUMNS).output("rows")
        table_input(dataflow, "anything", "record: any?").output("anything")

    return Worker().prepare(build_dataflow(build, "fuzzed", {}).freeze())


def _read_rows(frames: list[memoryview]) -> object:
    """A table, and then the words or records of it; the second frame names input and diff."""
    how = bytes(frames[1]) if len(frames) > 1 else b"\0\0"
    name = ("records", "rows", "anything")[how[0] % 3 if how else 0]
    diff = (0, 1, -1, 5, -(2**62))[how[1] % 5 if len(how) > 1 else 0]
    table = frame_to_table(frames[0] if frames else memoryview(b""))
    return _instance().input(name).encode(table, diff, 0)


def _tables() -> list[Frames]:
    change_log = RECORDS.append_column("diff", pa.array([1, 1, 1]))
    texts = pa.table({"record": pa.array(["a", "b", "a"]).dictionary_encode()})
    _instance().input("rows").encode(ROWS, 0, 0)  # compiles the kernels
    return [
        [bytes(table_to_frame(RECORDS)), b"\0\1"],
        [bytes(table_to_frame(change_log)), b"\0\0"],
        [bytes(table_to_frame(ROWS)), b"\1\0"],
        [bytes(table_to_frame(ROWS.drop_columns(["diff"]))), b"\1\2"],
        [bytes(table_to_frame(texts)), b"\2\1"],
        *([bomb, how] for bomb in bombs().values() for how in (b"\0\1", b"\2\1")),
    ]


class _Answers(FixedMembers):
    """Workers of which each answers the same: what a client makes of it."""

    count = 1
    kind = "as told"
    end = ""

    def __init__(self, reply: Reply) -> None:
        self.reply = reply
        self.addresses: list[str] = []
        self.refusals = Refusals()
        self.part_bytes = 1
        self.incarnation = 0

    def ask(self, requests: Sequence[object], timeout_seconds: float = 0.0) -> list[Reply]:
        del timeout_seconds
        return [self.reply for _ in requests]

    def post(
        self,
        worker: int,
        request: object,
        table: object,
        poster: object,
        call: str,
        is_ordered: bool = False,
    ) -> None:
        raise AssertionError("nothing is inserted")

    def insert_rows(self, poster: object, *_: object) -> int:
        raise AssertionError("nothing is inserted")

    def seal(self, poster: object, seconds: float | None, is_early: bool = False) -> tuple[int, bool]:
        raise AssertionError("nothing is sealed")

    def wait(self, dataflow: int, epoch: int, seconds: float, waited_seconds: float = 0.0) -> None:
        raise AssertionError("nothing is waited for")

    def reasons(self, request: Why) -> list[Reply | str]:
        raise AssertionError("nothing is asked")

    def settle(self, timeout_seconds: float = 0.0) -> None:
        return

    def close(self) -> None:
        return


def _read_reply(frames: list[memoryview]) -> object:
    number_of(frames)
    reply = decode_reply(frames)
    if isinstance(reply, TimelyError):
        return None
    if "outputs" in reply.values:
        return Flow(_Answers(reply), reply)
    return records_of(reply.columns()) if "records" in reply.values else reply.columns()


def _replies() -> list[Frames]:
    schema = bytes(ROWS.schema.serialize())
    described: dict[str, object] = {
        "dataflow": 0,
        "name": "f",
        "spec": "m:f",
        "epoch": 3,
        "fingerprint": "ab",
        "inputs": [["lines", "records", None, None, False], ["rows", "table", schema, "m:f", True]],
        "outputs": [["counts", "records", None]],
        "ahead": [["rows", 5]],
        "exports": [["lines", None, ""], ["rows", schema, "rows"]],
        "imports": [[1, "rows"]],
        "first": 0,
        "note": "what it is",
        "stages": ["one", "two"],
    }
    read = RECORDS.add_column(0, "epoch", pa.array([0, 0, 1]))
    return [
        _frames(encode_reply(1, Reply(described))),
        _frames(encode_reply(2, Reply({"complete": 3, "records": True}, read))),
        _frames(encode_reply(3, Reply({"complete": 3}, ROWS))),
        _frames(encode_error(4, PeerError("worker 1 is lost"))),
    ]


def _controls() -> list[Frames]:
    said: list[Control] = [
        Greeting(2, 2, 1, "tcp://h:1", "3.11", ("m:f",)),
        Farewell("why"),
        Build(0, "m:f", b"\x80"),
        Offer(0, "ab", ("one", "two"), "", ("MisuseError",)),
        Verdict(0, "", ()),
        Decided(0, 5),
        Decided(0, -1, (Entering("lines", "w", 3, 2, 0, None, 4),)),
        Decided(0, -1, (Entering("lines", "q", 3, 2, 0, ("a", "b")),)),
        Decided(0, -1, (), ("lines",)),
        HoldInputs(0, 1, 5),
        InputsHeld(1),
        Switched(0, 1, 5),
        TakenOver(1),
        Ended(0, "why", ("VertexError", "TimelyError")),
        EndHeard(1),
    ]
    return [[encode_control(one)] for one in said]


def _read_control(frames: list[memoryview]) -> object:
    control = decode_control(frames[0] if frames else b"", 1)
    if isinstance(control, Greeting):
        check_greeting(Greeting(2, 2, 0, "tcp://h:0", "3.11", ("m:f",)), control, 1)
    if isinstance(control, Ended | Verdict):
        assert isinstance(control.error(), TimelyError)
    return control


def _read_header(frames: list[memoryview]) -> object:
    return read_header(frames[0] if frames else b"", 1)


def _payloads() -> list[Frames]:
    sender = Broadcaster(1, 2, 8)
    first = sender.on_step_done([(0, 5, 1), (7, 2**40, -3)])
    assert first is not None
    return [[first]]


def _read_payload(frames: list[memoryview]) -> object:
    receiver = Broadcaster(0, 2, 8)
    changes = receiver.on_message(frames[0] if frames else b"")
    receiver.check_invariants()
    return changes


def _read_symbols(frames: list[memoryview]) -> object:
    table = SymbolTable()
    try:
        table.learn(SymbolEntries.from_bytes(frames[0] if frames else b"", 1, 1_000), 1)
    finally:
        table.check_invariants()
    return len(table)


_VALUES = ["a", b"b", 3, 2.5, ["x", {"y": None}], "a" * 300]


def _symbol_frames() -> list[Frames]:
    table = SymbolTable()
    return [[table.delta_for(1, table.intern(_VALUES)).to_bytes()]]


def _read_updates(frames: list[memoryview]) -> object:
    batch = UpdateBatch.from_frames(frames, 1)
    return batch.shifted(-1, 1).latest(0, 3)


def _update_frames() -> list[Frames]:
    plain = UpdateBatch(np.arange(12, dtype=np.int64).reshape(4, 3))
    plain.shifted(-1, 1).latest(0, 3)  # compiles the kernels
    rows = np.zeros((3, len(_VALUES)), dtype=np.int64)
    rows[0] = SYMBOLS.intern(_VALUES)
    return [_frames(plain.to_frames(1)), _frames(UpdateBatch(rows, (0,)).to_frames(1))]


def _read_packed(frames: list[memoryview]) -> object:
    return PackedBatch.from_frames(frames, 1).words


def _packed_frames() -> list[Frames]:
    words = np.arange(12, dtype=np.int64).reshape(4, 3)
    batches = [PackedBatch((Block(words),), 3, 1, None), PackedBatch((Block(words),), 4, 1, -1)]
    assert batches[0].words.shape == (5, 3)  # compiles the kernels
    return [_frames(batch.to_frames(1)) for batch in batches]


def _read_records(frames: list[memoryview]) -> object:
    return Records.from_frames(frames, 1)


def _read_settings(frames: list[memoryview]) -> object:
    text = bytes(frames[0] if frames else b"").decode(errors="replace")
    settings = WorkerSettings.from_json(text)
    return WorkerSettings.from_json(settings.to_json())


def _read_launched(frames: list[memoryview]) -> object:
    return read_report(0, bytes(frames[0] if frames else b"").decode(errors="replace"))


def _settings() -> list[Frames]:
    made = WorkerSettings(
        1, 2, ("ipc://a",), ("ipc://a", "ipc://b"), "tcp://*:0", "h", ("/p",), "/d", ("m:f",)
    )
    return [[made.to_json().encode()]]


def _reports() -> list[Frames]:
    ready: dict[str, object] = {"ready": 0, "address": "tcp://h:1"}
    failed: dict[str, object] = {"failed": "PeerError: why", "is_cause": True}
    bound: dict[str, object] = {"bound": "tcp://h:2"}
    return [[json.dumps(values).encode()] for values in (ready, bound, failed)]


_MAGIC = b"NaiadC1\n"


def _captured_file(frames: Sequence[bytes | memoryview]) -> bytes:
    """A file of a captured stream whose frames have these contents, each behind a byte for its kind, and all
    checksums right: without these no odd content would be looked at.
    """
    data = bytearray(_MAGIC)
    for frame in map(bytes, frames):
        kind, content = (frame[0], frame[1:]) if frame else (0, b"")
        front = struct.pack("<QII", len(content), kind, crc32(content))
        data += front + struct.pack("<I", crc32(front, len(data) & 0xFFFFFFFF)) + content
    return bytes(data)


def _read_capture(frames: list[memoryview]) -> object:
    """What replaying does with a file."""
    read: list[object] = []
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "worker-0-of-1.capture").write_bytes(b"".join(frames))
        stream = CapturedStream(folder, 0, 1, CallSite("fuzz", 1))
        try:
            for share in stream.shares:
                while (frame := share.reader.next()) is not None:
                    size = 8 * share.reader.coordinates
                    if frame.kind == FRONT:
                        read.append(epoch_of_front(share.reader, frame.start, frame.content))
                    elif frame.kind in (capture_files.RECORDS, TABLE):
                        read.append(times_in(frame.content[:size], share.reader.coordinates))
                        read.append(message_of(frame, frame.content[size:], share.reader))
        finally:
            stream.close()
    return read


def _captures() -> list[Frames]:
    """Contents of frames: a header, records, a table, and times at which more may come; or none."""
    epoch, record = struct.pack("<Q", 3), pack_value([1, ("a", b"b"), None])
    table = bytes(table_to_frame(ROWS))
    header = bytes([HEADER]) + cast("bytes", msgpack.packb([0, 1, 1]))
    records = bytes([capture_files.RECORDS]) + epoch + record
    return [
        [header, records, bytes([FRONT]) + epoch, bytes([TABLE]) + epoch + table, bytes([FRONT])],
        [header],
    ]


TARGETS = {
    target.name: target
    for target in (
        Target("request", "msgpack", _requests(), _read_request, (RequestError, PeerError)),
        Target("rows", "bytes", _tables(), _read_rows, (MisuseError,)),
        Target("reply", "msgpack", _replies(), _read_reply, (PeerError,)),
        Target("control", "msgpack", _controls(), _read_control, (PeerError,)),
        Target(
            "header",
            "bytes",
            [
                [write_data_header(DataHeader(1, 2, 2**40, 2))],
                [write_progress_header(ProgressHeader(1))],
                [write_control_header()],
            ],
            _read_header,
            (PeerError,),
        ),
        Target("sql", "text", sql_seeds(), read_sql_text, (SqlError,)),
        Target("progress", "bytes", _payloads(), _read_payload, (PeerError,)),
        Target(
            "records",
            "msgpack",
            [_frames(Records([1, ("a", b"b"), {"k": 2.5}, None]).to_frames(1))],
            _read_records,
            (PeerError,),
        ),
        Target("updates", "msgpack", _update_frames(), _read_updates, (PeerError,)),
        Target("packed", "bytes", _packed_frames(), _read_packed, (PeerError,)),
        Target("symbols", "msgpack", _symbol_frames(), _read_symbols, (PeerError,)),
        Target(
            "captured",
            "msgpack",
            _captures(),
            lambda frames: _read_capture([memoryview(_captured_file(frames))]),
            (CaptureError, MisuseError),
        ),
        Target(
            "capture",
            "bytes",
            [[_captured_file(one)] for one in _captures()],
            _read_capture,
            (CaptureError, MisuseError),
        ),
        Target("settings", "json", _settings(), _read_settings, (InternalError,)),
        Target("report", "json", _reports(), _read_launched, (InternalError,)),
    )
}
