"""Traces: the history of a collection, sorted, compacted, read by key.

`run.py` is one immutable sorted piece, `merging.py` merges two of them, a bit at a time, and `trace.py` is
the trace of one operator: the runs together with a small head for the latest rows. `shared.py` is a trace
with several readers (`readers.py`). It keeps in a tail (`tail.py`) the inserts that a reader has not
accepted, and lets readers pin what they see (`view.py`). Imports the kernels, packed blocks, errors of
overflow and thresholds of `differential`, `progress`, and `timely.dictionaries`, nothing else of ours.
"""
