"""Joins on conditions: which of them make keys."""
