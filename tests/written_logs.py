"""Logs that tests write record by record, and a process that has none of the symbols in them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from types import TracebackType

import numpy as np
import pytest

from differential.columns import update_batch
from differential.columns.symbols.table import SymbolTable
from differential.columns.update_batch import UpdateBatch
from differential.columns.worker_symbols import SYMBOLS
from timely.durable.incarnations import announce, hello_of
from timely.durable.journal import Journal
from timely.durable.log import Log
from timely.durable.store import Store

__all__ = ["WrittenLogs", "another_process", "symbols", "texts_of"]

SECONDS = 20.0


class WrittenLogs:
    """The logs of one incarnation, by the journals of its workers. `processes`: by default one for each."""

    def __init__(
        self, store: Store, workers: int = 1, processes: int | None = None, segment_bytes: int = 1 << 20
    ) -> None:
        self.present = announce(store, workers, processes)
        self.logs = [
            Log(store, self.present.cluster, self.present.number, process, segment_bytes=segment_bytes)
            for process in range(self.present.processes)
        ]
        for process, log in enumerate(self.logs):
            log.wait(log.add(hello_of(self.present, process)), SECONDS)
        self.journals = [Journal(self.logs[worker % len(self.logs)], worker) for worker in range(workers)]

    def __enter__(self) -> WrittenLogs:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for log in self.logs:
            log.close()

    def flow(
        self, number: int, reads: Sequence[int] = (), key: str = "", as_of: int = 0, spec: str = ""
    ) -> None:
        """Write that a dataflow has begun."""
        self.journals[0].flow(
            number, [spec, b"", key or f"flow {number}", reads, as_of, "print", ["line"], []]
        )


def symbols(texts: Sequence[str], time: int = 7) -> UpdateBatch:
    """One row for each text, which its only word stands for."""
    words = np.zeros((3, len(texts)), np.int64)
    words[0] = SYMBOLS.intern(texts)
    words[1] = time
    words[2] = 1
    return UpdateBatch(words, (0,))


@contextmanager
def another_process() -> Iterator[SymbolTable]:
    """A symbol table that knows nothing, in place of that of this process."""
    fresh = SymbolTable()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(update_batch, "SYMBOLS", fresh)
        yield fresh


def texts_of(batch: object, table: SymbolTable) -> list[object]:
    """The texts that `symbols` was given, as another process reads them."""
    assert isinstance(batch, UpdateBatch)
    return table.lookup(batch.words[0])
