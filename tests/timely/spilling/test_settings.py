"""Folder and budget: of arguments, else of the environment; a folder of no use is refused with the reason."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest

import timely
from timely import MisuseError
from timely.spilling import settings as module
from timely.spilling.settings import MEMORY_VARIABLE, SPILL_VARIABLE, parse_bytes, spill_settings
from timely.worker.options import parse_options
from timely.worker.settings import local_settings


@pytest.fixture(autouse=True)
def on_a_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    """Temporary folders may be in memory, or in a file system that we refuse."""
    monkeypatch.delenv(SPILL_VARIABLE, raising=False)
    monkeypatch.delenv(MEMORY_VARIABLE, raising=False)
    monkeypatch.setattr(module, "_file_system", lambda folder: "ext4")


@pytest.mark.parametrize(
    ("size", "wanted"),
    [(1 << 20, 1 << 20), ("2GiB", 2 << 30), ("512 mib", 512 << 20), ("1.5G", 3 << 29), ("4194304", 4 << 20)],
)
def test_sizes(size: object, wanted: int) -> None:
    assert parse_bytes(size, "memory") == wanted


@pytest.mark.parametrize("size", ["", "much", "2 PiB", -1, 0, True, 3.5, "1KiB", "0x10"])
def test_what_is_no_size_is_refused(size: object) -> None:
    with pytest.raises(MisuseError, match=r"^memory="):
        parse_bytes(size, "memory")


def test_arguments_come_before_the_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert spill_settings(None, None, 1) is None
    monkeypatch.setenv(SPILL_VARIABLE, "/no/such/folder")
    monkeypatch.setenv(MEMORY_VARIABLE, "3MiB")
    assert spill_settings(tmp_path, None, 1) == (str(tmp_path), 3 << 20)
    assert spill_settings(str(tmp_path), "7MiB", 1) == (str(tmp_path), 7 << 20)
    with pytest.raises(MisuseError, match=r"^NAIAD_SPILL=/no/such/folder does not exist"):
        spill_settings(None, None, 1)
    monkeypatch.setenv(MEMORY_VARIABLE, "some")
    with pytest.raises(MisuseError, match=r"^NAIAD_MEMORY='some'"):
        spill_settings(tmp_path, None, 1)


def test_by_default_the_workers_have_half_of_the_memory(tmp_path: Path) -> None:
    one, four = spill_settings(tmp_path, None, 1), spill_settings(tmp_path, None, 4)
    assert one is not None and four is not None
    assert one.memory // 4 == four.memory > 1 << 20


@pytest.mark.parametrize("system", ["tmpfs", "ramfs", "btrfs", "nfs4", "fuse.sshfs"])
def test_file_systems_of_no_use(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, system: str) -> None:
    monkeypatch.setattr(module, "_file_system", lambda folder: system)
    with pytest.raises(MisuseError, match=rf"^spill={re.escape(str(tmp_path))} is in .*{system}"):
        spill_settings(tmp_path, None, 1)


def test_a_folder_in_memory_is_told_with_one_to_write_though_it_is_not_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_file_system", lambda folder: "tmpfs")
    with pytest.raises(MisuseError, match=r"none is in memory itself \(tmpfs\).* such as spill=/var/tmp$"):
        spill_settings(tmp_path / "none", None, 1)


def test_folders_of_no_use(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_text("")
    for folder, why in [
        (file, "is no folder"),
        (tmp_path / "none", "does not exist"),
        ("/proc", "cannot take"),
    ]:
        with pytest.raises(MisuseError, match=rf"^spill={folder} {why}"):
            spill_settings(folder, None, 1)
    for odd in (7, "", "a\0b", b"x"):
        with pytest.raises(MisuseError, match="^spill takes a folder"):
            spill_settings(odd, None, 1)
    with pytest.raises(MisuseError, match=r"^memory='2GiB' .*with spill"):
        spill_settings(None, "2GiB", 1)


def test_the_mount_of_a_folder_says_what_it_is_in(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()
    assert module._file_system("/proc/self") == "proc"
    assert module._file_system("/dev/shm") in ("tmpfs", "")


def test_the_command_takes_both(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    options = parse_options(["-w", "2", "--spill", str(tmp_path), "--memory", "2GiB"])
    assert (options.spill, options.memory) == (str(tmp_path), 2 << 30)
    assert parse_options([]).spill == ""
    for wrong, why in [
        (["--memory", "2GiB"], "with --spill"),
        (["--spill", str(tmp_path), "--memory", "2"], "--memory='2'"),
        (["--spill", str(tmp_path / "none")], f"--spill={tmp_path / 'none'} does not exist"),
    ]:
        with pytest.raises(SystemExit):
            parse_options(wrong)
        assert why in capsys.readouterr().err


def test_a_cluster_that_runs_has_decided(tmp_path: Path) -> None:
    with pytest.raises(MisuseError, match="spill and memory"):
        timely.connect("localhost:7401", spill=tmp_path)


def test_workers_have_the_settings_of_their_launcher_or_of_their_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (first, _) = local_settings(2, tmp_path)
    assert first.spilling is None
    assert replace(first, spill="/a", memory=5 << 20).spilling == ("/a", 5 << 20)
    monkeypatch.setenv(SPILL_VARIABLE, str(tmp_path))
    monkeypatch.setenv(MEMORY_VARIABLE, "3MiB")
    assert first.spilling == (str(tmp_path), 3 << 20)
