"""Which line of the user's program has built this?

Errors about a stage, an expression or an operator come up long after the line that built it has run: when the
dataflow is frozen, or when a row arrives. So every expression and operator stores its *call site*, the
first frame outside `differential`, `timely`, `progress` and Python's own modules. Finding it walks a few
frames and reads no source: about 0.3 µs.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from types import FrameType
from typing import Final, NamedTuple

from ..own_files import OWN_FOLDERS, OWN_NAMES

__all__ = ["UNKNOWN_SITE", "CallSite", "at_site", "call_site", "is_users", "site_of"]


class CallSite(NamedTuple):
    """A file and a line."""

    file: str
    line: int

    def __str__(self) -> str:
        return f"{self.file}:{self.line}" if self.line else "unknown line"


UNKNOWN_SITE: Final = CallSite("", 0)

_PYTHON: Final = f"{Path(os.__file__).parent}{os.sep}"
"""The folder of Python's own modules."""

_site: Final[ContextVar[CallSite | None]] = ContextVar("the call site that `at_site` has set", default=None)


@contextmanager
def at_site(sites: Sequence[CallSite]) -> Iterator[None]:
    """Inside, make the first of `sites`, if there is one, the call site, and not the user's line on the
    stack.

    For descriptions that the user writes on one line, and that are carried out later from another.
    """
    token = _site.set(sites[0] if sites else _site.get())
    try:
        yield
    finally:
        _site.reset(token)


def call_site() -> CallSite:
    """Return the site that `at_site` has set, or else the innermost line of the user on the stack."""
    site = _site.get()
    if site is not None:
        return site
    frame = sys._getframe(1)
    while True:
        if is_users(frame):
            return CallSite(frame.f_code.co_filename, frame.f_lineno)
        if frame.f_back is None:
            return UNKNOWN_SITE
        frame = frame.f_back


def is_users(frame: FrameType) -> bool:
    """Return True if a frame runs code of the user: not of our packages, nor of Python's own modules.

    The code of `python -c` and of `exec` has the file "<string>". So have the methods that `dataclass` makes,
    but their globals have the module of their class.
    """
    file = frame.f_code.co_filename
    if file == "<string>":
        return str(frame.f_globals.get("__name__")).partition(".")[0] not in OWN_NAMES
    if file.startswith(OWN_FOLDERS):
        return False
    return not file.startswith((_PYTHON, "<frozen ")) or "site-packages" in file


def site_of(error: BaseException) -> CallSite:
    """Return the innermost line of the user in the traceback of an error."""
    site, step = UNKNOWN_SITE, error.__traceback__
    while step is not None:
        if is_users(step.tb_frame):
            site = CallSite(step.tb_frame.f_code.co_filename, step.tb_lineno)
        step = step.tb_next
    return site
