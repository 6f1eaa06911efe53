"""Thresholds that choose between two ways of doing one thing stand in one table of their package.

A name says that a constant is one: that something is few or many, or the least or the most rows, keys, pairs
or values for which something is done.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from house import PACKAGES, Module, modules, report

from differential import thresholds

CHOOSES = re.compile(r"(^|_)(FEW|MANY|TINY)(_|$)|(^|_)(ROWS|KEYS|PAIRS|VALUES)_(MIN|MAX)$")

TABLES = {"timely/limits.py", "differential/thresholds.py"}

LEFT = {
    "differential/expressions/projection.py": {"_SMALL_ROWS_MAX"},
    "differential/kernels/regions/round_messages.py": {"ROWS_MAX"},
    "differential/kernels/regions/layout.py": {"PAIRS_MAX", "ROWS_MAX"},
    "differential/operators/consolidate.py": {"PILED_ROWS_MIN", "_PAIRS_MAX", "_ROWS_FEW"},
    "differential/operators/edge/collected.py": {"WAITING_ROWS_MAX", "WAITING_ROWS_MIN"},
    "differential/operators/join.py": {"MATCHED_ROWS_MAX"},
    "differential/operators/loops/priority.py": {"_MANY_ROWS"},
    "differential/operators/ordered/places.py": {"_GAPS_FEW"},
    "differential/operators/ordered/symbol_order.py": {"_FEW_ROWS"},
    "differential/operators/reducing/overflowing.py": {"_KEYS_MIN"},
    "differential/operators/table_io.py": {"_FEW_ROWS_MAX", "_ROWS_FEW"},
    "differential/operators/vertices.py": {"_FEW_WORDS"},
    "differential/operators/waiting/gathered.py": {"GATHERED_ROWS_MAX", "GATHERED_ROWS_MIN"},
    "differential/operators/waiting/pile.py": {"LOOSE_ROWS_MAX", "SUMMED_ROWS_MIN"},
    "differential/operators/waiting/portions.py": {"ROWS_MIN"},
    "differential/regions/slots.py": {"LOOSE_ROWS_MAX"},
    "differential/regions/traces.py": {"SUMMED_ROWS_MIN"},
    "progress/tracking/tracker.py": {"FEW_MAX", "_WORDS_FEW"},
    "timely/client/tables.py": {"_ROWS_FEW"},
    "timely/operators/inputs/codecs.py": {"FOLDED_ROWS_MIN"},
    "timely/operators/inputs/handle.py": {"_CALL_ROWS_MAX"},
    "timely/operators/inputs/plain_rows.py": {"_TABLE_ROWS_MAX"},
    "timely/operators/inputs/together.py": {"TOGETHER_ROWS_MAX"},
    "timely/running/stages/rights.py": {"_FEW_MAX"},
    "timely/running/stages/vertex_runner.py": {"_FEW_MAX"},
    "timely/spark/sink.py": {"_WAITING_ROWS_MAX"},
    "timely/spark/source/columns.py": {"_REPEATED_ROWS_MAX"},
    "timely/wire/arrow.py": {"_VALUES_FEW"},
}
"""What still stands where it is used, by file. It only gets less: whoever moves one takes it from here."""


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
        if name not in LEFT.get(module.path.as_posix(), ())
    )


def test_thresholds_that_are_left_are_still_there() -> None:
    there = {(module.path.as_posix(), name) for module, name, _ in _declared()}
    report(
        f"{path}: {name} is not there any more; take it from LEFT"
        for path, names in LEFT.items()
        for name in sorted(names)
        if (path, name) not in there
    )


def test_thresholds_of_the_table_are_exported_and_used() -> None:
    assert sorted(thresholds.__all__) == sorted(name for name in vars(thresholds) if name.isupper())
    used = {
        each.name
        for module in modules("differential")
        for each in module.imports
        if each.is_from("differential.thresholds")
    }
    report(f"{name} is used nowhere" for name in thresholds.__all__ if name not in used)
