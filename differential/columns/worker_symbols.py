"""The symbols of this process: one table, since a worker is a process.

Workers embedded in one process share it, which is harmless: what one has seen, the others may know too. They
forget together.

Environment: `NAIAD_SYMBOLS_MIN` entries are the least at which it is looked for what may be forgotten
(1,000,000; `timely/limits.py`).
"""

from __future__ import annotations

import os
from typing import Final

from differential.columns.symbols.table import SymbolTable
from timely.dictionaries import register_dictionary
from timely.errors import MisuseError
from timely.limits import SYMBOLS_COUNT_MIN

__all__ = ["SYMBOLS", "full_from"]

_VARIABLE: Final = "NAIAD_SYMBOLS_MIN"


def full_from(given: str | None) -> int:
    """What the environment says; `MisuseError` if that is no count."""
    if given is None or not given.strip():
        return SYMBOLS_COUNT_MIN
    if not given.strip().isdecimal():
        raise MisuseError(
            f"{_VARIABLE}={given}: it says how many entries a dictionary of symbols has at least"
        )
    return max(1, int(given))  # an empty one never is full


SYMBOLS: Final = SymbolTable(full_from=full_from(os.environ.get(_VARIABLE)))
register_dictionary(SYMBOLS)
