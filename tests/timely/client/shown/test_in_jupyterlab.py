"""examples/live_table.ipynb in JupyterLab, in a browser: all cells run, and the live table shows the output.

One server, one kernel and one browser are started, once.
"""

from __future__ import annotations

import json
import os
import random
import shutil
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from signal import SIGINT
from typing import cast

import anywidget
import pytest
from browsers import Page, opened
from house import ROOT

TOKEN = "only-for-this-test"
NOTEBOOK = ROOT / "examples" / "live_table.ipynb"
SECONDS = 120.0
OPTIONS = (
    "--no-browser",
    "--ip=127.0.0.1",
    "--port=0",
    "--allow-root",  # tests run as root in CI
    f"--IdentityProvider.token={TOKEN}",
    "--LabApp.expose_app_in_browser=True",
    "--LabApp.check_for_updates_class=jupyterlab.NeverCheckForUpdate",
    "--LabApp.news_url=",
    "--LabApp.extension_manager=readonly",
)


@pytest.fixture
def address(tmp_path: Path, interruptible: None) -> Iterator[str]:
    """Start JupyterLab in a folder with the notebook; give the notebook's address."""
    folders = {name: tmp_path / name for name in ("work", "config", "data", "runtime", "ipython")}
    for folder in folders.values():
        folder.mkdir()
    shutil.copy(NOTEBOOK, folders["work"])
    paths = [str(ROOT), os.environ.get("PYTHONPATH", "")]
    own = {
        "PYTHONPATH": os.pathsep.join(filter(None, paths)),
        "IPYTHONDIR": str(folders["ipython"]),
        "JUPYTER_CONFIG_DIR": str(folders["config"]),
        "JUPYTER_DATA_DIR": str(folders["data"]),
        "JUPYTER_RUNTIME_DIR": str(folders["runtime"]),
        # The parts that widgets have in the page lie beside the packages, perhaps not in this environment.
        "JUPYTER_PATH": str(Path(anywidget.__file__).parents[4] / "share" / "jupyter"),
    }
    with (tmp_path / "log").open("w") as log:
        program = subprocess.Popen(
            [sys.executable, "-m", "jupyterlab", *OPTIONS],
            cwd=folders["work"], env=os.environ | own, stdout=log, stderr=log,
        )  # fmt: skip
    try:
        yield f"{_where(program, folders['runtime'])}lab/tree/{NOTEBOOK.name}?token={TOKEN}"
    finally:
        program.send_signal(SIGINT)  # it ends its kernel, and that its workers
        program.send_signal(SIGINT)
        try:
            program.wait(SECONDS)
        finally:
            program.kill()
            program.wait()


def _where(program: subprocess.Popen[bytes], runtime: Path) -> str:
    """Wait until the server has written its address."""
    end = time.monotonic() + SECONDS
    while time.monotonic() < end and program.poll() is None:
        for path in runtime.glob("jpserver-*.json"):
            try:
                return str(cast("dict[str, object]", json.loads(path.read_text()))["url"])
            except ValueError:
                continue  # it is half written
        time.sleep(0.05)
    pytest.fail(f"JupyterLab has not started: {(runtime.parent / 'log').read_text()[-3000:]}")


def _runs_all(page: Page) -> None:
    """Open the notebook, with its kernel, and run all its cells."""
    app = "globalThis.jupyterapp"
    page.until(
        lambda: page.run(
            f"const panel = {app}?.shell?.currentWidget;"
            "return panel?.sessionContext?.isReady === true && panel.content.widgets.length > 0"
        ),
        SECONDS,
    )
    page.run(f"{app}.commands.execute('notebook:run-all-cells')")


def test_the_live_table_shows_the_output_while_cells_run(address: str) -> None:
    chance, orders, cents = random.Random(7), Counter[str](), Counter[str]()
    customers = ["ann", "bob", "cleo", "dan", "eve", "<b>frank</b>"]
    for _ in range(50 * 20):  # as the notebook draws them
        customer, price = chance.choice(customers), chance.randrange(10_000)
        orders[customer] += 1
        cents[customer] += price
    wanted = [f"{customer} {orders[customer]} {total}" for customer, total in cents.most_common()]
    with opened("--window-size=1280,3000") as page:  # cells outside of the window are not drawn
        page.driver.get(address)
        _runs_all(page)
        page.until(lambda: page.run("return document.querySelector('.naiad-live') !== null"), SECONDS)
        rows = (
            "return [...document.querySelectorAll('.naiad-live tbody tr')].map((row) =>"
            "[...row.cells].map((cell) => cell.textContent).join(' ')).join('\\n')"
        )
        page.until(lambda: str(page.run(rows)).split("\n") == wanted, SECONDS)
        page.shows(".naiad-live", "6 rows, epoch 49")
        assert page.run("return document.querySelectorAll('.naiad-live b').length") == 0
        page.run("document.querySelector('.naiad-live th button').click()")  # by customer
        page.until(
            lambda: str(page.run(rows)).split("\n") == sorted(wanted, key=lambda row: row.split()[0]), SECONDS
        )
        page.shows(".jp-OutputArea-output", "customer: string", "'totals' on 1 worker: epoch 50 is open")
