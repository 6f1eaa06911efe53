"""What the logs of a cluster that is at work hold, read as it comes.

Each worker of the followers reads all logs by itself, in two passes over what is new:

    orders    the log of worker 0: which dataflows there are, what is decided, and which epochs are durable
    rows      the logs of all workers: names, and the rows of its share

The rows follow the orders. So every part of a delivery that a decision names is there once the rows have been
read, and so are all rows of the epochs that are durable by these orders.

The pass over orders stops behind a dataflow that has begun: others may not go beyond the epoch with which it
begins before it has begun here. The pass over rows stops at rows of a dataflow that is not known yet.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Final, cast

from ...dictionaries import Mark, dictionaries
from ...errors import OvertakenError, PeerError, StoreError
from ..bases.coverage import LoggedRecord, Logs, logs_of, unreadable
from ..bases.manifest import SegmentName
from ..incarnations import Incarnation, OldLog, newest
from ..log import new_peer
from ..past import PastInput, let_go, note_order, note_rows, past_of
from ..records import Record
from ..store import Store
from ..versions import PastOlder
from .tail import Tail

__all__ = ["FollowedLogs"]

_ROWS: Final = frozenset({"few", "rows", "part", "source", "dropped", "kept", "answer", "taken", "older"})
_FOR_OTHERS: Final = frozenset({"digest", "build", "accept", "place"})
"""Records that grow with all that the cluster shows. Workers that take over read them again, as a whole."""


class FollowedLogs:
    """The logs of the newest incarnation of a store, of those before it, and the base that stands for some.

    Args:
        store: where they are.
        is_mine: tells whether the rows of an old worker are of this share.
    """

    def __init__(self, store: Store, is_mine: Callable[[int], bool]) -> None:
        """Raise `StoreError` if there is no incarnation to follow."""
        present = newest(store)
        if present is None:
            raise StoreError(
                f"the store {store.name} has no cluster that could be followed: start that first"
            )
        self.incarnation = present.number
        self._store = store
        self._is_mine = is_mine
        self._workers = present.workers
        self.earlier = _earlier(store, present)
        """The logs before this incarnation, and pinned segments of it."""
        self.past = past_of(self.earlier.base)
        for logged in self.earlier.records():
            if not logged.is_pinned:
                note_order(self.past, logged.log, logged.record.head)
        covered = {incarnation for incarnation, _ in self.earlier.base.covered}
        for flow in self.past.flows.values():
            if self.incarnation not in covered:  # what counts from before this incarnation is all there
                flow.durable = flow.sealed + 1
                for positions in flow.sources.values():
                    positions.durable = positions.first_held(flow.as_of)
            elif flow.base is not None:
                flow.durable = max(flow.durable, flow.base.summed + 1)
            flow.digests.clear()
            flow.moved.clear()
        self._orders = self._tail(0)
        self._rows = [self._tail(process) for process in range(present.processes)]
        self._readers = [new_peer() for _ in self._rows]
        self._has_read_earlier = False
        while self.read_orders():
            pass  # what has begun already begins together

    def read_orders(self) -> bool:
        """Take in orders; return True if a dataflow has begun, behind which there may be more."""
        has_begun = False
        for record, path in self._orders.records():
            self._note_order(record, path)
            if record.head[0] in ("flow", "switched"):
                self._orders.note_read()
                has_begun = True
                break
        let_go(self.past)
        return has_begun

    def read_rows(self, begun: Mapping[int, dict[str, PastInput]]) -> None:
        """Take in the names and rows of the dataflows that have begun."""
        if not self._has_read_earlier:
            self._has_read_earlier = True
            reader = new_peer()
            try:
                for logged in self.earlier.records():
                    self._note(begun, logged, reader, is_of_present=False)
            finally:
                _withdraw(reader)
        for process, tail in enumerate(self._rows):
            for record, path in tail.records():
                if not self._is_known(record.head):
                    break
                logged = LoggedRecord(record, self._log(process, path), path, False)
                self._note(begun, logged, self._readers[process], is_of_present=True)

    def fresh_segments(self) -> list[int]:
        """Return, for the rows of each log, how many segments were begun that say all symbols anew."""
        return [tail.fresh_count for tail in self._rows]

    def symbols(self, mark: Mark) -> None:
        """Show the words of all rows that were read, and are in no dataflow."""
        for flow in (*self.past.flows.values(), *self.past.versions.values()):
            for into in flow.inputs.values():
                for batch in into.batches():
                    mark.holder(batch, f"an input of dataflow {flow.number} that was read")
            for older in flow.older.values():
                for _, batch in older.changes:
                    mark.holder(batch, f"an output of dataflow {flow.number} that was read")

    def read_rest(self, incarnation: Incarnation, begun: Mapping[int, dict[str, PastInput]]) -> None:
        """Take in all that counts of the logs for an incarnation that has taken over, and has not been read.

        Raise `OvertakenError` if more than that was read, or something is gone that was not read.
        """
        logs = {log.process: log for log in incarnation.logs if log.incarnation == self.incarnation}
        later = [log for log in incarnation.logs if log.incarnation > self.incarnation]
        if later or incarnation.number <= self.incarnation:
            raise OvertakenError(
                f"the store {self._store.name} has logs of incarnation {later[0].incarnation if later else 0}"
                f", and incarnation {self.incarnation} was followed"
            )
        if 0 in logs:
            for record, path in self._orders.records_to(logs[0].segments):
                self._note_order(record, path)
        let_go(self.past)
        for process, tail in enumerate(self._rows):
            for record, path in tail.records_to(logs[process].segments) if process in logs else ():
                logged = LoggedRecord(record, self._log(process, path), path, False)
                self._note(begun, logged, self._readers[process], is_of_present=True)
        self.close()

    def close(self) -> None:
        """Forget the symbols of the logs."""
        for reader in self._readers:
            _withdraw(reader)

    def _tail(self, process: int) -> Tail:
        covered = self.earlier.base.covered.get((self.incarnation, process), -1)
        return Tail(self._store, self.incarnation, process, covered + 1)

    def _log(self, process: int, path: str) -> OldLog:
        return OldLog(self.incarnation, process, self._workers, [(path, 0)])

    def _is_known(self, head: list[object]) -> bool:
        if head[0] not in _ROWS:
            return True
        past = self.past
        number = cast("int", head[2])
        is_there = number in past.flows or number in past.versions
        return is_there or number in past.gone or number < past.ended_before

    def _older(self) -> dict[int, dict[str, PastOlder]]:
        flows = {**self.past.versions, **self.past.flows}
        return {number: flow.older for number, flow in flows.items()}

    def _note_order(self, record: Record, path: str) -> None:
        if record.head[0] not in _FOR_OTHERS:
            note_order(self.past, self._log(0, path), record.head)

    def _note(
        self,
        begun: Mapping[int, dict[str, PastInput]],
        logged: LoggedRecord,
        reader: int,
        is_of_present: bool,
    ) -> None:
        is_kept = is_of_present or logged.log.incarnation == self.incarnation
        try:
            note_rows(begun, self._older(), logged, self._is_mine, reader, keeps_undecided=is_kept)
        except PeerError as error:
            raise unreadable(self.earlier, logged, error) from error


def _earlier(store: Store, present: Incarnation) -> Logs:
    """Return the logs without what of the newest incarnation is read as it comes."""
    logs = logs_of(store, present)
    of_earlier: list[OldLog] = []
    for log in present.logs:
        segments = log.segments
        if log.incarnation == present.number:
            segments = [each for each in segments if logs.base.covers(SegmentName.of(each[0]))]
        of_earlier.append(replace(log, segments=segments))
    return Logs(store, of_earlier, logs.base)


def _withdraw(reader: int) -> None:
    for dictionary in dictionaries():
        dictionary.withdraw(reader)
