"""bench/dataflow/revenue.py: queries 3 and 5 of TPC-H answer what is known of them, shared or not.

real_*     the tables of scale 0.02, where they are on this machine
small_*    a few lines by hand, and a change
"""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from sales import write_sales

import timely
from bench.dataflow import revenue
from timely.building.builders import Builder

DATA = Path(__file__).resolve().parents[3] / "shared" / "data" / "tpch-sf0.02"
HERE = [DATA] if DATA.exists() else []
BUILDS = {"alone": revenue.side_by_side, "arranged": revenue.arranged}


def _answers(flow: timely.Flow, name: str) -> list[tuple[object, ...]]:
    rows = flow.output(name).snapshot().to_pylist()
    return sorted((tuple(row.values()) for row in rows), key=lambda row: -int(str(row[-1])))


@pytest.mark.parametrize("folder", HERE, ids=["tpch"])
@pytest.mark.parametrize("name", BUILDS)
def test_real_tables_give_the_known_answers(name: str, folder: Path) -> None:
    with timely.connect(workers=2, embedded=True) as cluster:
        flow = cluster.install(BUILDS[name])
        for table in revenue.TABLES:
            flow.input(table).insert(revenue.load(folder, table))
        flow.seal()
        orders, sold = _answers(flow, "open orders"), _answers(flow, "sold at home")
    assert [(row[0], row[3]) for row in orders[:3]] == [
        (22276, 2756739548),
        (93382, 2649707683),
        (29095, 2480904934),
    ]
    assert sold == [
        ("JAPAN", 16466693695),
        ("INDONESIA", 14482129798),
        ("INDIA", 10962280678),
        ("VIETNAM", 5076240504),
        ("CHINA", 4565087056),
    ]


@pytest.mark.parametrize("name", BUILDS)
def test_small_tables_are_read_and_a_line_that_goes_takes_its_revenue(name: str, tmp_path: Path) -> None:
    write_sales(tmp_path)
    build: Builder = BUILDS[name]
    with timely.connect(workers=1, embedded=True) as cluster:
        flow = cluster.install(build)
        for table in revenue.TABLES:
            flow.input(table).insert(revenue.load(tmp_path, table))
        flow.seal()
        (order,), (sold,) = _answers(flow, "open orders"), _answers(flow, "sold at home")
        assert (order[0], order[2], order[3]) == (1, 4, 12050 * 96) and sold == ("INDIA", 12050 * 96)
        second: pa.Table = revenue.load(tmp_path, "lineitem")
        flow.input("lineitem").remove(second)
        flow.seal()
        assert _answers(flow, "open orders") == _answers(flow, "sold at home") == []
