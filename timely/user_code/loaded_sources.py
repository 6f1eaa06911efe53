"""Is the code that a process runs still what the files say?

Python imports a module once. Who edits a file and installs a dataflow of it anew in a running cluster would
get the old code without a word. So what was imported is remembered with the size and time of its file, and an
edited file is an error that says what to do. (Importing it anew was not taken: dataflows that run already
would see their module change under them, and only one of several modules would be renewed.)

Looked at are the module of the builder and those that it refers to, as far as they are the user's: not the
standard library, not installed packages, not this one.
"""

from __future__ import annotations

import os
import sys
import sysconfig
from pathlib import Path
from types import ModuleType
from typing import Final

from ..errors import MisuseError
from ..own_files import OWN_FOLDERS

__all__ = ["check_unchanged", "note_loaded"]

_Stamp = tuple[int, int]
_known: dict[str, tuple[object, _Stamp]] = {}
"""By name: the module's spec, which is another object after a reload, and its file as it was then."""

_NOT_THE_USERS: Final = tuple(
    {sysconfig.get_path(name) + os.sep for name in ("stdlib", "platstdlib", "purelib", "platlib")}
    | set(OWN_FOLDERS)
)


def note_loaded(module: ModuleType) -> None:
    """Remember the files of a module and of those that it refers to, unless they are known already."""
    for found in _reached(module):
        spec = found.__spec__
        stamp = _stamp_of(found)
        known = _known.get(found.__name__)
        if stamp is not None and (known is None or known[0] is not spec):
            _known[found.__name__] = (spec, stamp)


def check_unchanged(module: ModuleType) -> None:
    """Raise `MisuseError` if the file of the module, or of one that it refers to, is no longer the one it
    came from.
    """
    for found in _reached(module):
        known = _known.get(found.__name__)
        if known is not None and known[0] is found.__spec__ and _stamp_of(found) not in (known[1], None):
            raise MisuseError(
                f"{found.__file__} has been edited since the worker imported it, and a running "
                "process keeps the old "
                "code: start the cluster anew (or, embedded, this program)"
            )


def _reached(module: ModuleType) -> list[ModuleType]:
    """The module and all of the user's modules that its names lead to."""
    found: dict[str, ModuleType] = {}
    ahead = [module]
    while ahead:
        one = ahead.pop()
        if one.__name__ in found or not _is_the_users(one):
            continue
        found[one.__name__] = one
        for value in list(vars(one).values()):
            name = value.__name__ if isinstance(value, ModuleType) else getattr(value, "__module__", None)
            reached = sys.modules.get(name) if isinstance(name, str) else None
            if reached is not None:
                ahead.append(reached)
    return list(found.values())


def _is_the_users(module: ModuleType) -> bool:
    file = getattr(module, "__file__", None)
    return isinstance(file, str) and not file.startswith(_NOT_THE_USERS) and file.endswith(".py")


def _stamp_of(module: ModuleType) -> _Stamp | None:
    try:
        status = Path(str(module.__file__)).stat()
    except OSError:
        return None
    return status.st_mtime_ns, status.st_size
