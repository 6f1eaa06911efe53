"""Users import errors from `timely`, `differential` or `timely.spark`, and see them by that name.

all_*      every error of ours is in one of the three, and drawn in docs/reference.md
shown_*    tracebacks, pickle and `isinstance` know it by that name
"""

from __future__ import annotations

import pickle
import subprocess
import sys
import traceback
from importlib import import_module

import pytest
from house import PACKAGES, ROOT, modules

import differential as dd
import timely
import timely.spark

HOMES = {"timely": timely, "differential": dd, "timely.spark": timely.spark}


def errors() -> dict[str, type[Exception]]:
    """All classes below TimelyError that are not private, by the name that tracebacks show."""
    for package in PACKAGES:
        for module in modules(package):
            if module.name.endswith("errors"):
                import_module(module.name)
    import_module("timely.spark.epochs")
    found: dict[str, type[Exception]] = {}
    left: list[type[Exception]] = [timely.TimelyError]
    while left:
        each = left.pop()
        left += each.__subclasses__()
        is_ours = each.__module__.partition(".")[0] in PACKAGES
        if is_ours and not each.__name__.startswith("_"):
            found[f"{each.__module__}.{each.__name__}"] = each
    return found


ERRORS = errors()
PAGE = (ROOT / "docs" / "reference.md").read_text()


def test_all_errors_are_imported_from_one_of_three_places() -> None:
    assert len(ERRORS) >= 30
    for shown, error in ERRORS.items():
        home = HOMES[error.__module__]
        assert getattr(home, error.__name__) is error and error.__name__ in home.__all__, shown
        assert f"`{shown.replace('differential.', 'dd.')}`" in PAGE, f"docs/reference.md lacks {shown}"


@pytest.mark.parametrize("shown", ERRORS)
def test_shown_by_the_name_that_users_import(shown: str) -> None:
    error = ERRORS[shown]("what happened")
    assert traceback.format_exception_only(error)[-1] == f"{shown}: what happened\n"
    again = pickle.loads(pickle.dumps(error))
    assert type(again) is type(error) and str(again) == "what happened"
    assert isinstance(again, timely.TimelyError)


def test_shown_so_in_the_traceback_of_a_program() -> None:
    program = (
        "import timely\n"
        "import differential as dd\n"
        "with timely.connect(embedded=True) as cluster:\n"
        "    flow = cluster.install(lambda flow: dd.input(flow, 'rows', 'k: int').output('out'))\n"
        "    flow.wait(0, timeout=0.01)\n"
    )
    ran = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True)
    assert ran.stderr.splitlines()[-1].startswith("timely.WaitTimeoutError: ") or (
        "\ntimely.WaitTimeoutError: " in ran.stderr
    ), ran.stderr


def test_shown_classes_of_users_keep_their_names() -> None:
    class Mine(timely.MisuseError):
        """Of a user."""

    assert Mine.__module__ == __name__
