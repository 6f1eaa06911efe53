"""The facts of an executor: the versions of Python and of packages that must agree, and our release.

Spark sends this module as code, so it imports the standard library alone, and runs also on executors that
lack our packages.
"""

from __future__ import annotations

import hashlib
import importlib.metadata
import importlib.util
import os
import shutil
import sys
import tempfile
import zipfile
from collections.abc import Iterator, Mapping
from pathlib import Path

__all__ = ["FOLDER", "NAIAD", "difference", "digest_of", "facts", "own_root", "threads_of", "unpacked"]

NAIAD = "naiad"
"""The name of the fact with the digest of our own packages; empty if they are missing."""

FOLDER = "naiad is in"
"""The name of the fact with their folder, for messages: it may differ."""

_PACKAGES = ("numpy", "numba", "pyzmq", "msgpack", "pyarrow")
_OWN = ("progress", "timely", "differential")
_THREADS = ("OMP", "OPENBLAS", "MKL", "NUMBA", "VECLIB")


def facts() -> dict[str, str]:
    """Return the facts that must be the same in the driver and on all executors, and `FOLDER`; "" for missing
    packages.
    """
    versions = {"python": f"{sys.version_info.major}.{sys.version_info.minor}"}
    for name in _PACKAGES:
        try:
            versions[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            versions[name] = ""
    root = own_root()
    versions[NAIAD] = digest_of(root) if root is not None else ""
    versions[FOLDER] = str(root or "")
    return versions


def difference(mine: Mapping[str, str], theirs: Mapping[str, str]) -> str:
    """Return a text on the facts that differ; empty if none do. Our own packages may be missing there."""
    differences = []
    for name, version in mine.items():
        other = theirs.get(name, "")
        if other == version or name == FOLDER or (name == NAIAD and not other):
            continue
        if name == NAIAD:
            folders = f"in {theirs.get(FOLDER) or '?'} there, in {mine.get(FOLDER) or '?'} here"
            differences.append(f"another release of naiad, or one that was edited meanwhile ({folders})")
        else:
            differences.append(f"{name} {other or '(none)'} in place of {version or '(none)'}")
    return ", ".join(differences)


def own_root() -> Path | None:
    """Return the folder, or the zip, with our packages in this process; None if one of them is missing."""
    roots = set()
    for name in _OWN:
        spec = importlib.util.find_spec(name)
        if spec is None or spec.origin is None:
            return None
        roots.add(Path(spec.origin).parent.parent)
    return min(roots)


def digest_of(root: Path) -> str:
    """Return a digest of the sources of our packages: the same for a folder and a zip of the same sources."""
    digest = hashlib.sha256()
    for name, content in sorted(_sources(root)):
        digest.update(f"{name} {len(content)}\n".encode())
        digest.update(content)
    return digest.hexdigest()[:24]


def _sources(root: Path) -> Iterator[tuple[str, bytes]]:
    if root.is_dir():
        for package in _OWN:
            for file in (root / package).rglob("*.py"):
                yield file.relative_to(root).as_posix(), file.read_bytes()
        return
    with zipfile.ZipFile(root) as archive:
        for name in archive.namelist():
            if name.endswith(".py"):
                yield name, archive.read(name)


def unpacked(root: Path, cache: Path | None = None) -> Path:
    """Return `root` itself if it is a folder; otherwise unpack the zip and return its folder.

    The folder is in the user's cache, named after a digest of its content, so that the next application on
    this host finds it again, with Python's compiled files. If the cache cannot be written, it is in the
    working folder of the executor, which Spark removes.
    """
    if root.is_dir():
        return root
    name = f"packages-{digest_of(root)}"
    for base in (cache or _cache(), Path.cwd()):
        folder = base / name
        if folder.is_dir():
            return folder
        try:
            base.mkdir(parents=True, exist_ok=True)
            unfinished = Path(tempfile.mkdtemp(prefix=f".{name}-", dir=base))
        except OSError:
            continue
        with zipfile.ZipFile(root) as archive:
            archive.extractall(unfinished)
        try:
            unfinished.rename(folder)
        except OSError:  # another task of this host was first
            shutil.rmtree(unfinished, ignore_errors=True)
        if folder.is_dir():
            return folder
    raise OSError(f"{root} can be unpacked neither in {_cache()} nor in {Path.cwd()}: none can be written")


def _cache() -> Path:
    base = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")  # noqa: PTH111  Path raises without HOME
    return Path(base) / "naiad"


def threads_of(cpus: int) -> dict[str, str]:
    """Return environment variables that let a worker's libraries use as many threads as its task has
    cores.
    """
    return {f"{name}_NUM_THREADS": str(max(1, cpus)) for name in _THREADS}
