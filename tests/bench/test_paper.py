"""bench/paper: the figures of the paper, in little.

window_*       what is in a window, and what a slide changes
iterations_*   labels that change are those that a plain computation changes
report_*       the tables have what was measured
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from bench.dataflow.sliding import Interactions
from bench.paper import charts
from bench.paper.__main__ import report
from bench.paper.iterations import Curves, changes, curves_of, labels_of, prioritised_labels_of
from bench.paper.slides import slide_by_slide
from bench.paper.window import Window, busiest


@pytest.fixture(scope="module")
def window() -> Window:
    rng = np.random.default_rng(7)
    times = np.sort(rng.integers(0, 400, 600))
    return Window(Interactions(rng.integers(0, 150, 600), rng.integers(0, 150, 600), times), 100, 250)


def _edges(window: Window) -> list[tuple[int, int]]:
    return list(zip(*window.table().to_pydict().values(), strict=True))


def _rounds(edges: list[tuple[int, int]]) -> list[int]:
    """Labels that change in each round of propagation from scratch; the first gives each node its own."""
    labels: dict[int, int] = {}
    counts = []
    own = {node: node for edge in edges for node in edge}
    while True:
        found = dict(own)
        for a, b in edges:
            for node, other in ((a, b), (b, a)):
                found[node] = min(found[node], labels.get(other, found[node]))
        changed = sum(labels.get(node) != label for node, label in found.items())
        if not changed:
            return counts
        counts.append(changed)
        labels = found


def test_window_slides_by_what_comes_and_goes(window: Window) -> None:
    later, come, gone = window.slid(7)
    slid = sorted([*_edges(window), *zip(*come.to_pydict().values(), strict=True)])
    for edge in zip(*gone.to_pydict().values(), strict=True):
        slid.remove(edge)
    assert slid == sorted(_edges(later)) and come.num_rows and gone.num_rows
    times = window.rows.time
    held = sum(window.end - window.width < time <= window.end for time in times.tolist())
    assert window.table().num_rows == held


def test_window_the_busiest_holds_the_most(window: Window) -> None:
    found = busiest(window.rows, 100)
    times = window.rows.time
    most = max(int(((times > end - 100) & (times <= end)).sum()) for end in range(500))
    assert found.table().num_rows == most


def test_iterations_are_those_of_plain_rounds(window: Window) -> None:
    scratch, slid, still = changes(window, labels_of, [3, 0])
    plain = _rounds(_edges(window))
    # The loop begins with each node's own label, so that its first round does what plainly are two.
    assert scratch == [window.nodes(), *plain[2:]]
    assert 0 < sum(slid) < sum(scratch) and still == []


def test_iterations_by_priority_are_fewer_changes(window: Window) -> None:
    (scratch,) = changes(window, labels_of)
    (prioritised,) = changes(window, prioritised_labels_of)
    assert window.nodes() <= sum(prioritised) < sum(scratch)


def test_report_has_all_ways_and_figures_are_drawn(window: Window, tmp_path: Path) -> None:
    curves = curves_of(window, slides=5)
    assert 0 < curves.share < 1
    latencies = {
        name: slide_by_slide(window, 5, prioritised=first, warm_up=1)
        for name, first in (("some", False), ("other", True))
    }
    text = report(curves, latencies)
    assert f"{curves.nodes:,} nodes" in text and f"| {sum(curves.incremental):,} |" in text
    assert f"| some | {window.table().num_rows:,} | 5 |" in text
    charts.draw_iterations(curves, tmp_path / "a.svg")
    charts.draw_iterations(curves, tmp_path / "b.svg")
    charts.draw_slides(latencies, tmp_path / "c.svg")
    assert (tmp_path / "a.svg").read_bytes() == (tmp_path / "b.svg").read_bytes()
    assert "prioritised" in (tmp_path / "a.svg").read_text()
    assert "24.4 ms" in (tmp_path / "c.svg").read_text()


def test_report_of_nothing_is_a_report() -> None:
    assert "| all | 0 | 0 | 0 | 0 |" in report(Curves(0, [], [], [], []), {})
