"""Does memory stay flat while the page of a cluster is open for an hour?

Two worker processes carry connected components over a sliding window of edges and sums of the orders of a
window, two epochs a second. `python -m timely.console` serves the page, a process of its own, and Chromium
shows it. Each minute the page goes to another view: overview, graph, a stage, a live table, what holds it,
explain, kept rows, inputs, outputs. Each minute a line of JSON says what is resident in the console, in
each worker and in the browser's process of the page, and what the page's own heap holds after it was
collected.

    python -m bench.console.an_hour --minutes 60 --write FILE
    python -m bench.console.an_hour --table FILE              the figures of such a file, each fifth minute

Outputs keep their changes until readers forget them, and nobody reads these: so workers grow by what they
keep, with a page or without one. `--no-page` says by how much: it starts no console and no browser.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import time
from collections import deque
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import cast

import numpy as np
from selenium.common.exceptions import WebDriverException
from selenium.webdriver import Chrome
from selenium.webdriver.chrome.options import Options
from selenium.webdriver.chrome.service import Service

import differential as dd
import timely
from bench.memory import resident_mib_of
from differential.algorithms import connected_components

__all__ = ["main"]

_EPOCH_SECONDS = 0.5
_WINDOW_EPOCHS = 120
_ROWS = 20
_NODES = 3_000
_SEED = 20_260_101
_HEAP_MIB = 1 << 20
_TABLE_MINUTES = 5
_TABLE_EPOCHS = 400


def shop(dataflow: timely.Dataflow) -> None:
    """Sums of orders by customer."""
    orders = dd.input(dataflow, "orders", "id: int, customer: string, cents: int")
    orders.group_by("customer").agg(cents=dd.sum("cents")).output("totals")
    orders.output("orders")


def network(dataflow: timely.Dataflow) -> None:
    """Connected components, and how large they are."""
    edges = dd.input(dataflow, "edges", "src: int, dst: int")
    components = connected_components(edges)
    components.output("components")
    components.group_by("component").agg(size=dd.count()).output("sizes")


class Load:
    """Windows over random rows, one epoch at a time."""

    def __init__(self, cluster: timely.Cluster) -> None:
        self.shop, self.network = cluster.install(shop), cluster.install(network)
        self.epochs = 0
        self._random = np.random.default_rng(_SEED)
        self._kept: deque[tuple[list[tuple[int, str, int]], list[tuple[int, int]]]] = deque()

    def epoch(self) -> None:
        """Add the rows of one epoch, and remove those that leave the windows."""
        first = self.epochs * _ROWS
        customers, cents = self._random.integers(0, 300, _ROWS), self._random.integers(1, 5_000, _ROWS)
        orders = [
            (first + row, f"customer {customer}", int(cent))
            for row, (customer, cent) in enumerate(zip(customers, cents, strict=True))
        ]
        edges = [(int(a), int(b)) for a, b in self._random.integers(0, _NODES, (_ROWS, 2))]
        self.shop.input("orders").insert(orders)
        self.network.input("edges").insert(edges)
        self._kept.append((orders, edges))
        if len(self._kept) > _WINDOW_EPOCHS:
            old_orders, old_edges = self._kept.popleft()
            self.shop.input("orders").remove(old_orders)
            self.network.input("edges").remove(old_edges)
        self.shop.seal(wait=True)
        self.network.seal(wait=True)
        self.epochs += 1


def opened(address: str) -> Chrome:
    """Return a browser that shows the page."""
    options = Options()
    for option in ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"):
        options.add_argument(option)
    options.add_argument("--window-size=1280,860")
    options.add_argument("--disable-background-networking")
    binary, driver_path = shutil.which("chromium"), shutil.which("chromedriver")
    if binary is not None:
        options.binary_location = binary
    driver = Chrome(options, Service(driver_path))
    driver.get(address)
    return driver


def views(load: Load) -> list[str]:
    """Return the addresses of the views, one for each minute."""
    orders, edges = load.shop.index, load.network.index
    return [
        "",
        f"flow/{edges}/graph",
        f"flow/{edges}/graph/1",
        f"flow/{orders}/output/totals",
        f"flow/{edges}/output/components",
        f"flow/{edges}/why",
        f"flow/{edges}/explain",
        "arrangements",
        "inputs",
        "outputs",
    ]


def renderer_of(driver: Chrome) -> int:
    """Return the process of this browser that shows the page: the largest one that renders."""
    parents: dict[int, int] = {}
    found = (0.0, 0)
    for folder in Path("/proc").iterdir():
        with suppress(OSError, ValueError):
            parents[int(folder.name)] = int((folder / "stat").read_text().rpartition(")")[2].split()[1])
    for process in parents:
        with suppress(OSError):
            line = (Path("/proc") / str(process) / "cmdline").read_bytes()
            if (
                b"--type=renderer" in line
                and b"--extension-process" not in line
                and _is_of(driver, process, parents)
            ):
                found = max(found, (resident_mib_of(process), process))
    return found[1]


def _is_of(driver: Chrome, process: int, parents: Mapping[int, int]) -> bool:
    """Return True if the browser's driver has begun a process, or one that has begun it."""
    while process in parents and process != driver.service.process.pid:
        process = parents[process]
    return process in parents


