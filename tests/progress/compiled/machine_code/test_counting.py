"""Arrays that kernels make are held as long as somebody has them, and no longer; and counting is no call."""

from __future__ import annotations

from pathlib import Path

import pytest
from fresh_processes import answer, start

ARRAYS = """
import numpy as np
from progress.compiled.kernel import Int64s, kernel, large_kernel

@kernel
def grown(values: Int64s, count: int) -> Int64s:
    '''One of twice the length, if there is no room.'''
    if count < values.shape[0]:
        return values
    larger = np.empty(2 * values.shape[0] + 1, np.int64)
    for at in range(count):
        larger[at] = values[at]
    return larger

@large_kernel
def firsts(values: Int64s, wanted: int) -> Int64s:
    '''The first ones, again and again.'''
    found = np.empty(1, np.int64)
    count = np.int64(0)
    while count < wanted:
        for value in values:
            if count == wanted:
                break
            found = grown(found, count)
            found[count] = value
            count += 1
    return found[:count]

@kernel
def total(values: Int64s, wanted: int) -> int:
    '''Of arrays that nobody else sees.'''
    found = np.int64(0)
    for value in firsts(firsts(values, wanted), wanted):
        found += value
    return found

@kernel
def either(first: Int64s, second: Int64s, which: int) -> tuple[Int64s, Int64s]:
    '''Two that came in, or a new one and one of them.'''
    if which == 0:
        return first, second
    if which < 0:
        raise ValueError("less than none")
    return firsts(first, which), second
"""
PROGRAM = """
import sys
import numpy as np
from progress.compiled.kernel import on_compile
on_compile(None)
from arrays import *
{body}
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a module of kernels that make arrays and hand them on."""
    made = tmp_path_factory.mktemp("counting")
    (made / "arrays.py").write_text(ARRAYS)
    return made


def run(folder: Path, body: str) -> str:
    """What a fresh process writes."""
    return answer(start(folder, PROGRAM.format(body=body), folder / "cache"))


def test_what_is_made_is_there_as_long_as_somebody_has_it(folder: Path) -> None:
    """Whoever came by an array too early would read what others have written there since."""
    body = """
kept = []
for round in range(200):
    numbers = np.arange(round, round + 50)
    kept.append(firsts(numbers, 1000))
    first, second = either(numbers, kept[-1], round % 3)
    kept.append(first)
    assert second is kept[-2] or second.tolist() == kept[-2].tolist()
    assert first.tolist() == (numbers.tolist() if round % 3 == 0 else numbers[: round % 3].tolist())
    del numbers, first, second
    junk = [np.full(n, -1) for n in (1, 3, 7, 15, 31, 63, 127, 255, 511, 1023)]
for round in range(200):
    wanted = np.arange(round, round + 50)
    assert kept[2 * round].tolist() == np.tile(wanted, 20).tolist()
    assert kept[2 * round + 1].tolist() == (wanted if round % 3 == 0 else wanted[: round % 3]).tolist()
sys.stdout.write("as they were")
"""
    assert run(folder, body) == "as they were"


def test_what_nobody_has_is_given_back(folder: Path) -> None:
    """Two hundred rounds of 8 MB each, of which none stays; nor does what came in."""
    body = """
import resource
numbers = np.arange(1000)
total(numbers, 1_000_000)
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
for _ in range(200):
    total(numbers, 1_000_000)
    firsts(numbers, 1_000_000)
    either(np.arange(1_000_000), numbers, 500_000)
grown_kib = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
sys.stdout.write("flat" if grown_kib < 64 * 1024 else f"{grown_kib} KiB more")
"""
    assert run(folder, body) == "flat"


def test_an_error_in_the_midst_of_it_leaves_what_others_have(folder: Path) -> None:
    body = """
numbers = np.arange(5)
for _ in range(100):
    try:
        either(numbers, numbers, -1)
    except ValueError:
        pass
sys.stdout.write(str(either(numbers, numbers, 0)[0].tolist()))
"""
    assert run(folder, body) == "[0, 1, 2, 3, 4]"


def test_machine_code_counts_by_itself(folder: Path) -> None:
    """A call for each array that a kernel hands to another took a third of the time of small changes."""
    body = """
import progress.compiled.machine_code.parts as parts
names, make = [], parts.link
def noted(objects, entry):
    image = make(objects, entry)
    names.extend(image.there)
    names.extend(name for data in objects for name in ("NRT_incref", "NRT_decref") if name.encode() in data)
    return image
parts.link = noted
firsts(np.arange(3), 5), total(np.arange(3), 5)
sys.stdout.write(" ".join(sorted({name for name in names if name.startswith("NRT_")})))
"""
    (folder / "cache_of_its_own").mkdir()
    found = answer(start(folder, PROGRAM.format(body=body), folder / "cache_of_its_own")).split()
    assert found and not {"NRT_incref", "NRT_decref"} & set(found)
    assert "NRT_MemInfo_call_dtor" in found, "what ends is given back by numba's runtime"
