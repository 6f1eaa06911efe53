"""Errors of a store say which store, what failed, and what to do."""

from __future__ import annotations

import errno
from pathlib import Path

import pytest

from timely.durable.folder_store import FolderStore
from timely.durable.store import begin_path, fence_path, segment_path, store_errors
from timely.errors import StoreError


def test_errors_name_the_store_and_the_cause(tmp_path: Path) -> None:
    store = FolderStore(tmp_path / "store")
    message = rf"the store {store.name} cannot be used: No space left on device \(members\)"
    with pytest.raises(StoreError, match=message) as caught, store_errors(store):
        raise OSError(errno.ENOSPC, "No space left on device", "members")
    assert isinstance(caught.value.__cause__, OSError)


def test_paths_sort_as_their_numbers_do() -> None:
    assert fence_path(7) == "members/000007.json" and begin_path(7) == "members/000007.begin.json"
    assert segment_path(7, 1, 9) < segment_path(7, 1, 10) == "log/000007/p1-000010.log"
