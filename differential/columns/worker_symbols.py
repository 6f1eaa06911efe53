"""The symbols of this process: one table, since a worker is a process.

Workers embedded in one process share it, which is harmless: what one has seen, the others may know too. They
forget together.

The table looks for what may be forgotten from so many entries on, or from so many bytes of values
(`timely/limits.py`). The environment may say others: `NAIAD_SYMBOLS_MIN` (1,000,000 entries) and
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
    """The number in an environment variable, 1 at least; `MisuseError` if it holds no number of `noun`."""
    given = os.environ.get(variable, "").strip()
    if not given:
        return default
    if not given.isdecimal():
        raise MisuseError(f"{variable}={given}: it says how many {noun} a dictionary of symbols has at least")
    return max(1, int(given))  # an empty dictionary never is full


SYMBOLS: Final = SymbolTable(
    full_from=full_from(_COUNT, SYMBOLS_COUNT_MIN, "entries"),
    bytes_from=full_from(_BYTES, SYMBOLS_BYTES_MIN, "bytes of values"),
)
register_dictionary(SYMBOLS)
