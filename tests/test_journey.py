"""`docs/journey.md` lists the functions that a changed row passes, and their number has a limit.

The limits only ever fall. A change that raises a number has put something on the path of every row.
"""

from __future__ import annotations

import pytest
from profiled_changes import PAGE, TITLES, Journey, journeys


@pytest.fixture(scope="module")
def measured() -> dict[str, Journey]:
    return journeys()


STALE = "run ./scripts/journey, and look at what joined the path of a row"


@pytest.mark.parametrize("name", TITLES)
def test_the_page_lists_the_functions_that_a_change_passes(measured: dict[str, Journey], name: str) -> None:
    """Some functions are passed or not depending on which thread or process is sooner. So every listed
    function is passed by some change, and every function that all changes pass is listed.
    """
    section = PAGE.read_text().split(f"## {TITLES[name]}\n")[1]
    listed = set()
    for line in section.partition("\n## ")[0].splitlines():
        if line.startswith("| `"):
            file, *functions = line.split("`")[1::2]
            listed |= {(file, function) for function in functions}
    assert listed
    assert sorted(measured[name].always - listed) == [], STALE
    assert sorted(listed - measured[name].sometimes) == [], STALE


@pytest.mark.parametrize(
    ("name", "functions", "files", "calls", "calls_of_c"),
    [("components", 172, 51, 303, 246), ("counts", 145, 45, 212, 169)],
)
def test_an_embedded_change_takes_no_more_than(
    measured: dict[str, Journey], name: str, functions: int, files: int, calls: int, calls_of_c: int
) -> None:
    journey = measured[name]
    taken = (journey.count, journey.files, journey.calls, journey.calls_of_c)
    limits = (functions, files, calls, calls_of_c)
    assert all(one <= most for one, most in zip(taken, limits, strict=True)), taken


def test_other_processes_add_no_more_files_than(measured: dict[str, Journey]) -> None:
    files = {name: {file for file, _ in journey.functions} for name, journey in measured.items()}
    added = (files["client"] | files["worker 0"] | files["worker 1"]) - files["counts"]
    assert len(added) <= 29, sorted(added)
