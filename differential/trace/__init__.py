"""Traces: the history of a collection, sorted, compacted, read by key.

`run.py` is one immutable sorted piece, `merging.py` two of them becoming one, a bit at a time, and
`trace.py` the pieces together with a small head for what came in last. May import `differential.kernels`
and `progress`, nothing else of ours.
"""
