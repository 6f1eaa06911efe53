"""A block in a file: room on the disk before it is used, none afterwards, nothing shared with forked
processes.
"""

from __future__ import annotations

import errno
import gc
import os
from pathlib import Path

import numpy as np
import pytest

from timely import SpillError
from timely.mapped import address_of, give_back_pages, mapping_of
from timely.spilling.file_memory import FileMemory, bytes_in_files, has_blocks

PAGE = os.sysconf("SC_PAGE_SIZE")


def _open_files() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


def _blocks_on_disk(folder: Path) -> list[str]:
    """The lines of the files without a name in a folder that this process maps."""
    lines = Path("/proc/self/maps").read_text().splitlines()
    return [line for line in lines if f" {folder}/" in line and line.endswith("(deleted)")]


def test_a_block_lies_in_a_file_without_a_name_and_goes_with_its_last_view(tmp_path: Path) -> None:
    before, files = bytes_in_files(), _open_files()
    array = FileMemory(str(tmp_path), 16 * PAGE).array(8 * 1_000)
    assert array.shape == (1_000,) and array.dtype == np.int64 and array.flags.writeable
    array[:] = np.arange(1_000)
    view = array[10:20].reshape(2, 5)
    memory = mapping_of(view)
    assert isinstance(memory, FileMemory) and address_of(memory) == array.ctypes.data
    assert bytes_in_files() - before == len(memory) == 16 * PAGE and has_blocks()
    assert not list(tmp_path.iterdir()) and len(_blocks_on_disk(tmp_path)) == 1
    assert _open_files() == files, "a process may have 1,024 of them"
    del array, memory
    assert view.tolist() == [[10, 11, 12, 13, 14], [15, 16, 17, 18, 19]]
    del view
    assert bytes_in_files() == before and not _blocks_on_disk(tmp_path)


def test_what_is_given_back_takes_no_room_and_the_rest_stays(tmp_path: Path) -> None:
    array = FileMemory(str(tmp_path), 16 * PAGE).array(16 * PAGE)
    array[:] = 7
    memory = mapping_of(array)
    assert memory is not None
    words = PAGE // 8
    give_back_pages(memory, 3 * PAGE + 1, 9 * PAGE + 5)  # the whole pages in it
    assert (array[: 4 * words] == 7).all() and (array[9 * words :] == 7).all()
    assert not array[4 * words : 9 * words].any()
    give_back_pages(memory, PAGE + 1, 2 * PAGE)  # no whole page
    give_back_pages(memory, 15 * PAGE, 99 * PAGE)  # as far as it goes
    assert (array[: 4 * words] == 7).all() and not array[15 * words :].any()


class _Room:
    """What a file system says of its room: blocks of a page."""

    f_frsize = PAGE

    def __init__(self, blocks: int, free: int) -> None:
        self.f_blocks, self.f_bavail = blocks, free


@pytest.mark.parametrize(("blocks", "free"), [(0, 0), (9, 2)], ids=["without a limit", "just enough"])
def test_a_block_is_made_where_there_is_room(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, blocks: int, free: int
) -> None:
    monkeypatch.setattr(os, "statvfs", lambda _: _Room(blocks, free))
    array = FileMemory(str(tmp_path), 2 * PAGE).array(PAGE)
    array[:] = 1
    if blocks:
        with pytest.raises(SpillError, match="No space left"):
            FileMemory(str(tmp_path), 3 * PAGE)


@pytest.mark.parametrize("has_unnamed_files", [True, False])
def test_room_that_the_disk_has_not_is_an_error_before_the_block_is_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, has_unnamed_files: bool
) -> None:
    if not has_unnamed_files:  # as in old file systems
        monkeypatch.setattr("timely.spilling.file_memory._UNNAMED", 0)
    gc.collect()  # a refused block does so, too
    before, files = bytes_in_files(), _open_files()
    with monkeypatch.context() as patch, pytest.raises(SpillError) as raised:
        # The disk must not be asked: it gives all it has before it refuses, and others find it full.
        patch.delattr(os, "posix_fallocate")
        FileMemory(str(tmp_path), 1 << 43)
    text = str(raised.value)
    assert f"needs 8,388,608.0 MiB in a file of {tmp_path}" in text and "MiB are free there" in text
    assert bytes_in_files() == before and _open_files() == files and not list(tmp_path.iterdir())
    array = FileMemory(str(tmp_path), PAGE).array(PAGE)
    array[:] = 1
    assert not list(tmp_path.iterdir())


def test_a_disk_that_lacks_little_is_not_said_to_have_what_is_needed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "statvfs", lambda _: _Room(2**20, (4 << 20) // PAGE - 1))
    with pytest.raises(SpillError, match=r"needs 4\.0 MiB .*; 3\.9 MiB are free there"):
        FileMemory(str(tmp_path), 4 << 20)


class _Ring:
    """Garbage that only the collector finds."""

    def __init__(self, memory: FileMemory) -> None:
        self.memory, self.itself = memory, self


def test_on_a_full_disk_blocks_of_garbage_make_room(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    gc.collect()  # blocks of other tests, perhaps
    before, reserve = bytes_in_files(), os.posix_fallocate

    def is_full(file: int, start: int, size: int) -> None:
        if bytes_in_files() > before:
            raise OSError(errno.ENOSPC, "No space left on device")
        reserve(file, start, size)

    monkeypatch.setattr(os, "posix_fallocate", is_full)
    gc.disable()
    try:
        _Ring(FileMemory(str(tmp_path), PAGE))
        assert bytes_in_files() > before
        block = FileMemory(str(tmp_path), PAGE)
        with pytest.raises(SpillError, match="No space left"):
            FileMemory(str(tmp_path), PAGE)
    finally:
        gc.enable()
    assert len(block) == PAGE


def test_a_forked_process_shares_no_page_and_keeps_no_file(tmp_path: Path) -> None:
    array = FileMemory(str(tmp_path), 4 * PAGE).array(4 * PAGE)
    array[:] = 7
    child = os.fork()
    if child == 0:
        is_well = not array.any() and not _blocks_on_disk(tmp_path)
        array[:] = 9
        del array
        os._exit(0 if is_well else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert (array == 7).all()
