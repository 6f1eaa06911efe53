"""What a process has used only grows, and its memory is what the system says."""

from __future__ import annotations

import mmap
import time

import numpy as np

from timely.worker.counting.process_use import process_use


def test_processor_time_grows_with_work_and_memory_with_what_is_kept() -> None:
    before = process_use()
    # Memory of the system's own: an array may get pages that this process has used before.
    kept = np.frombuffer(mmap.mmap(-1, 64 << 20), np.uint8)
    kept[:] = 1
    until = time.process_time() + 0.05
    while time.process_time() < until:
        pass
    after = process_use()
    assert _number(after, "cpu_seconds") >= _number(before, "cpu_seconds") + 0.04
    assert _number(after, "resident_bytes") >= _number(before, "resident_bytes") + kept.nbytes // 2
    assert _number(after, "peak_bytes") >= _number(after, "resident_bytes") // 2


def _number(used: dict[str, object], name: str) -> float:
    number = used[name]
    assert isinstance(number, int | float)
    return number
