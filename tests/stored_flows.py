"""Dataflows with stored outputs, and what is stored of them, read as any program would."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

import differential as dd
import timely
from timely.durable import StoredAnswer, stored
from timely.durable.answers.manifest import answers_by_place
from timely.durable.answers.writing import EPOCH_KEY
from timely.durable.folder_store import FolderStore

__all__ = ["cluster", "entries", "has_answer", "rows_in", "table_in", "totals"]


def totals(flow: timely.Dataflow) -> None:
    """The sum of each customer, and the orders themselves, some of them several times."""
    orders = dd.input(flow, "orders", "customer: string, cents: int")
    orders.group_by("customer").agg(cents=dd.sum("cents")).output("totals", stored=True)
    orders.output("orders", stored=True)


def cluster(folder: Path, workers: int = 1) -> timely.Cluster:
    """Embedded workers of a durable cluster."""
    return timely.connect(workers=workers, embedded=True, durable=folder, sync="system")


def table_in(answer: StoredAnswer) -> pa.Table:
    """Return the rows of a stored answer; each of its files says the epoch."""
    files = sorted(Path(answer.path).iterdir())
    assert files and all(file.suffix == ".parquet" for file in files)
    for file in files:
        assert pq.read_schema(file).metadata[EPOCH_KEY] == str(answer.epoch).encode()
    table = pq.read_table(answer.path)
    assert table.num_rows == answer.rows
    return table


def entries(table: pa.Table) -> Counter[tuple[object, ...]]:
    """Return how often each row is there."""
    return Counter(tuple(row.values()) for row in table.to_pylist())


def rows_in(folder: Path, output: str = "totals") -> tuple[int, Sequence[tuple[object, ...]]]:
    """Return the epoch of the newest stored answer, and its rows, sorted."""
    answer = stored(folder, output)
    return answer.epoch, sorted(entries(table_in(answer)).elements(), key=repr)


def has_answer(folder: Path) -> bool:
    """Return True if an answer of `totals` is stored."""
    answer = answers_by_place(FolderStore(folder)).get("0-totals")
    return answer is not None and answer.folder != ""
