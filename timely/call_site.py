"""Where in the user's code was this built?

Errors about a stage or an expression name the line that made it: the innermost frame outside this project's packages.
"""

from __future__ import annotations

import sys
from pathlib import Path

_ROOT = Path(__file__).resolve().parent.parent
_OURS = tuple(str(_ROOT / package) + "/" for package in ("progress", "timely", "differential"))


def call_site() -> str:
    """`file:line` of the innermost frame outside `progress`, `timely` and `differential`."""
    frame = sys._getframe(1)
    while frame.f_back is not None and frame.f_code.co_filename.startswith(_OURS):
        frame = frame.f_back
    return f"{frame.f_code.co_filename}:{frame.f_lineno}"
