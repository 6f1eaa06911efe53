"""Joins of many collections: rows look up the earlier updates of the others. Read `lookups.py` first."""