def used_by(cluster: timely.Cluster) -> list[dict[str, float]]:
    """Return what each worker's process has used."""
    return [cast("dict[str, float]", told["used"]) for told in cluster.stats()]


def sample(driver: Chrome, console: int, workers: list[int], renderer: int) -> dict[str, object]:
    """Return what is resident where, in MiB."""
    driver.execute_cdp_cmd("HeapProfiler.collectGarbage", {})
    heap = driver.execute_cdp_cmd("Runtime.getHeapUsage", {})
    counters = driver.execute_cdp_cmd("Memory.getDOMCounters", {})
    return {
        "console_mib": round(resident_mib_of(console), 1),
        "workers_mib": [round(resident_mib_of(worker), 1) for worker in workers],
        "renderer_mib": round(resident_mib_of(renderer), 1),
        "heap_mib": round(float(heap["usedSize"]) / _HEAP_MIB, 2),
        "nodes": int(counters["nodes"]),
        "listeners": int(counters["jsEventListeners"]),
        "load": os.getloadavg()[0],
    }


def run(minutes: int, file: Path) -> None:
    """Run for so long; add a line to the file each minute."""
    with timely.connect(workers=2) as cluster:
        load = Load(cluster)
        console = subprocess.Popen(
            [sys.executable, "-m", "timely.console", cluster.addresses[0], "--listen", "127.0.0.1:0"],
            stdout=subprocess.PIPE,
            text=True,
        )
        assert console.stdout is not None
        address = console.stdout.readline().strip()
        driver = opened(address)
        try:
            workers = [cast(int, told["process"]) for told in cluster.stats()]
            time.sleep(3)
            reopened = 0
            renderer = renderer_of(driver)
            began = time.monotonic()
            shown = views(load)
            for minute in range(minutes + 1):
                while time.monotonic() < began + 60 * minute:
                    due = began + load.epochs * _EPOCH_SECONDS
                    load.epoch()
                    time.sleep(max(0.0, due + _EPOCH_SECONDS - time.monotonic()))
                line: dict[str, object] = {"minute": minute, "epochs": load.epochs}
                try:
                    line |= sample(driver, console.pid, workers, renderer)
                except (
                    WebDriverException
                ) as error:  # the browser has gone: the figures of its page begin anew
                    line["lost"] = str(error.msg)[:200]
                    reopened += 1
                    driver = opened(address)
                    time.sleep(3)
                    renderer = renderer_of(driver)
                    line |= sample(driver, console.pid, workers, renderer)
                line["reopened"] = reopened
                line["cpu_seconds"] = [used["cpu_seconds"] for used in used_by(cluster)]
                line["view"] = driver.execute_script("return location.hash")
                line["frames"] = driver.execute_script("return naiad.state.frames")
                with file.open("a") as out:
                    out.write(f"{json.dumps(line)}\n")
                driver.execute_script("location.hash = arguments[0]", f"/{shown[minute % len(shown)]}")
        finally:
            driver.quit()
            console.terminate()
            console.wait()


def run_alone(epochs: int) -> None:
    """Print what workers have after some epochs that no page looks at."""
    with timely.connect(workers=2) as cluster:
        load = Load(cluster)
        workers = [cast(int, told["process"]) for told in cluster.stats()]
        while load.epochs < epochs:
            load.epoch()
            if load.epochs % _TABLE_EPOCHS == 0:
                shown = ", ".join(f"{resident_mib_of(worker):.1f}" for worker in workers)
                sys.stdout.write(f"{load.epochs} epochs: {shown} MiB\n")


def table(file: Path) -> str:
    """Return the figures of a file as Markdown, each fifth minute."""
    lines = [
        "| minute | epochs | console MiB | workers MiB | page's process MiB | its heap MiB | nodes | view |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for text in file.read_text().splitlines():
        told = json.loads(text)
        if told["minute"] % _TABLE_MINUTES == 0:
            workers = ", ".join(map(str, told["workers_mib"]))
            cells = [told["minute"], told["epochs"], told["console_mib"], workers, told["renderer_mib"]]
            cells += [told["heap_mib"], told["nodes"], told["view"].removeprefix("#/") or "overview"]
            lines.append(f"| {' | '.join(map(str, cells))} |")
    return "\n".join(lines)


def main() -> None:
    """Run the command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--minutes", type=int, default=60)
    way = parser.add_mutually_exclusive_group(required=True)
    way.add_argument("--write", type=Path, metavar="FILE")
    way.add_argument("--table", type=Path, metavar="FILE")
    way.add_argument("--no-page", type=int, metavar="EPOCHS")
    parsed = parser.parse_args()
    if parsed.table is not None:
        sys.stdout.write(f"{table(parsed.table)}\n")
    elif parsed.no_page is not None:
        run_alone(parsed.no_page)
    else:
        run(parsed.minutes, parsed.write)


if __name__ == "__main__":
    main()
