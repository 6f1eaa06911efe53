"""The sizes at which one way of doing a thing replaces another: the table of this package.

The table of `differential` describes the gain of each choice, and how it is measured.
"""

from __future__ import annotations

from typing import Final

__all__ = ["ARROW_VALUES_MIN", "FEW_WORDS_MAX"]

FEW_WORDS_MAX: Final = 32
"""Up to this many times (rights, requests or holds of a vertex) are searched one by one; more are kept in
order,
so that the cost of very many open times in a scope is not quadratic (`bench/results/open_times.md`)."""

ARROW_VALUES_MIN: Final = 50_000
"""From this many texts on Arrow makes the array; fewer are joined by `wire/arrow.py`. Relative to the better
way, joining takes 1.2 at 50,000 and 1.3 at 200,000 texts; Arrow takes 1.4 at 1,000 and 1.5 at 10,000
(`bench/results/thresholds.md`)."""
