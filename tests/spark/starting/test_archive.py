"""archive.py: Spark's classes, kept as Java has them in memory.

made_*     by a Java that can, whole or not at all
taken_*    by a session, if it is there
"""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest
from pyspark import SparkConf

from timely.spark import archive, session
from timely.spark.archive import make_archive
from timely.spark.java import Java, archive_below, archive_of, archive_options


@pytest.fixture
def java(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Java:
    """A Java that has classes of its own in an archive, with a cache of its own."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return _java(tmp_path / "java", "exit 0")


def _java(home: Path, does: str) -> Java:
    program = home / "bin" / "java"
    program.parent.mkdir(parents=True)
    program.write_text(f"#!/bin/sh\n{does}\n")
    program.chmod(0o755)
    return Java(home, "JAVA_HOME")


def _writes(options: list[str], folder: Path) -> None:
    """In place of a Spark whose Java writes the archive that it is told of."""
    assert folder.is_dir()
    file = options[0].strip('"').removeprefix("-XX:ArchiveClassesAtExit=")
    Path(file).write_text("classes")


def test_made_once_and_again_if_asked(java: Java, monkeypatch: pytest.MonkeyPatch) -> None:
    assert archive_options(java) == []
    monkeypatch.setattr(archive, "_use_spark", _writes)
    killed = archive_of(java).with_name(".archive-killed")
    killed.mkdir()
    os.utime(killed, (1, 1))
    for name, seconds in (("classes-0123.jsa", 1), ("classes-4567.jsa", int(time.time()))):
        other = archive_of(java).with_name(name)
        other.write_text("of another Java")
        os.utime(other, (seconds, seconds))
    made = make_archive(java)
    assert made == archive_of(java)
    left = {file.name for file in made.parent.iterdir()}
    assert left == {made.name, "classes-4567.jsa"}, "an old one is removed, and nothing half is left"
    assert archive_options(java)[0] == f'"-XX:SharedArchiveFile={made}"'
    monkeypatch.setattr(archive, "_use_spark", lambda options, folder: None)
    assert make_archive(java) == made, "it is there"
    assert make_archive(java, again=True) is None and made.read_text() == "classes", "and stays there"


def test_made_with_one_below_for_a_java_that_has_none_of_its_own(
    java: Java, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    del java
    does = 'case "$1" in -Xshare:on) exit 1;; -Xshare:dump) echo own >"${2#*=}";; esac'
    bare = _java(tmp_path / "bare", does)
    monkeypatch.setattr(archive, "_use_spark", _writes)
    made = make_archive(bare)
    assert made is not None and archive_below(made).read_text() == "own\n"
    assert archive_options(bare)[0] == f'"-XX:SharedArchiveFile={archive_below(made)}:{made}"'


def test_taken_by_a_session_if_there_is_one(java: Java, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of the settings alone: Spark itself is started with it by most of the other tests."""
    monkeypatch.setattr(session, "find_java", lambda: java)
    settings: list[str] = []
    monkeypatch.setattr(session, "_launch", lambda conf, java: settings.append(_options(conf)))
    monkeypatch.setattr(session, "SparkSession", _None)
    monkeypatch.setattr(session, "SparkContext", _Stop)
    for _ in range(2):
        with pytest.raises(ZeroDivisionError):
            session.local_session()
        archive_of(java).write_text("classes")
    assert ["SharedArchiveFile" in said for said in settings] == [False, True]


class _None:
    """In place of Spark's sessions: there is none."""

    _instantiatedSession = None

    @staticmethod
    def getActiveSession() -> None:
        return None


class _Stop:
    """In place of Spark's context."""

    _gateway = None

    def __init__(self, conf: SparkConf) -> None:
        raise ZeroDivisionError


def _options(conf: SparkConf) -> str:
    return str(conf.get("spark.driver.extraJavaOptions"))


@pytest.mark.parametrize("arguments", [["--help"], ["--nosuch"], ["again"]])
def test_made_is_none_where_help_is_asked_for_or_something_else(
    arguments: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(archive, "make_archive", lambda **_: pytest.fail("Spark was started"))
    with pytest.raises(SystemExit) as ended:
        archive.main(arguments)
    assert ended.value.code == (0 if arguments == ["--help"] else 2)
    told = capsys.readouterr()
    assert "usage: python -m timely.spark.archive [-h]" in told.out + told.err
