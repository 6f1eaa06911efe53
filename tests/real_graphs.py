"""Graphs that people have published, for tests of algorithms at a size that takes a second or two.

They lie outside of the repository, in a folder `shared/data` beside it, or where NAIAD_DATA says; what is
known of each is stated in a README there. Tests over them exist where the folder does.
"""

from __future__ import annotations

import gzip
import os
from pathlib import Path
from typing import Final

import numpy as np
from house import ROOT

from progress.compiled.arrays import Int64s

__all__ = ["GRAPHS", "distinct_edges"]

_DATA: Final = Path(os.environ.get("NAIAD_DATA", ROOT.parent / "shared" / "data"))

_FILES: Final = {
    "wiki-vote": ("wiki-vote/Wiki-Vote.txt.gz", 103_689),
    "collegemsg": ("collegemsg/CollegeMsg.txt.gz", 20_296),
}
"""By name: the file, whose lines begin with source and target, and how many distinct edges it has."""

GRAPHS: Final = tuple(name for name, (file, _) in _FILES.items() if (_DATA / file).exists())
"""Those that are there."""


def distinct_edges(name: str) -> Int64s:
    """The distinct directed edges: int64[n, 2], sorted."""
    file, count = _FILES[name]
    with gzip.open(_DATA / file, "rt") as lines:
        edges = np.loadtxt(lines, dtype=np.int64, usecols=(0, 1))
    found = np.unique(edges, axis=0)
    assert len(found) == count, f"{file} has {len(found)} edges, not {count}: is it another file?"
    return found
