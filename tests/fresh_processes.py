"""Processes that keep what they compile in a folder of a test's own.

They are forked from a process that has imported numba and compiled a function, which is four fifths of the
work of one that calls two small kernels. Nothing of this project is imported there. Programs that look at
`sys.modules` start by their command.

`cache_without` fills such a folder: the kernels that nothing depends on need not be compiled once more.
"""

from __future__ import annotations

import atexit
import functools
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from forked_processes import CAN_FORK, Nursery, fork, run_program, serve

__all__ = ["answer", "cache_without", "python", "start"]


def start(folder: Path, program: str, cache: Path) -> subprocess.Popen[str]:
    """A process that keeps what it compiles in `cache`, beside the modules in `folder`."""
    from house import ROOT

    path = os.pathsep.join([str(ROOT), str(folder)])
    environment = {**os.environ, "PYTHONPATH": path, "NAIAD_CACHE": str(cache)}
    return python(program, environment, Path.cwd())


def python(
    program: str, environment: Mapping[str, str], folder: Path, prefix: Sequence[str] = ()
) -> subprocess.Popen[str]:
    """Start a program of this text, with nothing to read. `prefix`: what starts Python instead."""
    if CAN_FORK and not prefix and "sys.modules" not in program:
        process = fork(_nursery().name, environment, folder, ["-c", program])
        assert process.stdin is not None
        process.stdin.close()
        return process
    return subprocess.Popen(
        [*prefix, sys.executable, "-c", program],
        cwd=folder,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


@functools.cache
def _nursery() -> Nursery:
    nursery = Nursery(__file__, os.environ)
    atexit.register(nursery.end)
    return nursery


def answer(process: subprocess.Popen[str]) -> str:
    """What it writes."""
    out, said = process.communicate()
    assert process.returncode == 0, said
    return out


def cache_without(folder: Path, *kernels: str) -> Path:
    """Return `folder` as a cache with everything that the cache of these tests has, but without the files of
    these kernels: a process that calls one compiles it, and the parts that are its own.
    """
    from progress.compiled.cache_folder import cache_folder

    own = folder / "kernels"
    own.mkdir(mode=0o755)
    here = cache_folder()
    for each in here.iterdir() if here is not None and here.is_dir() else ():
        name = each.name.partition("-")[0].rpartition(".")[2]
        if each.suffix in (".machine", ".part", ".object") and name not in kernels:
            shutil.copy2(each, own)
    return folder


def _prepare() -> None:
    import numba
    import numpy as np

    numba.njit(lambda number: number + 1)(1)
    numba.njit(lambda numbers: numbers.sum())(np.arange(3))


if __name__ == "__main__":
    _prepare()
    asked_for = serve(sys.argv)
    if asked_for is not None:
        run_program(asked_for)
