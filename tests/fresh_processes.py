"""Processes that keep what they compile in a folder of a test's own.

`cache_without` fills such a folder: the kernels that nothing depends on need not be compiled once more.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

from house import ROOT

from progress.compiled.cache_folder import cache_folder

__all__ = ["answer", "cache_without", "start"]


def start(folder: Path, program: str, cache: Path) -> subprocess.Popen[str]:
    """A process that keeps what it compiles in `cache`, beside the modules in `folder`."""
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join([str(ROOT), str(folder)]),
        "NAIAD_CACHE": str(cache),
    }
    return subprocess.Popen(
        [sys.executable, "-c", program],
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def answer(process: subprocess.Popen[str]) -> str:
    """What it writes."""
    out, said = process.communicate()
    assert process.returncode == 0, said
    return out


def cache_without(folder: Path, *kernels: str) -> Path:
    """Return `folder` as a cache with everything that the cache of these tests has, but without the files of
    these kernels: a process that calls one compiles it, and the parts that are its own.
    """
    own = folder / "kernels"
    own.mkdir(mode=0o755)
    here = cache_folder()
    for each in here.iterdir() if here is not None and here.is_dir() else ():
        name = each.name.partition("-")[0].rpartition(".")[2]
        if each.suffix in (".machine", ".part", ".object") and name not in kernels:
            shutil.copy2(each, own)
    return folder
