"""Logical times: tuples and one-word times, their order, antichains, what a path does to a time."""
