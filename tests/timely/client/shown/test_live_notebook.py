"""examples/live_table.ipynb: a real kernel runs it, and its widget's last message has what the output has."""

from __future__ import annotations

import os
from pathlib import Path

import nbformat
import pytest
from house import ROOT
from nbclient import NotebookClient

LAST = """
import time
until = time.monotonic() + 60
while table.frame["epoch"] < flow.epoch - 1 and time.monotonic() < until:
    time.sleep(0.02)
print(table.frame["rows"] == [[row["customer"], str(row["orders"]), str(row["cents"])] for row in
    sorted(flow.output("totals").to_pylist(), key=lambda row: -row["cents"])])
cluster.close()
cluster
"""


@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::ResourceWarning")
def test_the_notebook_runs_and_shows_a_live_table(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")]))
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path))
    notebook = nbformat.read(ROOT / "examples" / "live_table.ipynb", as_version=4)
    assert not any(cell.get("outputs") for cell in notebook.cells), "it is stored as nobody has run it"
    notebook.cells.append(nbformat.v4.new_code_cell(LAST))
    NotebookClient(notebook, timeout=120, kernel_name="python3", shutdown_kernel="immediate").execute()
    outputs = [cell.outputs for cell in notebook.cells if cell.cell_type == "code"]
    (flow,), (widget,), _, (rows,), (plan,), (same, closed) = outputs
    assert "customer: string" in flow.data["text/html"]
    assert "&lt;b&gt;frank&lt;/b&gt;" in rows.data["text/html"] and "<b>frank" not in rows.data["text/html"]
    assert plan.text.startswith("'totals' on 1 worker: epoch 50 is open")
    assert same.text == "True\n" and "closed" in closed.data["text/html"]
    states = notebook.metadata.widgets["application/vnd.jupyter.widget-state+json"]["state"]
    frame = states[widget.data["application/vnd.jupyter.widget-view+json"]["model_id"]]["state"]["frame"]
    assert frame["epoch"] == 49 and len(frame["rows"]) == frame["total"] == 6
