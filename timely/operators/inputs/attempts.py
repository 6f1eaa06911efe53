"""What the tasks of a batch have staged at an input, until it is known which of them count.

    query      who hands over rows in batches that are numbered 0, 1, 2, …, also after it was started again
    batch      what it hands over at once, and so what enters one epoch
    attempt    one run of one task of a batch: a task may be run again, or twice at once, and only at the end
               is it known which runs count

Laws:
  1. rows enter if and only if the commit of their batch names their attempt;
  2. a batch is committed once: what is staged for it afterwards, and a commit that is repeated, changes
     nothing. Only the last one can be meant to come again, with as many rows: who gives one before it, or
     others under its number, has numbers of another life, and is refused; and so is another stream under
     the same name;
  3. a commit leaves nothing staged of its query for its batch or one before;
  4. what was found to be there, for a commit, stays until that comes, unless it is dropped by its own name,
     which says that the commit will not come. Who gives up a batch does not know of another driver that is
     about to commit it, nor what has become of a commit that nobody has answered;
  5. a commit comes so soon after it was found that no worker has let go of anything, or is refused. One that
     waits for a worker 0 that computes would otherwise be of those rows that are left.

For law 2 the last batch of each query is remembered as long as the input is there: a query too many is
refused, since what is forgotten could count again. Only of queries that write once (`WRITES_ONCE`) the oldest
are forgotten: nobody else has their names.

What is staged and never committed, because the driver of a query is gone for good, is dropped when it has
waited for `ATTEMPT_SECONDS_MAX`.
"""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Final

from ...errors import MisuseError
from ...limits import ATTEMPT_SECONDS_MAX, QUERIES_MAX, WRITERS_MAX
from ...wire.task_requests import WRITES_ONCE
from .folded import Waiting

__all__ = ["COMMIT_SECONDS_MAX", "Attempts", "Part"]


@dataclass(frozen=True)
class Part:
    """Rows that a task has staged at once, at the time `word` for now."""

    word: int
    batches: list[Waiting]
    size_bytes: int
    rows: int
    """As they were given."""


@dataclass
class _Attempt:
    since: float
    parts: dict[int, Part] = field(default_factory=dict)
    is_checked: bool = False


COMMIT_SECONDS_MAX: Final = ATTEMPT_SECONDS_MAX * 3 / 4
"""How long after the look a commit is taken: nothing may be let go of before the last worker hears of it."""


