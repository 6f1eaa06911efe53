"""What `outputs=` may say: where the answers of a query go.

    outputs="folder"                                  the only output: its change log and its last snapshot
    outputs={"totals": "folder", "alarms": ring}      by the name of the output: a folder, a function
    outputs={"totals": [to_parquet("folder", keep="changes"), to_table("totals"), to_callback(show)]}

A folder or a table has the change log (columns, `epoch`, `diff`; one commit for each epoch), the snapshot as
of the last epoch, or both, and what each epoch stands for. A function is called with epoch and changes once
the epoch is committed everywhere else.
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
    """The number of an epoch, with what is known of it.

    `value`: what it stands for, a value of the column or the end of the window. `entered`, `left`: rows of
    all inputs that have come and gone in it. `seconds`: from its seal to its answers. `spent`: seconds from
    the start of its batch (or from the epoch before) to its commit, by what was waited for: "Spark, to read
    a batch", "Spark, to send rows", "workers", "Spark, to commit".
    """

    value: object = None
    entered: int = 0
    left: int = 0
    seconds: float = 0.0
    spent: Mapping[str, float] = MappingProxyType({})

    @classmethod
    def of(cls, number: int, value: object, sizes: tuple[int, int], seconds: float) -> Epoch:
        """The epoch of that number."""
        made = cls(number)
        made.value, (made.entered, made.left), made.seconds = value, sizes, seconds
        return made

    def spend(self, more: Mapping[str, float]) -> None:
        """Add to `spent`."""
        spent = self.spent
        self.spent = {what: spent.get(what, 0.0) + more.get(what, 0.0) for what in [*spent, *more]}


@dataclass(frozen=True)
class ToParquet:
    """Made by `to_parquet`."""

    folder: Path
    keep: Keep
    job: Mapping[str, object] = field(default_factory=dict)


@dataclass(frozen=True)
class ToTable:
    """Made by `to_table`."""

    name: str
    keep: Keep


@dataclass(frozen=True)
class ToCallback:
    """Made by `to_callback`."""

    function: Callable[[Epoch, pa.Table], object] | Callable[[Epoch, DataFrame], object]
    as_frame: bool


Target = ToParquet | ToTable | ToCallback


def to_parquet(
    folder: str | Path, keep: Keep = "both", *, job: Mapping[str, object] | None = None
) -> ToParquet:
    """Parquet below `folder`, on this machine's file system: `changes`, `snapshot`, `epochs`.

    `job` says, in plain values, what else makes the results those of another job: started again with another
    one, the folder is refused.
    """
    _check_keep(keep)
    return ToParquet(Path(folder), keep, dict(job or {}))


def to_table(name: str, keep: Keep = "both") -> ToTable:
    """Tables of Spark's catalog, in Parquet where the database of `name` lies: `name` (the snapshot),
    `name`_changes, `name`_epochs.
    """
    _check_keep(keep)
    return ToTable(name, keep)


def to_callback(
    function: Callable[[Epoch, pa.Table], object] | Callable[[Epoch, DataFrame], object],
    *,
    as_frame: bool = False,
) -> ToCallback:
    """Calls `function(epoch, changes)` in the driver for every epoch in order, once it is committed
    elsewhere; changes are an Arrow table, or a DataFrame.

    A job that is started again calls it from epoch 0 on: it is for who has no memory of the last time.
    """
    if not callable(function):
        raise MisuseError(f"a callback is a function of an epoch and its changes, not {function!r:.100}")
    return ToCallback(function, as_frame)


def targets_of(outputs: object, names: list[str]) -> dict[str, list[Target]]:
    """The targets of each output of the query, all of `names`; raises MisuseError for what is none."""
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
    found = {name: _each(outputs.get(name)) for name in names}
    places = [place for targets in found.values() for place in map(_place, targets) if place is not None]
    twice = [place for place in places if places.count(place) > 1]
    if twice:
        raise MisuseError(f"two outputs go to {twice[0]}: give each a place of its own")
    return found


def _each(said: object) -> list[Target]:
    if said is None:
        return []
    return [_one(each) for each in said] if isinstance(said, list | tuple) else [_one(said)]


def _one(said: object) -> Target:
    if isinstance(said, Target):
        return said
    if isinstance(said, str | Path):
        return to_parquet(said)
    if callable(said):
        return to_callback(said)
    raise MisuseError(
        "an output goes to a folder, a function, or timely.spark.to_parquet, to_table or to_callback, not "
        f"to {said!r:.100}"
    )


def _place(target: Target) -> str | None:
    if isinstance(target, ToParquet):
        return str(target.folder.expanduser().absolute())
    return f"the table {target.name}" if isinstance(target, ToTable) else None


def _check_keep(keep: str) -> None:
    if keep not in ("both", "changes", "snapshot"):
        raise MisuseError(f"keep is 'both', 'changes' or 'snapshot', not {keep!r}")
