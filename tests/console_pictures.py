"""Makes the pictures of docs/console.md: `./scripts/pictures`. One of the dataflows has a slow function."""

from __future__ import annotations

import random
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

from browsers import Page, opened
from PIL import Image

import timely

__all__ = ["main"]

_ROOT = Path(__file__).parents[1]
_FOLDER = _ROOT / "docs" / "pictures"
_SECONDS = 25.0
_COLOURS = 128


class _Feeding(threading.Thread):
    """Feeds three dataflows until it is ended."""

    def __init__(self, cluster: timely.Cluster) -> None:
        super().__init__(daemon=True)
        self.shop, self.network = cluster.install("queries:shop"), cluster.install("queries:network")
        self.scores = cluster.install("queries:scores")
        self.ended = threading.Event()
        self._random = random.Random(7)

    def run(self) -> None:
        """Feed them."""
        cities = ("Basel", "Bern", "Genf", "Lugano", "Zürich")
        self.shop.input("customers").insert([(f"customer {n}", cities[n % 5]) for n in range(1000)])
        past: list[list[tuple[int, str, int]]] = []
        while not self.ended.wait(0.1):
            first = self.shop.epoch * 500
            rows = [
                (
                    first + n,
                    f"customer {min(999, int(self._random.expovariate(0.01)))}",
                    self._random.randrange(1000),
                )
                for n in range(500)
            ]
            self.shop.input("orders").insert(rows)
            past.append(rows)
            if len(past) > 50:
                self.shop.input("orders").remove(past.pop(0))
            self.shop.seal()
            self.network.input("edges").insert([(self._node(), self._node()) for _ in range(20)])
            self.network.seal()
            if self.scores.epoch < 200:
                self.scores.input("records").insert(list(range(8)))
                self.scores.seal()

    def _node(self) -> int:
        return self._random.randrange(3000)


def main(arguments: list[str]) -> int:
    """Make the pictures, in a folder that the arguments may name."""
    folder = Path(arguments[0]) if arguments else _FOLDER
    folder.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="shop-") as place:
        # A user's module has a short name, and lies in no checkout of ours.
        shutil.copy(Path(__file__).with_name("pictured_flows.py"), Path(place) / "queries.py")
        sys.path.insert(0, place)
        _make(folder)
    return 0


def _make(folder: Path) -> None:
    _take_map(folder)
    with timely.connect(workers=2, silence_seconds=60) as cluster, cluster.console() as console:
        feeding = _Feeding(cluster)
        feeding.start()
        try:
            _take(folder, console.address, feeding)
        finally:
            feeding.ended.set()
            feeding.join()
            feeding.scores.uninstall()


def _take(folder: Path, address: str, feeding: _Feeding) -> None:
    with opened("--window-size=1180,800") as page:
        page.driver.get(address)
        page.shows("header", "behind")
        page.shows(".findings", "score records takes")
        time.sleep(_SECONDS)
        _picture(page, folder / "console_overview.png")
        page.go(f"flow/{feeding.network.index}/graph/3")
        page.click("[data-colour=bytes]")
        page.shows(".side", "by worker, since the start")
        time.sleep(2)
        _picture(page, folder / "console_graph.png")
        page.go(f"flow/{feeding.shop.index}/output/by_city")
        page.shows("#counts", "5 rows")
        time.sleep(1)
        page.until(lambda: page.run("return document.querySelector('.changed') !== null"))
        _picture(page, folder / "console_output.png")


def _take_map(folder: Path) -> None:
    """The example of a page of one's own."""
    program = subprocess.Popen(
        [sys.executable, "examples/hashtag_map.py"], cwd=_ROOT, stdout=subprocess.PIPE, text=True
    )
    assert program.stdout is not None
    try:
        with opened("--window-size=1180,800") as page:
            page.driver.get(program.stdout.readline().strip())
            page.until(lambda: int(str(page.run("return document.querySelector('#past').max"))) > 60, 200)
            page.click("#map .group")
            time.sleep(2)
            _picture(page, folder / "console_own_page.png")
    finally:
        program.terminate()
        program.wait()


def _picture(page: Page, path: Path) -> None:
    """Write what is to be seen, in as few colours as it has."""
    page.picture(path)
    with Image.open(path) as image:
        image.convert("RGB").quantize(_COLOURS).save(path, optimize=True)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