class Attempts:
    """What is staged at one input on one worker, and which batches are committed."""

    def __init__(
        self,
        clock: Callable[[], float] = time.monotonic,
        queries_max: int = QUERIES_MAX,
        once_max: int = WRITERS_MAX,
    ) -> None:
        self._clock = clock
        self._queries_max = queries_max
        self._once_max = once_max
        self._staged: dict[tuple[str, int, str], _Attempt] = {}
        self._last: dict[str, int] = {}
        self._last_rows: dict[str, int] = {}
        self._last_once: OrderedDict[str, int] = OrderedDict()
        self._streams: dict[str, str] = {}
        self.bytes = 0

    def __len__(self) -> int:
        return len(self._staged)

    def last(self, query: str) -> int:
        """The last batch of a query that is committed; -1 if none is."""
        return self._last.get(query, self._last_once.get(query, -1))

    def last_rows(self, query: str) -> int:
        """How many rows of that batch have entered here."""
        return self._last_rows.get(query, 0)

    def check_remembered(self, query: str) -> None:
        """Raise `MisuseError` if there is no room to remember that a batch of `query` is committed."""
        is_known = query in self._last or query.startswith(WRITES_ONCE)
        if not is_known and len(self._last) >= self._queries_max:
            raise MisuseError(
                f"{len(self._last):,} queries have written into this input, each of which is remembered, so "
                f"that no batch counts twice, and {query} would be one too many: start a stream again with "
                "the checkpoint that it had, and write DataFrames without the option 'query'"
            )

    def check_follows(self, query: str, batch: int) -> None:
        """Raise `MisuseError` if batches before `batch` are missing."""
        last = self.last(query)
        if batch <= last + 1:
            return
        missing = f"batch {last + 1}" if batch == last + 2 else f"batches {last + 1} to {batch - 1}"
        raise MisuseError(
            f"batch {batch} of query {query} comes before {missing}, which this dataflow was never given: "
            "is it another one than before? Start the query with a new checkpoint, or, if it has their rows "
            "from elsewhere, with the option 'gap' set to 'allow'"
        )

    def check_last(self, query: str, batch: int) -> None:
        """Raise `MisuseError` if another batch came behind `batch`."""
        last = self.last(query)
        if batch < last:
            raise MisuseError(
                f"batch {batch} of query {query} has come already, and so have those up to {last}: a query "
                "that goes on gives none of them again, so this one has an older copy of its checkpoint, or "
                "a new one under the name of another. Its rows may be others than those that came, and are "
                "not written. Start it with the checkpoint that it had last; or, if its rows are in no "
                "batch that came, with a new checkpoint and a 'query' of its own"
            )

    def check_looked(self, query: str, batch: int, looked: int) -> None:
        """Raise `MisuseError` if what was found at `looked`, of `seconds`, may be gone on some worker."""
        if self.seconds() - looked > COMMIT_SECONDS_MAX:
            raise MisuseError(
                f"batch {batch} of query {query} is not committed: its commit has come more than "
                f"{COMMIT_SECONDS_MAX / 3600:g} hours after its tasks were done, and by then what they have "
                "staged is let go of. Write it again"
            )

    def seconds(self) -> int:
        """What its clock says, of which only differences count."""
        return int(self._clock())

    def check_stream(self, query: str, batch: int, stream: str) -> None:
        """Raise `MisuseError` if what came of `query` was of another stream. Asked of worker 0, which is
        told by `came_from`.
        """
        if self._streams.get(query, stream) != stream:
            raise MisuseError(
                f"batch {batch} of query {query} is not written: another stream writes under that name, or "
                "this one did with another checkpoint, and of two with the same number one would be lost. "
                "Give each a 'query' of its own, and a stream the checkpoint that it had. To let this one go "
                "on under that name, behind what has come, say .option('gap', 'allow')"
            )

    def came_from(self, query: str, stream: str) -> None:
        """A batch of `query` is committed, and was of this stream; empty: of none."""
        if not query.startswith(WRITES_ONCE):
            self._streams[query] = stream

    def stage(self, query: str, batch: int, attempt: str, number: int, part: Part) -> bool:
        """Keep one part of an attempt; the same number again replaces it. False: the batch is committed."""
        if batch <= self.last(query):
            return False
        known = self._staged.setdefault((query, batch, attempt), _Attempt(self._clock()))
        known.since = self._clock()
        before = known.parts.get(number)
        known.parts[number] = part
        self.bytes += part.size_bytes - (0 if before is None else before.size_bytes)
        return True

    def drop_old(self) -> None:
        """Let go of what has waited for too long."""
        now = self._clock()
        for key in [key for key, known in self._staged.items() if now - known.since > ATTEMPT_SECONDS_MAX]:
            self._drop(key)

    def parts(self, query: str, batch: int, attempt: str) -> int:
        """How many parts of an attempt are here."""
        known = self._staged.get((query, batch, attempt))
        return 0 if known is None else len(known.parts)

    def keep(self, query: str, batch: int, attempt: str) -> int:
        """The same for who is about to commit them: until then only this name lets go of them."""
        known = self._staged.get((query, batch, attempt))
        if known is not None:
            known.since = self._clock()
            known.is_checked = True
        return self.parts(query, batch, attempt)

    def commit(self, query: str, batch: int, attempts: Sequence[str]) -> list[list[tuple[int, Part]]]:
        """The parts of these attempts, by number, in the order of `attempts`; nothing else of the batch, or
        of one before, stays.
        """
        taken: list[list[tuple[int, Part]]] = []
        for attempt in attempts:
            known = self._staged.get((query, batch, attempt))
            taken.append([] if known is None else sorted(known.parts.items()))
        for key in [key for key in self._staged if key[0] == query and key[1] <= batch]:
            self._drop(key)
        if query.startswith(WRITES_ONCE):
            self._last_once[query] = batch
            if len(self._last_once) > self._once_max:
                self._last_once.popitem(last=False)
        else:
            self._last[query] = batch
            self._last_rows[query] = sum(part.rows for parts in taken for _, part in parts)
        return taken

    def drop(self, query: str, batch: int, attempts: Sequence[str] = ()) -> None:
        """Forget these attempts, or, without any, all of the batch but for what is about to be committed."""
        named = set(attempts)
        for key in [key for key in self._staged if key[:2] == (query, batch)]:
            if key[2] in named or not (named or self._staged[key].is_checked):
                self._drop(key)

    def batches(self) -> list[Waiting]:
        """All that is staged."""
        staged = [part for known in self._staged.values() for part in known.parts.values()]
        return [batch for part in staged for batch in part.batches]

    def clear(self) -> None:
        """Forget all that is staged."""
        for key in list(self._staged):
            self._drop(key)

    def compared(self) -> object:
        """All that decides what it will do, but for the time."""
        return self._staged, self._last, self._last_rows, self._last_once, self._streams

    def _drop(self, key: tuple[str, int, str]) -> None:
        self.bytes -= sum(part.size_bytes for part in self._staged.pop(key).parts.values())
