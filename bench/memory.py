"""How much memory do this process and the workers that it has started take?

A *peak* is the most that was resident since `reset_peaks`, as Linux counts it; of several processes the sum
of their peaks, which may lie at different moments. Memory that processes share counts in each of them.
"""

from __future__ import annotations

import ctypes
import gc
import os
from collections.abc import Iterator
from pathlib import Path

__all__ = ["give_back", "peak_mib", "processes", "reset_peaks", "resident_mib", "resident_mib_of"]

_PROC = Path("/proc")
_FORGET_PEAK = "5"
"""What Linux takes at `clear_refs` for "the peak is what is resident now"."""


def processes() -> list[int]:
    """This process and all that descend from it."""
    parents: dict[int, int] = {}
    for folder in _PROC.iterdir():
        if folder.name.isdigit():
            for parent in _counter(int(folder.name), "PPid"):
                parents[int(folder.name)] = parent
    family = [os.getpid()]
    for member in family:  # grows while it is walked
        family += [child for child, parent in parents.items() if parent == member]
    return family


def give_back() -> None:
    """Let the system have what this process has freed, as of rows that were drawn in more bits than they are
    handed over in; where the C library does not say how, it stays.
    """
    gc.collect()
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim(0)


def reset_peaks() -> None:
    """From now on peaks are those from now on; where the system does not allow it they stay what they are."""
    for process in processes():
        try:
            (_PROC / str(process) / "clear_refs").write_text(_FORGET_PEAK)
        except OSError:
            continue


def resident_mib() -> float:
    """What is resident now."""
    return _sum_mib("VmRSS")


def resident_mib_of(process: int) -> float:
    """What is resident of one process; nothing if it has ended."""
    return sum(_counter(process, "VmRSS")) / 1024


def peak_mib() -> float:
    """The most that was resident."""
    return _sum_mib("VmHWM")


def _sum_mib(name: str) -> float:
    return sum(kib for process in processes() for kib in _counter(process, name)) / 1024


def _counter(process: int, name: str) -> Iterator[int]:
    """The number in the line `name` of a process's status; none if there is no such process or line."""
    try:
        lines = (_PROC / str(process) / "status").read_text().splitlines()
    except OSError:
        return
    for line in lines:
        if line.startswith(f"{name}:"):
            yield int(line.split()[1])
