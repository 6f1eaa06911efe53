"""bench/galen.py: what three programs print becomes one table, and facts that differ are an error.

No program is run: what they print is made up. That the rules are right is a claim of `tests/examples`.
"""

from __future__ import annotations

import gzip
from collections.abc import Sequence
from pathlib import Path

import pytest

from bench import galen
from examples.galen import SCHEMAS

CHANGED: dict[str, object] = {"p": 7, "q": 9, "median_ms": 1.5, "worst_ms": 4.0}
RUST: dict[str, object] = {
    "p": 7,
    "q": 9,
    "p_last": 7,
    "q_last": 9,
    "seconds": 2.5,
    "change_ms_all": [1.0, 3.0, 8.0],
}

Printed = list[dict[str, object]]


def told(command: Sequence[str]) -> tuple[Printed, float, int]:
    """What each program would print, its processor time, and its memory."""
    if "bench.peers.galen_duckdb" in command:
        return [{"p": 7, "q": 9, "seconds": 3.0}], 4.0, 300
    if "examples.galen" in command:
        return [{"p": 7, "q": 9, "seconds": 2.0}, CHANGED], 5.0, 400
    folder = Path(command[-1])
    assert (folder / "p.txt").read_text() == "1,2\n1004,1\n", "the peer gets the same rows, as text"
    assert sorted(path.name for path in folder.iterdir()) == sorted(f"{name}.txt" for name in "pqrcus")
    return [RUST], 1.0, 100


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(galen, "_watched", told)
    for name, schema in SCHEMAS.items():
        text = "1,2\n1004,1\n" if name == "p" else ",".join("1" for _ in schema.split(","))
        (tmp_path / f"{name}.txt.gz").write_bytes(gzip.compress(text.encode()))
    return tmp_path


def test_a_row_for_each_system_with_what_it_took(folder: Path) -> None:
    galen.main([str(folder), "--share", "1", "--write", str(folder / "table.md")])
    rows = [line for line in (folder / "table.md").read_text().splitlines() if line.startswith("| 1 |")]
    assert rows == [
        "| 1 | ours | 7 | 9 | 2.0 | 5.0 | 400 | 1.50 / 4.0 |",
        "| 1 | Rust | 7 | 9 | 2.5 | 1.0 | 100 | 3.00 / 8.0 |",
        "| 1 | DuckDB | 7 | 9 | 3.0 | 4.0 | 300 | – |",
    ]


def test_facts_that_differ_are_an_error(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(RUST, "q_last", 8)
    with pytest.raises(
        RuntimeError, match=r"Rust: \(7, 9\) facts at first, but \(7, 8\) when all was put back"
    ):
        galen.run("Rust", folder, 1, 3)
    monkeypatch.setitem(CHANGED, "q", 9)
    monkeypatch.setitem(RUST, "q_last", 9)
    monkeypatch.setitem(RUST, "p", 6)
    monkeypatch.setitem(RUST, "p_last", 6)
    with pytest.raises(RuntimeError, match="has not the facts of"):
        galen.main([str(folder), "--share", "1", "--systems", "ours", "Rust"])
