"""The sizes at which one way of doing a thing replaces another: the table of this package.

The table of `differential` describes the gain of each choice, and how it is measured.
"""

from __future__ import annotations

from typing import Final

__all__ = ["FEW_POINTSTAMPS_MAX"]

FEW_POINTSTAMPS_MAX: Final = 256
"""Up to this many active pointstamps the tracker looks through all, pair by pair; more are stored by
location. At 256, by location takes 1.9 if one comes and goes again, 14 if a frontier moves with it, 2.9 if
all come and go at once; at 1,024 it takes 1.4, 11 and 0.4."""
