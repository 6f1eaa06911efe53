"""The symbols of this process: one table, since a worker is a process.

Workers embedded in one process share it, which is harmless: what one has seen, the others may know too.
"""

from __future__ import annotations

from typing import Final

from differential.columns.symbols import SymbolTable

__all__ = ["SYMBOLS"]

SYMBOLS: Final = SymbolTable()
