"""Spark's Java process is gone: who says so, and what is done with the rest.

Py4J, PySpark and its helpers each report a broken connection, with tracebacks of their own, and none of them
knows why. The process is our child, so we do: how it ended is asked of it, and said once.
"""

from __future__ import annotations

import contextlib
import logging
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from types import TracebackType

from py4j.protocol import Py4JError  # type: ignore[import-untyped]  # as it comes
from pyspark import SparkContext
from pyspark.sql import SparkSession
from pyspark.sql.utils import is_remote

from timely.errors import TimelyError
from timely.own_files import OWN_FOLDERS
from timely.spark.errors import InputFormatError, SparkLostError, first_line
from timely.user_code.short_traces import users_frames

__all__ = [
    "end_session",
    "is_stopped",
    "java_watched",
    "quiet_about_lost_java",
    "spark_lost",
    "spark_said",
    "told_alone",
]

_OF_SPARK = ("py4j", "pyspark")
"""Packages whose errors and frames say nothing to who has called us."""

_REAP_SECONDS_MAX = 2.0
"""How long after its connections broke a process may take to be gone."""

_STOP_SECONDS_MAX = 10.0
"""How long Spark may take to stop; then its process is killed."""


def spark_lost(error: BaseException) -> SparkLostError | None:
    """What to raise in place of `error` if Spark's Java process has ended; None if it runs."""
    process = _java_process()
    if process is None:
        return None
    if _is_of_a_connection(error):
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(_REAP_SECONDS_MAX)
    status = process.poll()
    if status is None:
        return None
    how = f"was killed by {signal.Signals(-status).name}" if status < 0 else f"ended with status {status}"
    lost = SparkLostError(f"the Java process of Spark (process {process.pid}) {how}.")
    lost.__cause__ = error
    return lost


def is_stopped(context: SparkContext) -> bool:
    """Whether the session was stopped: no task runs in it any more, and none ever will. Of a Java that has
    ended nothing is known.
    """
    with contextlib.suppress(Exception):  # Py4J's
        return context._jsc is None or bool(context._jsc.sc().isStopped())
    return False


def _session_is_over() -> bool:
    """Whether there was a session and it was stopped. One of Spark Connect has no context in this process."""
    context = SparkContext._active_spark_context
    return not is_remote() if context is None else is_stopped(context)


@contextlib.contextmanager
def java_watched() -> Iterator[None]:
    """Whatever is raised inside because Spark's Java process has ended becomes one `SparkLostError`."""
    try:
        yield
    except SparkLostError:
        raise
    except Exception as error:
        lost = spark_lost(error)
        if lost is not None:
            raise lost from error
        raise


@contextlib.contextmanager
def spark_said(what: str, kind: type[TimelyError] = InputFormatError) -> Iterator[None]:
    """An error of Spark, in one line, as one of ours that begins with `what`. What comes up while an
    interrupt is on its way, as that jobs were cancelled, gives way to that.
    """
    handled = sys.exc_info()[1]  # by who calls: an interrupt that is over
    try:
        yield
    except TimelyError:
        raise
    except Exception as error:  # PySpark's own, or one of the JVM that PySpark passes on as it is
        if (interrupt := _interrupt_behind(error, handled)) is not None:
            raise interrupt from None
        lost = spark_lost(error)
        if lost is not None:
            raise lost from None
        if _session_is_over():
            raise SparkLostError(f"the session of Spark was stopped while it was needed: {what}") from None
        raise kind(f"{what}: {first_line(error)}") from None


class told_alone:
    """`with told_alone():`, errors come without those of Spark and Py4J in front of them, which are long and
    say less. So does an interrupt (Ctrl-C), and without their frames, which say by what means it waited:
    PySpark asks Java then to cancel all jobs, by a connection that another answer is still to come by, so
    that this fails most often.
    """

    def __enter__(self) -> None:
        return None

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if isinstance(error, KeyboardInterrupt):
            error.__suppress_context__ = True
            error.__traceback__ = users_frames(error.__traceback__, _OF_SPARK)
        elif isinstance(error, TimelyError):
            error.__suppress_context__ = True
            if type(error.__cause__).__module__.partition(".")[0] in (*_OF_SPARK, "builtins"):
                error.__cause__ = None


def end_session() -> None:
    """Stop Spark, in whatever state it is; on return its Java process has ended. Never raises an error."""
    process = _java_process()
    if process is None:
        return
    session = SparkSession._instantiatedSession
    if session is not None and process.poll() is None:
        # In a thread of its own, which has a connection of its own: that of a thread which was interrupted in
        # the middle of a call still has the answer of that call in it.
        stopping = threading.Thread(target=_stop, args=(session,), name="stopping spark", daemon=True)
        stopping.start()
        stopping.join(_STOP_SECONDS_MAX)
    if process.stdin is not None:
        with contextlib.suppress(OSError):
            process.stdin.close()
    try:
        process.wait(_REAP_SECONDS_MAX)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
    # A later `local_session` starts another Java process.
    SparkContext._gateway = SparkContext._jvm = SparkContext._active_spark_context = None
    SparkSession._instantiatedSession = None


def quiet_about_lost_java(context: SparkContext) -> None:
    """Let nobody else report a broken connection with Java: who called gets an exception that says it."""
    vars(context._accumulatorServer)["handle_error"] = _nothing
    root = logging.getLogger()
    if _is_not_of_py4j not in root.filters:
        root.addFilter(_is_not_of_py4j)
    calls = logging.getLogger("py4j.clientserver")
    if _is_not_of_a_call_of_ours not in calls.filters:
        calls.addFilter(_is_not_of_a_call_of_ours)


def _java_process() -> subprocess.Popen[bytes] | None:
    return getattr(SparkContext._gateway, "proc", None)


def _is_of_a_connection(error: BaseException) -> bool:
    seen: BaseException | None = error
    while seen is not None:
        if isinstance(seen, OSError | EOFError | Py4JError):
            return True
        seen = seen.__cause__ or seen.__context__
    return False


def _interrupt_behind(error: BaseException, handled: BaseException | None) -> KeyboardInterrupt | None:
    """The interrupt that an error came up in the midst of; None if that is the one that is handled."""
    seen: BaseException | None = error
    while seen is not None and seen is not handled:
        if isinstance(seen, KeyboardInterrupt):
            return seen
        seen = seen.__context__
    return None


def _stop(session: SparkSession) -> None:
    with contextlib.suppress(Exception):
        session.stop()


def _nothing(*arguments: object) -> None:
    del arguments


def _is_not_of_py4j(record: logging.LogRecord) -> bool:
    return "py4j" not in record.pathname


def _is_not_of_a_call_of_ours(record: logging.LogRecord) -> bool:
    """What Java calls of ours, for each batch of a stream, keeps its error, and whoever waits for the stream
    is told of it; or of the interrupt that has stopped the stream in the middle of a batch.
    """
    step = record.exc_info[2] if record.exc_info else None
    while step is not None:
        if step.tb_frame.f_code.co_filename.startswith(OWN_FOLDERS):
            return False
        step = step.tb_next
    return True
