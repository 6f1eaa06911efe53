"""Whoever reads while faults strike: each sink as its own readers see it, again and again.

FolderReader    the change log of `timely.spark.run`, file by file, and in the end the snapshot
FilesReader     Spark's own sink of files, by the log of what it has committed
FlowReader      an output of a running dataflow, by a client
Watch           looks at all of them, all the time, in a thread of its own
"""

from __future__ import annotations

import json
import re
import threading
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Protocol
from urllib.parse import unquote, urlparse

import pyarrow as pa
import pyarrow.parquet as pq

import timely

from .model import Changes, Judge, WrongAnswer

__all__ = ["FilesReader", "FlowReader", "FolderReader", "Reader", "Watch"]

_LOOK_SECONDS = 0.1
_KEPT = re.compile(r"epoch-(\d{8})\.parquet")


class Reader(Protocol):
    """Of one sink."""

    def look(self) -> None:
        """Read what is new; `WrongAnswer` for what may not be there."""
        ...

    def check_all(self) -> None:
        """Everything must be there, and nothing else."""
        ...


class FolderReader:
    """Of the folder of an output; `last` is the answer as of the last epoch."""

    def __init__(self, folder: Path, wanted: Sequence[Changes], last: set[tuple[int, int, int]]) -> None:
        self._folder = folder
        self._wanted = wanted
        self._last = last
        self.judge = Judge(folder.name, wanted)

    def look(self) -> None:
        """See `Reader`."""
        found = self._epochs()
        if found != list(range(len(found))):
            found = self._epochs()  # a listing may pass over what is renamed meanwhile
        if found != list(range(len(found))) or len(found) < self.judge.seen:
            raise WrongAnswer(f"{self.judge.name}: the epochs {found} are there, and were {self.judge.seen}")
        for epoch in found[self.judge.seen :]:
            self.judge.saw(epoch, self._read(epoch))

    def check_all(self) -> None:
        """See `Reader`."""
        self.look()
        self.judge.check_all()
        again = Judge(f"{self.judge.name}, read again", self._wanted)
        for epoch in self._epochs():
            again.saw(epoch, self._read(epoch))
        again.check_all()
        rows = pq.read_table(self._folder / "snapshot" / "snapshot.parquet").to_pylist()
        found = Counter((row["key"], row["n"], row["total"]) for row in rows)
        if found != Counter(self._last):
            raise WrongAnswer(f"{self.judge.name}: the snapshot has {found}, right is {self._last}")
        if left := list(self._folder.rglob("_staging")):
            raise WrongAnswer(f"{left} is left behind")

    def _epochs(self) -> list[int]:
        try:
            names = [path.name for path in (self._folder / "changes").iterdir()]
        except FileNotFoundError:
            return []
        return sorted(int(found[1]) for name in names if (found := _KEPT.fullmatch(name)))

    def _read(self, epoch: int) -> Changes:
        table = pq.ParquetFile(self._folder / "changes" / f"epoch-{epoch:08}.parquet").read()
        found = _by_epoch(table)
        if set(found) - {epoch}:
            raise WrongAnswer(f"{self.judge.name}: the file of epoch {epoch} has rows of {sorted(found)}")
        return found.get(epoch, Counter())


class FilesReader:
    """Of the folder of Spark's sink: a batch of it counts when the log of the folder has it."""

    def __init__(self, folder: Path, wanted: Sequence[Changes]) -> None:
        self._folder = folder
        self._batches = 0
        self.judge = Judge("files", wanted)

    def look(self) -> None:
        """See `Reader`."""
        while (entry := self._folder / "_spark_metadata" / str(self._batches)).exists():
            _, *lines = entry.read_text().splitlines()
            files = [unquote(urlparse(json.loads(line)["path"]).path) for line in lines]
            tables = [pq.ParquetFile(file).read() for file in files]
            found = _by_epoch(pa.concat_tables(tables)) if tables else {}
            for epoch in sorted(found):
                self.judge.saw(epoch, found[epoch])
            self._batches += 1

    def check_all(self) -> None:
        """See `Reader`."""
        self.look()
        self.judge.check_all()


class FlowReader:
    """Of an output that nobody else reads."""

    def __init__(self, flow: timely.Flow, output: str, wanted: Sequence[Changes]) -> None:
        self._output = flow.output(output)
        self.judge = Judge("dataflow", wanted)

    def look(self) -> None:
        """See `Reader`."""
        complete = self._output.complete_before()
        if complete == self.judge.seen:
            return
        found = _by_epoch(self._output.changes(self.judge.seen, complete))
        for epoch in range(self.judge.seen, complete):
            self.judge.saw(epoch, found.get(epoch, Counter()))

    def check_all(self) -> None:
        """See `Reader`."""
        self.look()
        self.judge.check_all()


def _by_epoch(table: pa.Table) -> dict[int, Changes]:
    found: dict[int, Changes] = {}
    for row in table.to_pylist():
        found.setdefault(row["epoch"], Counter())[row["key"], row["n"], row["total"]] += row["diff"]
    return found


class Watch:
    """Looks until it is left; what it has seen that may not be is raised then, or by `check`."""

    def __init__(self, readers: Sequence[Reader]) -> None:
        self._readers = readers
        self._stop = threading.Event()
        self._failure: BaseException | None = None
        self._thread = threading.Thread(target=self._look, name="reader", daemon=True)

    def __enter__(self) -> Watch:
        self._thread.start()
        return self

    def __exit__(self, *how: object) -> None:
        self._stop.set()
        self._thread.join(60)

    def check(self) -> None:
        """Raise what was seen."""
        if self._failure is not None:
            raise self._failure

    def _look(self) -> None:
        try:
            while not self._stop.wait(_LOOK_SECONDS):
                for reader in self._readers:
                    reader.look()
        except BaseException as failure:
            self._failure = failure
