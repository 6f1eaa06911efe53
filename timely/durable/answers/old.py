"""Remove stored answers that readers do not need any more.

A reader may have found an answer just before the next one was stored, and read it for minutes. So an answer
stays for a while when there is a newer one; but not very many do, where folds are frequent.
"""

from __future__ import annotations

import errno
import re
import time
from typing import Final

from ...errors import StoreError
from ...limits import ANSWER_SECONDS_DEFAULT, ANSWERS_COUNT_MAX
from ..store import Store, fence_path, store_errors
from .manifest import ANSWER_FOLDER, Answer, answer_numbers, manifest_path, read_answer

__all__ = ["ANSWERS_KEPT_DEFAULT", "prune_answers"]

ANSWERS_KEPT_DEFAULT: Final = 2
"""So many answers of each output stay, at least: the newest, and one that a reader may have just found."""

_FOLDER: Final = re.compile(r"(\d+-[A-Za-z0-9_-]+)\.(\d{6,})-epoch-\d+-[0-9a-f]+")


def prune_answers(
    store: Store,
    incarnation: int,
    *,
    count: int = ANSWERS_KEPT_DEFAULT,
    seconds: float = ANSWER_SECONDS_DEFAULT,
) -> list[str]:
    """Remove answers that have been replaced for so many seconds, but for the newest `count` of each output,
    and what a fold that was killed has left. Return the paths.

    `incarnation`: the caller's own. If a later one has put its fence, nothing is removed.
    """
    with store_errors(store):
        if store.exists(fence_path(incarnation + 1)):
            return []
        named: set[str] = set()
        newest: dict[str, int] = {}
        removed: list[str] = []
        for place, numbers in answer_numbers(store).items():
            newest[place] = numbers[-1]
            staying, is_known = _staying(store, place, numbers, count, seconds)
            removed += [manifest_path(place, number) for number in numbers if number not in staying]
            named |= {answer.folder for answer in staying.values() if answer is not None}
            if not is_known:  # some manifest is damaged, and may name any folder
                newest.pop(place)
        for name in store.list(ANSWER_FOLDER):
            match = _FOLDER.fullmatch(name)
            folder = f"{ANSWER_FOLDER}/{name}"
            if match and int(match[2]) <= newest.get(match[1], -1) and folder not in named:
                removed += [*(f"{folder}/{file}" for file in store.list(folder)), folder]
        return [path for path in removed if _is_removed(store, path)]


def _is_removed(store: Store, path: str) -> bool:
    """Remove a file, or a folder; return False for a folder in which a killed fold has begun a file: the
    store removes such a file once it is old.
    """
    try:
        store.remove(path)
    except FileNotFoundError:
        return True
    except OSError as error:
        if error.errno not in (errno.ENOTEMPTY, errno.EEXIST):
            raise
        return False
    return True


def _staying(
    store: Store, place: str, numbers: list[int], count: int, seconds: float
) -> tuple[dict[int, Answer | None], bool]:
    """Return the manifests that stay, with what they say, and whether that of all is known."""
    staying: dict[int, Answer | None] = {}
    is_known, replaced_at = True, float("inf")
    for number in reversed(numbers):
        try:
            answer = read_answer(store, place, number)
        except StoreError:
            staying[number], is_known = None, False
            continue
        is_young = len(staying) < ANSWERS_COUNT_MAX and time.time() - replaced_at < seconds
        if len(staying) < max(1, count) or is_young:
            staying[number] = answer
        replaced_at = answer.stored_at
    return staying, is_known
