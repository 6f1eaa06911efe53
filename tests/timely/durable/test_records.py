"""Records as bytes: what was written is read, and nothing else.

written_*   round trips
torn_*      a segment that ends in the middle of what was written
damaged_*   bytes that have changed
reused_*    bytes of an older file behind the last record
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from timely.durable import records
from timely.durable.records import Record, body_of, packed, records_in, sealed
from timely.errors import MisuseError, StoreError
from timely.wire.batch import Frame

Written = tuple[list[object], list[bytes]]


def segment(groups: Sequence[Sequence[Written]], name: str = "cluster") -> tuple[bytes, list[int]]:
    """Return a segment of groups that were synced one after another, and where its records end."""
    pieces, crc, size = packed(["segment", 1, name], (), 0)
    data = b"".join(pieces)
    mark = crc
    ends = [size]
    for number, group in enumerate(groups):
        for place, (head, frames) in enumerate(group):
            body, size = body_of(head, frames)
            front, crc = sealed(body, size, crc, mark if number > 0 and place == 0 else 0)
            data += b"".join([front, *body])
            ends.append(len(data))
    return data, ends


def read(data: bytes, end: int | None = None, is_last: bool = True) -> list[Record]:
    return list(records_in(memoryview(data), "p1.log", end, is_last))


def address_of(data: bytes | memoryview) -> int:
    return int(np.frombuffer(data, np.uint8).ctypes.data)


heads = st.lists(
    st.one_of(st.none(), st.booleans(), st.integers(-(2**63), 2**63), st.text(), st.binary()), min_size=1
)
written = st.tuples(heads, st.lists(st.binary(max_size=40), max_size=4))
SMALL: list[list[Written]] = [
    [(["rows", 1], [b"12345678", b"abc"]), (["rows", 2], [])],
    [(["order", "seal", 3], [b""])],
    [(["rows", 4], [b"x" * 20]), (["rows", 5], [b"12"]), (["order", 6], [])],
]


@given(st.lists(st.lists(written, max_size=4), max_size=4))
def test_written_records_are_read(groups: list[list[Written]]) -> None:
    data, ends = segment(groups)
    expected = [item for group in groups for item in group]
    for end, is_last in ((None, True), (None, False), (len(data), False)):
        header, *found = read(data, end, is_last)
        assert header.head == ["segment", 1, "cluster"]
        assert [(record.head, [bytes(frame) for frame in record.frames]) for record in found] == expected
        assert [record.end for record in (header, *found)] == ends
    assert len(read(data + b"later", len(data))) == 1 + len(expected), "bytes behind the end count nowhere"


@given(st.lists(st.integers(1, 50_000), max_size=4))
def test_written_frames_begin_where_words_may(sizes: list[int]) -> None:
    data, _ = segment([[(["rows"], [bytes([index]) * size for index, size in enumerate(sizes)])]])
    record = read(data)[1]
    for index, frame in enumerate(record.frames):
        assert frame == bytes([index]) * sizes[index]
        assert address_of(frame) % 8 == address_of(data) % 8
    assert record.start % 8 == record.end % 8 == 0


def test_written_large_frames_are_not_copied() -> None:
    words = memoryview(bytes(1 << 20)).cast("q")
    body, size = body_of(["rows"], [words, b"abc"])
    assert any(piece is words for piece in body) and size > words.nbytes
    pieces, _, size = packed(["rows"], [words, b"abc"], 0)
    assert size == len(b"".join(pieces))


def test_written_record_beyond_four_gib_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(records, "_RECORD_BYTES_MAX", 1 << 20)
    with pytest.raises(MisuseError, match=r"a record of 1,048,\d+ bytes does not fit .*: insert fewer"):
        body_of(["rows"], [bytes(1 << 20)])


def test_torn_tail_at_every_byte_leaves_the_whole_records() -> None:
    data, ends = segment(SMALL)
    for cut in range(len(data)):
        whole = [end for end in ends if end <= cut]
        for tail in (b"", bytes(len(data) - cut), b"\xff" * 9):
            torn = data[:cut] + tail
            assert [record.end for record in read(torn)] == [e for e in ends if torn[:e] == data[:e]]
        if cut not in (0, *ends):
            place = whole[-1] if whole else 0
            with pytest.raises(StoreError, match=f"p1.log is damaged at byte {place}: .* Put a whole copy"):
                read(data[:cut], is_last=False)
        with pytest.raises(StoreError, match=f"damaged at byte {cut}: {len(data)} bytes of it count"):
            read(data[:cut], len(data))


def test_damaged_bit_is_found_where_the_end_is_fixed_or_the_segment_is_not_the_last() -> None:
    data, ends = segment(SMALL)
    starts = [0, *ends]
    for bit in range(8 * len(data)):
        place = max(start for start in starts if start <= bit // 8)
        for end, is_last in ((len(data), True), (None, False)):
            with pytest.raises(StoreError, match=f"p1.log is damaged at byte {place}: "):
                read(flipped(data, bit), end, is_last)


def test_damaged_body_is_no_torn_tail_if_a_later_record_says_that_it_was_durable() -> None:
    """Only the last group may have been lost by a crash. A flip in a length or in a CRC hides what is behind
    it, and is taken for a torn tail; none makes a record that was not written.
    """
    data, ends = segment(SMALL)
    starts = [0, *ends]
    last_group = ends[-4]
    for bit in range(8 * len(data)):
        start = max(start for start in starts if start <= bit // 8)
        if bit // 8 >= start + 12 and start < last_group:
            with pytest.raises(StoreError, match=f"p1.log is damaged at byte {start}: "):
                read(flipped(data, bit))
        elif start >= last_group:
            assert [record.end for record in read(flipped(data, bit))] == [
                end for end in ends if end <= start
            ]


def test_damaged_heads_are_named() -> None:
    not_msgpack = b"\x01\0\0\0\xc1" + bytes(7)
    too_long = b"\x03\0\0\0\x92\x90\x90" + bytes(13)
    no_list = b"\x03\0\0\0\x92\x01\x90" + bytes(5)
    for body in (not_msgpack, too_long, no_list):
        front, _ = sealed([body], len(body), 0, mark=0)
        with pytest.raises(StoreError, match="p1.log is damaged at byte 0: its (head|parts)"):
            read(bytes(front) + body)


def test_reused_place_with_a_whole_record_of_an_older_file_ends_the_segment() -> None:
    older, ends = segment(SMALL, "older..")
    newer, same = segment(SMALL, "cluster")
    assert ends == same
    for end in ends[:-1]:
        assert [record.end for record in read(newer[:end] + older[end:])] == [e for e in ends if e <= end]


def test_reused_place_would_deceive_a_crc_that_is_not_chained() -> None:
    """The same bytes with CRCs that begin anew: what the chain is for."""
    pieces: list[Frame] = []
    for head in (["segment"], ["rows", 1]):
        pieces += packed(head, (), 0)[0]
    header = packed(["segment"], (), 0)[1]
    assert header != 0
    assert len(read(b"".join(pieces))) == 1, "the second record begins with 0, and not with the header's CRC"


def flipped(data: bytes, bit: int) -> bytes:
    changed = bytearray(data)
    changed[bit // 8] ^= 1 << bit % 8
    return bytes(changed)
