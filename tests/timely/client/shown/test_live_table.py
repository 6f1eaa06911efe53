"""The widget: what it sends to a notebook, what it takes from it, and what its module draws in a browser.

The module is tried in Chromium where there is one; without it that test is not there.
"""

from __future__ import annotations

import json
import os
import queue
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import ClassVar

import pytest
from house import ROOT

import differential as dd
import timely
from timely.client.shown import live_table

SECONDS = 60.0
CHROMIUM = shutil.which("chromium")


def counts(flow: timely.Dataflow) -> None:
    rows = dd.input(flow, "rows", "k: string")
    rows.group_by("k").agg(n=dd.count()).output("counts")
    flow.output("records", flow.input("numbers"))


@pytest.fixture(scope="module")
def flow() -> Iterator[timely.Flow]:
    with timely.connect(embedded=True) as cluster:
        yield cluster.install(counts)


def until_sent(table: object, name: str, value: object) -> dict[str, object]:
    """The frame that is sent last, once that value is in it."""
    until = time.monotonic() + SECONDS
    while True:
        state: dict[str, object] = table.get_state()["frame"]  # type: ignore[attr-defined]
        if state[name] == value:
            return state
        assert time.monotonic() < until, state
        time.sleep(0.01)


def test_what_it_sends_is_json_and_a_page_sorts_it(flow: timely.Flow) -> None:
    table = flow.output("counts").live(5, order_by="n", descending=True)
    flow.input("rows").insert([("<b>",), ("<b>",), ("a",)])
    epoch = flow.seal()
    frame = until_sent(table, "epoch", epoch)
    assert frame["rows"] == [["<b>", "2"], ["a", "1"]] and json.loads(json.dumps(frame)) == frame
    table.set_state({"order": ["k", True]})  # type: ignore[attr-defined]  # as the page sends it
    assert until_sent(table, "order", ["k", True])["rows"] == [["a", "1"], ["<b>", "2"]]
    for odd in (["nothing", False], ["k"], [7, None], []):
        table.set_state({"order": odd})  # type: ignore[attr-defined]
    flow.input("rows").insert([("c",)])
    frame = until_sent(table, "epoch", flow.seal())
    assert frame["order"] == ["k", True], "what is no order changes nothing"
    assert frame["marks"] == [[0, 0], [0, 1]]
    table.close()  # type: ignore[attr-defined]


def test_records_and_a_missing_package_are_refused(
    flow: timely.Flow, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(timely.MisuseError, match="has records, which are no table"):
        flow.output("records").live()
    monkeypatch.setitem(sys.modules, "anywidget", None)
    live_table._widget_class.cache_clear()
    with pytest.raises(timely.MisuseError, match=r"pip install 'naiad\[notebook\]'"):
        flow.output("counts").live()
    live_table._widget_class.cache_clear()


FRAME: dict[str, object] = {
    "number": 1,
    "columns": [["<i>k</i>", "string", False], ["n", "int64", True]],
    "rows": [["<script>document.title = 'broken'</script>", "1"], ["b", "2"]],
    "marks": [],
    "total": 1_234,
    "order": ["n", False],
    "epoch": 7,
    "note": "",
    "error": "",
}
CHANGED = {**FRAME, "number": 2, "rows": [["b", "3"]], "marks": [[0, 1]], "error": "<b>late</b>"}

DRIVER = """
const state = {frame: FRAME}, sent = [], told = [];
const model = {
  get: name => state[name],
  set: (name, value) => { state[name] = value; },
  save_changes: () => sent.push(JSON.stringify(state.order)),
  on: (_, callback) => told.push(callback),
  off: () => {},
};
const el = document.querySelector("main"), shot = () => new Promise(done => requestAnimationFrame(() =>
  requestAnimationFrame(done)));
const seen = () => [...el.querySelectorAll("th,td")].map(cell => cell.textContent);
module.render({model, el});
await shot();
const first = seen(), count = el.querySelector(".naiad-live > div").textContent;
el.querySelectorAll("button")[1].click();
state.frame = CHANGED;
told.forEach(callback => callback());
await shot();
const result = {
  first, below: count, sent, second: seen(), tags: el.querySelectorAll("script,b,i").length,
  marked: [...el.querySelectorAll(".naiad-changed")].map(cell => cell.textContent),
  error: el.querySelector(".naiad-error").textContent, title: document.title,
};
await fetch("/result", {method: "POST", body: JSON.stringify(result)});
"""


class Page(BaseHTTPRequestHandler):
    """Serves a page, and takes what that has seen."""

    text: ClassVar[str] = ""
    results: ClassVar[queue.Queue[bytes]] = queue.Queue()

    def do_GET(self) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "text/html; charset=utf-8")
        self.end_headers()
        self.wfile.write(self.text.encode() if self.path == "/" else b"")

    def do_POST(self) -> None:
        self.results.put(self.rfile.read(int(self.headers["Content-Length"])))
        self.send_response(204)
        self.end_headers()

    def log_message(self, *parts: object) -> None:
        """Say nothing."""


def drawn(folder: Path) -> dict[str, object]:
    """What the module draws of a frame, and then of another one."""
    module = (ROOT / "timely" / "client" / "shown" / "live_table.js").read_text()
    driver = DRIVER
    for name, frame in (("FRAME", FRAME), ("CHANGED", CHANGED)):
        driver = driver.replace(name, json.dumps(frame).replace("</", "<\\/"))
    script = f"{module.replace('export default', 'const module =')}\n{driver}"
    Page.text = f"<!doctype html><title>table</title><main></main><script type=module>{script}</script>"
    assert CHROMIUM is not None
    with ThreadingHTTPServer(("127.0.0.1", 0), Page) as server:
        serving = threading.Thread(target=server.serve_forever)
        serving.start()
        command = [CHROMIUM, "--headless=new", "--no-sandbox", "--disable-gpu", f"--user-data-dir={folder}"]
        command.append(f"http://127.0.0.1:{server.server_port}/")
        with (folder / "log").open("wb") as log:
            browser = subprocess.Popen(command, stdout=log, stderr=log, start_new_session=True)
        try:
            result: dict[str, object] = json.loads(Page.results.get(timeout=120))
        finally:
            os.killpg(browser.pid, signal.SIGKILL)
            browser.wait()
            server.shutdown()
            serving.join()
    return result


if CHROMIUM is not None:

    def test_its_module_draws_texts_and_marks_and_sends_the_order(tmp_path: Path) -> None:
        result = drawn(tmp_path)
        script = "<script>document.title = 'broken'</script>"
        assert result["first"] == ["<i>k</i>", "n ▲", script, "1", "b", "2"]
        assert result["second"] == ["<i>k</i>", "n ▲", "b", "3"]
        assert result["below"] == "1,234 rows, 1,232 not shown, epoch 7"
        assert (result["sent"], result["marked"]) == (['["n",true]'], ["3"])
        assert (result["error"], result["tags"], result["title"]) == ("<b>late</b>", 0, "table")
