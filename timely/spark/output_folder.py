"""A folder to which one run at a time writes results, and which readers may read at any moment.

A result becomes visible by a rename within the folder, after its bytes are on disk. Everything else (the
lock, the job's description, unfinished files) has a name that begins with `_`, which readers of Parquet
ignore.
"""

from __future__ import annotations

import errno
import fcntl
import json
import os
import re
import shutil
from collections.abc import Mapping
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from timely.counted import counted
from timely.spark.errors import OutputError
from timely.spark.once.contents import difference

__all__ = ["OutputFolder", "changes_file"]

_JOB, _LOCK, _STAGING = "_job.json", "_lock", "_staging"
_SNAPSHOT = "snapshot.parquet"
_CHANGES = re.compile(r"epoch-(\d{8,})\.parquet")


class OutputFolder:
    """`path`, locked for this run, with the epochs that earlier runs of the same job have committed there.

    `job` describes the job whose changes are in the folder; None for a folder with a snapshot. `beside`: the
    folder may hold other files, which are left alone. Raises `OutputError` if the folder cannot be made or
    written, if another run has locked it, and if it holds files that are not of this job.
    """

    def __init__(self, path: Path, job: Mapping[str, object] | None, *, beside: bool = False) -> None:
        self.path = path.expanduser().absolute()
        self._beside = beside
        self._lock = self._locked()
        try:
            self.committed_before = self._checked_content(job)
        except BaseException:
            self.close()
            raise
        self.committed = self.committed_before
        """Epochs 0 to committed - 1 are committed; `committed_before` is its value at the beginning."""

    def check_same(self, epoch: int, changes: pa.Table) -> None:
        """Raise `OutputError` unless the committed changes of `epoch` are these, in any order."""
        # Of one file, whatever the names of the folders above it are like.
        there = pq.ParquetFile(self.path / changes_file(epoch)).read()
        differs = difference(there, changes)
        if differs is not None:
            row, more = differs
            which = ("with", "does not find") if more > 0 else ("without", "finds")
            raise OutputError(
                f"{self.path} has {counted(there.num_rows, 'change')} for epoch {epoch}, committed by an "
                f"earlier run {which[0]} the row {row}; this run {which[1]} it.\nThe input has changed "
                f"since. Remove {self.path}, or give another --output."
            )

    def fresh_staging(self, name: str) -> Path:
        """Return the path of a folder that does not exist yet, for Spark to create and write to."""
        folder = self.path / _STAGING / name
        shutil.rmtree(folder, ignore_errors=True)
        folder.parent.mkdir(exist_ok=True)
        return folder

    def publish(self, staged: Path, epoch: int) -> None:
        """Commit the next epoch: rename its complete file to the name under which readers find it."""
        assert epoch == self.committed, f"epoch {epoch} after {self.committed - 1}"
        self._rename(staged, self.path / changes_file(epoch))
        self.committed += 1

    def replace_snapshot(self, staged: Path) -> None:
        """Replace the snapshot by a complete file."""
        self._rename(staged, self.path / _SNAPSHOT)

    def close(self) -> None:
        """Remove uncommitted files, and unlock the folder for other runs."""
        shutil.rmtree(self.path / _STAGING, ignore_errors=True)
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None

    def _rename(self, source: Path, target: Path) -> None:
        # Without the two fsyncs a machine that loses power may have the new name on disk and not the bytes.
        _to_disk(source)
        source.replace(target)
        _to_disk(self.path)

    def _locked(self) -> int | None:
        try:
            self.path.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise OutputError(
                f"the folder {self.path} cannot be made: {error.strerror}. Choose another --output."
            ) from error
        if not self._beside:
            self._refuse_foreign_files()
        try:
            lock = os.open(self.path / _LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        except OSError as error:
            raise OutputError(
                f"{self.path} cannot be written: {error.strerror}. Choose another --output."
            ) from error
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            os.close(lock)
            if error.errno in (errno.EWOULDBLOCK, errno.EACCES):
                raise OutputError(
                    f"another run is writing to {self.path}. Wait for it, stop it, or give another --output."
                ) from error
            raise OutputError(
                f"{self.path} cannot be locked: {error.strerror}. Choose another --output."
            ) from error
        return lock

    def _refuse_foreign_files(self) -> None:
        ours = {_JOB, _LOCK, _STAGING, _SNAPSHOT}
        names = sorted(entry.name for entry in self.path.iterdir())
        foreign = [name for name in names if name not in ours and not _CHANGES.fullmatch(name)]
        if foreign:
            more = f" and {len(foreign) - 3} more" if len(foreign) > 3 else ""
            raise OutputError(
                f"{self.path} holds something that is not ours: {', '.join(foreign[:3])}{more}.\n"
                "Nothing was written. Choose another --output, or move those files away."
            )

    def _checked_content(self, job: Mapping[str, object] | None) -> int:
        """Return how many epochs are committed, after checking their job; write the job into a new folder."""
        shutil.rmtree(self.path / _STAGING, ignore_errors=True)
        epochs = sorted(
            int(match.group(1)) for entry in self.path.iterdir() if (match := _CHANGES.fullmatch(entry.name))
        )
        if job is None:
            return 0
        if epochs != list(range(len(epochs))):
            missing = min(set(range(len(epochs))) - set(epochs))
            raise OutputError(
                f"{self.path} lacks the file of epoch {missing}, but has later ones. Remove the folder."
            )
        stated = self.path / _JOB
        if not stated.exists():
            if epochs:
                raise OutputError(
                    f"{self.path} has epochs but no {_JOB}, so whose they are is unknown. Remove the folder."
                )
            unfinished = self.path / _STAGING
            unfinished.mkdir()
            (unfinished / _JOB).write_text(json.dumps(dict(job), indent=1) + "\n")
            self._rename(unfinished / _JOB, stated)
            return 0
        _refuse_other_job(self.path, json.loads(stated.read_text()), json.loads(json.dumps(dict(job))))
        return len(epochs)


_OTHERS = {"query": "its steps, functions or constants are not those that made what is there"}
"""Messages for parts of a job that are numbers without a meaning for users."""


def _refuse_other_job(path: Path, before: dict[str, object], now: dict[str, object]) -> None:
    differ = [
        f"  {name}: {_OTHERS.get(name) or f'{before.get(name)!r} there, {now.get(name)!r} now'}"
        for name in sorted(before.keys() | now.keys())
        if before.get(name) != now.get(name)
    ]
    if differ:
        raise OutputError(
            f"{path} has the results of another job:\n" + "\n".join(differ) + "\n"
            f"Choose another --output, or remove {path}."
        )


def changes_file(epoch: int) -> str:
    """Return the name of the file with the changes of `epoch`."""
    return f"epoch-{epoch:08}.parquet"


def _to_disk(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
