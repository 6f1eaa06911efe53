"""What is an executor like? Python, the packages that must agree, and which of ours is there.

Travels as code, so it imports the standard library alone: it answers also where our packages are missing.
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

__all__ = ["NAIAD", "PLACE", "difference", "digest_of", "facts", "own_root", "threads_of", "unpacked"]

NAIAD = "naiad"
"""Under this name stands the digest of our own packages; empty if they are missing."""

PLACE = "naiad is in"
"""Where these are, for messages: it may differ."""

_PACKAGES = ("numpy", "numba", "pyzmq", "msgpack", "pyarrow")
_OWN = ("progress", "timely", "differential")
_THREADS = ("OMP", "OPENBLAS", "MKL", "NUMBA", "VECLIB")


def facts() -> dict[str, str]:
    """What has to be the same in the driver and on all executors; empty for what is missing."""
    found = {"python": f"{sys.version_info.major}.{sys.version_info.minor}"}
    for name in _PACKAGES:
        try:
            found[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            found[name] = ""
    root = own_root()
    found[NAIAD] = digest_of(root) if root is not None else ""
    found[PLACE] = str(root or "")
    return found


def difference(mine: Mapping[str, str], theirs: Mapping[str, str]) -> str:
    """What differs, in words, but for our own packages if they are missing; empty if nothing does."""
    said = []
    for name, version in mine.items():
        other = theirs.get(name, "")
        if other == version or name == PLACE or (name == NAIAD and not other):
            continue
        if name == NAIAD:
            places = f"in {theirs.get(PLACE) or '?'} there, in {mine.get(PLACE) or '?'} here"
            said.append(f"another release of naiad, or one that was edited meanwhile ({places})")
        else:
            said.append(f"{name} {other or '(none)'} in place of {version or '(none)'}")
    return ", ".join(said)


def own_root() -> Path | None:
    """The folder, or the zip, in which our packages lie here; none if one of them is missing."""
    roots = set()
    for name in _OWN:
        spec = importlib.util.find_spec(name)
        if spec is None or spec.origin is None:
            return None
        roots.add(Path(spec.origin).parent.parent)
    return min(roots)


def digest_of(root: Path) -> str:
    """A digest of the sources of our packages: the same wherever they lie, in a folder or in a zip."""
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
    """`root` itself if it is a folder; otherwise the zip's content in a folder.

    The folder is one that the next application on this host finds again, with what Python has made of the
    sources: in the user's cache, named after what is in it. Where that cannot be written it is the
    working folder of the executor, which Spark removes.
    """
    if root.is_dir():
        return root
    name = f"packages-{digest_of(root)}"
    for base in (cache or _cache(), Path.cwd()):
        made = base / name
        if made.is_dir():
            return made
        try:
            base.mkdir(parents=True, exist_ok=True)
            unfinished = Path(tempfile.mkdtemp(prefix=f".{name}-", dir=base))
        except OSError:
            continue
        with zipfile.ZipFile(root) as archive:
            archive.extractall(unfinished)
        try:
            unfinished.rename(made)
        except OSError:  # another task of this host was first
            shutil.rmtree(unfinished, ignore_errors=True)
        if made.is_dir():
            return made
    raise OSError(f"{root} can be unpacked neither in {_cache()} nor in {Path.cwd()}: none can be written")


def _cache() -> Path:
    base = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")  # noqa: PTH111  Path raises without HOME
    return Path(base) / "naiad"


def threads_of(cpus: int) -> dict[str, str]:
    """Variables with which a worker's libraries use as many threads as its task has cores."""
    return {f"{name}_NUM_THREADS": str(max(1, cpus)) for name in _THREADS}
