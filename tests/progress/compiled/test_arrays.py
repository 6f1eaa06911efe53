"""The types of arrays are there without what compiles kernels, and are those that kernels are written in."""

from __future__ import annotations

import subprocess
import sys

from house import ROOT

from progress.compiled import arrays, kernel


def test_the_types_of_arrays_are_those_of_kernels() -> None:
    assert [getattr(kernel, name) for name in arrays.__all__] == [
        getattr(arrays, name) for name in arrays.__all__
    ]


def test_who_talks_of_arrays_loads_no_numba() -> None:
    program = "import sys, progress.compiled.arrays\nassert 'numba' not in sys.modules"
    done = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
