"""The symbols of this process: one table, since a worker is a process.

Workers embedded in one process share the table. This is harmless: a value that one worker has seen may be
known to the others too. They forget together.

The table looks for entries to forget once it has a certain number of entries, or of bytes of values
(`timely/limits.py`). The environment may set other limits: `NAIAD_SYMBOLS_MIN` (1,000,000 entries) and
`NAIAD_SYMBOLS_BYTES_MIN` (67,108,864 bytes).
"""

from __future__ import annotations

import os
from typing import Final

from differential.columns.symbols.table import SymbolTable
from timely.dictionaries import register_dictionary
from timely.errors import MisuseError
from timely.limits import SYMBOLS_BYTES_MIN, SYMBOLS_COUNT_MIN

__all__ = ["SYMBOLS", "full_from"]

_COUNT: Final = "NAIAD_SYMBOLS_MIN"
_BYTES: Final = "NAIAD_SYMBOLS_BYTES_MIN"


def full_from(variable: str, default: int, noun: str) -> int:
    """Return the number in an environment variable, but at least 1; `default` if it is not set.

    Raises MisuseError if it holds no whole number (of `noun`).
    """
    text = os.environ.get(variable, "").strip()
    if not text:
        return default
    if not text.isdecimal():
        raise MisuseError(
            f"{variable}={text}: write a whole number. From so many {noun} on, a table of symbols forgets"
        )
    return max(1, int(text))  # a limit of 0 would call an empty table full


SYMBOLS: Final = SymbolTable(
    full_from=full_from(_COUNT, SYMBOLS_COUNT_MIN, "entries"),
    bytes_from=full_from(_BYTES, SYMBOLS_BYTES_MIN, "bytes of values"),
)
register_dictionary(SYMBOLS)
os.register_at_fork(after_in_child=SYMBOLS.leave_cold)
