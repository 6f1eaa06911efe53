"""Is what a dataflow has shown still so? Its digests are written before an epoch is shown, and compared when
a restart makes the epoch again. The laws are in `durable/digests.py`.

    noted    the digests of an output are in the log, for epochs before some one
    shown    the log has told them: this worker may show these epochs
    told     after a restart: epochs that had a digest before are made again; the worker tells worker 0 its
             share of their digests (`Digested`)
    agreed   worker 0 has the shares of all workers, and their sum is that from before (`Agreed`). Otherwise
             the dataflow ends with a `NotRepeatableError`

Digests are noted when somebody asks for an epoch, many epochs in one record. An output that nobody reads has
none; one that was read before a restart is compared whether anybody asks or not.
"""

from __future__ import annotations

import shlex
from collections import deque
from collections.abc import Iterable, Mapping
from itertools import chain
from struct import iter_unpack, pack
from typing import NamedTuple

from ...durable.digests import PastDigests
from ...durable.journal import Journal
from ...durable.log import Log
from ...durable.past import Past, PastFlow
from ...errors import NotRepeatableError
from ...operators.capture import CaptureVertex
from ...running.core import Worker
from ...running.instance import Instance
from ...wire.handshake import Agreed, Digested, encode_control
from .build import own_build
from .restoring import has_stand_in

__all__ = ["DigestChecks"]

_Key = tuple[int, str]
"""A dataflow and an output."""


class _Again(NamedTuple):
    """What of an output is made again after a restart.

    first   the first epoch that is made again as it was. A base has the rows of those before, which come out
            as changes of the last of them, or of some
    start   the epoch from which on digests are compared: 0 or `first`. Where it is 0, so is what is there as
            of the epoch before `first`
    """

    first: int
    start: int


class _OutputDigests:
    """How far the digests of one output are, on this worker."""

    def __init__(self, capture: CaptureVertex, past: PastDigests, again: _Again) -> None:
        self.capture = capture
        self.past = past
        self.told = 0
        self.agreed = again.start
        self.noted = past.before
        self.shown = 0


class _Comparison:
    """On worker 0: the digests of one output that is made again, as far as workers have told them."""

    def __init__(self, workers: int, again: _Again) -> None:
        self.before = [0] * workers
        self.sums: dict[int, int] = {}
        self.again = again
        self.agreed = again.start

    def difference(self, past: PastDigests, stop: int) -> int | None:
        """Return the first epoch before `stop` whose digest is another one now; None if there is none."""
        first = self.again.first
        if self.agreed < first:
            now = sum(digest for epoch, digest in self.sums.items() if epoch < first)
            if (now - past.total(first)) % (1 << 64):
                return first - 1
        start = max(self.agreed, first)
        epochs = (epoch for epoch in chain(past.sums, self.sums) if start <= epoch < stop)
        sums = past.sums
        return min((epoch for epoch in epochs if sums.get(epoch, 0) != self.sums.get(epoch, 0)), default=None)


