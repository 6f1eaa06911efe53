"""The kernel decorator: compiled once per machine, renewed when anything it is made of changes.

Each test runs fresh processes on two small modules of its own, with a cache directory of its own.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from fresh_processes import python

from progress.compiled.kernel import COMPILE_NOTICE

ROOT = Path(__file__).resolve().parents[3]

CALLEE = """
from progress.compiled.kernel import kernel

@kernel
def step(x: int) -> int:
    return x + 1
"""
CALLER = """
from progress.compiled.kernel import kernel
from callee import step

@kernel
def two_steps(x: int) -> int:
    return step(step(x))
"""
PROGRAM = """
import sys
from progress.compiled.kernel import kernels_compiled
from caller import two_steps
sys.stdout.write(f"{two_steps(1)} {kernels_compiled()}")
"""
READER = """
from progress.compiled.kernel import Int64s, kernel

@kernel
def read(column: Int64s, index: int) -> int:
    return column[index]
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with two modules: a kernel, and one that calls it."""
    (tmp_path / "callee.py").write_text(CALLEE)
    (tmp_path / "caller.py").write_text(CALLER)
    return tmp_path


def run(folder: Path, program: str = PROGRAM, **environment: str) -> tuple[str, str]:
    """Run a program in a fresh process beside the two modules; what it writes to both streams."""
    path = os.pathsep.join([str(ROOT), str(folder)])
    kept = {name: value for name, value in os.environ.items() if name != "NAIAD_CHECK_BOUNDS"}
    process = python(
        program, {**kept, "PYTHONPATH": path, "NAIAD_CACHE": str(folder / "cache"), **environment}, Path.cwd()
    )
    printed, errors = process.communicate()
    if process.returncode != 0:
        raise subprocess.CalledProcessError(process.returncode, program, printed, errors)
    return printed, errors


def test_the_first_process_says_once_that_it_compiles_and_the_second_need_not(folder: Path) -> None:
    answer, said = run(folder)
    assert answer == "3 2" and said.count(COMPILE_NOTICE) == 1
    answer, said = run(folder)
    assert answer == "3 0" and said == ""


def test_a_kernel_is_renewed_when_one_that_it_calls_changes_in_another_file(folder: Path) -> None:
    run(folder)
    (folder / "callee.py").write_text(CALLEE.replace("x + 1", "x + 10"))
    assert run(folder)[0] == "21 2"


def test_a_kernel_is_renewed_when_a_constant_from_another_file_changes(folder: Path) -> None:
    """Only a number is imported: no kernel of the other file is in sight."""
    (folder / "sizes.py").write_text("STEP = 1\n")
    (folder / "callee.py").write_text("from sizes import STEP\n" + CALLEE.replace("x + 1", "x + STEP"))
    assert run(folder)[0] == "3 2"
    (folder / "sizes.py").write_text("STEP = 100\n")
    assert run(folder)[0] == "201 2"


def test_a_kernel_is_renewed_when_what_it_takes_from_a_module_changes(folder: Path) -> None:
    """The caller names the module, and a kernel and a constant of it behind a point."""
    (folder / "callee.py").write_text(f"{CALLEE}\nMORE = 1\n")
    caller = CALLER.replace("from callee import step", "import callee as c").replace(
        "step(step(x))", "c.step(x) + c.MORE"
    )
    (folder / "caller.py").write_text(caller)
    assert run(folder)[0] == "3 2"
    (folder / "callee.py").write_text(f"{CALLEE}\nMORE = 100\n")
    assert run(folder)[0] == "102 1"
    (folder / "callee.py").write_text(f"{CALLEE.replace('x + 1', 'x + 10')}\nMORE = 100\n")
    assert run(folder)[0] == "111 2"


def test_a_comment_another_folder_and_another_time_renew_nothing(folder: Path) -> None:
    """As a checkout, an installation into another environment, and an archive leave the same source."""
    run(folder)
    (folder / "callee.py").write_text("# Said of it.\n\n" + CALLEE.replace("return", "# More.\n    return"))
    assert run(folder)[0] == "3 0"
    os.utime(folder / "caller.py", (0, 0))
    assert run(folder)[0] == "3 0"
    (folder / "other").mkdir()
    (folder / "callee.py").rename(folder / "other" / "callee.py")
    (folder / "caller.py").rename(folder / "other" / "caller.py")
    assert run(folder / "other", NAIAD_CACHE=str(folder / "cache"))[0] == "3 0"


def test_two_sources_of_one_name_and_size_and_time_are_told_apart(folder: Path) -> None:
    run(folder)
    for step, result in (("x + 2", "5 2"), ("x + 1", "3 0"), ("x + 2", "5 0")):
        (folder / "callee.py").write_text(CALLEE.replace("x + 1", step))
        os.utime(folder / "callee.py", (1_000_000_000, 1_000_000_000))
        assert run(folder, PYTHONDONTWRITEBYTECODE="1")[0] == result, "both are kept"


HELPED = """
from progress.compiled.kernel import intrinsic, kernel

