"""Messages between workers, to frames and back.

    frame 0      header: magic "ND", version, kind, dataflow; for data also connector, time word, batch kind,
                 anchor
    frame 1 …    data: the frames of the batch · progress: one frame of count changes ·
                 control: one frame of `handshake.py`, which belongs to no dataflow ·
                 withdrawal, and its answer: none; see `forgetting.py` ·
                 what `credits.py` sends: none

Both ends check the same things; a malformed frame is a `PeerError` that names the peer.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from enum import IntEnum

from progress.errors import PeerError

WIRE_VERSION = 5
_MAGIC = b"ND"
_COMMON = struct.Struct("<2sBBI")
_DATA = struct.Struct("<IqHq")
_KIND_DATA = 1
_KIND_PROGRESS = 2
_KIND_CONTROL = 3
_KIND_WITHDRAWAL = 4
_KIND_WITHDRAWN = 5


@dataclass(frozen=True, slots=True)
class DataHeader:
    """A batch on a connector of a dataflow at a time word; this and those of its rows count from `anchor`."""

    dataflow: int
    connector: int
    word: int
    batch_kind: int
    anchor: int = 0


@dataclass(frozen=True, slots=True)
class ProgressHeader:
    """Count changes of a dataflow."""

    dataflow: int


@dataclass(frozen=True, slots=True)
class ControlHeader:
    """A message between workers that belongs to no running dataflow: see `handshake.py`."""


@dataclass(frozen=True, slots=True)
class WithdrawalHeader:
    """The sender may forget words: the receiver must not assume any more that it knows any. `is_answer`: the
    sender assumes nothing any more.
    """

    is_answer: bool


class CreditNews(IntEnum):
    """What workers tell one another of what they have received; the numbers are those on the wire."""

    MARK = 6
    RECEIVED = 7
    HOLD = 8
    RELEASE = 9


@dataclass(frozen=True, slots=True)
class CreditHeader:
    """News of `credits.py`."""

    news: CreditNews


Header = DataHeader | ProgressHeader | ControlHeader | WithdrawalHeader | CreditHeader


def write_data_header(header: DataHeader) -> bytes:
    """Return the header of a data message."""
    assert header.word >= 0 and header.anchor >= 0
    return _COMMON.pack(_MAGIC, WIRE_VERSION, _KIND_DATA, header.dataflow) + _DATA.pack(
        header.connector, header.word, header.batch_kind, header.anchor
    )


def write_progress_header(header: ProgressHeader) -> bytes:
    """Return the header of a progress message."""
    return _COMMON.pack(_MAGIC, WIRE_VERSION, _KIND_PROGRESS, header.dataflow)


def write_control_header() -> bytes:
    """Return the header of a control message."""
    return _COMMON.pack(_MAGIC, WIRE_VERSION, _KIND_CONTROL, 0)


def write_withdrawal_header(is_answer: bool) -> bytes:
    """Return the header of a withdrawal, or of the answer to one: it is the whole message."""
    return _COMMON.pack(_MAGIC, WIRE_VERSION, _KIND_WITHDRAWN if is_answer else _KIND_WITHDRAWAL, 0)


def write_credit_header(news: CreditNews) -> bytes:
    """Return a message of `credits.py`: it is only a header."""
    return _COMMON.pack(_MAGIC, WIRE_VERSION, news, 0)


def read_header(frame: memoryview | bytes, peer: int) -> Header:
    """Return the header in `frame`; raise `PeerError` if it is none."""
    size = len(frame)
    if size < _COMMON.size:
        raise PeerError(f"worker {peer} sent a header of {size} bytes; at least {_COMMON.size} are needed")
    magic, version, kind, dataflow = _COMMON.unpack_from(frame)
    if magic != _MAGIC:
        raise PeerError(
            f"worker {peer} sent a frame that is no message of this system (it starts with "
            f"{bytes(frame[:2])!r})"
        )
    if version != WIRE_VERSION:
        raise PeerError(
            f"worker {peer} speaks wire version {version}, this worker {WIRE_VERSION}: run the same "
            "release everywhere"
        )
    if kind == _KIND_PROGRESS and size == _COMMON.size:
        return ProgressHeader(dataflow)
    if kind == _KIND_CONTROL and size == _COMMON.size:
        return ControlHeader()
    if kind in (_KIND_WITHDRAWAL, _KIND_WITHDRAWN) and size == _COMMON.size:
        return WithdrawalHeader(kind == _KIND_WITHDRAWN)
    if CreditNews.MARK <= kind <= CreditNews.RELEASE and size == _COMMON.size:
        return CreditHeader(CreditNews(kind))
    if kind == _KIND_DATA and size == _COMMON.size + _DATA.size:
        connector, word, batch_kind, anchor = _DATA.unpack_from(frame, _COMMON.size)
        if word < 0 or anchor < 0:
            raise PeerError(
                f"worker {peer} sent a time word below zero ({word}, from epoch {anchor} on) on connector "
                f"{connector}"
            )
        return DataHeader(dataflow, connector, word, batch_kind, anchor)
    raise PeerError(f"worker {peer} sent a header of kind {kind} with {size} bytes")
