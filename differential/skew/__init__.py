"""Joins of skewed streams: which units keep a row, which ones it visits, and when that changes.

`placements/` says it for each scheme (read `placement.py` first), `planning/` what moves when loads are
uneven. Both are pure: columns and counts in, columns and announcements out.
"""
