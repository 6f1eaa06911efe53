"""Worker processes: settings, launcher, the process itself, and its answers to clients (`server.py`).

`python -m timely.worker` starts those of a host.
"""

__all__: list[str] = []
