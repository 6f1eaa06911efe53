"""`docs/journey.md` lists the functions that a changed row passes, and their number has a limit.

The limits only ever fall. A change that raises a number has put something on the path of every row.
"""

from __future__ import annotations

import ast
import functools
from collections.abc import Iterator

import pytest
from profiled_changes import EMBEDDED, PAGE, ROOT, TITLES, Function, Journey, journeys


@pytest.fixture(scope="module")
def measured() -> dict[str, Journey]:
    return journeys()


_TRIES = 12
STALE = "run ./scripts/journey, and look at what joined the path of a row"


@pytest.mark.parametrize("name", TITLES)
def test_the_page_lists_the_functions_that_a_change_passes(measured: dict[str, Journey], name: str) -> None:
    """In processes a function may be passed or not, depending on which process is sooner. So there it is
    enough that a listed function exists.
    """
    listed = set(listed_under(TITLES[name]))
    assert listed
    always, sometimes = measured[name].always, measured[name].sometimes
    for _ in range(_TRIES // 4):
        if always <= listed and (name not in EMBEDDED or listed <= sometimes):
            break
        again = journeys()[name]  # on a busy machine changes pass what goes on beside them, too
        always, sometimes = always & again.always, sometimes | again.sometimes
    assert sorted(always - listed) == [], STALE
    if name in EMBEDDED:
        assert sorted(listed - sometimes) == [], STALE
    assert sorted(one for one in listed if one not in functions_of(one[0])) == [], STALE


def listed_under(title: str) -> Iterator[Function]:
    """Yield what the page lists in a section."""
    section = PAGE.read_text().split(f"## {title}\n")[1]
    for line in section.partition("\n## ")[0].splitlines():
        if line.startswith("| `"):
            file, *functions = line.split("`")[1::2]
            yield from ((file, function) for function in functions)


@functools.cache
def functions_of(file: str) -> frozenset[Function]:
    """Return the functions that a file defines, as their qualified names; none if there is no such file."""
    path = ROOT / file
    names: set[Function] = set()

    def look(node: ast.AST, before: str) -> None:
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.FunctionDef | ast.ClassDef):
                names.add((file, before + child.name))
                within = f"{before}{child.name}."
                look(child, within if isinstance(child, ast.ClassDef) else f"{within}<locals>.")
            else:
                look(child, before)

    if path.exists():
        look(ast.parse(path.read_text()), "")
    return frozenset(names)


@pytest.mark.parametrize(
    ("name", "functions", "files", "calls", "calls_of_c"),
    [("components", 156, 47, 264, 258), ("counts", 124, 38, 174, 161)],
)
def test_an_embedded_change_takes_no_more_than(
    measured: dict[str, Journey], name: str, functions: int, files: int, calls: int, calls_of_c: int
) -> None:
    limits = (functions, files, calls, calls_of_c)
    least = None
    for again in range(_TRIES):
        # On a busy machine a change takes a call or two more, now of one kind and now of another.
        journey = (journeys() if again else measured)[name]
        taken = (journey.count, journey.files, journey.calls, journey.calls_of_c)
        least = taken if least is None else tuple(map(min, least, taken))
        if all(one <= most for one, most in zip(least, limits, strict=True)):
            return
    raise AssertionError(least)


def test_other_processes_add_no_more_files_than(measured: dict[str, Journey]) -> None:
    files = {name: {file for file, _ in journey.always} for name, journey in measured.items()}
    added = (files["client"] | files["worker 0"] | files["worker 1"]) - files["counts"]
    assert len(added) <= 22, sorted(added)
