"""Java ends while Spark is used: one error that says how, nothing else on the error stream, nothing left.

Each in a process of its own: the other tests need their Spark.
"""

from __future__ import annotations

import logging
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from pyspark.errors import AnalysisException
from pyspark.sql import SparkSession

from timely.errors import TimelyError
from timely.spark import lost
from timely.spark.errors import InputFormatError, SparkLostError
from timely.spark.lost import is_stopped, java_watched, spark_errors_as, spark_lost
from timely.spark.session import local_session

ROOT = Path(__file__).resolve().parents[2]
TIMEOUT_SECONDS = 260

pytestmark = pytest.mark.timeout(TIMEOUT_SECONDS + 30)

BEGIN = """
import os, signal, sys, threading, time
from pathlib import Path
import pyarrow as pa
from pyspark import SparkContext
from timely.spark.epochs import epoch_rows
from timely.spark.errors import SparkLostError
from timely.spark.delivering import EpochFeed
from examples.mentions.interactions import read_interactions
from timely.spark.lost import end_session, java_watched
from timely.spark.session import local_session
from timely.spark.sink import ChangesSink, write_snapshot

folder = Path({folder!r})
(folder / "a.txt").write_text("1 2 3\\n")
spark = local_session(cores=1)
java = SparkContext._gateway.proc
rows = epoch_rows(spark.sql("SELECT 1 AS user, 0 AS epoch"), writers=1)
changes = pa.table({{"user": [1], "epoch": [0], "diff": [1]}})
def told(function):
    try:
        function()
    except SparkLostError as error:
        print(type(error).__name__, str(error).replace(str(java.pid), "PID"))
"""

KILLED = """
sink = ChangesSink(spark, folder, {{}})
os.kill(java.pid, signal.SIGKILL)
told(lambda: EpochFeed(rows, "users", lambda: None).send(range(1)))
told(lambda: read_interactions(spark, folder / "a.txt"))
told(lambda: epoch_rows(rows.frame, writers=1))
sink.commit(0, changes)
told(sink.flush)
told(lambda: write_snapshot(spark, folder, changes))
def anything():
    with java_watched():
        spark.range(3).count()
told(anything)
told(sink.close)
print(sink.progress().replace(str(folder), "FOLDER"))
end_session()
end_session()
assert not Path(f"/proc/{{java.pid}}").exists()
spark = local_session(cores=1)
print(spark.range(3).count(), "in a new Java")
second = SparkContext._gateway.proc
begun = threading.Event()
def slow():
    begun.set()
    try:
        spark.sql("SELECT java_method('java.lang.Thread', 'sleep', 600000L)").collect()
    except Exception:
        pass
threading.Thread(target=slow, daemon=True).start()
begun.wait()
end_session()
print("ended while a job runs", second.poll() is not None)
"""


