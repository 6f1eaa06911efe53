"""Report the end of Spark's Java process by one error, and end the rest of Spark.

Py4J, PySpark and its helpers each report a broken connection, with tracebacks of their own, and none of them
knows why it broke. The Java process is our child, so this module can find out how it ended, and report it
once.
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

from py4j.protocol import Py4JError, Py4JJavaError  # type: ignore[import-untyped]  # as it comes
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
    "own_errors_only",
    "quiet_about_lost_java",
    "spark_errors_as",
    "spark_lost",
]

_OF_SPARK = ("py4j", "pyspark")
"""Packages whose errors and frames tell a user nothing."""

_REAP_SECONDS_MAX = 2.0
"""How long the process may take to end after its connections broke."""

_STOP_SECONDS_MAX = 10.0
"""How long Spark may take to stop; after that its process is killed."""


def spark_lost(error: BaseException) -> SparkLostError | None:
    """Return the error to raise in place of `error` if Spark's Java process has ended; None if it runs."""
    process = _java_process()
    if process is None:
        return None
    if _may_be_ending(error):
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
    """Return True if the session was stopped, so that no task runs in it any more, and none ever will.

    False if Java has ended: then nothing is known.
    """
    with contextlib.suppress(Exception):  # Py4J's
        return context._jsc is None or bool(context._jsc.sc().isStopped())
    return False


def _session_is_over() -> bool:
    """Return True if there is no running session. (One of Spark Connect has no context in this process, and
    counts as running.)
    """
    context = SparkContext._active_spark_context
    return not is_remote() if context is None else is_stopped(context)


@contextlib.contextmanager
def java_watched() -> Iterator[None]:
    """Inside, turn any error that has come up because Spark's Java process has ended into a
    `SparkLostError`.
    """
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
def spark_errors_as(what: str, kind: type[TimelyError] = InputFormatError) -> Iterator[None]:
    """Inside, turn an error of Spark into one of ours: one line that begins with `what`.

    If the error came up while an interrupt was being raised (it may be that jobs were cancelled), the
    interrupt is raised instead.
    """
    handled = sys.exc_info()[1]  # an exception that the caller handles: an interrupt there is over
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


class own_errors_only:
    """`with own_errors_only():` drops errors of Spark and Py4J from the chain of our errors: they are long
    and say less. An interrupt (Ctrl-C) loses them, too, and also the frames of these packages, which show
    only how the program waited. (At an interrupt PySpark asks Java to cancel all jobs, by a connection on
    which another answer is outstanding, so that this usually fails.)
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
        # A thread of its own has a connection of its own. If this thread was interrupted in the middle of a
        # call, the answer of that call is still in its connection.
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
    """Keep PySpark and Py4J from reporting a broken connection to Java: the caller gets an exception
    anyway.
    """
    vars(context._accumulatorServer)["handle_error"] = _nothing
    root = logging.getLogger()
    if _is_not_of_py4j not in root.filters:
        root.addFilter(_is_not_of_py4j)
    calls = logging.getLogger("py4j.clientserver")
    if _is_not_of_a_call_of_ours not in calls.filters:
        calls.addFilter(_is_not_of_a_call_of_ours)


def _java_process() -> subprocess.Popen[bytes] | None:
    return getattr(SparkContext._gateway, "proc", None)


def _may_be_ending(error: BaseException) -> bool:
    """Return True if a connection is broken, or if Java has answered with an error and has no running
    session: a Java process that is told to end stops its session first, which makes jobs fail.
    """
    has_answered = False
    seen: BaseException | None = error
    while seen is not None:
        if isinstance(seen, Py4JJavaError):
            has_answered = True
        elif isinstance(seen, OSError | EOFError | Py4JError):
            return True
        seen = seen.__cause__ or seen.__context__
    return has_answered and _session_is_over()


def _interrupt_behind(error: BaseException, handled: BaseException | None) -> KeyboardInterrupt | None:
    """Return the interrupt during which an error came up; None if there is none, or the caller handles it."""
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
    """Return False for records about an error in our code that Java has called, for each batch of a stream.

    The code that waits for the stream gets that error, or the interrupt that has stopped the stream in the
    middle of a batch.
    """
    step = record.exc_info[2] if record.exc_info else None
    while step is not None:
        if step.tb_frame.f_code.co_filename.startswith(OWN_FOLDERS):
            return False
        step = step.tb_next
    return True
