"""Routing to units: which units have the rows of a key, by epoch.

Units are slots for rows, not processes; a worker has several. Pure: no vertices, no clocks. Begin with
`table.py`. `differential/skew/placements/` has the schemes that use a table.
"""
