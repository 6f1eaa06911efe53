"""The README of the folder lists every name of numba's inner modules that the product uses."""

from __future__ import annotations

import re
from pathlib import Path

from house import PACKAGES, modules

README = Path("progress/compiled/README.md")


def inner_names() -> dict[str, set[str]]:
    """The files of the product that use a name of `numba.core` or `numba.np`, by that name."""
    users: dict[str, set[str]] = {}
    for module in (module for package in PACKAGES for module in modules(package)):
        for used in module.imports:
            if used.module.startswith(("numba.core", "numba.np")):
                name = f"{used.module}.{used.name}" if used.name else used.module
                users.setdefault(name, set()).add(module.path.as_posix())
    return users


def test_inner_names_of_numba_are_listed_with_the_files_that_use_them() -> None:
    lines = re.findall(r"^\| `(numba\.[^`]+)` \| (.+) \|$", README.read_text(), re.MULTILINE)
    listed = {name: set(re.findall(r"`([^`]+)`", files)) for name, files in lines}
    assert listed == inner_names()
