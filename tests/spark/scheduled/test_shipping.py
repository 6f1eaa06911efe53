"""shipping.py: our packages in a zip.

What is in it: `test_facts.py`, beside what is made of it.
"""

from __future__ import annotations

import sys
from pathlib import Path

from timely.spark.scheduled.shipping import packed, ship


class Context:
    """In place of Spark: what is given to it, and what it does to the driver."""

    def __init__(self, folder: Path) -> None:
        self._temp_dir = str(folder)
        self.given: list[str] = []

    def addPyFile(self, path: str) -> None:
        self.given.append(path)
        sys.path.insert(1, path)


def test_a_zip_that_is_there_is_not_made_again(tmp_path: Path) -> None:
    made = packed(tmp_path)
    written = made.stat().st_mtime_ns
    assert packed(tmp_path) == made and made.stat().st_mtime_ns == written
    assert [file.name for file in tmp_path.iterdir()] == [made.name]


def test_spark_is_given_the_zip_and_the_driver_goes_on_importing_its_own(tmp_path: Path) -> None:
    context = Context(tmp_path)
    before = list(sys.path)
    archive = ship(context)  # type: ignore[arg-type]  # as much of a context as is used
    assert context.given == [str(archive)] and sys.path == before
