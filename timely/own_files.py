"""Which files are this project's own? For errors that point to the user's line, and what workers import."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

__all__ = ["OWN_FOLDERS", "OWN_NAMES", "ROOT"]

ROOT: Final = Path(__file__).resolve().parent.parent
"""Where the packages lie."""

OWN_NAMES: Final = ("differential", "timely", "progress")
"""Our packages."""

OWN_FOLDERS: Final = tuple(
    f"{root / name}{os.sep}" for root in {Path(__file__).parent.parent, ROOT} for name in OWN_NAMES
)
"""What paths of our files begin with; two forms if the packages are linked."""
