"""Traces: the history of a collection, sorted, compacted, read by key.

`run.py` is one immutable sorted piece, `merging.py` two of them becoming one, a bit at a time, and
`trace.py` the pieces together with a small head for what came in last: the trace of one operator. `shared.py`
is one that several read (`readers.py`), which sees what they have not accepted in a tail (`tail.py`) and lets
them keep what they saw (`view.py`). May import `differential.kernels` and `progress`, nothing else of ours.
"""
