"""What `outputs=` may say, and what is none of it."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from timely.errors import MisuseError
from timely.spark.jobs.outputs import Epoch, Target, targets_of, to_callback, to_parquet, to_table


def show(epoch: int, changes: pa.Table) -> None:
    """Does nothing."""


@pytest.mark.parametrize(
    ("said", "targets"),
    [
        (None, []),
        ("folder", [to_parquet("folder")]),
        (Path("folder"), [to_parquet("folder")]),
        (show, [to_callback(show)]),
        (["folder", show], [to_parquet("folder"), to_callback(show)]),
        ({"result": to_table("t", keep="changes")}, [to_table("t", keep="changes")]),
        ({}, []),
    ],
)
def test_folders_functions_and_lists_of_them_are_targets(said: object, targets: list[Target]) -> None:
    assert targets_of(said, ["result"]) == {"result": targets}


@pytest.mark.parametrize(
    ("said", "names", "message"),
    [
        ("folder", ["a", "b"], r"puts out a, b: say of each where it goes, outputs=\{'a': …\}"),
        ({"c": "folder"}, ["a", "b"], "puts out a, b, and nothing called c"),
        ({"a": "x", "b": "./x"}, ["a", "b"], "two outputs go to .*x: give each a place"),
        (["t", to_parquet("t", keep="snapshot")], ["a"], "two outputs go to .*t: give each a place"),
        (7, ["a"], "goes to a folder, a function, .* not to 7"),
    ],
)
def test_anything_else_is_refused_by_name(said: object, names: list[str], message: str) -> None:
    with pytest.raises(MisuseError, match=message):
        targets_of(said, names)


def test_what_is_kept_is_one_of_three() -> None:
    with pytest.raises(MisuseError, match="keep is 'both', 'changes' or 'snapshot', not 'all'"):
        to_parquet("folder", keep="all")  # type: ignore[arg-type]
    with pytest.raises(MisuseError, match="a callback is a function"):
        to_callback(3)  # type: ignore[arg-type]


def test_an_epoch_is_its_number_and_knows_more() -> None:
    epoch = Epoch.of(3, "Tuesday", (5, 2), 0.25)
    assert epoch == 3 and f"{epoch:03}" == "003" and [10, 11, 12, 13][epoch] == 13
    assert (epoch.value, epoch.entered, epoch.left, epoch.seconds) == ("Tuesday", 5, 2, 0.25)
