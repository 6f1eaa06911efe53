"""Our packages in a zip, for executors that do not have them.

Spark hands a zip that it was given by `addPyFile` to every task that begins from then on, so workers find
them, and so do the tasks that feed them. Machine code of kernels does not go along: the user of each host
keeps it, for every release (`progress/compiled/cache_folder.py`).
"""

from __future__ import annotations

import sys
import zipfile
from pathlib import Path

from pyspark import SparkContext

from timely.own_files import ROOT
from timely.spark.scheduled.facts import digest_of

__all__ = ["packed", "ship"]

_OWN = ("progress", "timely", "differential")
_KINDS = ("*.py", "py.typed")
_MOMENT = (2020, 1, 1, 0, 0, 0)


def packed(folder: Path, root: Path = ROOT) -> Path:
    """A zip of our packages in `folder`, named after what is in it; made unless it is there."""
    made = folder / f"naiad-{digest_of(root)}.zip"
    if made.exists():
        return made
    unfinished = made.with_suffix(".unfinished")
    with zipfile.ZipFile(unfinished, "w", zipfile.ZIP_DEFLATED) as archive:
        for package in _OWN:
            for file in sorted({file for kind in _KINDS for file in (root / package).rglob(kind)}):
                entry = zipfile.ZipInfo(file.relative_to(root).as_posix(), _MOMENT)
                entry.compress_type = zipfile.ZIP_DEFLATED
                entry.external_attr = 0o644 << 16
                archive.writestr(entry, file.read_bytes())
    unfinished.rename(made)
    return made


def ship(context: SparkContext) -> Path:
    """Give every task from now on our packages; returns the zip, which Spark removes at its end."""
    archive = packed(Path(context._temp_dir))
    before = list(sys.path)
    context.addPyFile(str(archive))
    # Spark lets the driver import from the zip, too. It has these packages, in a folder.
    sys.path[:] = before
    return archive
