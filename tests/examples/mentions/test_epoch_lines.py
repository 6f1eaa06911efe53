"""What the main job says about an epoch."""

from __future__ import annotations

import io
import json
import sys

import pyarrow as pa
import pytest
from house import ROOT
from rich.console import Console

from timely.spark.jobs.outputs import Epoch

sys.path.append(str(ROOT / "examples"))  # where a program of examples/ finds its neighbours


def changes(*rows: tuple[int, int, int, int]) -> pa.Table:
    names = ("node", "component", "epoch", "diff")
    return pa.table(
        {
            name: pa.array(column, pa.int64())
            for name, column in zip(names, zip(*rows, strict=True), strict=True)
        }
    )


def test_a_line_has_the_window_and_its_components_as_json_or_for_the_screen(
    capsys: pytest.CaptureFixture[str],
) -> None:
    from mentions.epoch_lines import EpochLines

    first = Epoch.of(0, 1_341_104_400, (3, 0), 0.5)
    second = Epoch.of(1, 1_341_108_000, (1, 2), 0.25)
    tables = [changes((1, 1, 0, 1), (2, 1, 0, 1), (4, 4, 0, 1)), changes((2, 1, 1, -1))]
    lines = EpochLines(Console(), as_json=True)
    for epoch, table in zip((first, second), tables, strict=True):
        lines(epoch, table)
    reports = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [list(report.values()) for report in reports] == [
        [0, 1_341_104_400, 3, 3, 2, 2, 3, 0.5],
        [1, 1_341_108_000, 2, 2, 2, 1, 1, 0.25],
    ]
    written = io.StringIO()
    EpochLines(Console(file=written), as_json=False)(first, tables[0])
    assert written.getvalue().split() == (
        [
            "Sun",
            "01",
            "Jul",
            "01:00",
            "+3",
            "-0",
            "interactions",
            "3",
            "nodes",
            "2",
            "components",
            "largest",
            "2",
            "3",
            "changes",
            "500.0",
            "ms",
        ]
    )
