"""Flink: what does it get, what does it say, and what is said where it is not built?

It does not run: its texts are tried in DuckDB, over what is handed over.
"""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path

import duckdb
import numpy as np
import pyarrow as pa
import pytest

from bench import compare
from bench.asked import Asked, asked
from bench.cases import CASES, SMALL, Case
from bench.peers.flink.java import FlinkError, FlinkTable, run, write
from bench.peers.flink.on_flink import QUERIES, tables_of
from bench.recomputation import believed
from bench.systems import ENGINES, EnginePeer, Figures, RunError
from bench.workloads import Check, Int64s, mix

OF_FLINK = [case for case in SMALL if case.words in QUERIES]


def present(table: FlinkTable, epochs: int) -> pa.Table:
    """The rows that are there after so many epochs, by what is handed over in each."""
    there = np.zeros(table.rows.num_rows, np.int64)
    for gone_from, gone_to, come_from, come_to in table.epochs[:epochs]:
        there[gone_from:gone_to] -= 1
        there[come_from:come_to] += 1
    assert set(there.tolist()) <= {0, 1}, "only what is there goes, and no row comes twice"
    return table.rows.filter(pa.array(there == 1))


def sums(words: str, columns: list[Int64s]) -> Check:
    """As the program sums an answer up."""
    _, (a, b, summed), special = QUERIES[words]
    specials = {"equal": columns[a] == columns[b], "one": columns[b] == 1}.get(special)
    return Check(
        len(columns[0]),
        None if specials is None else int(specials.sum()),
        int(columns[summed].sum()),
        int(mix(columns[a], columns[b] & 0xFFFFFFFF).sum()),
    )


@pytest.mark.parametrize("case", OF_FLINK, ids=lambda case: case.name)
def test_texts_of_flink_have_the_answers_that_are_believed(case: Case) -> None:
    tables = tables_of(case.words, case.sizes)
    agreed = believed(case.workload)
    query = QUERIES[case.words][0].replace("`", '"')
    for epochs, wanted in ((1, agreed.load), (1 + case.changes, agreed.changes)):
        with duckdb.connect() as database:
            for name, table in tables.items():
                database.register(name, present(table, epochs))
            answer = database.sql(query).to_arrow_table()
        columns = [column.cast(pa.int64()).to_numpy() for column in answer.columns]
        assert sums(case.words, columns) == wanted


def test_every_workload_of_flink_is_tried() -> None:
    assert {case.words for case in OF_FLINK} == set(QUERIES) == set(ENGINES["Flink"].words)


def test_a_run_is_a_folder_of_words(tmp_path: Path) -> None:
    rows = pa.table({"name": ["a", "", "bcd"], "price": [1, -2, 2**40]}).slice(1)
    write(tmp_path, {"t": FlinkTable(rows, [(0, 0, 0, 2)], None, True)}, "SELECT 1", [7], 2, batch=3)
    spec = json.loads((tmp_path / "spec.json").read_text())
    (table,) = spec["tables"]
    assert [column["type"] for column in table["columns"]] == ["STRING NOT NULL", "BIGINT NOT NULL"]
    assert (table["epochs"], table["inserts_only"], table["rowtime"]) == ([[0, 0, 0, 2]], True, None)
    assert (spec["watermarks"], spec["parallelism"], spec["batch"], spec["check"]) == ([7], 2, 3, None)
    offsets = np.fromfile(tmp_path / "t.name.words", "<i8")
    text = (tmp_path / "t.name.bytes").read_bytes()
    assert [text[a:b] for a, b in zip(offsets, offsets[1:], strict=False)] == [b"", b"bcd"]
    assert np.fromfile(tmp_path / "t.price.words", "<i8").tolist() == [-2, 2**40]


def test_times_are_milliseconds_and_dates_are_days(tmp_path: Path) -> None:
    when = pa.array([1_700_000_000_123_000], pa.timestamp("us", "UTC"))
    rows = pa.table({"seen": when, "day": pa.array([19_000], pa.date32())})
    write(tmp_path, {"t": FlinkTable(rows, [(0, 0, 0, 1)], "seen")}, "SELECT 1", [7], 1)
    assert np.fromfile(tmp_path / "t.seen.words", "<i8").tolist() == [1_700_000_000_123]
    assert np.fromfile(tmp_path / "t.day.words", "<i8").tolist() == [19_000]


def test_nulls_are_refused(tmp_path: Path) -> None:
    with pytest.raises(FlinkError, match=r"t\.price has nulls"):
        write(tmp_path, {"t": FlinkTable(pa.table({"price": [1, None]}), [])}, "SELECT 1", [], 1)


def test_flink_without_java_says_how_it_is_built(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(FlinkError, match=re.escape("mvn -q -B -f bench/peers/flink/pom.xml package")):
        run(tmp_path)


@pytest.mark.parametrize("name", list(ENGINES))
def test_an_engine_that_is_not_built_gives_one_line_that_says_how(name: str, tmp_path: Path) -> None:
    engine = replace(ENGINES[name], needs=tmp_path / "nowhere")
    with pytest.raises(RunError) as refused:
        EnginePeer(name, 1.0, engine)
    assert str(refused.value) == f"{name} is not built: {engine.build} (see bench/peers/README.md)"


def test_an_engine_is_asked_as_rust_is(tmp_path: Path) -> None:
    """The program says what it was asked for by writing it down."""
    case = next(case for case in SMALL if case.words == "top")
    agreed = believed(case.workload)
    line = {
        "system": "told 1.0", "workload": case.workload, "workers": 2, "batch": 1, "load_seconds": 1.0,
        "change_ms_median": 2.0, "change_ms_p99": 3.0, "idle_mib": 4.0, "peak_mib": 5.0,
        "check_load": agreed.load.to_json(), "check_changes": agreed.changes.to_json(),
    }  # fmt: skip
    program = tmp_path / "program"
    program.write_text(f"#!/bin/sh\necho \"$@\" >{tmp_path}/asked\necho '{json.dumps(line)}'\n")
    program.chmod(0o755)
    peer = EnginePeer("Flink", 60.0, replace(ENGINES["Flink"], command=(str(program),), needs=program))
    assert peer.run(case, 2) == Figures(1.0, 2.0, 3.0, 4.0, 5.0)
    assert peer.description == "told 1.0"
    assert (tmp_path / "asked").read_text().strip() == "top 100 600 10 40 -w 2 --batch 1"
    assert peer.can_run(case) and not peer.can_run(replace(case, batch=8))
    assert not peer.can_run(next(case for case in CASES if case.words == "pagerank"))


def test_an_engine_that_is_not_there_ends_the_command(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(ENGINES, "Flink", replace(ENGINES["Flink"], needs=tmp_path / "nowhere"))
    with pytest.raises(SystemExit) as ended:
        compare.main(["top", "--small", "--peer-engine", "Flink"])
    assert ended.value.code == 2
    assert "mvn -q -B -f bench" in capsys.readouterr().err


def test_what_is_asked_beside_them() -> None:
    top, wcc = (next(case for case in CASES if case.words == words) for words in ("top", "wcc plain"))
    assert asked(top, 1, "Flink") == asked(top, 2, "Flink") == Asked(1 / 3, 1 / 3)
    assert asked(wcc, 1, "Flink") == asked(top, 3, "Flink") == asked(SMALL[0], 1, "Flink") == Asked()
