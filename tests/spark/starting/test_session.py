"""local_session: a Spark that starts anywhere and is seen nowhere.

alone_*     a machine with pip and nothing else: session, aggregation, Arrow exchange, Parquet
quiet_*     nothing on standard output, nothing but errors on standard error
settings_*  what every job relies on
python_*    of tasks: it imports PySpark from where its compiled files are kept
error_*     a Java that does not work
"""

from __future__ import annotations

import os
import subprocess
import sys
import sysconfig
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pyarrow as pa
import pyspark
import pytest
from pyspark.sql import SparkSession

from timely.spark.session import _NOISE, local_session, python_of_tasks

ROOT = Path(__file__).resolve().parents[3]

PROGRAM = """
import os, sys, pathlib
sys.path.insert(0, {root!r})
from timely.spark.session import local_session
spark = local_session(cores=1)
ours = {{"JAVA_HOME", "SPARK_LOCAL_IP", "PYSPARK_PYTHON"}}
assert not ours & os.environ.keys(), "the environment of the program is its own"
assert spark.range(1000).selectExpr("sum(id)").collect()[0][0] == 499_500
def double(batches):
    import pyarrow.compute, timely.spark.delivering  # executors find the project
    for batch in batches:
        yield batch.set_column(0, "id", pyarrow.compute.multiply(batch.column(0), 2))
frame = spark.range(10).mapInArrow(double, "id bigint")
assert frame.toArrow().column("id").to_pylist() == list(range(0, 20, 2))
frame.write.parquet({folder!r})
assert spark.read.parquet({folder!r}).count() == 10
try:
    spark.range(1).selectExpr("raise_error('broken')").collect()
except Exception as error:
    assert "broken" in str(error)
spark.stop()
print("done")
"""


def path_without_java(folder: Path) -> str:
    """A folder with links to every program on the PATH whose name does not begin with java."""
    folder.mkdir()
    for part in os.environ["PATH"].split(os.pathsep):
        for program in Path(part).glob("*") if Path(part).is_dir() else ():
            link = folder / program.name
            if not program.name.startswith("java") and not link.is_symlink():
                link.symlink_to(program)
    return str(folder)


def test_alone_spark_works_without_any_java_but_that_of_the_packages_and_prints_nothing(
    tmp_path: Path,
) -> None:
    environment = {
        name: value for name, value in os.environ.items() if name not in ("JAVA_HOME", "PYTHONPATH")
    }
    environment["PATH"] = path_without_java(tmp_path / "programs")
    environment["XDG_CACHE_HOME"] = str(tmp_path / "cache")
    program = PROGRAM.format(root=str(ROOT), folder=str(tmp_path / "written"))
    # In a folder of its own: executors must find the project by its path, not by where they are started.
    done = subprocess.run(
        [sys.executable, "-c", program], env=environment, cwd=tmp_path, capture_output=True, text=True
    )
    assert (done.returncode, done.stdout) == (0, "done\n"), done.stderr
    assert done.stderr == ""
    assert list((tmp_path / "cache" / "naiad" / "spark").glob("java-*"))
    left = sorted(entry.name for entry in tmp_path.iterdir())
    assert left == ["cache", "programs", "written"], "no spark-warehouse, no metastore"


@pytest.mark.parametrize(
    ("line", "is_noise"),
    [
        ("WARNING: Using incubator modules: jdk.incubator.vector", True),
        ("WARNING: package sun.security.action not in java.base", True),
        ("Using Spark's default log4j profile: org/apache/spark/log4j2-defaults.properties", True),
        ("Spark: ERROR TaskSetManager: lost it", False),
        ("java.lang.OutOfMemoryError: Java heap space", False),
        ("WARNING: the disk is full", False),
    ],
)
def test_quiet_about_what_says_nothing_only(line: str, is_noise: bool) -> None:
    assert bool(_NOISE.match(line)) == is_noise


