"""Rows that a chain has no answer for: how they are detected and described, and operators that make some."""
