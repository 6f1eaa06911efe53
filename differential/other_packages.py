"""Say in one line that another author's package is installed in the place of `timely` or `progress`.

`timely.other_packages` does it, which is not there if `timely` itself is another author's.
"""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec

__all__: list[str] = []


def _check() -> None:
    try:
        import_module("timely.other_packages").check_is_ours("timely", "connect")
    except ModuleNotFoundError as error:
        if not (error.name or "").startswith("timely"):
            raise
        spec = find_spec("timely")
        raise ImportError(
            f"{'nothing' if spec is None else spec.origin} is not the package 'timely' of naiad, but another "
            "author's (or a file of yours) of that name: remove it (pip uninstall timely; pip install "
            "--force-reinstall --no-deps naiad), or install naiad into a virtual environment of its own"
        ) from None


_check()
