"""Ship our packages in a zip to executors that do not have them.

Spark passes a zip that was added by `addPyFile` to every task that begins later, so workers find the
packages, and so do the tasks that feed them. The zip has no machine code of kernels: each host has that in
its user's cache, by release (`progress/compiled/cache_folder.py`).
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
    """Return a zip of our packages in `folder`, named after a digest of them; make it unless it is there."""
    target = folder / f"naiad-{digest_of(root)}.zip"
    if target.exists():
        return target
    unfinished = target.with_suffix(".unfinished")
    with zipfile.ZipFile(unfinished, "w", zipfile.ZIP_DEFLATED) as archive:
        for package in _OWN:
            for file in sorted({file for kind in _KINDS for file in (root / package).rglob(kind)}):
                entry = zipfile.ZipInfo(file.relative_to(root).as_posix(), _MOMENT)
                entry.compress_type = zipfile.ZIP_DEFLATED
                entry.external_attr = 0o644 << 16
                archive.writestr(entry, file.read_bytes())
    unfinished.rename(target)
    return target


def ship(context: SparkContext) -> Path:
    """Ship our packages with every task that begins later; return the zip, which Spark removes at its end."""
    archive = packed(Path(context._temp_dir))
    before = list(sys.path)
    context.addPyFile(str(archive))
    # Undo that Spark lets the driver import from the zip, too: the driver has these packages in a folder.
    sys.path[:] = before
    return archive