def run(program: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """The program in a process of its own."""
    return subprocess.run(
        [sys.executable, "-c", program.format(folder=str(folder))],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=TIMEOUT_SECONDS,
    )


def test_whoever_needs_spark_is_told_how_java_ended_and_nothing_is_left(tmp_path: Path) -> None:
    done = run(BEGIN + KILLED, tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    told = "SparkLostError the Java process of Spark (process PID) was killed by SIGKILL."
    assert done.stdout.splitlines() == [
        *[told] * 7,
        "No epoch is committed in FOLDER/changes yet.",
        "3 in a new Java",
        "ended while a job runs True",
    ]


def test_an_error_while_java_runs_stays_what_it_is(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lost, "_REAP_SECONDS_MAX", 0.0)  # Java goes on
    assert spark_lost(ConnectionError("of somebody else")) is None
    with pytest.raises(ZeroDivisionError), java_watched():
        raise ZeroDivisionError
    with pytest.raises(SparkLostError, match="by hand"), java_watched():
        raise SparkLostError("by hand")


@pytest.mark.parametrize("is_over", [False, True])
def test_an_error_that_java_has_answered_with_waits_for_its_end_only_if_the_session_is_over(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch, is_over: bool
) -> None:
    """A Java process that is told to end stops its session first, so that jobs fail before it has ended."""
    waits: list[float] = []

    class Java:
        pid, ended = 7, False

        def wait(self, seconds: float) -> None:
            waits.append(seconds)
            self.ended = True

        def poll(self) -> int | None:
            return 143 if self.ended else None

    java = Java()
    monkeypatch.setattr(lost, "_java_process", lambda: java)
    monkeypatch.setattr(lost, "is_stopped", lambda context: is_over)
    with pytest.raises(AnalysisException) as raised:
        spark.sql("SELECT * FROM no_table")
    told = spark_lost(raised.value)
    assert (len(waits), told is not None) == (is_over, is_over)
    assert spark_lost(ConnectionError("broken")) is not None, "what is broken says nothing of the session"


def test_stopped_is_a_session_without_java_or_whose_java_says_so(spark: SparkSession) -> None:
    class Context:
        def __init__(self, *says: bool) -> None:
            self._jsc = self if says else None
            self.sc = lambda: self
            self.isStopped = lambda: says[0]

    class Gone:
        @property
        def _jsc(self) -> None:
            raise ConnectionRefusedError

    assert not is_stopped(spark.sparkContext)
    found = [is_stopped(each) for each in (Context(), Context(True), Context(False), Gone())]  # type: ignore[arg-type]
    assert found == [True, True, False, False]


@pytest.mark.parametrize("stopped", [True, False])
def test_stopped_is_told_in_place_of_what_spark_makes_of_it(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch, stopped: bool
) -> None:
    monkeypatch.setattr(lost, "is_stopped", lambda context: stopped)
    monkeypatch.setattr(lost, "_REAP_SECONDS_MAX", 0.0)  # Java goes on
    said = (
        "^the session of Spark was stopped while it was needed: no rows$" if stopped else "^no rows: .*table"
    )
    with (
        pytest.raises(SparkLostError if stopped else InputFormatError, match=said),
        spark_errors_as("no rows"),
    ):
        spark.sql("SELECT * FROM no_table")


def test_a_session_of_spark_connect_is_not_taken_for_one_that_was_stopped(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It has no context in this process, as a session has not that was stopped."""
    monkeypatch.setattr(lost.SparkContext, "_active_spark_context", None)
    monkeypatch.setenv("SPARK_CONNECT_MODE_ENABLED", "1")
    with pytest.raises(InputFormatError, match="^no rows: not there$"), spark_errors_as("no rows"):
        raise AnalysisException("not there")


INTERRUPTED = """
import os, signal, threading, sys, time
import differential as dd
import timely.spark
from timely.spark.session import local_session

def count(rows):
    return rows.agg(n=dd.count())

spark = local_session(cores=1)

def press(*_):
    global pressed
    if not pressed:
        pressed = True
        threading.Timer(1.0, os.kill, (os.getpid(), signal.SIGINT)).start()

def follow(given, **named):
    global pressed
    pressed = False
    timely.spark.run(count, {"rows": given}, outputs=press, workers=1, **named)  # the line

def look():
    while not spark.sparkContext.statusTracker().getActiveJobsIds():
        time.sleep(0.05)
    press()

threading.Thread(target=look, daemon=True).start()
try:
    follow(spark.range(0, 1 << 40, 1, 2).selectExpr("id % 1000 AS k", "id % 7 AS e"), epochs="e")
except KeyboardInterrupt:
    sys.excepthook(*sys.exc_info())  # as at the end of a program
print("=" * 20, file=sys.stderr)
rates = spark.readStream.format("rate").option("rowsPerSecond", 5).load().selectExpr("value")
follow(rates, epochs=timely.spark.micro_batches("1 second"))
"""


@pytest.mark.usefixtures("interruptible")
def test_an_interrupted_run_shows_the_users_line_and_nothing_of_spark(tmp_path: Path) -> None:
    """One over a batch, and behind it one over a stream, which ends the program."""
    program = tmp_path / "interrupted.py"
    program.write_text(INTERRUPTED)
    done = subprocess.run(
        [sys.executable, program],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=TIMEOUT_SECONDS,
    )
    assert done.returncode == -2, done.stderr
    of_batch, of_stream = done.stderr.split("=" * 20)
    for said in (of_batch, of_stream):
        shown = said[said.index("Traceback") :]
        assert shown.count("Traceback") == 1 and "# the line" in shown, shown
        assert "py4j" not in shown and "pyspark" not in shown and "cancelled" not in shown, shown
        assert "\nKeyboardInterrupt" in shown


def test_an_error_in_the_midst_of_an_interrupt_gives_way_to_it_and_one_that_is_behind_it_does_not() -> None:
    with pytest.raises(KeyboardInterrupt), spark_errors_as("no rows"):
        try:
            raise KeyboardInterrupt
        finally:
            raise AnalysisException("cancelled")
    try:
        raise KeyboardInterrupt
    except KeyboardInterrupt:
        with pytest.raises(TimelyError, match="no rows"), spark_errors_as("no rows"):
            raise AnalysisException("no such table") from None


def _failed(call: Callable[[], object]) -> logging.LogRecord:
    try:
        call()
    except Exception:
        found = sys.exc_info()
    return logging.LogRecord("py4j.clientserver", logging.ERROR, __file__, 1, "in Python", (), found)


def test_py4j_is_quiet_about_what_fails_in_calls_of_ours_and_no_other() -> None:
    def users() -> None:
        raise ValueError("mine")

    assert lost._is_not_of_a_call_of_ours(_failed(users))
    assert not lost._is_not_of_a_call_of_ours(_failed(lambda: local_session(cores=0)))