def plus():
    return 1

@intrinsic
def _stepped(typing_context, x):
    from numba import types
    def generate(context, builder, signature, arguments):
        return builder.add(arguments[0], arguments[0].type(plus()))
    return types.int64(types.int64), generate

@kernel
def step(x: int) -> int:
    return _stepped(x)
"""


def test_a_kernel_is_renewed_when_what_writes_its_code_calls_another_function(folder: Path) -> None:
    (folder / "callee.py").write_text(HELPED)
    assert run(folder)[0] == "3 2"
    assert run(folder)[0] == "3 0"
    (folder / "callee.py").write_text(HELPED.replace("return 1", "return 10"))
    assert run(folder)[0] == "21 2"


DIES_WHILE_IT_WRITES = """
import os
os.replace = lambda *_, **__: os._exit(9)
"""


def test_a_process_that_ends_while_it_keeps_code_leaves_no_old_code_under_a_new_name(folder: Path) -> None:
    run(folder)
    (folder / "callee.py").write_text(CALLEE.replace("x + 1", "x + 10"))
    with pytest.raises(subprocess.CalledProcessError) as caught:
        run(folder, DIES_WHILE_IT_WRITES + PROGRAM)
    assert caught.value.returncode == 9
    assert run(folder)[0] == "21 2"
    assert run(folder)[0] == "21 0"


@pytest.mark.parametrize("kept", [0, 10, -5])
def test_machine_code_that_is_damaged_on_disk_is_made_anew(folder: Path, kept: int) -> None:
    """As a power failure may leave it. What it is made of is still there: nothing is compiled."""
    run(folder)
    (damaged,) = (folder / "cache").rglob("caller.two_steps-*.machine")
    whole = damaged.read_bytes()
    damaged.write_bytes(whole[:kept])
    assert run(folder)[0] == "3 0"
    assert len(damaged.read_bytes()) == len(whole)


@pytest.mark.parametrize("kept", [0, -5])
def test_what_kernels_are_made_of_is_compiled_anew_where_it_is_damaged(folder: Path, kept: int) -> None:
    run(folder)
    (damaged,) = (folder / "cache").rglob("callee.step-*.part")
    damaged.write_bytes(damaged.read_bytes()[:kept])
    program = "from callee import step\nassert step(1) == 2\n" + PROGRAM
    assert run(folder, program)[0] == "3 1"
    assert run(folder, program)[0] == "3 0"


@pytest.mark.parametrize("at", [0.3, 0.5, 0.9])
def test_what_kernels_are_made_of_is_not_taken_with_one_bit_that_is_another(folder: Path, at: float) -> None:
    """LLVM would take it: some bits end the process, some are another kernel."""
    run(folder)
    (damaged,) = (folder / "cache").rglob("callee.step-*.part")
    data = bytearray(damaged.read_bytes())
    data[int(len(data) * at)] ^= 4
    damaged.write_bytes(data)
    program = "from callee import step\nassert step(1) == 2\n" + PROGRAM
    assert run(folder, program)[0] == "3 1"
    assert run(folder, program)[0] == "3 0"


def test_what_is_not_a_file_of_ours_is_never_unpickled(folder: Path) -> None:
    """Reading a pickle runs what it says. A part without our digest is not read that far."""
    run(folder)
    (exchanged,) = (folder / "cache").rglob("callee.step-*.part")
    (machine,) = (folder / "cache").rglob("caller.two_steps-*.machine")
    machine.unlink()
    exchanged.write_bytes(b"cos\nsystem\n(S'touch " + bytes(folder / "run") + b"'\ntR.")
    assert run(folder)[0] == "3 2", "who calls it is compiled anew as well: its name is another one"
    assert not (folder / "run").exists()


def test_the_cache_of_the_user_serves_where_no_other_is_named(folder: Path) -> None:
    for environment in ({"XDG_CACHE_HOME": str(folder / "x")}, {"XDG_CACHE_HOME": "", "HOME": str(folder)}):
        assert run(folder, NAIAD_CACHE="", **environment)[0] == "3 2"
        assert run(folder, NAIAD_CACHE="", **environment)[0] == "3 0"
    places = [each.parent for each in folder.rglob("*.machine")]
    assert sorted(places) == [folder / ".cache" / "naiad" / "kernels", folder / "x" / "naiad" / "kernels"]
    assert not list(folder.rglob("*.nb*")), "nor does numba keep files of its own"


def test_bounds_are_checked_on_request_and_the_code_is_kept_apart(folder: Path) -> None:
    (folder / "reader.py").write_text(READER)
    program = "import numpy as np\nfrom reader import read\nread(np.zeros(3, dtype=np.int64), 3)"
    run(folder, program)
    with pytest.raises(subprocess.CalledProcessError) as caught:
        run(folder, program, NAIAD_CHECK_BOUNDS="1")
    assert "IndexError" in caught.value.stderr


COUNTED = """
from progress.compiled.kernel import on_ready
on_ready(lambda ready, known: print(ready, known > ready, end=" "))
"""


def test_each_kernel_is_told_of_once_it_has_to_be_compiled(folder: Path) -> None:
    assert run(folder, COUNTED + PROGRAM)[0] == "1 True 2 False 3 2", "there are these two, and no others"
    assert run(folder, COUNTED + PROGRAM)[0] == "3 0", "what is loaded is no news"


LOADED_BEFORE = """
from progress.compiled.kernel import kernels_compiled, load_kept
from callee import step
from caller import two_steps
load_kept(step, two_steps)
print(bool(step.signatures), bool(two_steps.signatures), kernels_compiled(), two_steps(1), kernels_compiled())
"""


def test_what_is_kept_can_be_loaded_before_it_is_called_and_nothing_is_compiled_for_that(
    folder: Path,
) -> None:
    assert run(folder, LOADED_BEFORE)[0] == "False False 0 3 2\n"
    assert run(folder, LOADED_BEFORE)[0] == "False True 0 3 0\n", "the other was never compiled apart"


def test_the_hook_replaces_the_notice(folder: Path) -> None:
    quiet = "from progress.compiled.kernel import on_compile\non_compile(None)\n"
    assert run(folder, quiet + PROGRAM) == ("3 2", "")


@pytest.mark.parametrize("is_compiled", [False, True])
def test_calling_one_loads_no_linear_algebra_and_who_multiplies_matrices_can_do_so(
    tmp_path: Path, is_compiled: bool
) -> None:
    program = """
