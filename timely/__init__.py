"""Timely dataflow: vertices, workers and the wires between them. Imports `progress`.

Read `dataflow.py` (building), `vertex.py` (what a user writes), `worker/core.py` (the loop that runs it),
`transport/` (what carries messages), in that order.
"""

__all__: list[str] = []
