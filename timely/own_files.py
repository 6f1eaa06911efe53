"""Which files are this project's own? For errors that point to the user's line, and for imports of
workers.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

__all__ = ["OWN_FOLDERS", "OWN_NAMES", "ROOT"]

ROOT: Final = Path(__file__).resolve().parent.parent
"""The folder of the packages."""

OWN_NAMES: Final = ("differential", "timely", "progress")
"""The names of our packages."""

OWN_FOLDERS: Final = tuple(
    f"{root / name}{os.sep}" for root in {Path(__file__).parent.parent, ROOT} for name in OWN_NAMES
)
"""The prefixes of the paths of our files; two for each package if the packages are symbolic links."""
