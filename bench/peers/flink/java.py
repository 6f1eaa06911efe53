"""How does Flink SQL get tables whose rows come and go, and what does it answer?

A run is a folder: `spec.json`, and for each column its words as 64-bit numbers, of a text where it begins among
the column's bytes. The program in `src/` reads all of it before the clock runs.
"""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import cast

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

__all__ = ["BUILD", "FOLDER", "Epoch", "FlinkError", "FlinkTable", "is_built", "run", "write"]

FOLDER = Path(__file__).resolve().parent
BUILD = "mvn -q -B -f bench/peers/flink/pom.xml package"
"""The command that builds the program."""

Epoch = tuple[int, int, int, int]
"""The rows that go in an epoch, from and to, and those that come."""

_HEAP = "-Xmx10g"
_OPENED = ("java.lang", "java.util", "java.util.concurrent", "java.time", "java.net", "java.nio", "sun.nio.ch")
"""Packages that Flink looks into."""


class FlinkError(Exception):
    """A run that has failed, and why."""


@dataclass(frozen=True)
class FlinkTable:
    """A table with all rows that are ever there.

    epochs        of each epoch the rows that go and come; the first is the load
    rowtime       a column of which windows are made
    inserts_only  no row ever goes
    """

    rows: pa.Table
    epochs: Sequence[Epoch]
    rowtime: str | None = None
    inserts_only: bool = False


def is_built() -> bool:
    """Whether the program and the libraries are there."""
    return (FOLDER / "target/dependency").is_dir() and (FOLDER / "target/flinkpeer-1.jar").exists()


def write(  # what the program reads
    folder: Path, tables: Mapping[str, FlinkTable], query: str, watermarks: Sequence[int], workers: int, *,
    statements: Sequence[str] = (), batch: int = 1, check: tuple[int, int, int] | None = None, special: str = "",
) -> None:  # fmt: skip
    """Write a run.

    `check` are the places of the columns that are hashed and of the one that is summed; "equal" or "one" says
    which rows are `special`. Without `check` the answer's rows are written, as `answer.tsv`.
    """
    described = []
    for name, table in tables.items():
        columns = []
        for place, field in enumerate(table.rows.schema):
            type_ = _written(folder / f"{name}.{field.name}", table.rows.column(place).combine_chunks())
            columns.append({"name": field.name, "type": type_})
        described.append(
            {
                "name": name,
                "columns": columns,
                "epochs": [list(map(int, epoch)) for epoch in table.epochs],
                "rowtime": table.rowtime,
                "inserts_only": table.inserts_only,
            }
        )
    spec = {
        "tables": described,
        "statements": list(statements),
        "query": query,
        "watermarks": list(map(int, watermarks)),
        "parallelism": workers,
        "batch": batch,
        "check": check,
        "special": special,
    }
    (folder / "spec.json").write_text(json.dumps(spec))


def _written(path: Path, column: pa.Array) -> str:
    """Write a column, and return its type in Flink; milliseconds are what its windows can take."""
    if column.null_count:
        raise FlinkError(f"{path.name} has nulls")
    if pa.types.is_string(column.type):
        offsets = np.frombuffer(column.buffers()[1], np.int32)[column.offset : column.offset + len(column) + 1]
        path.with_name(f"{path.name}.bytes").write_bytes(column.buffers()[2] or b"")
        words, type_ = offsets.astype(np.int64), "STRING NOT NULL"
    elif pa.types.is_timestamp(column.type):
        words = column.cast(pa.timestamp("ms", column.type.tz)).cast(pa.int64()).to_numpy()
        type_ = "TIMESTAMP(3) NOT NULL"
    elif pa.types.is_date(column.type):
        words, type_ = column.cast(pa.int32()).cast(pa.int64()).to_numpy(), "DATE NOT NULL"
    else:
        words, type_ = pc.cast(column, pa.int64()).to_numpy(), "BIGINT NOT NULL"
    path.with_name(f"{path.name}.words").write_bytes(np.ascontiguousarray(words, "<i8").tobytes())
    return type_


def run(*folders: Path, limit: float | None = None) -> dict[str, object]:
    """Run what is written in folders, and return what the program says of the last; raises `FlinkError`.

    Those before it are small runs of the same query, behind which the virtual machine has compiled what it needs.
    """
    java = shutil.which("java")
    if not is_built() or java is None:
        raise FlinkError(f"Flink is not built: {BUILD} (needs Java 17 and Maven)")
    opened = [word for package in _OPENED for word in ("--add-opens", f"java.base/{package}=ALL-UNNAMED")]
    path = f"{FOLDER / 'target/flinkpeer-1.jar'}:{FOLDER / 'target/dependency'}/*"
    command = [java, _HEAP, "-Xms64m", *opened, "-cp", path, "peer.Main", *map(str, folders)]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=limit, check=False)
    except subprocess.TimeoutExpired:
        raise FlinkError(f"it has not ended within {limit:,.0f} s") from None
    lines = done.stdout.splitlines()
    if done.returncode != 0 or not lines:
        said = [line for line in done.stderr.splitlines() if line.startswith("flinkpeer: ")]
        raise FlinkError("\n".join(said) or done.stderr[-2000:])
    return cast("dict[str, object]", json.loads(lines[-1]))
