"""One process at a time compiles a kernel; a claim goes back when its process ends."""

from __future__ import annotations

import fcntl
import os
import subprocess
import sys
from pathlib import Path

import pytest
from house import ROOT

from progress.compiled.one_process import _byte_of, claimed

KERNELS = """
from progress.compiled.kernel import kernel

@kernel
def step(x: int) -> int:
    return x + 1

@kernel
def two_steps(x: int) -> int:
    return step(step(x))
"""
TOGETHER = """
import sys, time
from pathlib import Path
from progress.compiled.kernel import kernels_compiled
from steps import two_steps
here = Path(sys.argv[1])
here.touch()
while len(list(here.parent.glob("here-*"))) < 3:
    time.sleep(0.001)
two_steps(1)
sys.stdout.write(str(kernels_compiled()))
"""
HOLDS = """
import sys
from progress.compiled.one_process import claimed
with claimed("a"), claimed("b"):
    with claimed("c"):
        pass
    print("held", flush=True)
    sys.stdin.read()
"""


def python(program: str, folder: Path, *arguments: str) -> subprocess.Popen[str]:
    """Start it."""
    return subprocess.Popen(
        [sys.executable, "-c", program, *arguments],
        env={
            **os.environ,
            "PYTHONPATH": os.pathsep.join([str(ROOT), str(folder)]),
            "NAIAD_CACHE": str(folder),
        },
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )


def is_free(folder: Path, byte: int) -> bool:
    """Whether nobody else has claimed what this byte stands for."""
    with (folder / "kernels" / "kernels.lock").open("r+") as file:
        try:
            fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, byte)
        except OSError:
            return False
        return True


def test_processes_that_need_a_kernel_at_the_same_time_compile_it_once(tmp_path: Path) -> None:
    (tmp_path / "steps.py").write_text(KERNELS)
    several = [python(TOGETHER, tmp_path, str(tmp_path / f"here-{number}")) for number in range(3)]
    compiled = [int(process.communicate()[0]) for process in several]
    assert sum(compiled) == 2, "two kernels"


def test_a_claim_keeps_others_out_and_one_within_it_gives_none_back(tmp_path: Path) -> None:
    bytes_of = {name: _byte_of(name) for name in "abcd"}
    with python(HOLDS, tmp_path, str(tmp_path)) as holder:
        assert holder.stdout is not None and holder.stdout.readline() == "held\n"
        free = {name: is_free(tmp_path, byte) for name, byte in bytes_of.items()}
        assert free == {"a": False, "b": False, "c": True, "d": True}
        holder.communicate()
    assert all(is_free(tmp_path, byte) for byte in bytes_of.values())


def test_a_claim_ends_with_its_process_however_that_ends(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NAIAD_CACHE", str(tmp_path))
    with python(HOLDS, tmp_path, str(tmp_path)) as holder:
        assert holder.stdout is not None and holder.stdout.readline() == "held\n"
        holder.kill()
    with claimed("a"):
        assert holder.returncode < 0


def test_a_folder_that_cannot_be_written_to_stops_nobody(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("not a folder")
    monkeypatch.setenv("NAIAD_CACHE", str(blocked))
    with claimed("a"):
        pass
