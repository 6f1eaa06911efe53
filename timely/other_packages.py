"""Say in one line that another author's package is installed in the place of one of ours.

PyPI has other packages called `progress`, `timely` and `differential`. Where one of them comes first on
`sys.path`, or was installed over ours, nothing works, and what Python says of it does not help.
"""

from __future__ import annotations

import sys
import warnings
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

__all__ = ["check_is_ours"]


def check_is_ours(name: str, offers: str) -> None:
    """Import the package `name`; raise ImportError, which names its file, unless it offers the name `offers`,
    as ours does.
    """
    try:
        module = import_module(name)
    except Exception:
        if _is_beside(name):
            raise
        raise ImportError(_text(name)) from None
    if offers not in getattr(module, "__all__", ()):
        raise ImportError(_text(name))


def _warn_of_another(name: str) -> None:
    """Warn if the package that would be imported as `name` is not the one beside this."""
    if name not in sys.modules and not _is_beside(name):
        warnings.warn(_text(name), RuntimeWarning, stacklevel=2)


def _file_of(name: str) -> str | None:
    """Return the file or folder of a package; None if there is none."""
    spec = find_spec(name)
    if spec is None:
        return None
    return spec.origin or next(iter(spec.submodule_search_locations or ()), None)


def _is_beside(name: str) -> bool:
    file = _file_of(name)
    return file is None or Path(file).resolve().parent.parent == Path(__file__).resolve().parent.parent


def _text(name: str) -> str:
    return (
        f"{_file_of(name)} is not the package {name!r} of naiad, but another author's (or a file of yours) "
        f"of that name: remove it (pip uninstall {name}; pip install --force-reinstall --no-deps naiad), or "
        "install naiad into a virtual environment of its own"
    )


check_is_ours("progress", "Tracker")
_warn_of_another("differential")
