"""Worker processes forget texts that nothing refers to any more, and none that something does."""

from __future__ import annotations

import pyarrow as pa
import pytest

import timely

EPOCHS, KEYS, TEXTS = 20, 20, 300
FEW = "300"
"""Entries from which on these workers forget: `NAIAD_SYMBOLS_MIN`."""


def _rows(table: pa.Table) -> list[tuple[object, tuple[str, ...]]]:
    return list(zip(*[column.to_pylist() for column in table.columns], strict=True))


def _symbols(cluster: timely.Cluster, name: str) -> list[int]:
    """A number of each worker about its symbols."""
    found = [stats["symbols"] for stats in cluster.stats()]
    numbers = [one[name] for one in found if isinstance(one, dict)]
    return [number for number in numbers if isinstance(number, int)]


def _kept_by(cluster: timely.Cluster) -> list[object]:
    return [one["kept_by"] for stats in cluster.stats() if isinstance(one := stats["symbols"], dict)]


@pytest.mark.timeout(240)
def test_texts_that_come_and_go_through_processes_leave_little_behind(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Keys stay the same and travel all the time, while both workers forget; the rest is new each time."""
    monkeypatch.setenv("NAIAD_SYMBOLS_MIN", FEW)
    with timely.connect(workers=2) as cluster:
        flow = cluster.install("collection_flows:texts_by_key")
        rows, output = flow.input("rows"), flow.output("all")
        before: list[tuple[str, str]] = []
        most = [0, 0]
        for epoch in range(EPOCHS):
            now = [(f"key {n % KEYS}", f"text {epoch} {n}") for n in range(TEXTS)]
            rows.insert(now)
            if before:
                rows.remove(before)
            before = now
            output.forget(flow.seal())
            lists = {key: sorted(texts) for key, texts in _rows(output.snapshot())}
            assert lists == {
                f"key {k}": sorted(text for key, text in now if key == f"key {k}") for k in range(KEYS)
            }
            most = [max(pair) for pair in zip(most, _symbols(cluster, "entries"), strict=True)]
        assert all(passes > 1 for passes in _symbols(cluster, "passes")), cluster.stats()
        assert min(_symbols(cluster, "forgotten")) > TEXTS
        assert max(most) < TEXTS * EPOCHS // 2, "of all texts"
        assert _kept_by(cluster) == [[], []]


@pytest.mark.timeout(240)
def test_a_stage_that_does_not_say_what_it_holds_keeps_everything_and_is_named(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("NAIAD_SYMBOLS_MIN", "20")
    with timely.connect(workers=2) as cluster:
        silent = cluster.install("collection_flows:texts_past_a_silent_stage")
        flow = cluster.install("collection_flows:texts_by_key")
        for epoch in range(4):
            rows = [(f"key {n}", f"text {epoch} {n}") for n in range(100)]
            flow.input("rows").insert(rows)
            flow.seal()
            flow.input("rows").remove(rows)
            flow.output("all").forget(flow.seal())
        flow.wait()
        assert _symbols(cluster, "forgotten") == [0, 0]
        for worker, named in enumerate(_kept_by(cluster)):
            assert named == [f"'pass updates' (stage 1, worker {worker} of 2)"]
        silent.uninstall()
        for epoch in range(12):
            flow.input("rows").insert([(f"key {n}", f"more {epoch} {n}") for n in range(300)])
            flow.output("all").forget(flow.seal())
        flow.wait()
        assert _kept_by(cluster) == [[], []]
        assert min(_symbols(cluster, "passes")) > 0


@pytest.mark.timeout(240)
@pytest.mark.parametrize("query", ["texts_by_key", "texts_as_they_are"])
def test_large_texts_are_forgotten_by_their_bytes_though_they_are_few(
    query: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of 300 texts of 20 kB five are there at a time; the workers may keep some 50."""
    monkeypatch.setenv("NAIAD_SYMBOLS_BYTES_MIN", "1000000")
    with timely.connect(workers=2) as cluster:
        flow = cluster.install(f"collection_flows:{query}")
        there: list[tuple[str, str]] = []
        most = 0
        for number in range(300):
            there.append((f"key {number % 3}", f"{number:4}" * 5_000))
            flow.input("rows").insert(there[-1:])
            if len(there) > 5:
                flow.input("rows").remove([there.pop(0)])
            flow.output("all").forget(flow.wait(flow.seal()))
            if number % 20 == 0:
                most = max(most, *_symbols(cluster, "bytes"))
        assert most < 3_000_000, "of 6,000,000"
        assert max(_symbols(cluster, "forgotten")) > 100 and _kept_by(cluster) == [[], []]
        found = flow.output("all").snapshot()
        if query == "texts_as_they_are":
            assert sorted(_rows(found)) == sorted(there)  # type: ignore[comparison-overlap]  # rows are tuples
