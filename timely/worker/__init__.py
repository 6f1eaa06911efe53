"""The worker: `core.py` is its loop, `instance.py` a dataflow on it, `host.py` the place of a vertex.

`process.py` is a worker as a process of its own; `python -m timely.worker` starts those of a host.
"""

__all__: list[str] = []
