"""Thresholds that choose between two ways of doing one thing stand in one table of their package.

A name says that a constant is one: that something is few or many, or the least or the most rows, keys, pairs
or values for which something is done.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from types import ModuleType

import pytest
from house import PACKAGES, Module, modules, report

import differential.thresholds
import timely.thresholds

CHOOSES = re.compile(r"(^|_)(FEW|MANY|TINY)(_|$)|(^|_)(ROWS|KEYS|PAIRS|VALUES)_(MIN|MAX)$")

TABLES = {"timely/limits.py", "timely/thresholds.py", "differential/thresholds.py"}

LEFT = {
    "FEW_MAX",
    "FOLDED_ROWS_MIN",
    "GATHERED_ROWS_MAX",
    "GATHERED_ROWS_MIN",
    "LOOSE_ROWS_MAX",
    "PAIRS_MAX",
    "ROWS_MAX",
    "SUMMED_ROWS_MIN",
    "WAITING_ROWS_MAX",
    "WAITING_ROWS_MIN",
    "_FEW_ROWS",
    "_FEW_ROWS_MAX",
    "_GAPS_FEW",
    "_MANY_ROWS",
    "_ROWS_FEW",
    "_SMALL_ROWS_MAX",
    "_TABLE_ROWS_MAX",
}
"""What still stands where it is used. It only gets less: whoever moves one takes it from here."""


def _numbers(module: Module) -> Iterator[tuple[str, int]]:
    """The constants of a module that are made of numbers, and their lines."""
    for node in module.tree.body:
        if isinstance(node, ast.AnnAssign | ast.Assign) and isinstance(node.value, ast.Constant | ast.BinOp):
            targets = [node.target] if isinstance(node, ast.AnnAssign) else node.targets
            yield from ((name.id, node.lineno) for name in targets if isinstance(name, ast.Name))


def _declared() -> Iterator[tuple[Module, str, int]]:
    for package in PACKAGES:
        for module in modules(package):
            if module.path.as_posix() not in TABLES:
                yield from ((module, *found) for found in _numbers(module) if CHOOSES.search(found[0]))


def test_thresholds_stand_in_a_table() -> None:
    report(
        f"{module.where(line)}: {name} chooses a way, and belongs into thresholds.py"
        for module, name, line in _declared()
        if name not in LEFT
    )


def test_thresholds_that_are_left_are_still_there() -> None:
    gone = LEFT - {name for _, name, _ in _declared()}
    report(f"{name} is not there any more; take it from LEFT" for name in sorted(gone))


@pytest.mark.parametrize("table", [timely.thresholds, differential.thresholds])
def test_thresholds_of_a_table_are_exported_and_used(table: ModuleType) -> None:
    assert sorted(table.__all__) == sorted(name for name in vars(table) if name.isupper())
    used = {
        each.name
        for package in PACKAGES
        for module in modules(package)
        for each in module.imports
        if each.is_from(table.__name__) or each.module.endswith("thresholds")
    }
    report(f"{name} is used nowhere" for name in table.__all__ if name not in used)