import sys
import numba, numpy
from progress.times.word_order import word_less_equal
assert word_less_equal(1, 2, 1 << 62)
assert "scipy.linalg" not in sys.modules
square = numba.njit(lambda matrix: matrix.dot(matrix))
assert square(numpy.eye(3) * 2).tolist() == (numpy.eye(3) * 4).tolist()
"""
    done = subprocess.run(
        [sys.executable, "-c", program],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, **({"NAIAD_CACHE": str(tmp_path)} if is_compiled else {})},
    )
    assert done.returncode == 0, done.stderr


MAKER = """
import numpy as np
from progress.compiled.kernel import Int64s, kernel

@kernel
def doubled(column: Int64s) -> Int64s:
    return column * 2
"""


def test_a_kernel_that_makes_arrays_can_be_the_first_that_is_loaded(folder: Path) -> None:
    (folder / "maker.py").write_text(MAKER)
    program = "import numpy as np\nfrom maker import doubled\nprint(doubled(np.arange(3)).tolist(), end='')"
    assert [run(folder, program)[0] for _ in range(2)] == ["[0, 2, 4]"] * 2


WITHOUT_NUMBA = """
import sys
from caller import two_steps
assert two_steps(1) == 3
assert not {"numba", "llvmlite", "numba.core.serialize"} & set(sys.modules)
import numba
assert numba.njit(lambda x: x + 1)(1) == 2
assert numba.njit(lambda n: numba.typed.List([n]))(1)[0] == 1
import maker, numpy as np
assert maker.doubled(np.arange(3)).tolist() == [0, 2, 4]
"""


def test_who_finds_machine_code_needs_no_numba_and_can_import_it_later(folder: Path) -> None:
    (folder / "maker.py").write_text(MAKER)
    run(folder)
    run(folder, WITHOUT_NUMBA)


BY_NUMBA = """
import progress.compiled.kernel
progress.compiled.kernel.IS_READABLE = False
"""


def test_on_machines_whose_code_is_not_read_numba_calls(folder: Path) -> None:
    assert run(folder, BY_NUMBA + PROGRAM)[0].startswith("3 ")
    assert run(folder, BY_NUMBA + PROGRAM)[0] == "3 0"
    assert not list(folder.rglob("*.machine"))


UNKNOWN = """
import progress.compiled.machine_code.parts as parts
from progress.compiled.machine_code.image import UnknownCodeError
def link(objects, entry):
    raise UnknownCodeError("a reference of kind 99")
parts.link = link
"""


def test_code_that_cannot_be_linked_is_called_by_numba(folder: Path) -> None:
    assert run(folder, UNKNOWN + PROGRAM)[0].startswith("3 ")
    assert not list(folder.rglob("*.machine"))
    assert run(folder)[0].startswith("3 ")
