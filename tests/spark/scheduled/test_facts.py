"""facts.py: what an executor is like.

digest_*     the same for the same sources, wherever they lie
unpacked_*   a zip of our packages, in a folder that the next one finds again
"""

from __future__ import annotations

import sys
import zipfile
from pathlib import Path

import numpy
import pytest

from timely.own_files import ROOT
from timely.spark.scheduled.facts import (
    FOLDER,
    NAIAD,
    difference,
    digest_of,
    facts,
    own_root,
    threads_of,
    unpacked,
)
from timely.spark.scheduled.shipping import packed


def test_facts_are_those_of_this_python() -> None:
    found = facts()
    assert found["python"] == f"{sys.version_info.major}.{sys.version_info.minor}"
    assert found["numpy"] == numpy.__version__ and found[NAIAD] == digest_of(ROOT)
    assert all(found.values()), found
    assert own_root() == ROOT


def test_difference_names_what_differs() -> None:
    mine = {"python": "3.11", "numpy": "2.4.6", "numba": "0.68", NAIAD: "abc"}
    assert difference(mine, dict(mine)) == ""
    assert difference(mine, {**mine, NAIAD: ""}) == "", "what is missing of ours is sent"
    mine[FOLDER] = "/here"
    assert difference(mine, {**mine, FOLDER: "/there"}) == ""
    told = difference(mine, {**mine, NAIAD: "def", FOLDER: "/there"})
    assert told.startswith("another release of naiad") and told.endswith("(in /there there, in /here here)")
    theirs = {"python": "3.12", "numpy": "", NAIAD: "abc", "numba": "0.68"}
    assert difference(mine, theirs) == "python 3.12 in place of 3.11, numpy (none) in place of 2.4.6"


@pytest.fixture
def sources(tmp_path: Path) -> Path:
    for package in ("progress", "timely", "differential"):
        (tmp_path / "ours" / package / "room").mkdir(parents=True)
        (tmp_path / "ours" / package / "__init__.py").write_text(f"'{package}'\n")
        (tmp_path / "ours" / package / "room" / "one.py").write_text("1\n")
    return tmp_path / "ours"


def test_digest_is_that_of_the_sources_in_a_folder_or_a_zip(sources: Path, tmp_path: Path) -> None:
    before = digest_of(sources)
    (sources / "timely" / "__pycache__").mkdir()
    (sources / "timely" / "__pycache__" / "one.cpython.pyc").write_text("instructions")
    archive = packed(tmp_path, sources)
    assert digest_of(sources) == digest_of(archive) == before
    (sources / "timely" / "room" / "one.py").write_text("2\n")
    assert digest_of(sources) != before


def test_unpacked_is_the_same_folder_every_time(sources: Path, tmp_path: Path) -> None:
    assert unpacked(sources) == sources, "nothing is to be unpacked"
    cache = tmp_path / "cache"
    folder = unpacked(packed(tmp_path, sources), cache)
    assert folder.parent == cache and digest_of(folder) == digest_of(sources)
    (folder / "timely" / "kept").touch()
    assert unpacked(packed(tmp_path, sources), cache) == folder and (folder / "timely" / "kept").exists()
    assert [left.name for left in cache.iterdir()] == [folder.name], "nothing half is left"


def test_unpacked_in_the_working_folder_where_the_cache_cannot_be_written(
    sources: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").touch()
    (tmp_path / "work").mkdir()
    monkeypatch.chdir(tmp_path / "work")
    folder = unpacked(packed(tmp_path, sources), tmp_path / "file" / "cache")
    assert folder.parent == tmp_path / "work"


def test_threads_are_as_many_as_the_task_has_cores() -> None:
    assert threads_of(2)["OMP_NUM_THREADS"] == threads_of(2)["NUMBA_NUM_THREADS"] == "2"
    assert threads_of(0)["OPENBLAS_NUM_THREADS"] == "1"


def test_packed_holds_no_other_files(sources: Path, tmp_path: Path) -> None:
    for name in ("a.nbi", "a.1.nbc", "a.pyc"):
        (sources / "progress" / name).touch()
    with zipfile.ZipFile(packed(tmp_path, sources)) as archive:
        names = {Path(name).name for name in archive.namelist()}
    assert names == {"__init__.py", "one.py"}
