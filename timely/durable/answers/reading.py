"""Where is the newest stored answer of an output? No cluster has to run to find out."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from ...errors import StoreError
from ..folder_store import FolderStore
from ..store import store_errors
from .manifest import Answer, answers_by_place

__all__ = ["StoredAnswer", "stored"]


class StoredAnswer(NamedTuple):
    """A stored answer of an output.

    path         the folder of its files, which are Parquet: `spark.read.parquet(path)`, `polars` and
                 `pyarrow.parquet.read_table(path)`, or `read_parquet('PATH/*.parquet')` in DuckDB
    epoch        it is what `snapshot(as_of=epoch)` shows
    rows         how many rows it has: a row that is there n times counts n times
    size_bytes   of its files
    why          why there is no later one, if the output had no answer when it was to be stored; "" otherwise
    """

    path: str
    epoch: int
    rows: int
    size_bytes: int
    why: str


def stored(store: Path | str, output: str, *, dataflow: str | int | None = None) -> StoredAnswer:
    """Return the newest stored answer of an output that was declared with `output(name, stored=True)`.

    Its folder has the whole answer as of one epoch, and never changes. When a later answer is stored, it gets
    a folder of its own, and this one stays for a while, so call this each time before you read.

    `store` is the folder of the durable cluster, whether that runs or not. `dataflow`, its number or the name
    under which it is installed, is needed if several have an output of this name. Raise `StoreError` if
    nothing is stored.
    """
    if not Path(store).is_dir():  # the store would make it
        raise StoreError(f"there is no folder {store}")
    folder = FolderStore(store)
    with store_errors(folder):
        answers = list(answers_by_place(folder).values())
    answer = _chosen(answers, output, dataflow, folder.name)
    if not answer.folder:
        when = f"at epoch {answer.why_epoch} " if answer.why_epoch >= 0 else ""
        raise StoreError(
            f"output {output!r} of dataflow {answer.dataflow} ({answer.key}) has no stored answer: "
            f"{when}{answer.why}"
        )
    path = str(Path(folder.name) / answer.folder)
    return StoredAnswer(path, answer.epoch, answer.rows, answer.size_bytes, answer.why)


def _chosen(answers: list[Answer], output: str, dataflow: str | int | None, store: str) -> Answer:
    """Return the answer that is meant: of dataflows that were installed under one name, the last one's."""
    by_key = {each.key: each for each in sorted(answers, key=_number) if each.output == output}
    if dataflow is None:
        candidates = list(by_key.values())
    else:
        candidates = [
            each
            for each in answers
            if each.output == output
            and (str(dataflow) == str(each.dataflow) or each is by_key.get(str(dataflow)))
        ]
    if len(candidates) == 1:
        return candidates[0]
    if candidates:
        listed = ", ".join(f"{each.dataflow} ({each.key})" for each in candidates)
        raise StoreError(
            f"dataflows {listed} have a stored output {output!r}: write dataflow=… with one of them"
        )
    listed = ", ".join(f"{each.output!r} of {each.dataflow} ({each.key})" for each in answers)
    raise StoreError(
        f"{store} has no stored answer of an output {output!r}: it has {listed or 'none at all'}. Answers "
        "are stored when the logs are folded, if the output is declared with output(name, stored=True)"
    )


def _number(answer: Answer) -> int:
    return answer.dataflow
