"""The sizes at which one way of doing a thing replaces another: the table of this package.

The table of `differential` describes the gain of each choice, and how it is measured.
"""

from __future__ import annotations

from typing import Final

__all__ = ["FEW_POINTSTAMPS_MAX", "TABLE_NODES_MAX"]

FEW_POINTSTAMPS_MAX: Final = 256
"""Up to this many active pointstamps the tracker looks through all, pair by pair; more are stored by
location. At 256, by location takes 1.9 if one comes and goes again, 14 if a frontier moves with it, 2.9 if
all come and go at once; at 1,024 it takes 1.4, 11 and 0.4."""

TABLE_NODES_MAX: Final = 600
"""Up to this many stages, connectors and watched groups the tracker has a table of what leads from where to
where; in a larger graph earliest times spread step by step. At 600, in a chain, the steps take 3 if one
pointstamp comes and goes, 5 if all frontiers move, 4 if 100 come and go at once, and 0.5 to make: the table
grows with the square, which a thousand stages would notice at every install."""
