"""Which process runs which tests, and when, where several share the work: a file is not divided, and all
files that use the session of Spark that tests share are run by one process.

A Java that has just started takes ten seconds and more until it has loaded and compiled what the first jobs
of each kind need. With the files shared out one by one each process would start one, and pay that.

The other files below `tests/spark` start what they need themselves, and take as long together. So do those of
examples and documents: there is enough for the other processes meanwhile. No document needs another one, so
several processes run them, but those that start Spark share one of their own.

Long files come first. The others are mixed: some keep a core busy, such as those of `tests/differential`,
and others wait most of the time for workers, sockets and disks, such as those of `tests/timely`. While one
process waits another one computes.
"""

from __future__ import annotations

import importlib
import os
import sys
import zlib
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pytest

__all__ = ["DOCUMENTS_WITH_SPARK", "in_order", "process_count", "scheduler", "scope_of"]

_PROCESSES_MAX = 8
_BYTES_OF_A_PROCESS = 2 << 30
"""Of a process of pytest and the workers that its tests start, and of its share of three Javas."""

_WITH_SESSION = (
    "tests/spark/",
    "tests/sql/tpch/test_tpch_by_spark.py",
    "tests/sql/tpch/test_tpch_by_plans.py",
    "tests/examples/mentions/test_interactions.py",
    "tests/examples/mentions/test_stray_times.py",
)
_WITHOUT = ("tests/spark/faults/", "tests/spark/scheduled/test_masters.py")
_DOCUMENTS = "tests/test_docs_run.py::test_run_"
DOCUMENTS_WITH_SPARK = ("docs/spark.md", "docs/spark_run.md", "docs/pyspark_kept_current.md", "README.md")
"""Those whose programs start it: one after the other, or a Java would run beside each pytest."""

_OF_THE_SOURCE = (
    "tests/test_layers.py",
    "tests/test_plain_words.py",
    "tests/test_public_names.py",
    "tests/test_thresholds.py",
    "tests/test_kernels_are_uniform.py",
    "tests/differential/test_symbols_in_use.py",
)
"""Tests of the house's rules: together they parse each file of the project once, which takes seconds."""

_LONG_DOCUMENTS = ("examples/README.md", "docs/failures.md", "docs/keys.md")
"""Each begins a group, in which there are others, too."""

_LONGEST_FIRST = (
    "spark/faults/test_faults.py",
    "spark/jobs/",
    "timely/worker/durability/",
    "progress/compiled/test_cache_folder.py",
    "spark/faults/",
    "timely/worker/starting/test_supervisor.py",
    "timely/worker/following/",
    "test_docs_run.py",
    "spark/",
    "timely/durable/answers/",
    "examples/",
    "progress/compiled/test_kernel.py",
    "timely/client/remote/test_resuming.py",
    "timely/client/feeding/test_own_epochs.py",
    "processes/",
    "soak/",
    "simulation/",
)
"""The session of Spark comes with its first file. The others that start Spark do not all start it at once."""


def in_order(files: Iterable[str]) -> dict[str, tuple[int, float]]:
    """Return where each file (its path below `tests`) comes: the long ones, and behind them those of all
    folders in turn, each folder's evenly from there to the end.
    """
    ranks = {file: _rank(file) for file in files}
    counts = Counter((rank, _folder(file)) for file, rank in ranks.items())
    order: dict[str, tuple[int, float]] = {}
    before: Counter[tuple[int, str]] = Counter()
    for file, rank in ranks.items():
        which = (rank, _folder(file))
        order[file] = (rank, before[which] / counts[which])
        before[which] += 1
    return order


def _rank(file: str) -> int:
    of_file = (rank for rank, begins in enumerate(_LONGEST_FIRST) if file.startswith(begins))
    return next(of_file, len(_LONGEST_FIRST))


def _folder(file: str) -> str:
    return file.partition("/")[0]


def scope_of(test: str) -> str:
    """What is run by one process with this test: its file, some documents, or all that shares the session."""
    if test.startswith(_WITH_SESSION) and not test.startswith(_WITHOUT):
        return "with the session of Spark"
    if test.startswith(_OF_THE_SOURCE):
        return "of the source"
    if test.startswith(_DOCUMENTS):
        document = test.partition("[")[2].rstrip("]")
        if document in DOCUMENTS_WITH_SPARK:
            return "documents with Spark"
        group = zlib.crc32(document.encode()) % len(_LONG_DOCUMENTS)
        return f"documents with {document if document in _LONG_DOCUMENTS else _LONG_DOCUMENTS[group]}"
    return test.partition("::")[0]


def scheduler(config: pytest.Config, log: object) -> object:
    """What shares tests out as `--dist loadfile` does, but for these."""
    made = importlib.import_module("xdist.scheduler").LoadFileScheduling(config, log)
    made._split_scope = scope_of
    return made


def process_count(cores: int, bytes_free: int) -> int:
    """Return how many processes share the work: two for each core and one more, for tests often wait."""
    return max(1, min(_PROCESSES_MAX, 2 * cores + 1, bytes_free // _BYTES_OF_A_PROCESS))


def _bytes_free() -> int:
    """What may be used, as Linux says; elsewhere a guess that is enough for the fewest that are worth it."""
    try:
        lines = Path("/proc/meminfo").read_text().splitlines()
    except OSError:
        return 3 * _BYTES_OF_A_PROCESS
    (available,) = (line.split()[1] for line in lines if line.startswith("MemAvailable:"))
    return int(available) << 10


if __name__ == "__main__":
    sys.stdout.write(f"{process_count(os.cpu_count() or 1, _bytes_free())}\n")
