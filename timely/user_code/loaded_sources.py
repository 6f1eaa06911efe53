"""Does a process still run the code that is in the files?

Python imports a module once. A user who edits a file and installs a dataflow of it again in a running cluster
would silently get the old code. So this module remembers size and time of each imported file, and an edited
file is an error that says what to do. (The alternative, importing the module again, would change it under
running dataflows, and renew only one of several modules.)

It checks the module of the builder and the modules that this refers to, if they are the user's: not those of
the standard library, of installed packages, or of this project.
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
_loaded: dict[str, tuple[object, _Stamp]] = {}
"""By module name: the module's spec, which is another object after a reload, and the stamp of its file
then.
"""

_NOT_THE_USERS: Final = tuple(
    {sysconfig.get_path(name) + os.sep for name in ("stdlib", "platstdlib", "purelib", "platlib")}
    | set(OWN_FOLDERS)
)


def note_loaded(module: ModuleType) -> None:
    """Remember the files of a module and of those that it refers to, unless they are remembered already."""
    for one in _reached(module):
        spec = one.__spec__
        stamp = _stamp_of(one)
        loaded = _loaded.get(one.__name__)
        if stamp is not None and (loaded is None or loaded[0] is not spec):
            _loaded[one.__name__] = (spec, stamp)


def check_unchanged(module: ModuleType) -> None:
    """Raise `MisuseError` if the file of the module, or of one that it refers to, was edited after the
    import.
    """
    for one in _reached(module):
        loaded = _loaded.get(one.__name__)
        if loaded is not None and loaded[0] is one.__spec__ and _stamp_of(one) not in (loaded[1], None):
            raise MisuseError(
                f"{one.__file__} has been edited since the worker imported it, and a running "
                "process keeps the old "
                "code: start the cluster anew (or, embedded, this program)"
            )


def _reached(module: ModuleType) -> list[ModuleType]:
    """Return the module and all of the user's modules that its names lead to."""
    modules: dict[str, ModuleType] = {}
    ahead = [module]
    while ahead:
        one = ahead.pop()
        if one.__name__ in modules or not _is_the_users(one):
            continue
        modules[one.__name__] = one
        for value in list(vars(one).values()):
            name = value.__name__ if isinstance(value, ModuleType) else getattr(value, "__module__", None)
            reached = sys.modules.get(name) if isinstance(name, str) else None
            if reached is not None:
                ahead.append(reached)
    return list(modules.values())


def _is_the_users(module: ModuleType) -> bool:
    file = getattr(module, "__file__", None)
    return isinstance(file, str) and not file.startswith(_NOT_THE_USERS) and file.endswith(".py")


def _stamp_of(module: ModuleType) -> _Stamp | None:
    try:
        status = Path(str(module.__file__)).stat()
    except OSError:
        return None
    return status.st_mtime_ns, status.st_size
