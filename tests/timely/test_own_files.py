"""Files of the packages are ours; users', tests' and libraries' are not."""

from __future__ import annotations

import msgpack

import differential.columns.schema
import progress.compiled.kernel
import timely.worker.launcher
from timely.own_files import OWN_FOLDERS, ROOT


def test_files_of_the_packages_are_ours() -> None:
    for module in (differential.columns.schema, progress.compiled.kernel, timely.worker.launcher):
        assert module.__file__.startswith(OWN_FOLDERS), module.__file__
    assert (ROOT / "timely" / "own_files.py").is_file()


def test_other_files_are_not() -> None:
    for file in (__file__, msgpack.__file__):
        assert not str(file).startswith(OWN_FOLDERS), file
    assert not str(ROOT / "timely_queries.py").startswith(OWN_FOLDERS)
