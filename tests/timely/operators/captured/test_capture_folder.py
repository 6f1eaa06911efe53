"""Folders of captured streams: who may write into them, and when they are whole."""

from __future__ import annotations

import logging
from math import inf
from pathlib import Path

import pytest

import timely
from timely.operators.captured.capture_files import RECORDS
from timely.operators.captured.capture_folder import (
    CapturedStream,
    epoch_of_front,
    folder_name,
    new_file,
    remove_file,
)
from timely.user_code.call_site import CallSite

SITE = CallSite("mine.py", 7)


def make(folder: Path, *fronts: list[int]) -> None:
    """A file for each list: an epoch that is over each, `-1` for the end of the stream."""
    for worker, epochs in enumerate(fronts):
        writer = new_file(str(folder), worker, len(fronts), 1, SITE)
        for epoch in epochs:
            writer.records(RECORDS, (max(epoch - 1, 0),), b"\x90")
            writer.front([] if epoch < 0 else [(epoch,)])
        writer.close()


def test_a_folder_is_made_for_all_workers_and_holds_one_stream(tmp_path: Path) -> None:
    folder = tmp_path / "deep" / "down"
    make(folder, [1], [2], [3])
    assert sorted(each.name for each in folder.iterdir()) == [
        f"worker-{worker}-of-3.capture" for worker in range(3)
    ]
    for worker, workers in ((0, 3), (0, 4), (0, 1)):
        with pytest.raises(timely.MisuseError, match=r"\(mine.py:7\), which holds 'worker-0-of-3") as caught:
            new_file(str(folder), worker, workers, 1, SITE)
        assert f"Name another folder, or remove this one; dataflow.replay({str(folder)!r})" in str(
            caught.value
        )
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "notes.txt").write_text("mine")
    with pytest.raises(timely.MisuseError, match=r"holds 'notes.txt' already"):
        new_file(str(tmp_path / "other"), 0, 1, 1, SITE)
    with pytest.raises(
        timely.CaptureError, match=r"cannot be captured into .*notes.txt/a' \(mine.py:7\): Not a d"
    ):
        new_file(str(tmp_path / "other" / "notes.txt" / "a"), 0, 1, 1, SITE)


def test_a_file_that_nothing_was_written_to_goes_with_its_folder(tmp_path: Path) -> None:
    writers = [new_file(str(tmp_path / "a"), worker, 2, 1, SITE) for worker in range(2)]
    for writer in writers:
        writer.close()
    remove_file(writers[0])
    assert [each.name for each in (tmp_path / "a").iterdir()] == ["worker-1-of-2.capture"]
    remove_file(writers[1])
    assert not (tmp_path / "a").exists()


def test_a_stream_ends_where_the_first_file_does(tmp_path: Path) -> None:
    for number, (fronts, end) in enumerate(
        [([[1, 5], [2, 3]], 3), ([[1, -1], [4]], 4), ([[-1], [-1]], inf), ([[3], []], 0)]
    ):
        folder = tmp_path / str(number)
        make(folder, *fronts)
        for workers in (1, 2, 3):
            streams = [CapturedStream(str(folder), worker, workers, SITE) for worker in range(workers)]
            assert [stream.end for stream in streams] == [end] * workers
            paths = [[share.reader.path.name for share in stream.shares] for stream in streams]
            assert sorted(sum(paths, [])) == ["worker-0-of-2.capture", "worker-1-of-2.capture"]
            for stream in streams:
                stream.close()


def test_a_torn_end_is_told_once_with_its_byte(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    make(tmp_path / "a", [1, 5], [2, 3])
    path = tmp_path / "a" / "worker-1-of-2.capture"
    path.write_bytes(path.read_bytes()[:-1])
    with caplog.at_level(logging.WARNING, "timely"):
        ends = []
        for worker in range(2):
            stream = CapturedStream(str(tmp_path / "a"), worker, 2, SITE)
            ends.append(stream.end)
            stream.close()
    assert ends == [2, 2]
    (line,) = [record.getMessage() for record in caplog.records]
    assert f"{path} ends at byte {path.stat().st_size - 27} in the middle of a frame" in line


def test_what_is_no_captured_stream_is_refused(tmp_path: Path) -> None:
    def refusal(name: str) -> str:
        with pytest.raises(timely.MisuseError) as caught:
            CapturedStream(str(tmp_path / name), 0, 1, SITE)
        return str(caught.value)

    assert "there is no captured stream in" in refusal("missing") and "(mine.py:7)" in refusal("missing")
    (tmp_path / "empty").mkdir()
    assert "there is no captured stream in" in refusal("empty")
    make(tmp_path / "a", [1], [2], [3])
    third = tmp_path / "a" / "worker-2-of-3.capture"
    kept = third.read_bytes()
    third.unlink()
    assert "is of 3 workers, and lacks worker-2-of-3.capture" in refusal("a")
    third.write_bytes((tmp_path / "a" / "worker-1-of-3.capture").read_bytes())
    assert f"{third} was worker-1-of-3.capture when it was written" in refusal("a")
    third.write_bytes(kept)
    (tmp_path / "a" / "worker-0-of-2.capture").write_bytes(kept)
    assert "has worker-0-of-2.capture, too" in refusal("a")
    (tmp_path / "a" / "worker-0-of-2.capture").unlink()
    stream = CapturedStream(str(tmp_path / "a"), 0, 1, SITE)
    with pytest.raises(timely.CaptureError, match="byte 9: the times there are not whole"):
        epoch_of_front(stream.shares[0].reader, 9, memoryview(b"abc"))
    stream.close()
    third.unlink()
    writer = new_file(str(tmp_path / "a"), 2, 3, 2, SITE)
    writer.close()
    assert "are of different streams" in refusal("a")


def test_a_folder_is_named_by_a_path(tmp_path: Path) -> None:
    assert folder_name("capture", tmp_path) == str(tmp_path)
    for wrong in (3, None, b"bytes", "", "a\0b", ["a"]):
        with pytest.raises(timely.MisuseError, match=r"replay\(.*test_capture_folder.py:\d+\): `folder` is"):
            folder_name("replay", wrong)
