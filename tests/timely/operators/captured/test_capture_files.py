"""Files of captured streams.

read_*     what was written comes back
cut_*      a prefix of a file has the frames that are whole in it, and says where it is torn
damaged_*  any other change of the bytes is an error that names file and byte, or costs the last frame alone
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

import timely
from timely.operators.captured.capture_files import (
    FRONT,
    HEADER,
    RECORDS,
    TABLE,
    CapturedFrame,
    CaptureReader,
    CaptureWriter,
    times_in,
)

Frames = list[tuple[int, int, bytes]]


def write(path: Path) -> None:
    writer = CaptureWriter(path, 1, 3, 2)
    assert writer.is_empty
    writer.front([(0, 0)])
    writer.records(RECORDS, (0, 5), b"some records")
    writer.records(TABLE, (1, 0), memoryview(b"a table"))
    writer.front([(0, 7), (1, 0)])
    writer.records(RECORDS, (1, 1 << 40), bytes(1 << 18))
    writer.front([])
    assert writer.is_open and not writer.is_empty
    writer.close()
    assert not writer.is_open
    writer.close()


def frames(path: Path) -> tuple[Frames, int | None]:
    reader = CaptureReader(path)
    try:
        found: list[CapturedFrame] = []
        while (frame := reader.next()) is not None:
            found.append(frame)
        return [(frame.start, frame.kind, bytes(frame.content)) for frame in found], reader.torn_at
    finally:
        reader.close()


def test_read_is_what_was_written(tmp_path: Path) -> None:
    path = tmp_path / "one"
    write(path)
    reader = CaptureReader(path)
    assert (reader.worker, reader.workers, reader.coordinates) == (1, 3, 2)
    found = []
    while (frame := reader.next()) is not None:
        found.append(frame)
    assert [frame.kind for frame in found] == [FRONT, RECORDS, TABLE, FRONT, RECORDS, FRONT]
    assert times_in(found[1].content[:16], 2) == ([(0, 5)], True)
    assert bytes(found[1].content[16:]) == b"some records"
    assert times_in(found[3].content, 2) == ([(0, 7), (1, 0)], True)
    assert times_in(found[4].content[:16], 2) == ([(1, 1 << 40)], True)
    assert len(found[4].content) == 16 + (1 << 18)
    assert times_in(found[5].content, 2) == ([], True)
    assert times_in(found[1].content, 2)[1] is False
    reader.restart()
    skipped = []
    while (frame := reader.next(skips_records=True)) is not None:
        skipped.append(frame)
    reader.close()
    assert [frame[:2] for frame in skipped] == [frame[:2] for frame in found]
    assert [bytes(frame.content) for frame in skipped] == [
        bytes(frame.content) if frame.kind == FRONT else b"" for frame in found
    ]


def test_read_is_no_file_that_is_still_being_written(tmp_path: Path) -> None:
    writer = CaptureWriter(tmp_path / "one", 0, 1, 1)
    with pytest.raises(timely.MisuseError, match="one is still being written"):
        CaptureReader(tmp_path / "one")
    child = os.fork()
    if not child:  # it has the file open, too, and must not keep it locked
        os.execvp("sleep", ["sleep", "60"])
    writer.close()
    try:
        CaptureReader(tmp_path / "one").close()
    finally:
        os.kill(child, 9)
        os.waitpid(child, 0)


def small(path: Path) -> Frames:
    writer = CaptureWriter(path, 0, 1, 1)
    writer.records(RECORDS, (0,), b"abc")
    writer.front([(1,)])
    writer.records(RECORDS, (1,), b"defg")
    writer.front([])
    writer.close()
    return frames(path)[0]


def test_cut_anywhere_a_file_has_the_frames_that_are_whole(tmp_path: Path) -> None:
    path, cut = tmp_path / "one", tmp_path / "cut"
    whole = small(path)
    data = path.read_bytes()
    begins = [start for start, _, _ in whole[1:]] + [len(data)]
    for size in range(len(data) + 1):
        cut.write_bytes(data[:size])
        found, torn = frames(cut)
        ends = [begin for begin in begins if begin <= size]
        assert found == whole[: len(ends)]
        is_at_an_end = size in (0, *begins, whole[0][0])
        assert (torn is None) == (is_at_an_end and size > 0)
        if size > whole[0][0] and torn is not None:
            assert torn == max(end for end in (whole[0][0], *ends))
        if torn is not None:
            cut.write_bytes(data[:torn] + bytes(100))
            if torn:
                assert frames(cut) == (found, torn), "zeros in place of the end"


def test_damaged_bytes_are_an_error_or_cost_the_last_frame(tmp_path: Path) -> None:
    path, other = tmp_path / "one", tmp_path / "other"
    whole = small(path)
    data = path.read_bytes()
    last = whole[-1][0]
    for at in range(len(data)):
        for bit in (1, 128):
            other.write_bytes(data[:at] + bytes([data[at] ^ bit]) + data[at + 1 :])
            try:
                found, torn = frames(other)
            except timely.CaptureError as error:
                assert str(other) in str(error)
                place = max([start for start, _, _ in whole if start <= at], default=8)
                assert at < 8 or f"byte {place}:" in str(error) or f"byte {8}:" in str(error)
            else:
                assert at >= last and found == whole[:-1] and torn == last
    for at, _, _ in whole[1:-1]:
        other.write_bytes(data[:at] + data[at + 10 :])
        with pytest.raises(timely.CaptureError, match=f"damaged at byte {at}: the head"):
            frames(other)


def test_damaged_is_a_file_without_a_header(tmp_path: Path) -> None:
    path = tmp_path / "one"
    path.write_bytes(b"something else, of any length")
    with pytest.raises(timely.CaptureError, match="one is no captured stream of this format"):
        CaptureReader(path)
    writer = CaptureWriter(tmp_path / "two", 3, 3, 1)
    writer.close()
    with pytest.raises(
        timely.CaptureError, match="two is damaged at byte 8: .* does not begin with a header"
    ):
        CaptureReader(tmp_path / "two")
    assert HEADER == 0
