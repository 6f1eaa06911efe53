"""What is not asked twice, and not looked for, makes no difference to machine code."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest
from compiled_kernels import sources
from fresh_processes import answer, start
from house import report

KERNELS = """
import numpy as np
from progress.compiled.kernel import Int64s, kernel, small_kernel

@small_kernel
def least(a: Int64s, row: int) -> int:
    found = a[row, 0]
    for column in range(1, a.shape[1]):
        found = min(found, a[row, column])
    return found

@kernel
def least_of(a: Int64s) -> Int64s:
    made = np.empty(len(a), np.int64)
    for row in range(len(a)):
        made[row] = least(a, row)
    return made[: max(len(a), 0)].copy()

@kernel
def pairs(a: Int64s) -> tuple[int, Int64s]:
    rest = a
    total = np.int64(0)
    while rest.shape[0] > 0:
        if rest[0] < 0:
            raise OverflowError("negative")
        total, rest = total + rest[0], rest[1:]
    return total, rest

@kernel
def twice(a: Int64s, b: Int64s) -> Int64s:
    return (a + b) * 2 - a
"""
PROGRAM = """
import numpy as np, sys
from progress.compiled.kernel import on_compile
on_compile(None)
import progress.compiled.machine_code.compiling as compiling
{before}
from kernels import least_of, pairs, twice
rows = np.arange(6).reshape(3, 2)[::-1].copy()
print(least_of(rows).tolist(), pairs(np.arange(3))[0], twice(np.arange(3), np.arange(3)).tolist())
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with a module of kernels."""
    (tmp_path / "kernels.py").write_text(KERNELS)
    return tmp_path


def compiled(folder: Path, cache: str, before: str) -> dict[str, bytes]:
    """Machine code that a fresh process makes, by kernel."""
    said = answer(start(folder, PROGRAM.format(before=before), folder / cache))
    assert said == "[4, 2, 0] 3 [0, 3, 6]\n"
    return {
        path.name.split("-")[0]: path.read_bytes()[16:].split(b"\n", 1)[1]
        for path in (folder / cache).rglob("*.machine")
    }


def test_with_shortcuts_the_machine_code_is_the_same(folder: Path) -> None:
    with_it = compiled(folder, "with", "")
    without = compiled(folder, "without", "compiling.with_shortcuts = lambda function: function")
    assert sorted(with_it) == ["kernels.least_of", "kernels.pairs", "kernels.twice"]
    assert with_it == without


def test_without_the_passes_that_are_left_out_the_machine_code_is_the_same(folder: Path) -> None:
    """But that of arithmetic of whole arrays, which is right without them, too."""
    fewer = compiled(folder, "fewer", "")
    all_of_them = compiled(
        folder, "all", "from numba.core.compiler import Compiler as C; compiling.Passes = C"
    )
    assert fewer["kernels.least_of"] == all_of_them["kernels.least_of"]


AFTER = """
from progress.compiled.machine_code.shortcuts import _REPLACED, with_shortcuts
before = [getattr(owner, name) for owner, name, _ in _REPLACED]

@with_shortcuts
def fail():
    assert all(getattr(owner, name) is shortcut for owner, name, shortcut in _REPLACED)
    raise KeyError

try:
    fail()
except KeyError:
    assert all(getattr(owner, name) is was for (owner, name, _), was in zip(_REPLACED, before))
"""


def test_numba_is_as_before_when_a_kernel_is_compiled_or_refused(folder: Path) -> None:
    answer(start(folder, AFTER, folder / "cache"))


FLAGS = """
import numpy as np
from numba.core.registry import cpu_target
from numba.core.targetconfig import ConfigStack
from numba.core.compiler import Flags
from numba.core import types
from numba.core.compiler_lock import global_compiler_lock
from progress.compiled.machine_code.shortcuts import _codes_of, with_shortcuts

context = cpu_target.typing_context
cpu_target.target_context.refresh()
context.refresh()
empty = context.resolve_value_type(np.empty)

def ask(flags):
    with ConfigStack().enter(flags):
        signature = empty.get_call_type(context, (types.int64, types.DType(types.int64)), {})
        return _codes_of(empty)[signature.args]

@with_shortcuts
def look():
    unlocked, locked = Flags(), Flags()
    unlocked.nrt = locked.nrt = True
    unlocked.boundscheck = True
    first, second = ask(unlocked), ask(locked)
    assert first is not second, "checked, and not"
    assert ask(unlocked) is first and ask(locked) is second
    same = unlocked.copy()
    assert ask(same) is first, "flags are told apart by what they say"

with global_compiler_lock:
    look()
"""


def test_code_for_one_set_of_flags_is_not_taken_for_that_of_another(folder: Path) -> None:
    """A bounds check, or a count of references, of one kernel would be left out in another."""
    answer(start(folder, FLAGS, folder / "cache"))


def test_no_kernel_has_what_nobody_looks_for() -> None:
    within = (ast.FunctionDef, ast.Lambda, ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
    report(
        f"{module.where(part.lineno)}: {function.name} has {type(part).__name__}"
        for module, function in sources()
        for part in ast.walk(function)
        if part is not function and isinstance(part, within)
    )
