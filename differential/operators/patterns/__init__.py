"""Joins of many: rows look up what other collections had before them. Read `lookups.py` first."""
