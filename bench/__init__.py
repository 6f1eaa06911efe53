"""Benchmarks: what the project costs, beside the same work in other systems.

May import everything of this repository; nothing outside `tests/` imports it. Read `workloads.py`
first: it makes the inputs and holds the checks that a run must meet before its figures count.
`peers/` is the same work in other systems.
"""
