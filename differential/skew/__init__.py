"""Joins of skewed streams: which units keep a row, which ones it visits, and when that changes.

`placements/` says it for each scheme (read `placement.py` first). All of it is pure: columns in, columns out.
"""
