"""The values of `outputs=`: where the answers of a query go.

    outputs="folder"                                  the only output: its change log and its last snapshot
    outputs={"totals": "folder", "alarms": ring}      by the name of the output: a folder, a function
    outputs={"totals": [to_parquet("folder", keep="changes"), to_table("totals"), to_callback(show)]}

A folder or a table has the change log (columns, `epoch`, `diff`; one commit for each epoch), the snapshot as
of the last epoch, or both, and the value of each epoch. A function is called with epoch and changes once the
epoch is committed in all folders and tables.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Literal

import pyarrow as pa
from pyspark.sql import DataFrame

from timely.errors import MisuseError

__all__ = [
    "Epoch",
    "Keep",
    "Target",
    "ToCallback",
    "ToParquet",
    "ToTable",
    "targets_of",
    "to_callback",
    "to_parquet",
    "to_table",
]

Keep = Literal["both", "changes", "snapshot"]


class Epoch(int):
    """The number of an epoch, with its value, sizes and durations.

    `value`: a value of the column, or the end of the window. `entered`, `left`: the numbers of rows of all
    inputs that have come and gone in it. `seconds`: from its seal to its answers. `spent`: seconds from the
    start of its batch (or from the epoch before) to its commit, by what the job waited for: "Spark, to read a
    batch", "Spark, to send rows", "workers", "Spark, to commit".
    """

    value: object = None
    entered: int = 0
    left: int = 0
    seconds: float = 0.0
    spent: Mapping[str, float] = MappingProxyType({})

    @classmethod
    def of(cls, number: int, value: object, sizes: tuple[int, int], seconds: float) -> Epoch:
        """Return the epoch of that number; `sizes` are `entered` and `left`."""
        epoch = cls(number)
        epoch.value, (epoch.entered, epoch.left), epoch.seconds = value, sizes, seconds
        return epoch

    def spend(self, more: Mapping[str, float]) -> None:
        """Add these seconds to `spent`."""
        spent = self.spent
        self.spent = {what: spent.get(what, 0.0) + more.get(what, 0.0) for what in [*spent, *more]}


@dataclass(frozen=True)
class ToParquet:
    """The result of `to_parquet`."""

    folder: Path
    keep: Keep
    job: Mapping[str, object] = field(default_factory=dict)


@dataclass(frozen=True)
class ToTable:
    """The result of `to_table`."""

    name: str
    keep: Keep
    each_epoch: bool = False


@dataclass(frozen=True)
class ToCallback:
    """The result of `to_callback`."""

    function: Callable[[Epoch, pa.Table], object] | Callable[[Epoch, DataFrame], object]
    as_frame: bool


Target = ToParquet | ToTable | ToCallback


def to_parquet(
    folder: str | Path, keep: Keep = "both", *, job: Mapping[str, object] | None = None
) -> ToParquet:
    """Write Parquet below `folder`, on this machine's file system: `changes`, `snapshot`, `epochs`.

    `job` holds further plain values that identify the job: if a run with another `job` uses the folder, it is
    refused.
    """
    _check_keep(keep)
    return ToParquet(Path(folder), keep, dict(job or {}))


def to_table(name: str, keep: Keep = "both", *, each_epoch: bool = False) -> ToTable:
    """Write tables of Spark's catalog, in Parquet at the location of the database of `name`: `name` (the
    snapshot), `name`_changes, `name`_epochs. With `each_epoch` the snapshot is written after each epoch, as
    whole, and not only at the end.
    """
    _check_keep(keep)
    return ToTable(name, keep, each_epoch)


def to_callback(
    function: Callable[[Epoch, pa.Table], object] | Callable[[Epoch, DataFrame], object],
    *,
    as_frame: bool = False,
) -> ToCallback:
    """Call `function(epoch, changes)` in the driver for every epoch in order, once it is committed in all
    folders and tables; changes are an Arrow table, or a DataFrame if `as_frame`.

    A restarted job calls it from epoch 0 on, so it must not rely on calls of the last run.
    """
    if not callable(function):
        raise MisuseError(f"a callback is a function of an epoch and its changes, not {function!r:.100}")
    return ToCallback(function, as_frame)


def targets_of(outputs: object, names: list[str]) -> dict[str, list[Target]]:
    """Return the targets of each output in `names`; raises MisuseError for unknown names and invalid
    targets.
    """
    if outputs is None:
        return {name: [] for name in names}
    if not isinstance(outputs, Mapping):
        if len(names) != 1:
            raise MisuseError(
                f"the query puts out {', '.join(names)}: say of each where it goes, "
                f"outputs={{{names[0]!r}: …}}"
            )
        outputs = {names[0]: outputs}
    unknown = [str(name) for name in outputs if name not in names]
    if unknown:
        raise MisuseError(f"the query puts out {', '.join(names)}, and nothing called {', '.join(unknown)}")
    by_name = {name: _each(outputs.get(name)) for name in names}
    locations = [each for targets in by_name.values() for each in map(_location, targets) if each is not None]
    twice = [location for location in locations if locations.count(location) > 1]
    if twice:
        raise MisuseError(f"two outputs go to {twice[0]}: give each a place of its own")
    return by_name


def _each(value: object) -> list[Target]:
    if value is None:
        return []
    return [_one(each) for each in value] if isinstance(value, list | tuple) else [_one(value)]


def _one(value: object) -> Target:
    if isinstance(value, Target):
        return value
    if isinstance(value, str | Path):
        return to_parquet(value)
    if callable(value):
        return to_callback(value)
    raise MisuseError(
        "an output goes to a folder, a function, or timely.spark.to_parquet, to_table or to_callback, not "
        f"to {value!r:.100}"
    )


def _location(target: Target) -> str | None:
    if isinstance(target, ToParquet):
        return str(target.folder.expanduser().absolute())
    return f"the table {target.name}" if isinstance(target, ToTable) else None


def _check_keep(keep: str) -> None:
    if keep not in ("both", "changes", "snapshot"):
        raise MisuseError(f"keep is 'both', 'changes' or 'snapshot', not {keep!r}")
