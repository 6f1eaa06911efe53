"""bench/skew: what is counted is what a plain count gives, and the figures are as they are claimed to be.

plain_*    small random streams, against counting row by row
known_*    pairs of the real tables that are known from elsewhere
figures_*  what is asked of each scheme, on the real tables where they are on this machine
shown_*    tables and objects
"""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from reference.skew.plain_counts import count_plainly

from bench.skew import streams
from bench.skew.counting import Simulation, simulate
from bench.skew.figures import EXCHANGED, SCHEMES, Measurement, measured
from bench.skew.queries import Join, band, lines_of_orders, lrb, q3
from bench.skew.streams import hashed, stream, zipf_orderkeys
from bench.skew.tables import tables
from differential.kernels.rows.hashing import hash_of_key
from differential.skew.planning.controller import PlanSettings
from differential.skew.planning.loads import Measure, imbalance
from timely.errors import MisuseError

DATA = Path(__file__).resolve().parents[3] / "shared" / "data"
TPCH = [DATA / "tpch-sf0.02"] if (DATA / "tpch-sf0.02").exists() else []
JCCH = [DATA / "jcch-sf0.02"] if (DATA / "jcch-sf0.02").exists() else []
ROAD = [DATA / "linear-road-20min"] if (DATA / "linear-road-20min").exists() else []


def small(seed: int, z: float) -> Join:
    """200 and 100 rows, the same keys in both."""
    orders = np.arange(40)
    generator = np.random.default_rng(seed)
    keys = zipf_orderkeys(z, 200, orders)
    others = generator.integers(0, 40, 100)
    return Join(stream(keys, np.arange(200)), stream(others, np.arange(100)))


@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize("measure", ["stored", "work"])
@pytest.mark.parametrize("z", [0.5, 1.5])
def test_plain_counts_are_the_same(scheme: str, measure: Measure, z: float) -> None:
    join = small(7, z)
    settings = None if scheme in ("JB", "JB6") else PlanSettings(measure=measure)
    simulation = Simulation(join, SCHEMES[scheme](6), settings)
    counted = simulation.run()
    lines = [
        (int(epoch), side, int(key), int(routed), int(row_hash))
        for side, rows in enumerate((join.left, join.right))
        for epoch, key, routed, row_hash in zip(
            rows.epoch, rows.key, hashed(rows.key[np.newaxis]), hashed(rows.words), strict=True
        )
    ]
    plain = count_plainly(lines, simulation.versions, simulation.placement.is_cells)
    assert (counted.stores, counted.probes, counted.moved) == (plain.stores, plain.probes, plain.moved)
    assert counted.pairs == plain.pairs > 0
    assert counted.work.tolist() == [plain.work[unit] for unit in range(6)]
    assert simulation.kept.sum(axis=(0, 1)).tolist() == [plain.kept[unit] for unit in range(6)]
    if scheme in ("hash", "D-JB"):
        assert len(simulation.versions) > 1


def test_plain_hashes_are_those_of_the_kernel() -> None:
    words = np.random.default_rng(1).integers(-(2**63), 2**63 - 1, (3, 20))
    assert hashed(words).tolist() == [hash_of_key(words, row, 3) for row in range(20)]


def test_plain_draws_that_are_not_the_known_ones_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(streams.CHECKSUMS, (1.0, False), "0" * 16)
    with pytest.raises(MisuseError, match="are not those that are known"):
        zipf_orderkeys(1.0, 120_515, np.arange(30_000))


@pytest.mark.parametrize("folder", TPCH, ids=["tpch"])
@pytest.mark.parametrize("scheme", ["JB", "D-JB", "matrix"])
def test_known_pairs_of_band_join_b(scheme: str, folder: Path) -> None:
    assert simulate(band(folder, None), SCHEMES[scheme](16)).pairs == 2_175


@pytest.mark.parametrize("folder", TPCH, ids=["tpch"])
def test_known_pairs_of_lineitems_with_their_orders(folder: Path) -> None:
    assert simulate(lines_of_orders(folder, None), SCHEMES["hash"](4)).pairs == 120_515


@pytest.mark.parametrize("folder", JCCH, ids=["jcch"])
@pytest.mark.parametrize(("units", "imbalanced"), [(16, 1.58), (32, 2.41)])
def test_known_imbalance_of_skewed_orders_by_hash(units: int, imbalanced: float, folder: Path) -> None:
    lines = lines_of_orders(folder, None)[0].left
    kept = np.bincount(hashed(lines.key[np.newaxis]) % 1_024 % units, minlength=units)
    assert round(imbalance(kept.tolist()), 2) == imbalanced


