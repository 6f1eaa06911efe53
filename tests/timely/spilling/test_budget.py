"""Which memory lies in files: what exceeds the budget of the clusters in this process, of staying memory what
exceeds half of it.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator
from pathlib import Path

import pytest

from timely.mapped import bytes_in_use, mapped, mapping_of, release_spare
from timely.spilling.budget import SPILL, is_beyond
from timely.spilling.file_memory import FileMemory
from timely.spilling.settings import SpillSettings

MIB = 1 << 20


@pytest.fixture(autouse=True)
def nothing_used() -> Iterator[int]:
    gc.collect()
    release_spare()
    yield 0
    gc.collect()
    release_spare()


def _is_in_file(size: int, stays: bool) -> bool:
    return isinstance(mapping_of(mapped(size, stays)), FileMemory)


def test_without_a_share_nothing_lies_in_files() -> None:
    assert SPILL.place is None
    assert not _is_in_file(MIB, stays=True)
    share = SPILL.begin(None)
    assert SPILL.place is None
    share.end()


def test_shares_add_up_and_the_last_one_names_the_folder(tmp_path: Path) -> None:
    one = SPILL.begin(SpillSettings("/one", 3 * MIB), 2)
    other = SPILL.begin(SpillSettings(str(tmp_path), MIB))
    assert SPILL.place == SpillSettings(str(tmp_path), 7 * MIB)
    other.end()
    other.end()
    assert SPILL.place == SpillSettings("/one", 6 * MIB)
    del one, other  # a cluster that is dropped, and not closed
    gc.collect()
    assert SPILL.place is None


def test_half_of_the_budget_is_for_memory_that_is_soon_dropped(tmp_path: Path) -> None:
    assert not is_beyond(8, 0, 4, stays=True) and is_beyond(8, 0, 5, stays=True)
    assert not is_beyond(8, 0, 8, stays=False) and is_beyond(8, 1, 8, stays=False)
    used = bytes_in_use()  # of others in this process
    share = SPILL.begin(SpillSettings(str(tmp_path), 2 * used + 8 * MIB))
    kept = mapped(3 * MIB, stays=True)
    assert not isinstance(mapping_of(kept), FileMemory)
    assert _is_in_file(2 * MIB, stays=True) and not _is_in_file(2 * MIB, stays=False)
    assert not _is_in_file(MIB // 2, stays=True), "a small block still has room"
    assert _is_in_file(used + 6 * MIB, stays=False)
    del kept
    assert not _is_in_file(2 * MIB, stays=True), "there is room again"
    share.end()
    assert not _is_in_file(99 * MIB, stays=True)


def test_what_texts_take_is_of_the_budget(tmp_path: Path) -> None:
    share = SPILL.begin(SpillSettings(str(tmp_path), 2 * bytes_in_use() + 8 * MIB))
    assert not _is_in_file(2 * MIB, stays=True) and not _is_in_file(4 * MIB, stays=False)
    SPILL.besides = 5 * MIB
    assert _is_in_file(2 * MIB, stays=True) and not _is_in_file(2 * MIB, stays=False)
    SPILL.besides = bytes_in_use() + 7 * MIB
    assert _is_in_file(2 * MIB, stays=False)
    share.end()
    assert SPILL.besides == 0, "no cluster is left that would have texts"
