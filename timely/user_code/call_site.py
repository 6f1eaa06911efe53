"""Which line of the user's program asked for this?

Errors about a stage, an expression or an operator show up long after the line that built it has run: when the
dataflow is frozen, or when a row arrives. So every expression and operator keeps its *call site*, the
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
"""Where Python's own modules are."""

_said: Final[ContextVar[CallSite | None]] = ContextVar("the line that is said to ask", default=None)


@contextmanager
def at_site(sites: Sequence[CallSite]) -> Iterator[None]:
    """What is built now was asked for by the first of `sites`, if there is one, and not by whoever calls.

    For descriptions that are written in one place and carried out later in another.
    """
    token = _said.set(sites[0] if sites else _said.get())
    try:
        yield
    finally:
        _said.reset(token)


def call_site() -> CallSite:
    """The first line of the user on the stack."""
    said = _said.get()
    if said is not None:
        return said
    frame = sys._getframe(1)
    while True:
        if is_users(frame):
            return CallSite(frame.f_code.co_filename, frame.f_lineno)
        if frame.f_back is None:
            return UNKNOWN_SITE
        frame = frame.f_back


def is_users(frame: FrameType) -> bool:
    """Whether it runs code of the user: not of our packages, nor of Python's own modules.

    What stands behind `python -c`, or is given to `exec`, has the file "<string>", as have the methods that
    `dataclass` makes; these know the module of their class.
    """
    file = frame.f_code.co_filename
    if file == "<string>":
        return str(frame.f_globals.get("__name__")).partition(".")[0] not in OWN_NAMES
    if file.startswith(OWN_FOLDERS):
        return False
    return not file.startswith((_PYTHON, "<frozen ")) or "site-packages" in file


def site_of(error: BaseException) -> CallSite:
    """The last line of the user that an error has passed on its way up."""
    found, step = UNKNOWN_SITE, error.__traceback__
    while step is not None:
        if is_users(step.tb_frame):
            found = CallSite(step.tb_frame.f_code.co_filename, step.tb_lineno)
        step = step.tb_next
    return found
