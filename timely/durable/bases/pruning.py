"""Remove what no base needs: older bases, their files, and segments that all kept bases stand for.

A base is there before anything goes for its sake. What a fold that was killed has left goes, too: files with
the number of a base that is there, or of an earlier one, and that no base names. A later fold of the same
number cannot put its manifest any more.

What old incarnations have said about those before them (`begin`) and about themselves (`hello`) goes, too:
each incarnation reads the newest of these files only. Those of the last two that have begun stay, for
somebody who has just listed them. Folders of logs that have become empty go as well: some file systems allow
65,000 folders in one. Fences stay for ever: see `store.py`.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from contextlib import suppress
from typing import Final

from ..incarnations import begun
from ..store import Store, begin_path, fence_path, hello_path, log_folder, store_errors
from .manifest import (
    BASE_FOLDER,
    BASES_KEPT_DEFAULT,
    Base,
    SegmentName,
    base_numbers,
    manifest_path,
    read_base,
)

__all__ = ["prune"]

_BEGUN_KEPT: Final = 2
_FILE: Final = re.compile(r"(\d{6,})-.*")
_SEGMENT: Final = re.compile(r"p\d+-\d{6,}\.log(?:\.\d{6,})?")


def prune(
    store: Store,
    incarnation: int,
    *,
    count: int = BASES_KEPT_DEFAULT,
    in_use: Collection[int] = (),
) -> list[str]:
    """Remove what only bases before the newest `count` need, and return the paths. As long as there are fewer
    bases, all logs stay.

    Args:
        incarnation: the caller's own. If a later one has put its fence, nothing is removed: that may read
            what is there.
        in_use: bases that somebody still reads; 0: somebody reads all logs, and no base.
    """
    with store_errors(store):
        numbers = base_numbers(store)
        if not numbers or store.exists(fence_path(incarnation + 1)):
            return []
        staying = {*numbers[-max(1, count) :], *(number for number in in_use if number in numbers)}
        bases = [read_base(store, number) for number in sorted(staying)]
        bases += [Base()] if 0 in in_use else []
        removed = [manifest_path(number) for number in numbers if number not in staying]
        named = {path for base in bases for path in base.files()}
        for name in store.list(BASE_FOLDER):
            match = _FILE.fullmatch(name)
            if match and int(match[1]) <= numbers[-1] and f"{BASE_FOLDER}/{name}" not in named:
                removed.append(f"{BASE_FOLDER}/{name}")
        pinned = {path for base in bases for path, _ in base.pinned.values()}
        for number in range(1, incarnation + 1):
            for name in store.list(log_folder(number)):
                path = f"{log_folder(number)}/{name}"
                if _SEGMENT.fullmatch(name) and path not in pinned and len(bases) >= count:
                    if all(base.covers(SegmentName.of(path)) for base in bases):
                        removed.append(path)
        for number in begun(store)[:-_BEGUN_KEPT]:
            paths = (hello_path(number), begin_path(number))
            removed += [path for path in paths if store.exists(path)]
        for path in removed:
            with suppress(FileNotFoundError):
                store.remove(path)
        folders = {path.rpartition("/")[0] for path in removed} - {BASE_FOLDER, log_folder(incarnation)}
        for folder in sorted(folders):
            if folder.startswith("log/") and not store.list(folder):
                with suppress(OSError):  # a file that is being made may be in there
                    store.remove(folder)
    return removed
