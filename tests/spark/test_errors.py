"""Errors of the Spark side: where they hang in the tree, and what is left of Spark's own."""

from __future__ import annotations

import pytest

from progress.errors import MisuseError
from timely.spark.errors import InputFormatError, OutputError, SparkStartError, first_line


def test_every_error_is_the_callers_to_mend() -> None:
    assert all(issubclass(kind, MisuseError) for kind in (InputFormatError, OutputError, SparkStartError))


@pytest.mark.parametrize(
    ("text", "line"),
    [
        (
            "[PATH_NOT_FOUND] Path does not exist.\nJVM stacktrace:\n\tat x.y(Z.java:1)",
            "[PATH_NOT_FOUND] Path does not exist.",
        ),
        (
            "An error\n: a.B: failed\n\tat c\nCaused by: d.E: first\n\tat f\nCaused by: g.H: No space left",
            "g.H: No space left",
        ),
        (
            "An error occurred while calling z:a.b.\n: c.SparkException: Job 0 cancelled\n\tat d.e(F.java:1)",
            "c.SparkException: Job 0 cancelled",
        ),
        ("An error occurred while calling o1.stop", "An error occurred while calling o1.stop"),
        ("", "RuntimeError"),
    ],
)
def test_first_line_is_the_innermost_cause_without_the_stack(text: str, line: str) -> None:
    assert first_line(RuntimeError(text)) == line
