"""Errors of ours are told without a traceback, others with it."""

from __future__ import annotations

import os

import pytest

from timely.errors import MisuseError
from timely.spark.source.plainly import plainly


@pytest.fixture(autouse=True)
def _environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SPARK_HIDE_TRACEBACK", "")


def test_what_we_refuse_hides_the_traceback_and_is_one_line() -> None:
    error = MisuseError("there is no such output")
    error.add_note("reported by worker 1")
    with pytest.raises(MisuseError) as raised, plainly():
        raise error
    assert os.environ["SPARK_HIDE_TRACEBACK"] == "1"
    assert not getattr(raised.value, "__notes__", [])


def test_what_is_not_of_our_kind_keeps_it() -> None:
    with pytest.raises(ZeroDivisionError), plainly():
        raise ZeroDivisionError
    with plainly():
        pass
    assert os.environ["SPARK_HIDE_TRACEBACK"] == ""
