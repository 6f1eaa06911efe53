"""Counts of pointstamps: occurrence, precursors, frontiers, and what workers tell one another of them."""
