"""Ask a running cluster to fold its logs, and to store answers, by a file in its store.

    requests/fold-…       fold, whatever there is
    requests/answers-…    fold if stored outputs have newer answers than those that are stored

Worker 0 looks for such files a few times a second. It removes them when a fold that has begun later has ended
well. Any process that may write to the store can ask: no connection is needed, and no key.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import Final
from uuid import uuid4

from ...errors import TimelyError
from ...limits import FOLD_INCARNATIONS_MAX
from ..bases.coverage import incarnations_to_fold
from ..store import Store
from .manifest import ANSWER_FOLDER

__all__ = ["ask", "await_last_fold", "fold_last", "fulfil", "is_for_answers", "requests_in"]

_log = logging.getLogger("timely")

_FOLDER: Final = "requests"
_ANSWERS: Final = f"{_FOLDER}/answers-"
_POLL_SECONDS: Final = 0.02
_LAST_SECONDS: Final = 60.0
"""How long workers have time to fold at the end of their program."""


def ask(store: Store) -> str:
    """Put a request for a fold, and return its path, which is gone when the request is fulfilled."""
    return _put(store, f"{_FOLDER}/fold-")


def await_last_fold(store: Store, goes_on: Callable[[], bool]) -> None:
    """Let a running cluster fold at the end of its program, and wait for that, as long as `goes_on`: if the
    logs of very many incarnations wait for a fold, since programs that run for a second never get to one; or
    if it has stored outputs, and these hold something newer than what is stored.
    """
    if incarnations_to_fold(store) >= FOLD_INCARNATIONS_MAX:
        request = ask(store)
    elif store.list(ANSWER_FOLDER):
        request = _put(store, _ANSWERS)
    else:
        return
    try:
        while store.exists(request) and goes_on():
            time.sleep(_POLL_SECONDS)
    finally:
        fulfil(store, [request])


def fold_last(store: Store, goes_on: Callable[[], bool]) -> None:
    """Do as `await_last_fold`, for a minute at most; if the store fails, write that into the log."""
    until = time.monotonic() + _LAST_SECONDS

    def is_in_time() -> bool:
        if time.monotonic() < until:
            return True
        _log.warning(
            "the fold at the end was given up after %g s: stored answers are as before", _LAST_SECONDS
        )
        return False

    try:
        await_last_fold(store, lambda: goes_on() and is_in_time())
    except (OSError, TimelyError) as error:
        _log.warning("the answers of stored outputs were not stored at the end: %s", error)


def is_for_answers(request: str) -> bool:
    """Return True if a request is fulfilled once no stored output has a newer answer."""
    return request.startswith(_ANSWERS)


def _put(store: Store, prefix: str) -> str:
    path = f"{prefix}{uuid4().hex}"
    store.put_new(path, b"")
    return path


def requests_in(store: Store) -> list[str]:
    """Return the paths of all requests."""
    return [f"{_FOLDER}/{name}" for name in store.list(_FOLDER)]


def fulfil(store: Store, paths: Iterable[str]) -> None:
    """Remove requests."""
    for path in paths:
        with suppress(FileNotFoundError):
            store.remove(path)
