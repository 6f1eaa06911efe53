"""Kernels are compiled once, before workers start, and that they are is remembered."""

from __future__ import annotations

from pathlib import Path

import pytest

from differential import warming


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache folder of the test's own."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    return tmp_path


def test_the_second_start_does_nothing(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    runs: list[None] = []
    monkeypatch.setattr(warming, "warm", lambda: runs.append(None))
    warming.warm_once()
    warming.warm_once()
    assert len(runs) == 1
    assert [path.name[:9] for path in (cache / "naiad").iterdir()] == ["compiled-"]


def test_another_cache_of_machine_code_is_another_first_start(
    cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    runs: list[None] = []
    monkeypatch.setattr(warming, "warm", lambda: runs.append(None))
    warming.warm_once()
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(cache / "elsewhere"))
    warming.warm_once()
    assert len(runs) == 2


def test_a_folder_that_cannot_be_written_stops_nobody(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("not a folder")
    monkeypatch.setenv("XDG_CACHE_HOME", str(blocked))
    monkeypatch.setattr(warming, "warm", lambda: None)
    warming.warm_once()


def test_warming_runs_every_operator_to_its_end() -> None:
    warming.warm()
