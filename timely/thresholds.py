"""Where one way of doing a thing takes over from another, by how much there is: the table of this package.

The table of `differential` says what each choice is worth, and how that is measured.
"""

from __future__ import annotations

from typing import Final

__all__ = ["ARROW_VALUES_MIN", "FEW_WORDS_MAX"]

FEW_WORDS_MAX: Final = 32
"""Times that are looked through one by one, as rights, requests or what a vertex holds; more are kept in
order, so that a scope with very many open times does not take their square
(`bench/results/open_times.md`)."""

ARROW_VALUES_MIN: Final = 50_000
"""Texts that Arrow makes an array of; fewer are joined here. Here it takes 1.2 at 50,000, 1.3 at 200,000;
Arrow takes 1.4 at 1,000, 1.5 at 10,000 (`bench/results/thresholds.md`)."""
