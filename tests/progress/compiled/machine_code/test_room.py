"""Room for frames while kernels are compiled: what is asked of the system, and what is left as it was."""

from __future__ import annotations

import gc
import subprocess
import sys
from pathlib import Path

import pytest

from progress.compiled.machine_code import room

ROOT = Path(__file__).resolve().parents[4]

CHUNKS = """
import resource, sys
from progress.compiled.machine_code.room import with_room

def nothing(a): return a
nothing.__code__ = nothing.__code__.replace(co_stacksize=200)  # larger than a frame of `go`

def go(depth, calls):
    if depth: return go(depth - 1, calls)
    for at in range(calls): nothing(at)
    return calls

go_on = with_room(go) if sys.argv[1] == "room" else go
go_on(1, 1)
faults = []
for depth in range(0, 250):
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    go_on(depth, 200)
    faults.append(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
print(max(faults[50:]))
"""


def test_at_no_depth_does_each_call_ask_the_system_for_memory() -> None:
    """Without room there is a depth where each of 200 calls does."""
    most = {
        way: int(subprocess.check_output([sys.executable, "-c", CHUNKS, way], cwd=ROOT))
        for way in ("room", "none")
    }
    assert most["room"] < 100
    if sys.version_info < (3, 12):
        assert most["none"] >= 200, "what the room is for"


def test_what_is_raised_comes_through_and_the_collector_is_as_before(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(gc, "get_threshold", lambda: (700, 10, 10))
    thresholds: list[tuple[int, ...]] = []
    monkeypatch.setattr(gc, "set_threshold", lambda *given: thresholds.append(given))

    def fail(number: int, *, text: str) -> None:
        assert thresholds == [room._SELDOM]
        raise ValueError(f"{number} {text}")

    with pytest.raises(ValueError, match="3 times"):
        room.with_room(fail)(3, text="times")
    assert thresholds == [room._SELDOM, (700, 10, 10)]


@pytest.mark.parametrize("threshold", [0, 1_000_000])
def test_a_collector_that_comes_more_seldom_is_left_alone(threshold: int) -> None:
    before = gc.get_threshold()
    gc.set_threshold(threshold)
    try:
        assert room.with_room(gc.get_threshold)()[0] == threshold
    finally:
        gc.set_threshold(*before)
