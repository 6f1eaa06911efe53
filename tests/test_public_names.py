"""What each package offers: `__all__` says it, the module holds it, a docstring explains it.

declared_*    `__all__` against what the file binds
importable_*  the names really come out of an import, without Spark being imported on the way
unique_*      no two classes of the packages have one name
late_*        those that are imported when they are first asked for are names like all others
"""

from __future__ import annotations

import ast
import subprocess
import sys
from collections import defaultdict
from functools import cache

import pytest
from house import PACKAGES, ROOT, Module, modules, report

OURS = [module for package in PACKAGES for module in modules(package)]


@cache
def declared() -> list[Module]:
    """Those with `__all__`. Not while tests are collected: all files are parsed, which takes four seconds."""
    return [module for module in OURS if module.declared_names is not None]


def test_declared_every_package_says_what_it_offers() -> None:
    public = [
        module
        for module in OURS
        if module.is_package and (module.reexported_names or module.name in PACKAGES)
    ]
    report(f"{module.path}: no __all__" for module in public if module.declared_names is None)


def test_declared_names_are_there() -> None:
    """A name that readers expect in a module may come from elsewhere in the project."""
    report(
        f"{module.path}: {name} is declared and not there"
        for module in declared()
        for name in set(module.declared_names or ()) - module.defined_names - module.reexported_names
    )


def test_declared_are_all_public_names() -> None:
    """All that a file defines; and all that a package imports from ours, if its file does nothing else."""
    report(
        f"{module.path}: {name} is public, not declared: add it or begin it with _"
        for module in declared()
        for name in (module.defined_names or module.reexported_names) - set(module.declared_names or ())
    )


def test_unique_no_two_classes_have_one_name() -> None:
    """A reader who finds a name in two files has to look which one is meant. Private classes count, too."""
    where = defaultdict(list)
    for module in OURS:
        for part in module.parts:
            if isinstance(part, ast.ClassDef):
                where[part.name].append(module.where(part.lineno))
    report(f"{name}: {', '.join(lines)}" for name, lines in where.items() if len(lines) > 1)


@pytest.mark.parametrize("package", PACKAGES)
def test_importable_every_name_comes_out_of_the_package_and_spark_and_pandas_stay_out(package: str) -> None:
    """One fresh process each: what another test has imported must not help."""
    program = (
        f"import sys, {package}\n"
        f"missing = [name for name in {package}.__all__ if not hasattr({package}, name)]\n"
        "assert not missing, missing\n"
        "assert 'pyspark' not in sys.modules, 'importing it starts to load Spark'\n"
        "assert 'pandas' not in sys.modules, 'a fifth of the time that a worker takes to start'\n"
    )
    result = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True)
    assert result.returncode == 0, result.stderr


@pytest.mark.parametrize(
    "program",
    [
        "from progress import *\nassert Tracker.__module__ == 'progress.tracking.tracker'",
        "from progress import SummaryTable, Tracker",
        "import progress\nassert 'Tracker' not in vars(progress) and 'Tracker' in dir(progress)",
        "import progress\nassert progress.Tracker is progress.Tracker is vars(progress)['Tracker']",
    ],
)
def test_late_names_are_there_however_they_are_asked_for(program: str) -> None:
    result = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True)
    assert result.returncode == 0, result.stderr


def test_late_names_that_are_not_offered_are_missing_as_anywhere() -> None:
    import progress

    with pytest.raises(AttributeError, match="module 'progress' has no attribute 'Trakcer'"):
        getattr(progress, "Trakcer")  # noqa: B009
    with pytest.raises(ImportError, match="cannot import name 'Trakcer' from 'progress'"):
        exec("from progress import Trakcer", {})