@pytest.mark.parametrize("folder", ROAD, ids=["linear road"])
def test_known_pairs_of_linear_road(folder: Path) -> None:
    """Ordered pairs of two cars; each report of a car meets all of the same car with the same key, too."""
    (join,) = lrb(folder, 120)
    _, same_car = np.unique(join.left.words[:2], axis=1, return_counts=True)
    assert join.left.rows == 6_545
    assert simulate([join], SCHEMES["JB6"](16)).pairs - int((same_car**2).sum()) == 5_792_308


@cache
def of(scheme: str, z: float, units: int, exchanged: bool = False) -> Measurement:
    joins = lines_of_orders(TPCH[0], z, exchanged)
    return measured("lineitem ⋈ orders", joins, scheme, units, z, EXCHANGED if exchanged else "")


@pytest.mark.parametrize("folder", TPCH, ids=["tpch"])
class TestFigures:
    def test_figures_of_messages(self, folder: Path) -> None:
        for units in (16, 64):
            assert of("JB", 1.0, units).messages == 1 + units / 2
            assert of("JB6", 0.0, units).messages == pytest.approx(1 + units / 12, rel=0.01)
            assert of("D-JB", 1.0, units).messages <= 2.2

    def test_figures_of_moves_and_imbalance(self, folder: Path) -> None:
        for z, units in ((0.0, 16), (1.0, 16), (1.0, 64), (1.5, 64)):
            made = of("D-JB", z, units)
            assert made.moved <= 0.05 * made.rows
            assert made.moved <= 2.5 * made.excess
            assert made.checked <= 1.2 + 1e-4
            assert made.settled <= 1.35
        exchanged = of("D-JB", 1.5, 64, exchanged=True)
        assert exchanged.moved <= 0.15 * exchanged.rows
        assert exchanged.moved <= 2.5 * exchanged.excess

    def test_figures_of_storage(self, folder: Path) -> None:
        assert of("JB", 1.0, 16).storage == 1.0
        assert of("D-JB", 1.0, 16).storage == 1.0
        matrix = of("matrix", 1.0, 16)
        assert matrix.storage > 2
        assert matrix.input_load <= 1.25

    def test_figures_of_throughput_of_q3(self, folder: Path) -> None:
        joins = q3(folder, 1.0)
        work = PlanSettings(measure="work")
        djb = {units: measured("Q3", joins, "D-JB", units, 1.0, settings=work) for units in (16, 64)}
        others = [measured("Q3", joins, scheme, 16, 1.0).throughput for scheme in ("JB6", "JB")]
        assert djb[16].throughput > others[0] > others[1]
        assert djb[64].throughput >= 3 * djb[16].throughput

    def test_figures_of_units_that_join(self, folder: Path) -> None:
        joins = lines_of_orders(folder, 1.0)
        made = measured("lineitem ⋈ orders", joins, "D-JB", 8, 1.0, joining=(50, 12))
        assert 0.7 * made.must_move <= made.moved <= 1.2 * made.must_move


def test_shown_tables_have_a_line_for_each_case_and_objects_are_json() -> None:
    joins = [small(7, 1.0)]
    every = [measured("lineitem ⋈ orders", joins, scheme, 6, 1.0) for scheme in SCHEMES]
    every.append(measured("lineitem ⋈ orders", joins, "D-JB", 6, 1.0, EXCHANGED))
    shown = {table.title: table for table in tables(every)}
    assert set(shown) == {
        "Communication",
        "Imbalance",
        "Imbalance behind a check",
        "Input load of the matrix",
        "Migration",
        "Storage",
    }
    assert shown["Communication"].heads == ("query", "z", "units", "hash", "JB", "JB6", "D-JB", "matrix")
    assert shown["Communication"].lines[0][4] == "4.00"
    assert len(shown["Migration"].lines) == 2
    assert "| lineitem ⋈ orders | 1.0 | 6 |" in shown["Storage"].markdown()
    asked = ["query", "scheme", "z", "units", "rows", "stores", "probes", "moved", "imbalance", "storage"]
    asked += ["pairs", "seconds"]
    assert set(asked) <= set(json.loads(json.dumps(every[0].as_object())))