def test_settings_are_those_that_every_job_relies_on(spark: SparkSession) -> None:
    assert spark.conf.get("spark.sql.session.timeZone") == "UTC"
    assert spark.conf.get("spark.sql.execution.arrow.pyspark.enabled") == "true"
    context = spark.sparkContext
    assert context.uiWebUrl is None
    settings = dict(context.getConf().getAll())
    assert settings["spark.driver.host"] == settings["spark.driver.bindAddress"] == "127.0.0.1"
    assert settings["spark.master"] == "local[2,3]"


def test_settings_a_second_call_returns_the_running_session(spark: SparkSession) -> None:
    assert local_session(cores=1) is spark
    with ThreadPoolExecutor(1) as another_thread:
        assert another_thread.submit(local_session).result().sparkContext is spark.sparkContext
    with pytest.raises(ValueError, match="1 or more"):
        local_session(cores=0)


PRINTED = "import os, sys, pyspark; print(pyspark.__file__, os.environ['PYTHONPATH'], sys.argv)"


def test_python_of_tasks_imports_no_pyspark_from_a_zip(spark: SparkSession) -> None:
    def where(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for _ in batches:
            found = [str(pyspark.__file__), sys.executable, *os.environ["PYTHONPATH"].split(os.pathsep)]
            yield pa.record_batch({"found": found})

    frame = spark.range(1).coalesce(1).mapInArrow(where, "found string")
    imported, python, *paths = frame.toArrow().column("found").to_pylist()
    assert (imported, python) == (pyspark.__file__, sys.executable)
    assert str(ROOT) in paths and not any(path.endswith(".zip") for path in paths)


@pytest.mark.parametrize("others", [[], ["/nowhere", "it's a folder", "a b"]])
def test_python_of_tasks_is_handed_everything_else(others: list[str]) -> None:
    lib = Path(str(pyspark.__file__)).parent / "python" / "lib"
    zips = [str(path) for path in sorted(lib.glob("*.zip"))]
    assert len(zips) == 2
    told = subprocess.run(
        [python_of_tasks("local[2]"), "-c", PRINTED, "-m", "two words"],
        env={"PYTHONPATH": os.pathsep.join([*zips, *others])},
        capture_output=True,
        text=True,
    )
    wanted = [pyspark.__file__, os.pathsep.join(others), ["-c", "-m", "two words"]]
    assert told.stdout == " ".join(map(str, wanted)) + "\n", told.stderr


def test_python_of_tasks_is_this_one_elsewhere(monkeypatch: pytest.MonkeyPatch) -> None:
    """On other machines the script is not there; without PySpark beside it this Python needs the zips."""
    assert (
        python_of_tasks("spark://example:7077") == sys.executable != python_of_tasks("local-cluster[1,1,1]")
    )
    monkeypatch.setattr(sysconfig, "get_path", lambda name: f"/nowhere/{name}")
    assert python_of_tasks("local[2]") == sys.executable


def test_error_of_a_java_that_does_not_work_shows_what_it_said(tmp_path: Path) -> None:
    """In a process of its own: this one has its Spark already."""
    java = tmp_path / "bin" / "java"
    java.parent.mkdir()
    java.write_text("#!/bin/sh\necho 'Error: this machine is a toaster' >&2\nexit 1\n")
    java.chmod(0o755)
    (tmp_path / "release").write_text('JAVA_VERSION="21"\n')
    program = (
        f"import sys\nsys.path.insert(0, {str(ROOT)!r})\n"
        "from timely.spark.session import local_session\nlocal_session()"
    )
    environment = {**os.environ, "JAVA_HOME": str(tmp_path)}
    done = subprocess.run(
        [sys.executable, "-c", program], env=environment, capture_output=True, text=True, timeout=60
    )
    assert done.returncode != 0
    assert f"Spark did not start with the Java at {tmp_path} (from JAVA_HOME). It said:" in done.stderr
    assert "this machine is a toaster" in done.stderr.split("It said:")[1]
    assert "Set JAVA_HOME to a Java 17 or 21, or unset it" in done.stderr
