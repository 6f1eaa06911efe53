"""Who compiles keeps what others can use: once each, whoever ends when, wherever it may be written to."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from fresh_processes import answer, start

STEPS = """
from progress.compiled.kernel import kernel, small_kernel

@small_kernel
def step(x: int) -> int:
    return x + 1

@kernel
def two_steps(x: int) -> int:
    return step(step(x))

@kernel
def three_steps(x: int) -> int:
    return step(two_steps(x))
"""
PROGRAM = """
import sys
from progress.compiled.kernel import kernels_compiled, on_compile
on_compile(None)
from steps import three_steps, two_steps
sys.stdout.write(f"{two_steps(1)} {three_steps(1)} {kernels_compiled()}")
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with a module of three kernels, of which two are called."""
    (tmp_path / "steps.py").write_text(STEPS)
    return tmp_path


def test_two_processes_with_an_empty_cache_compile_each_kernel_once(folder: Path) -> None:
    both = [start(folder, PROGRAM, folder / "cache") for _ in range(2)]
    answers = [answer(process).split() for process in both]
    assert [each[:2] for each in answers] == [["3", "4"]] * 2
    assert sum(int(each[2]) for each in answers) == 3
    assert len(list((folder / "cache").rglob("*.machine"))) == 2
    assert answer(start(folder, PROGRAM, folder / "cache")) == "3 4 0"


SLOW = """
import time
import progress.compiled.machine_code.parts as parts
print("compiles", flush=True)
def slowly(*arguments):
    print("links", flush=True)
    time.sleep(1000)
parts.link = slowly
"""


def test_a_process_that_is_killed_while_it_compiles_leaves_nothing_in_the_way(folder: Path) -> None:
    killed = start(folder, SLOW + PROGRAM, folder / "cache")
    assert killed.stdout is not None
    assert [killed.stdout.readline() for _ in range(2)] == ["compiles\n", "links\n"]
    waiting = start(folder, PROGRAM, folder / "cache")  # for what the other has in hand
    time.sleep(0.1)
    killed.kill()
    killed.communicate()
    assert answer(waiting).startswith("3 4 ")
    assert answer(start(folder, PROGRAM, folder / "cache")) == "3 4 0"


UNWRITABLE = """
import errno, os
def refuse(*arguments, **names):
    raise OSError(errno.{error}, os.strerror(errno.{error}))
os.replace = refuse
"""


@pytest.mark.parametrize("error", ["EROFS", "ENOSPC"])
def test_what_cannot_be_kept_is_called_all_the_same(folder: Path, error: str) -> None:
    unwritable = UNWRITABLE.format(error=error) + PROGRAM
    assert answer(start(folder, unwritable, folder / "cache")) == "3 4 3"
    assert not list((folder / "cache").rglob("*-*")), "nor is half a file left"
    assert answer(start(folder, PROGRAM, folder / "cache")) == "3 4 3", "nor a file without its digest"
    assert answer(start(folder, PROGRAM, folder / "cache")) == "3 4 0"


def test_what_is_kept_is_read_where_nothing_can_be_written(folder: Path) -> None:
    assert answer(start(folder, PROGRAM, folder / "cache")) == "3 4 3"
    asked = PROGRAM + "sys.stdout.write(f\" {'numba' in sys.modules}\")"
    unwritable = UNWRITABLE.format(error="EROFS") + asked
    assert answer(start(folder, unwritable, folder / "cache")) == "3 4 0 False"


def test_other_versions_and_flags_are_other_code(folder: Path) -> None:
    answer(start(folder, PROGRAM, folder / "cache"))
    for change in ("code_files._BUILDERS = ('numba',)", "code_files.os.environ['NUMBA_OPT'] = '1'"):
        program = f"from progress.compiled.machine_code import code_files\n{change}\n"
        asked = program + PROGRAM + "sys.stdout.write(f\" {'numba' in sys.modules}\")"
        assert answer(start(folder, asked, folder / "cache")) == "3 4 3 True", change
        assert answer(start(folder, asked, folder / "cache")) == "3 4 0 False", change
    assert answer(start(folder, PROGRAM, folder / "cache")) == "3 4 0"


def test_machines_of_two_kinds_can_share_a_folder(folder: Path) -> None:
    other = "from progress.compiled.machine_code import code_files\ncode_files._processor = lambda: 'other'\n"
    for program in (PROGRAM, other + PROGRAM) * 2:
        assert answer(start(folder, program, folder / "cache")).startswith("3 4 ")
    assert len(list((folder / "cache").rglob("*.machine"))) == 4
