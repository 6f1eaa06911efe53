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
import progress.thresholds
import timely.thresholds

CHOOSES = re.compile(r"(^|_)(FEW|MANY|TINY)(_|$)|(^|_)(ROWS|KEYS|PAIRS|VALUES)_(MIN|MAX)$")

TABLES = {"timely/limits.py", *(f"{package}/thresholds.py" for package in PACKAGES)}


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
    )


@pytest.mark.parametrize("table", [progress.thresholds, timely.thresholds, differential.thresholds])
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
