"""Routing to units: which slots have the rows of a key, by epoch.

Units are slots for rows, not processes; a worker has some of them. Pure: no vertices, no clocks. Read
`table.py`. What a scheme makes of a table is in `differential/skew/placements/`.
"""
