"""Rows that a chain has no answer for: which they are, what is said of them, and what makes some."""
