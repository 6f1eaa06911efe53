"""What the process of a worker has used: processor time, memory, kernels that it had to compile."""

from __future__ import annotations

import os
import resource
import sys
from pathlib import Path
from typing import Final

from progress.compiled.kernel import compile_seconds, kernels_compiled

from ...wire.requests import Value

__all__ = ["process_use"]

_OF_MEMORY: Final = Path("/proc/self/statm")
_PEAK_UNIT: Final = 1 if sys.platform == "darwin" else 1024
"""Bytes in which a system tells the most memory that a process has had."""


def process_use() -> dict[str, Value]:
    """Return what this process has used up to now."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    peak = used.ru_maxrss * _PEAK_UNIT
    return {
        "cpu_seconds": used.ru_utime + used.ru_stime,
        "resident_bytes": _resident_bytes(peak),
        "peak_bytes": peak,
        "kernels_compiled": kernels_compiled(),
        "compile_seconds": compile_seconds(),
    }


def _resident_bytes(peak: int) -> int:
    """Return how much memory the process has now; where the system does not say so, the most it has had."""
    try:
        pages = int(_OF_MEMORY.read_bytes().split()[1])
    except (OSError, ValueError, IndexError):
        return peak
    return pages * os.sysconf("SC_PAGE_SIZE")
