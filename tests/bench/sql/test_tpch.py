"""TPC-H while lines come and go: the answers are DuckDB's."""

from __future__ import annotations

from pathlib import Path

import pytest

import timely
from bench.sql.answers import difference
from bench.sql.engines import by_duckdb, by_us
from bench.sql.tpch import queries, streamed

DATA = Path(__file__).resolve().parents[4] / "shared" / "data" / "tpch-sf0.02"
HERE = [DATA] if DATA.exists() else []
SOME = ("q1", "q4", "q15", "q21")


@pytest.mark.parametrize("folder", HERE, ids=["tpch"])
def test_answers_are_those_of_duckdb(folder: Path) -> None:
    stream, warm = streamed(folder, 3, part=6_000), streamed(folder, 1, part=1_000)
    assert [query.name for query in queries()] == [f"q{number}" for number in range(1, 23)]
    with timely.connect(embedded=True) as cluster:
        for query in queries():
            if query.name in SOME:
                _, wanted = by_duckdb(query, stream, 1)
                assert difference(by_us(cluster, query, stream, warm).rows, wanted) is None, query.name


def test_flinks_texts_have_no_names_of_groups_and_no_quotients_of_whole_numbers() -> None:
    texts = {query.name: query.flink or "" for query in queries()}
    assert "GROUP BY n1.n_name, n2.n_name, YEAR(l_shipdate)) AS t (c0, c1, c2, c3)" in texts["q7"]
    assert "* 1e0 / sum(" in texts["q8"] and "GROUP BY YEAR(o_orderdate))" in texts["q8"]
    assert "avg(1e0 * c_acctbal)" in texts["q22"] and "::" not in texts["q14"]
    assert not any("GROUP BY ALL" in text for text in texts.values())


@pytest.mark.parametrize("folder", HERE, ids=["tpch"])
def test_copies_have_other_keys_and_the_same_partners(folder: Path) -> None:
    once, twice = streamed(folder, 2, part=2_000), streamed(folder, 2, copies=2, part=2_000)
    for name, table in once.tables.items():
        fixed = name in ("region", "nation")
        assert twice.tables[name].rows.num_rows == (1 if fixed else 2) * table.rows.num_rows, name
    lines = twice.tables["lineitem"]
    assert len(set(lines.rows.column("l_orderkey").to_pylist())) == 2 * len(
        set(once.tables["lineitem"].rows.column("l_orderkey").to_pylist())
    )
    assert lines.epochs[2].gone == slice(50, 100) and lines.epochs[2].come.stop == lines.rows.num_rows
    assert lines.last.num_rows == lines.rows.num_rows - 100
