"""The part that a worker has in folds, turn by turn: see `folds/cuts.py`."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Final

from ...limits import FOLD_LOG_BYTES_MIN
from ...running.core import Worker
from ...wire.handshake import CutLog, LogCut, Logged, encode_control
from .durability import Durability
from .folds.cuts import epochs_to_fold, epochs_to_store
from .folds.fold_process import FoldProcess

__all__ = ["EmbeddedFolds", "Folds"]

_REPORT_BYTES: Final = FOLD_LOG_BYTES_MIN // 16
"""After so many logged bytes, worker 0 hears of it, or looks whether a fold is due."""

_PATIENCE_SECONDS: Final = 10.0
"""A fold waits for so long, at most, until the workers rest."""

_EMBEDDED_PATIENCE_SECONDS: Final = 1.0
"""The workers of a program work while it calls them; after this time a fold no longer meets the load that has
made it due.
"""

_CUT_SECONDS: Final = 0.002
"""How long embedded workers write for a fold behind a call of their program."""

_CLOSING_SECONDS: Final = 5.0
"""How long a program waits at its end for a fold."""


class Folds:
    """The part of a worker that is a process."""

    def __init__(self, worker: Worker, durability: Durability, folder: str) -> None:
        self._worker = worker
        self._durability = durability
        self._process = None if worker.index else durability.fold_process(folder)
        self._look_at = 0
        """The size of the log at which to report, or to look, again."""
        if self._process is not None:
            durability.cuts.on_cut = self._tell

    def on_news(self, peer: int, news: CutLog | LogCut | Logged) -> None:
        """Take a message of another worker."""
        if isinstance(news, CutLog):
            # It comes twice, as worker 0 cuts first: what that has decided in front of its cut is about parts
            # in front of the others.
            if not self._durability.cuts.let_cut(news.name):
                self._durability.cuts.order(news, is_held=True)
        elif self._process is None:
            pass  # such news goes to worker 0, and that has one
        elif isinstance(news, Logged):
            self._process.note_size(peer, news.size_bytes)
            self._look_at = 0
        else:
            self._note_cut(self._process, peer, news.name)

    def look(self, rests: bool) -> bool:
        """Report what the log has told, and do what there is to do for folds; return True if there was
        anything. `rests`: this worker has had no work for a while.
        """
        durability, process = self._durability, self._process
        moved = durability.look()
        if durability.cuts.is_cutting:
            moved = durability.cuts.step() or moved
        for name in durability.cuts.told():
            moved = True
            if process is None:
                self._worker.send_control(encode_control(Logged(durability.log.size_bytes)), to=0)
                self._worker.send_control(encode_control(LogCut(name)), to=0)
            else:
                process.note_size(0, durability.log.size_bytes)
                self._note_cut(process, 0, name)
        size = durability.log.size_bytes
        if size >= self._look_at:
            self._look_at = size + _REPORT_BYTES
            if process is None:
                self._worker.send_control(encode_control(Logged(size)), to=0)
            else:
                process.note_size(0, size)
                moved = self._begin_if_due(process, rests) or moved
        if process is not None:
            if process.is_waiting:
                moved = self._begin_if_due(process, rests) or moved
            if process.is_wanted(durability.cuts.has_newer):
                moved = self._begin(process) or moved
            if process.look():
                self._look_at = 0
        return moved

    def close(self) -> None:
        """End the fold that runs: the next incarnation begins another one."""
        if self._process is not None:
            self._process.wait(0.0)

    def _note_cut(self, process: FoldProcess, worker: int, name: str) -> None:
        process.note_cut(worker, name, _in_use(self._durability))

    def _begin_if_due(self, process: FoldProcess, rests: bool) -> bool:
        return process.is_due(0.0 if rests else _PATIENCE_SECONDS) and self._begin(process)

    def _begin(self, process: FoldProcess) -> bool:
        """Begin a fold, if all dataflows have their rows; return False if they have not."""
        if not self._durability.have_all_begun:
            return False
        last = epochs_to_fold(self._worker, self._durability.epochs)
        name = process.new_cut(range(self._worker.workers))
        order = CutLog(name, tuple(last), tuple(last.values()), epochs_to_store(self._worker, tuple(last)))
        self._tell(order)
        self._durability.cuts.order(order)
        return True

    def _tell(self, order: CutLog) -> None:
        self._worker.send_control(encode_control(order))


class EmbeddedFolds:
    """The part of workers of one program, which share a log; the first one cuts it."""

    def __init__(self, workers: Sequence[Worker], all_of: Sequence[Durability], folder: str) -> None:
        self._workers = workers
        self._all = all_of
        self._process = all_of[0].fold_process(folder)
        self._look_at = 0
        self._is_wanted = False
        self._cutting: list[Durability] = []

    @property
    def is_to_look(self) -> bool:
        """True if `look` should be called. Cost: that of a comparison, most often."""
        process = self._process
        is_larger = self._all[0].log.size_bytes >= self._look_at
        if is_larger or process.is_running or process.is_waiting or self._cutting:
            return True
        self._is_wanted = process.is_wanted(self._all[0].cuts.has_newer)
        return self._is_wanted

    def look(self, wait_seconds: float) -> None:
        """Begin a fold if one is due; the workers are at rest. Waits for the disk."""
        process, log = self._process, self._all[0].log
        if self._cutting:
            self._cut(wait_seconds)
            return
        if process.look() or log.size_bytes >= self._look_at:
            self._look_at = log.size_bytes + _REPORT_BYTES
            process.note_size(0, log.size_bytes)
            is_due = process.is_due(_EMBEDDED_PATIENCE_SECONDS)
        else:
            is_due = process.is_waiting and process.is_due(_EMBEDDED_PATIENCE_SECONDS)
        if is_due or self._is_wanted:
            self._begin(wait_seconds)

    def store(self, wait_seconds: float) -> bool:
        """Fold once more, at the end: if stored outputs hold something newer than what is stored, or if very
        many incarnations have left logs. Wait for the fold. The workers are at rest. Return False if they
        have to work first.
        """
        process = self._process
        if self._cutting:  # for a fold of epochs that may not be the last
            self._cut(wait_seconds, is_last=True)
        process.wait(wait_seconds)
        has_newer = self._all[0].cuts.has_newer(process.has_failed)
        if not self._cutting and (has_newer or process.has_many_logs):
            self._begin(wait_seconds, is_last=True)
            process.wait(wait_seconds)
        return not self._cutting

    def close(self) -> None:
        """Wait for the fold that runs, but not for long."""
        self._process.wait(_CLOSING_SECONDS)

    def _begin(self, wait_seconds: float, is_last: bool = False) -> None:
        self._is_wanted = False
        last: dict[int, int] = {}
        for worker, durability in zip(self._workers, self._all, strict=True):
            for number, epoch in epochs_to_fold(worker, durability.epochs).items():
                last[number] = min(epoch, last.get(number, epoch))
        name = self._process.new_cut([0])
        stored = epochs_to_store(self._workers[0], tuple(last))
        for durability in self._all:
            durability.cuts.order(CutLog(name, tuple(last), tuple(last.values()), stored))
        self._cutting = list(self._all)  # the first one cuts, when the others have written
        self._cut(wait_seconds, is_last)

    def _tell(self, wait_seconds: float) -> bool:
        """Wait until the log has told all, and note that; return False if it had."""
        log = self._all[0].log
        if log.told >= log.position:
            return False
        log.wait(log.position, wait_seconds)
        for durability in self._all:
            durability.look()
        return True

    def _cut(self, wait_seconds: float, is_last: bool = False) -> None:
        """Go on cutting the log, for a moment; `is_last`: to the end."""
        until = time.monotonic() + _CUT_SECONDS
        while self._cutting:
            cuts = self._cutting[-1].cuts
            while cuts.is_cutting:
                if not cuts.step():
                    if not self._tell(wait_seconds):
                        return  # some worker has to work first
                elif not is_last and time.monotonic() > until:
                    return  # the rest follows behind the next call
            if len(self._cutting) == 1:
                break  # the log is cut
            self._cutting.pop()
        first = self._all[0]
        first.log.wait(first.log.position, wait_seconds)  # if the disk fails, the next call comes back here
        self._cutting.clear()
        self._process.note_size(0, first.log.size_bytes)
        for told in first.cuts.told():
            self._process.note_cut(0, told, _in_use(first))


def _in_use(durability: Durability) -> list[int]:
    return [] if durability.have_all_begun else [durability.base]