class DigestChecks:
    """The digests of all outputs of one worker. `store`: the folder, for messages."""

    def __init__(self, worker: Worker, journal: Journal, past: Past, store: str) -> None:
        self._worker = worker
        self._store = store
        self._journal = journal
        self._log: Log = journal.log
        self._past = past
        self._outputs: dict[_Key, _OutputDigests] = {}
        self._again: list[_Key] = []
        """The outputs whose digests from before are not all told yet."""
        self._standing_in: dict[_Key, CaptureVertex] = {}
        """The outputs that have not taken over yet, after a restart, from an older version."""
        self._unagreed: set[_Key] = set()
        """The outputs whose epochs from before have not all been compared yet."""
        self._written: deque[tuple[int, _OutputDigests, int]] = deque()
        """The position of the log behind a record, the output, and how far the record goes."""
        self._comparisons: dict[_Key, _Comparison] = {}
        self._has_said_build = False
        self._ended = 0
        """So many dataflows had ended when `_let_go` looked last."""

    def begin(self, instance: Instance) -> None:
        """Let the outputs of a dataflow that has just begun sum up digests; no rows have come yet, or they
        sum up already.
        """
        flow = self._past.flows.get(instance.index)
        past: Mapping[str, PastDigests] = {} if flow is None else flow.digests
        for name in instance.frozen.outputs:
            capture = instance.output(name)
            if flow is not None and has_stand_in(flow, name):
                self._standing_in[instance.index, name] = capture
            if capture.digests is None:
                capture.keep_digests(counts_failures=self._worker.index == 0)
            if capture.digests is not None:
                digests = past.get(name, PastDigests())
                one = _OutputDigests(capture, digests, _made_again(flow, digests))
                self._outputs[instance.index, name] = one
                if flow is not None and flow.switch is not None and name in flow.switch.outputs:
                    one.shown = flow.switch.epoch  # the log has what was shown before that
                if one.past.before:
                    self._again.append((instance.index, name))
                if one.past.before > one.agreed:
                    self._unagreed.add((instance.index, name))

    def before(self, instance: Instance, output: str, complete: int) -> int:
        """Return the first epoch that may not be shown at an output (at all of them, if that is empty), of
        those before `complete`, which are complete there. Those whose digests are not in the log are noted.
        """
        number, before, noted = instance.index, complete, len(self._written)
        outputs: list[_OutputDigests] = []
        for name in (output,) if output else instance.frozen.outputs:
            one = self._outputs.get((number, name))
            if one is not None:
                outputs.append(one)
                if one.told < one.past.before:
                    self._tell_again(number, name, one, complete)
                if complete > one.noted:
                    self._note(number, name, one, complete)
        if len(self._written) > noted:
            self._log.flush()  # at once, and not at the end of the turn: somebody waits for it
        if self._written:
            self._look_at_log()
        for one in outputs:
            shown = one.agreed if one.agreed < one.past.before else max(one.agreed, one.shown)
            before = min(before, shown)
        return before

    def are_made_again(self, instance: Instance, output: str) -> bool:
        """Return True if all epochs of an output (of all of them, if that is empty) that were shown before a
        restart may be shown again. (An output whose rows are no function of what comes in has no digests, and
        begins anew.)
        """
        if not self._unagreed and not self._standing_in:  # Fast path.
            return True
        keys = [(instance.index, name) for name in ((output,) if output else instance.frozen.outputs)]
        for key in keys:
            if key in self._standing_in and self._standing_in[key].is_made_again:
                del self._standing_in[key]
        return not any(key in self._unagreed or key in self._standing_in for key in keys)

    def note_shown(self, number: int, output: str, before: int) -> None:
        """Note that the epochs of an output before this one may be shown: they are those of an older version
        of the dataflow.
        """
        one = self._outputs.get((number, output))
        if one is not None:
            one.shown = max(one.shown, before)

    def _note(self, number: int, name: str, one: _OutputDigests, complete: int) -> None:
        """Write the digests of complete epochs that have none yet."""
        assert one.capture.digests is not None
        if not self._has_said_build:
            self._journal.build(own_build())
            self._has_said_build = True
        position = self._journal.digest(number, name, complete, one.capture.digests.take(complete))
        one.noted = complete
        self._written.append((position, one, complete))

    @property
    def has_unsynced(self) -> bool:
        """True if the log has digests that it has not told, as far as `look` knows."""
        return bool(self._written)

    def look(self) -> bool:
        """Tell worker 0 of epochs that are made again, and note what the log has told; return True if there
        was anything.
        """
        happened = self._look_at_log()
        if self._ended != self._worker.ended.count:
            self._let_go()
        for key in list(self._again):
            number, name = key
            one = self._outputs[key]
            if number in self._worker.instances:
                happened = self._tell_again(number, name, one, one.capture.complete_before) or happened
            if one.told >= one.past.before or number in self._worker.ended:
                self._again.remove(key)
        return happened

    def _let_go(self) -> None:
        """Drop the outputs of dataflows that have ended: each refers to all that its dataflow held."""
        self._ended = self._worker.ended.count
        for key in [key for key in self._outputs if key[0] in self._worker.ended]:
            del self._outputs[key]
            self._standing_in.pop(key, None)
            self._comparisons.pop(key, None)
            self._unagreed.discard(key)
        self._again = [key for key in self._again if key in self._outputs]

    def _look_at_log(self) -> bool:
        happened = False
        while self._written and self._written[0][0] <= self._log.told:
            _, one, before = self._written.popleft()
            one.shown = max(one.shown, before)
            happened = True
        return happened

    def _tell_again(self, number: int, name: str, one: _OutputDigests, complete: int) -> bool:
        """Tell worker 0 the digests of complete epochs that had one before; return False if there are no
        more.
        """
        before = min(complete, one.past.before)
        if before <= one.told:
            return False
        assert one.capture.digests is not None
        one.told = before
        news = Digested(number, name, before, _packed(one.capture.digests.take(before)))
        if self._worker.index == 0:
            self.on_digested(0, news)
        else:
            self._worker.send_control(encode_control(news), to=0)
        return True

    # On worker 0.

    def on_digested(self, worker: int, news: Digested) -> None:
        """Take in the share of a worker; compare the epochs that all have told."""
        key = news.dataflow, news.output
        flow = self._past.flows.get(news.dataflow)
        if flow is None or news.dataflow in self._worker.ended:
            return
        past = flow.digests[news.output]
        ours = self._comparisons.setdefault(key, _Comparison(self._worker.workers, _made_again(flow, past)))
        ours.before[worker] = news.before
        for epoch, digest in iter_unpack("<qq", news.sums):
            ours.sums[epoch] = (ours.sums.get(epoch, 0) + digest) % (1 << 64)
        before = min(ours.before)
        if before <= ours.agreed or before < ours.again.first:
            return
        differs = ours.difference(past, before)
        if differs is not None:
            self._end(news.dataflow, news.output, past, differs)
            return
        ours.agreed = before
        ours.sums = {epoch: digest for epoch, digest in ours.sums.items() if epoch >= before}
        agreed = Agreed(news.dataflow, news.output, before)
        self.on_agreed(agreed)
        self._worker.send_control(encode_control(agreed))

    def on_agreed(self, news: Agreed) -> None:
        """Note that epochs that are made again may be shown again."""
        one = self._outputs.get((news.dataflow, news.output))
        if one is not None:
            one.agreed = max(one.agreed, news.before)
            if one.agreed >= one.past.before:
                self._unagreed.discard((news.dataflow, news.output))

    def _end(self, number: int, output: str, past: PastDigests, epoch: int) -> None:
        flow = self._past.flows[number]
        before, now = self._past.builds.get(past.made_by(epoch), ""), own_build()
        builds = ""
        if before and before != now:
            builds = f"\n  The answer before was made by {before}\n  and that of now by {now}"
        self._worker.fail(
            number,
            NotRepeatableError(
                f"output {output!r} of dataflow {number} ({flow.key}) has changed at epoch {epoch}, which "
                "was shown before a restart: a function of the query gives other answers for the same rows"
                f"{builds}\n  Let the query depend on its rows alone, and not on a clock, on chance, or on "
                "what lies outside; or go on with the answers of now: "
                f"python -m timely.durable accept {shlex.quote(self._store)} {number}"
            ),
        )


def _made_again(flow: PastFlow | None, digests: PastDigests) -> _Again:
    """Return what of an output is made again."""
    base = None if flow is None else flow.base
    if flow is None or base is None:
        return _Again(0, 0)
    first = max(base.summed, base.right_from) + 1
    # Rows that a fold has dropped, since a vertex by hand keeps nothing of them, do not come again.
    has_all_rows = not any(each.sums and not each.form for each in flow.fold_facts.inputs)
    is_compared = has_all_rows and digests.is_whole and digests.before >= first
    return _Again(first, 0 if is_compared else first)


def _packed(sums: Iterable[tuple[int, int]]) -> bytes:
    return b"".join(pack("<qq", *each) for each in sums)
