"""Which folder takes large memory, and how much memory has each worker? Of arguments or the environment."""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path
from typing import Final, NamedTuple

from ..errors import MisuseError, SpillError
from .file_memory import FileMemory

__all__ = ["MEMORY_VARIABLE", "SPILL_VARIABLE", "SpillSettings", "parse_bytes", "spill_settings"]

SPILL_VARIABLE: Final = "NAIAD_SPILL"
MEMORY_VARIABLE: Final = "NAIAD_MEMORY"

_UNITS: Final = {"": 0, "k": 10, "m": 20, "g": 30, "t": 40}
_SIZE: Final = re.compile(r"([0-9]+(?:\.[0-9]+)?)\s*([kmgt]?)(?:i?b)?", re.IGNORECASE)
_LEAST: Final = 1 << 20
_DEFAULT_SHARE: Final = 2
"""Without a budget, the workers of a host have together 1 / `_DEFAULT_SHARE` of its memory."""

_IN_MEMORY: Final = ("tmpfs", "ramfs", "devtmpfs", "hugetlbfs")
_RESERVING: Final = ("ext2", "ext3", "ext4", "xfs", "overlay")
"""File systems in which blocks that are reserved can be written, as often as one likes, without more room."""


class SpillSettings(NamedTuple):
    """The absolute folder for large memory, and the bytes of it that each worker keeps in plain memory."""

    folder: str
    memory: int


def spill_settings(
    folder: object, memory: object, workers: int, names: tuple[str, str] = ("spill", "memory")
) -> SpillSettings | None:
    """Return the settings of two arguments of these `names`, or where they are None, of the environment; None
    if neither names a folder. `workers`: number of workers on this host.

    Raise `MisuseError` if the folder is missing, cannot be written to, or is of no use.
    """
    named_by, named_by_memory = names
    if folder is None and (text := os.environ.get(SPILL_VARIABLE, "")):
        folder, named_by = text, SPILL_VARIABLE
    if folder is None:
        if memory is not None:
            raise MisuseError(
                f"{named_by_memory}={memory!r:.80} says how much large memory each worker keeps out of the "
                f"files of a folder: name that, too, with {named_by}"
            )
        return None
    if memory is None and (text := os.environ.get(MEMORY_VARIABLE, "")):
        memory, named_by_memory = text, MEMORY_VARIABLE
    if not isinstance(folder, str | Path) or not str(folder) or "\0" in str(folder):
        raise MisuseError(f"{named_by} takes a folder, as a text or a Path, not {folder!r:.80}")
    path = str(Path(folder).expanduser().absolute())
    size = _machine_bytes() // _DEFAULT_SHARE // workers if memory is None else 0
    if memory is not None:
        size = parse_bytes(memory, named_by_memory)
    _check(path, f"{named_by}={path}")
    return SpillSettings(path, max(size, _LEAST))


def parse_bytes(size: object, what: str) -> int:
    """Return a number of bytes: a whole number, or a text such as "512MiB". Raise `MisuseError`, which begins
    with `what`.
    """
    if isinstance(size, int) and not isinstance(size, bool):
        number = size
    elif isinstance(size, str) and (match := _SIZE.fullmatch(size.strip())) is not None:
        number = int(float(match[1]) * (1 << _UNITS[match[2].lower()]))
    else:
        raise MisuseError(
            f"{what}={size!r:.80}: write bytes as a whole number, or a text such as '512MiB' or '2GiB'"
        )
    if number < _LEAST:
        raise MisuseError(f"{what}={size!r:.80}: a worker has 1 MiB of large memory at least")
    return number


def _check(folder: str, what: str) -> None:
    """Raise `MisuseError`, which begins with `what`, if large memory cannot be in this folder."""
    if sys.platform != "linux":
        raise MisuseError(f"{what}: large memory is put into files on Linux only")
    system = _file_system(folder)  # of a folder that is not there: of those around it
    if system in _IN_MEMORY:
        raise MisuseError(
            f"{what} is in memory itself ({system}): what lies there takes as much memory as before. Name a "
            f"folder on a local disk, such as {what.partition('=')[0]}=/var/tmp"
        )
    if not Path(folder).is_dir():
        how = "is no folder" if Path(folder).exists() else "does not exist"
        raise MisuseError(f"{what} {how}: make a folder on a local disk, and name it")
    if system and system not in _RESERVING:
        raise MisuseError(
            f"{what} is in a file system ({system}) in which room that is reserved can be missing when it is "
            "written to, which would end the process. Name a folder on a local disk with ext4 or xfs"
        )
    try:
        FileMemory(folder, os.sysconf("SC_PAGE_SIZE"))
    except SpillError as error:
        raise MisuseError(f"{what} cannot take files: {error}") from error


def _file_system(folder: str) -> str:
    """Return the kind of the file system of a folder; empty if the system does not tell."""
    try:
        lines = Path("/proc/self/mountinfo").read_text("utf-8", "surrogateescape").splitlines()
    except OSError:
        return ""
    path = Path(os.path.realpath(folder))
    longest, kind = -1, ""
    for line in lines:
        mount, _, behind = line.partition(" - ")
        place = re.sub(r"\\([0-7]{3})", lambda code: chr(int(code[1], 8)), mount.split(" ")[4])
        if path.is_relative_to(place) and len(place) >= longest:
            longest, kind = len(place), behind.split(" ")[0]
    return kind


def _machine_bytes() -> int:
    """Return the memory of this machine, or of its group of processes if that may have less."""
    size = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    for path in ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"):
        try:
            text = Path(path).read_text("ascii").strip()
        except OSError:
            continue
        if text.isdecimal():
            size = min(size, int(text))
    return size
