"""Formats of dates and times, as Spark writes them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from ...errors import ExpressionError

__all__ = ["strftime_of"]

_CODES: Final[Mapping[str, str]] = {
    "yyyy": "%Y", "y": "%Y", "yy": "%y", "MM": "%m", "MMM": "%b", "MMMM": "%B", "dd": "%d", "HH": "%H",
    "hh": "%I", "mm": "%M", "ss": "%S", "SSSSSS": "%f", "a": "%p", "E": "%a", "EEE": "%a", "EEEE": "%A",
    "DDD": "%j",
}  # fmt: skip


def strftime_of(pattern: str) -> str:
    """Return a pattern of Spark's as a format of strftime; raise ExpressionError if there is none."""
    parts = re.findall(r"'([^']*)'|(([a-zA-Z])\3*)|([^a-zA-Z'])", pattern)
    written = []
    for quoted, letters, _, other in parts:
        if letters and letters not in _CODES:
            raise ExpressionError(f"{letters!r} in the format {pattern!r} is not supported")
        written.append(_CODES[letters] if letters else (quoted or other).replace("%", "%%"))
    return "".join(written)
