"""A fold stores the answers that the logs have.

The rows of an answer are taken as those of a base are: in passes, by a hash, so that the memory is bounded,
and summed up. A row that is there n times is stored n times, so that `SELECT sum(x)` says what the output
says; that takes hardly any room, since Parquet packs equal values that follow one another.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from io import BytesIO
from typing import Final, TypeAlias
from zlib import crc32

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from progress.compiled.arrays import Int64s

from ...limits import ANSWER_ROWS_MAX, FOLD_FILE_ROWS_MAX
from ...wire.arrow import int64_array, int64s_of
from ..bases.history import History
from ..bases.rows_form import BucketRange, RowsForm, new_rows
from ..store import Store
from .logged import AnswerName
from .manifest import (
    Answer,
    AnswerFile,
    answer_folder,
    answer_numbers,
    newest_answer,
    place_of,
    write_answer,
)

__all__ = ["EPOCH_KEY", "AnswersOfFold"]

EPOCH_KEY: Final = b"timely.epoch"
"""The metadata of each file under which the epoch stands, as text."""

_ADDED: Final = 2
"""The last columns of a base's rows: `epoch` and `diff`."""

_RangesOf: TypeAlias = Callable[[int], Sequence[BucketRange]]


class AnswersOfFold:
    """The answers that one fold stores.

    Args:
        store: where.
        history: what the logs have.
        unique: tells this fold apart from others.
    """

    def __init__(self, store: Store, history: History, unique: str) -> None:
        self._store = store
        self._writers: dict[tuple[int, str], _Writer] = {}
        numbers = answer_numbers(store)
        for (dataflow, output), name in history.newest_answers().items():
            flow = history.past.flows[dataflow]
            place = place_of(dataflow, output)
            own = numbers.get(place, [])
            before = newest_answer(store, place, own)
            if before is not None and not _is_newer(name, before):
                continue
            stored = replace(
                Answer(0, dataflow, flow.key, output) if before is None else before,
                key=flow.key,
                number=max(own, default=0) + 1,
                why=history.answers.why(dataflow, output, name),
                why_epoch=name.epoch,
            )
            self._writers[dataflow, output] = _Writer(store, stored, name, unique)
        self._history = history
        self._forms: dict[tuple[int, str], RowsForm] = {}

    @property
    def forms(self) -> list[RowsForm]:
        """The rows of this pass."""
        return list(self._forms.values())

    def begin_pass(self, buckets: BucketRange) -> None:
        """Take rows of these buckets from now on."""
        self._forms = {}
        for (dataflow, output), writer in self._writers.items():
            if not writer.why:
                facts = self._history.past.flows[dataflow].fold_facts.output(output)
                self._forms[dataflow, output] = new_rows(facts, buckets)

    def form_of(self, incarnation: int, head: Sequence[object]) -> RowsForm | None:
        """Return what takes the rows of a record; None if they are of an answer that is not to be stored."""
        match head:
            case (_, int(), int(dataflow), str(output), str(cut), int(epoch), *_):
                writer = self._writers.get((dataflow, output))
                if writer is not None and writer.name == AnswerName(incarnation, epoch, cut):
                    return self._forms.get((dataflow, output))
        return None

    def write_pass(self, ranges_of: _RangesOf) -> None:
        """Write the rows that were taken. `ranges_of` divides buckets for a number of rows."""
        for key, form in self._forms.items():
            writer = self._writers[key]
            first = self._history.past.flows[key[0]].as_of
            for folded in form.folded(ranges_of(form.rows), writer.name.epoch, first):
                writer.add(form.values(folded.table))
            writer.note_columns(form.values(form.empty()))
        self._forms = {}

    def finish(self) -> list[Answer]:
        """Put the manifests, and return what is stored of each output by now."""
        return [answer for writer in self._writers.values() if (answer := writer.finish()) is not None]


def _is_newer(name: AnswerName, stored: Answer) -> bool:
    """Return True if an answer is to take the place of what is stored. One as of the same epoch does, too, if
    another incarnation has computed it: with `accept` it may be another one.
    """
    newest = max((stored.epoch, stored.incarnation), (stored.why_epoch, stored.incarnation))
    return (name.epoch, name.incarnation) > newest


