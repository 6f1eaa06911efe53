"""A part knows what it calls; what is large is machine code once, and others are linked to it."""

from __future__ import annotations

from pathlib import Path

import pytest
from fresh_processes import answer, start

STEPS = """
from progress.compiled.kernel import kernel, large_kernel, small_kernel

@small_kernel
def step(x: int) -> int:
    return x + 1

@large_kernel
def many_steps(x: int, count: int) -> int:
    for _ in range(count):
        x = step(x)
    return x

@large_kernel
def there_and_back(x: int, count: int) -> int:
    return many_steps(many_steps(x, count), count) - 2 * many_steps(0, count)

@kernel
def five_steps(x: int) -> int:
    return step(many_steps(x, 4))

@kernel
def ten_steps(x: int) -> int:
    return five_steps(five_steps(x)) + there_and_back(x, 3) - x
"""
PROGRAM = """
import sys
from progress.compiled.kernel import kernels_compiled, on_compile
from progress.compiled.machine_code import code_files
on_compile(None)
from steps import *
sys.stdout.write(" ".join(map(str, ({calls}, kernels_compiled()))))
"""
MADE = """
import progress.compiled.machine_code.parts as parts
made, make = [], parts.Part.object
def note(part):
    made.append(part.name)
    return make(part)
parts.Part.object = note
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with a module of kernels."""
    (tmp_path / "steps.py").write_text(STEPS)
    return tmp_path


def calling(calls: str) -> str:
    """A program that writes what some calls return, and how many kernels it compiled."""
    return PROGRAM.format(calls=calls)


def run(folder: Path, program: str) -> str:
    """What a fresh process writes that has the folder's cache."""
    return answer(start(folder, program, folder / "cache"))


def objects(folder: Path) -> list[str]:
    """Machine code that is kept to be linked to."""
    return sorted(path.name.split("-")[0] for path in (folder / "cache").rglob("*.object"))


def test_a_large_kernel_is_machine_code_once_for_all_that_call_it(folder: Path) -> None:
    program = MADE + calling("five_steps(1), ten_steps(1), many_steps(1, 2), made")
    made = "['many_steps', 'there_and_back']"
    assert run(folder, program) == f"6 11 3 {made} 5"
    assert objects(folder) == ["steps.many_steps", "steps.there_and_back"]
    assert run(folder, program) == "6 11 3 [] 0"


def test_another_process_links_what_one_has_made(folder: Path) -> None:
    assert run(folder, calling("five_steps(1)")) == "6 3"
    assert run(folder, MADE + calling("ten_steps(1), made")) == "11 ['there_and_back'] 2"


def test_machine_code_that_is_lost_or_damaged_is_made_anew(folder: Path) -> None:
    run(folder, calling("five_steps(1)"))
    (kept,) = (folder / "cache").rglob("*.object")
    data = kept.read_bytes()
    for damaged in (b"", data[:-1], data[:100] + b"x" + data[101:]):
        kept.write_bytes(damaged)
        for image in (folder / "cache").rglob("*.machine"):
            image.unlink()
        assert run(folder, MADE + calling("five_steps(1), made")) == "6 ['many_steps'] 0"
        assert kept.read_bytes() == data


def test_machine_code_of_another_source_is_not_linked(folder: Path) -> None:
    run(folder, calling("five_steps(1)"))
    (folder / "steps.py").write_text(STEPS.replace("x + 1", "x + 20"))
    assert run(folder, calling("five_steps(1)")) == "101 3"
    assert objects(folder) == ["steps.many_steps"] * 2


def test_machine_code_for_another_processor_is_not_linked(folder: Path) -> None:
    run(folder, calling("five_steps(1)"))
    other = "from progress.compiled.machine_code import code_files\ncode_files._processor = lambda: 'other'\n"
    assert run(folder, MADE + other + calling("five_steps(1), made")) == "6 ['many_steps'] 3"
    assert len(objects(folder)) == 2


@pytest.mark.parametrize("lost", ["step-", "many_steps", "five_steps", "there_and_back"])
def test_a_part_whose_callee_was_lost_is_made_anew(folder: Path, lost: str) -> None:
    """Another process gives the callee's function another name: who was compiled before it calls the old one.
    What the system has thrown away of a cache must not become an error, nor another answer.
    """
    assert run(folder, calling("ten_steps(1)")) == "11 5"
    for path in [*(folder / "cache").rglob("*.machine"), *(folder / "cache").rglob(f"steps.{lost}*.part")]:
        path.unlink()
    assert run(folder, calling("five_steps(1), ten_steps(1), many_steps(1, 2)")).startswith("6 11 3 ")
    assert run(folder, calling("five_steps(1), ten_steps(1), many_steps(1, 2)")) == "6 11 3 0"
    assert len(list((folder / "cache").rglob("*.machine"))) == 3, (
        "numba is not asked to call what has no callee"
    )


def test_a_part_is_kept_without_what_it_calls(folder: Path) -> None:
    """Each body once: a function's name stands where it is called, a body makes a thousand bytes of it."""
    run(folder, calling("ten_steps(1)"))
    (part,) = (folder / "cache").rglob("steps.ten_steps*.part")
    assert b"five_steps" in part.read_bytes(), "the name of what it calls"
    sizes = [path.stat().st_size for path in (folder / "cache").rglob("*.part")]
    assert part.stat().st_size < 2 * min(sizes)


BY_NUMBA = """
import progress.compiled.kernel
progress.compiled.kernel.IS_READABLE = False
"""


def test_where_numba_calls_it_is_given_all_that_a_kernel_reaches(folder: Path) -> None:
    calls = calling("five_steps(1), ten_steps(1), there_and_back(1, 2)")
    assert run(folder, BY_NUMBA + calls).startswith("6 11 1 ")
    assert run(folder, BY_NUMBA + calls) == "6 11 1 0"
    assert not objects(folder)


def test_a_user_s_own_function_can_call_a_kernel(folder: Path) -> None:
    own = "import numba\n@numba.njit\ndef own(x): return ten_steps(five_steps(x))\n"
    program = calling("own(1)").replace("sys.stdout", own + "sys.stdout")
    assert run(folder, program).startswith("16 ")
