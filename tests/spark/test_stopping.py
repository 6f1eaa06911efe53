"""A signal ends a program as an error does: once, by name, with a code that tells which."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from contextlib import ExitStack

import pytest
from pyspark import SparkContext

import timely.spark.stopping
from timely.errors import MisuseError
from timely.spark.session import interrupts_kept
from timely.spark.stopping import Stopped, exit_status, stopped_by_signals


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_the_first_signal_leaves_the_blocks_one_after_another(number: signal.Signals) -> None:
    left: list[str] = []
    before = [signal.getsignal(each) for each in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)]
    with pytest.raises(Stopped, match=f"stopped by {number.name}") as stopped, stopped_by_signals():
        try:
            os.kill(os.getpid(), number)
            signal.sigtimedwait([], 10)
            left.append("not interrupted")
        except Exception:
            left.append("handled as an error")
        finally:
            os.kill(os.getpid(), signal.SIGTERM)
            os.kill(os.getpid(), signal.SIGHUP)
            left.append("tidied up")
    assert left == ["tidied up"]
    assert stopped.value.exit_code == 128 + number
    assert [signal.getsignal(each) for each in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)] == before


def test_a_second_interrupt_interrupts_the_tidying_up() -> None:
    with pytest.raises(KeyboardInterrupt), stopped_by_signals():
        try:
            os.kill(os.getpid(), signal.SIGTERM)
        finally:
            os.kill(os.getpid(), signal.SIGINT)
            signal.sigtimedwait([], 10)


def test_an_error_of_the_tidying_up_gives_way_to_the_signal() -> None:
    with pytest.raises(Stopped, match="stopped by SIGTERM") as stopped, stopped_by_signals():
        try:
            os.kill(os.getpid(), signal.SIGTERM)
        finally:
            raise ConnectionError("the workers got the signal, too")
    assert isinstance(stopped.value.__cause__, ConnectionError)
    with pytest.raises(ConnectionError, match="alone"), stopped_by_signals():
        raise ConnectionError("alone")


def test_a_program_ends_with_one_message_and_the_status_that_belongs_to_it(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(timely.spark.stopping, "end_session", lambda: None)  # that of the other tests
    tidied: list[str] = []

    def refused(stack: ExitStack) -> None:
        stack.callback(tidied.append, "refused")
        raise MisuseError("no such file")

    def committing(stack: ExitStack) -> None:
        error = MisuseError("a row divides by zero")
        error.add_note("reported by worker 1")
        error.add_note("Epochs 0 to 4 are committed in out")
        raise error

    def stopped(stack: ExitStack) -> None:
        stack.callback(tidied.append, "stopped")
        os.kill(os.getpid(), signal.SIGTERM)
        signal.sigtimedwait([], 10)

    assert (exit_status(lambda stack: None), capsys.readouterr().err) == (0, "")
    assert exit_status(refused) == 1
    assert capsys.readouterr().err == "MisuseError: no such file\nNothing was written.\n"
    assert exit_status(committing) == 1
    told = "MisuseError: a row divides by zero\nEpochs 0 to 4 are committed in out\n"
    assert capsys.readouterr().err == told
    assert exit_status(stopped) == 143
    assert capsys.readouterr().err == "stopped by SIGTERM.\nNothing was written.\n"
    assert tidied == ["refused", "stopped"]


def of_pyspark(number: int, frame: object) -> None:
    """What PySpark handles Ctrl-C with, as far as it matters here."""
    raise KeyboardInterrupt


@pytest.fixture
def own() -> Iterator[None]:
    """Ctrl-C as Python has it, whatever other tests of this process have started."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("own")
def test_a_spark_that_is_started_inside_does_not_take_the_interrupt_for_itself() -> None:
    with pytest.raises(Stopped, match="stopped by SIGINT"), stopped_by_signals():
        with interrupts_kept():
            signal.signal(signal.SIGINT, of_pyspark)
        os.kill(os.getpid(), signal.SIGINT)
        signal.sigtimedwait([], 10)


@pytest.mark.usefixtures("own")
def test_the_handlers_of_python_and_of_an_earlier_spark_give_way_to_that_of_a_new_one() -> None:
    with interrupts_kept():
        signal.signal(signal.SIGINT, of_pyspark)
    assert signal.getsignal(signal.SIGINT) == of_pyspark

    def of_an_earlier_one(number: int, frame: object) -> None:
        raise AssertionError("it cancels the jobs of a context that has ended")

    of_an_earlier_one.__module__ = SparkContext.__module__
    signal.signal(signal.SIGINT, of_an_earlier_one)
    with interrupts_kept():
        signal.signal(signal.SIGINT, of_pyspark)
    assert signal.getsignal(signal.SIGINT) == of_pyspark
