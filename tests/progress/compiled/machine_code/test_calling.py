"""What takes arguments apart reads no array that it is not made for, and gives back all that it took.

Against numpy, in fresh processes: one that compiles, and one that finds the code on disk.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from house import ROOT

KINDS = """
import numpy as np
from progress.compiled.kernel import Bools, Int32s, Int64s, kernel

@kernel
def total(a: Int64s, rows: Int64s, short: Int32s, b: Bools, number: int, flag: bool) -> int:
    t = number + 1000 * flag
    for i in range(len(a)):
        t += a[i]
    for i in range(rows.shape[0]):
        for j in range(rows.shape[1]):
            t += rows[i, j] * (i + 1)
    for i in range(len(short)):
        t += short[i]
    for i in range(len(b)):
        t += b[i]
    return t

@kernel
def tail(a: Int64s, at: int) -> tuple[Int64s, int]:
    return a[at:], len(a)

@kernel
def fails(a: Int64s) -> int:
    if a[0] < 0:
        raise OverflowError("below")
    return a[0]
"""
LAYOUTS = """
import gc, itertools, sys
import numpy as np
from kinds import fails, tail, total

def plain(a, rows, short, b, number, flag):
    weights = np.arange(1, rows.shape[0] + 1)[:, None]
    return int(number + 1000 * flag + a.sum() + (rows * weights).sum() + short.sum() + b.sum())

def locked(array):
    array = array.copy()
    array.flags.writeable = False
    return array

lines = [np.arange(5), np.arange(10)[::2], np.arange(5)[::-1], np.empty(0, np.int64), locked(np.arange(4)),
         np.frombuffer(b"x" + np.arange(3).tobytes(), np.uint8)[1:].view(np.int64), np.arange(3, dtype="q")]
tables = [np.arange(6).reshape(2, 3), np.arange(6).reshape(2, 3).T, np.arange(12).reshape(3, 4)[:, 1:3],
          np.empty((0, 2), np.int64), np.asfortranarray(np.arange(6).reshape(3, 2))]
shorts = [np.arange(3, dtype=np.int32), np.arange(6, dtype=np.int32)[::2]]
flags = [np.array([True, False, True]), np.array([True, False, True])[::2]]
first = lines[0], tables[0], shorts[0], flags[0], 7, True
assert total(*first) == plain(*first)
for at, others in enumerate([lines, tables, shorts, flags, [0, -3, np.int64(9)], [False, np.True_]]):
    for other in others:
        given = [*first[:at], other, *first[at + 1 :]]
        assert total(*given) == plain(*given), (at, other)
swapped = np.arange(5).astype(">i8")
for wrong in ((1, 2), (first[0], 1), ("text", *first[1:]), (swapped, *first[1:]), (*first[:4], "7", True),
              (*first[:4], None, True), (*first, 1), ()):
    try:
        total(*wrong)
    except Exception:
        continue
    raise AssertionError(wrong)
part, size = tail(np.arange(5), 2)
gc.collect()
assert part.tolist() == [2, 3, 4] and size == 5 and part.flags.writeable
counted = np.arange(4)
before = sys.getrefcount(counted)
for _ in range(100):
    tail(counted, 1), total(counted, *first[1:])
    try:
        tail(counted)
    except TypeError:
        pass
gc.collect()
assert sys.getrefcount(counted) == before
for _ in range(2):
    try:
        fails(np.array([-1]))
    except OverflowError as error:
        assert str(error) == "below"
    else:
        raise AssertionError
assert fails(np.array([3])) == 3
print("numba" in sys.modules, len(total.signatures) > 1)
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with a module of kernels that take and return all that kernels may."""
    (tmp_path / "kinds.py").write_text(KINDS)
    return tmp_path


def run(folder: Path, program: str) -> str:
    """What a fresh process writes."""
    path = os.pathsep.join([str(ROOT), str(folder)])
    environment = {**os.environ, "PYTHONPATH": path, "NAIAD_CACHE": str(folder / "cache")}
    done = subprocess.run(
        [sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_no_array_is_misread_whatever_its_layout(folder: Path) -> None:
    """Against numpy. What machine code is not made for numba compiles for, or refuses, as it always did: with
    gaps, read-only, not aligned, of numpy's other type of 64 bits, with swapped bytes.
    """
    for _ in range(2):
        assert run(folder, LAYOUTS) == "True True\n"


ONCE = """
import sys
import numpy as np
from kinds import tail
tail(np.arange(4)[::2], 1)
tail(np.arange(4), 1)
tail(np.arange(4), np.int64(1))
print(tail.signatures)
"""


def test_what_comes_first_does_not_say_for_what_a_kernel_is_compiled(folder: Path) -> None:
    """Else one array with gaps would make all later ones of all processes go the slow way."""
    first, second = run(folder, ONCE), run(folder, ONCE)
    ordinary = "(Array(int64, 1, 'C', False, aligned=True), int64)"
    assert first == second and first.startswith(f'["{ordinary}", ')
