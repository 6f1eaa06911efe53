"""Joins of skewed streams: the units that store a row, the units that it visits, and how these change.

`placements/` defines the units for each scheme (read `placement.py` first), `planning/` decides what moves
when loads are uneven. Both are pure: columns and counts in, columns and announcements out. `running/` has the
stages.
"""
