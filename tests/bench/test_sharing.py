"""bench/dataflow/sharing.py: what is compared has the same answers, and what is shared takes less."""

from __future__ import annotations

from pathlib import Path

import pytest
from sales import write_sales

from bench.dataflow import scc, sharing, wcc
from differential.plan import building


def test_the_answers_are_the_same_and_rows_are_fewer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(building, "share", building.share)  # put back afterwards
    monkeypatch.setitem(sharing.GRAPHS, "wcc", lambda: wcc.job(300, 500, 0))
    monkeypatch.setitem(sharing.GRAPHS, "scc", lambda: scc.job(300, 500, 0))
    write_sales(tmp_path)
    for workload in ("wcc", "scc", "Q3 beside Q5"):
        shared = sharing.measured(workload, "asked for", tmp_path)
        alone = sharing.measured(workload, "nothing", tmp_path)
        monkeypatch.setattr(building, "share", sharing.share)
        assert shared["answers"] == alone["answers"]
        assert int(str(shared["rows"])) < int(str(alone["rows"]))
