"""Joins in units whose routing changes while they run: routers, stores, moves.

Read `schedule.py` (which version holds when), `router.py`, `units.py` (what happens in a unit, and when
rows move), `units_vertex.py`, `stages.py`, in that order.
"""
