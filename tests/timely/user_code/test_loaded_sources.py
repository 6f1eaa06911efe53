"""Edited files are noticed: the builder's own, those that it refers to, and nothing else.

edited_*     what is told
unedited_*   what is no reason to refuse
"""

from __future__ import annotations

import importlib
import itertools
import json
import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType

import pytest

import timely
from timely import MisuseError
from timely.building.builders import load_builder
from timely.user_code.loaded_sources import _is_the_users, _loaded, check_unchanged, note_loaded

Write = Callable[[str, str], Path]
_names = itertools.count()
_ticks = itertools.count(1)

BUILD = "import timely\n@timely.builder\ndef build(flow):\n    flow.output('out', flow.input('in'))\n"


@pytest.fixture
def write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Write]:
    """Writes modules, each time with a later time of change; they are forgotten at the end."""
    monkeypatch.syspath_prepend(str(tmp_path))

    def write(name: str, source: str) -> Path:
        path = tmp_path / f"{name}.py"
        path.parent.mkdir(exist_ok=True)
        path.write_text(source)
        at = path.stat().st_mtime + next(_ticks)
        os.utime(path, (at, at))
        return path

    yield write
    forget_modules_of(tmp_path)


def forget_modules_of(folder: Path) -> None:
    """Forget the modules that were imported from `folder`, and no others: what the code under test was the
    first to import, numpy's or numba's, cannot be imported a second time.
    """
    for name, module in list(sys.modules.items()):
        if Path(getattr(module, "__file__", None) or "/").is_relative_to(folder):
            del sys.modules[name]


def test_what_is_forgotten_is_what_was_written(
    write: Write, name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(f"{name}/__init__", "")
    write(f"{name}/inner", "")
    importlib.invalidate_caches()
    importlib.import_module(f"{name}.inner")
    monkeypatch.setitem(sys.modules, f"{name}_meanwhile", ModuleType(f"{name}_meanwhile"))
    others = set(sys.modules) - {name, f"{name}.inner"}
    forget_modules_of(tmp_path)
    assert set(sys.modules) == others


@pytest.fixture
def name() -> str:
    """A name that no module has had."""
    return f"written_{os.getpid()}_{next(_names)}"


def loaded(name: str) -> ModuleType:
    importlib.invalidate_caches()
    module = importlib.import_module(name)
    note_loaded(module)
    return module


def test_edited_modules_are_refused_with_their_file_until_they_are_as_they_were(
    write: Write, name: str
) -> None:
    path = write(name, "x = 1\n")
    module = loaded(name)
    check_unchanged(module)
    status, text = path.stat(), path.read_text()
    write(name, "x = 2\n")
    for _ in range(2):
        with pytest.raises(MisuseError, match=rf"{name}.py has been edited since the worker imported it"):
            check_unchanged(module)
        note_loaded(module)  # a second look does not take the new file for the old one
    path.write_text(text)
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))
    check_unchanged(module)


@pytest.mark.parametrize(
    "reference", ["import {0}", "from {0} import helped", "from {0} import Helper", "import {0} as other"]
)
def test_edited_helpers_are_noticed_however_they_are_referred_to(
    write: Write, name: str, reference: str
) -> None:
    helper = f"{name}_helper"
    source = "def helped(): return 1\nclass Helper: pass\n"
    write(helper, source)
    write(name, reference.format(helper) + "\n")
    module = loaded(name)
    write(helper, source + "# edited\n")
    with pytest.raises(MisuseError, match=rf"{helper}.py has been edited"):
        check_unchanged(module)


def test_edited_helpers_of_helpers_are_noticed_also_in_packages_and_circles(write: Write, name: str) -> None:
    write(f"{name}/__init__", "")
    write(f"{name}/far", f"import {name}.near\ndef far(): return 1\n")
    write(f"{name}/near", f"from {name}.far import far\ndef near(): return far()\n")
    write(f"{name}_top", f"from {name}.near import near\n")
    module = loaded(f"{name}_top")
    check_unchanged(module)
    write(f"{name}/far", f"import {name}.near\ndef far(): return 2\n")
    with pytest.raises(MisuseError, match=r"far.py has been edited"):
        check_unchanged(module)


def test_edited_builders_are_not_installed_and_what_runs_goes_on(write: Write, name: str) -> None:
    write(name, BUILD)
    with timely.connect(workers=2, embedded=True) as cluster:
        flow = cluster.install(f"{name}:build")
        cluster.install(f"{name}:build")
        write(name, BUILD + "# edited\n")
        with pytest.raises(MisuseError, match="has been edited since the worker imported it"):
            cluster.install(f"{name}:build")
        flow.input("in").insert([1])
        flow.seal()
        assert flow.output("out").changes() == [(0, 1)]


@pytest.mark.parametrize("first", ["x = 1\n", BUILD.replace("@timely.builder\n", "")])
def test_edited_files_are_the_reason_when_a_builder_is_missing_that_the_file_has(
    write: Write, name: str, first: str
) -> None:
    """Who is told to mark a function, marks it and tries again must not be told the same."""
    write(name, first)
    with pytest.raises(MisuseError, match="has no function 'build'|build is not marked as a builder"):
        load_builder(f"{name}:build")
    write(name, BUILD)
    with pytest.raises(MisuseError, match="has been edited since the worker imported it"):
        load_builder(f"{name}:build")


def test_unedited_a_module_that_was_imported_anew_is_the_file_that_it_came_from(
    write: Write, name: str
) -> None:
    write(name, BUILD)
    load_builder(f"{name}:build")
    write(name, BUILD.replace("'out'", "'other'"))
    importlib.reload(sys.modules[name])
    builder = load_builder(f"{name}:build")
    assert builder is sys.modules[name].build
    write(name, BUILD)
    with pytest.raises(MisuseError, match="has been edited"):
        load_builder(f"{name}:build")


def test_unedited_files_that_are_gone_are_no_reason(write: Write, name: str) -> None:
    path = write(name, "x = 1\n")
    module = loaded(name)
    path.unlink()
    check_unchanged(module)


def test_unedited_modules_that_are_not_the_users_are_not_looked_at() -> None:
    for module in (json, pytest, timely, sys):
        note_loaded(module)
        check_unchanged(module)
    assert not any(name in _loaded for name in ("json", "pytest", "timely", "sys"))


def test_unedited_a_file_beside_our_packages_is_the_users() -> None:
    module = ModuleType("timely_queries")
    root = Path(timely.__file__).parent.parent
    module.__file__ = str(root / "timely_queries.py")
    assert _is_the_users(module)
    module.__file__ = str(root / "timely" / "queries.py")
    assert not _is_the_users(module)
