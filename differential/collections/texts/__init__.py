"""Aggregates in SQL as text, for groups of collections."""