class _Writer:
    """Writes one answer. `stored`: what is stored by now, with the number and the reason of the next."""

    def __init__(self, store: Store, stored: Answer, name: AnswerName, unique: str) -> None:
        self.name = name
        self.why = stored.why
        self._store = store
        self._stored = stored
        self._folder = answer_folder(
            place_of(stored.dataflow, stored.output), stored.number, name.epoch, unique
        )
        self._files: list[AnswerFile] = []
        self._columns: pa.Table | None = None

    def note_columns(self, empty: pa.Table) -> None:
        """Note which columns rows have, also if there are none."""
        self._columns = empty

    def add(self, table: pa.Table) -> None:
        """Write rows as a base has them."""
        if self.why:
            return
        counts = int64s_of(table.column(table.num_columns - 1))
        rows = table.select(range(table.num_columns - _ADDED))
        if counts.size and counts.min() < 0:
            where = int(counts.argmin())
            self.why = (
                f"{_shown(rows, where)} is there {counts[where]} times, and a file cannot have fewer rows "
                "than none. Write consolidate() or distinct(), or find out what removes more than was there"
            )
            return
        if sum(file.rows for file in self._files) + counts.sum(dtype=np.float64) > ANSWER_ROWS_MAX:
            self.why = (
                f"it has more than {ANSWER_ROWS_MAX:,} rows, each as often as it is there. Write count() "
                "behind a group_by, and store that"
            )
            return
        for piece in _repeated(rows, counts):
            self._write(piece)

    def finish(self) -> Answer | None:
        """Put the manifest, and return the answer; None if another fold has put a newer one meanwhile."""
        answer = replace(self._stored, stored_at=time.time(), why=self.why)
        if not self.why:
            if not self._files:
                assert self._columns is not None
                self._write(self._columns.select(range(self._columns.num_columns - _ADDED)))
            answer = replace(
                answer,
                epoch=self.name.epoch,
                incarnation=self.name.incarnation,
                folder=self._folder,
                files=tuple(self._files),
                why_epoch=-1,
            )
        while not write_answer(self._store, answer):  # a fold of an earlier incarnation came first
            place = place_of(answer.dataflow, answer.output)
            numbers = answer_numbers(self._store)[place]
            newest = newest_answer(self._store, place, numbers)
            if newest is not None and not _is_newer(self.name, newest):
                return None
            answer = replace(answer, number=numbers[-1] + 1)
        return answer

    def _write(self, table: pa.Table) -> None:
        described = table.replace_schema_metadata(
            {
                EPOCH_KEY: str(self.name.epoch).encode(),
                b"timely.dataflow": self._stored.key.encode(errors="replace"),
                b"timely.output": self._stored.output.encode(),
            }
        )
        sink = BytesIO()
        pq.write_table(described, sink, compression="zstd")
        data = sink.getvalue()
        path = f"{self._folder}/part-{len(self._files):04}.parquet"
        self._store.put_new(path, data)
        self._files.append(AnswerFile(path, len(data), crc32(data), table.num_rows))


def _repeated(rows: pa.Table, counts: Int64s) -> Iterator[pa.Table]:
    """Yield each row as often as `counts` say, in tables of a limited number of rows."""
    if not counts.size:
        return
    if counts.max() == 1:  # Fast path; none is 0.
        yield rows
        return
    ends = np.cumsum(counts)
    for first in range(0, int(ends[-1]), FOLD_FILE_ROWS_MAX):
        numbers = np.arange(first, min(int(ends[-1]), first + FOLD_FILE_ROWS_MAX))
        yield rows.take(int64_array(np.searchsorted(ends, numbers, side="right")))


def _shown(rows: pa.Table, where: int) -> str:
    shown = ", ".join(f"{name} = {value!r}" for name, value in rows.slice(where, 1).to_pylist()[0].items())
    return f"the row {shown:.200}"
