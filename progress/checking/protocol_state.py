"""The state of the progress protocol on all workers at one moment, and what is wrong with it.

`ProtocolState` holds what the predicates of `predicates.py` speak of, in their letters. `failures` evaluates
them on one state, `failures_between` on two that follow one another; both name what does not hold. Others
make the states: of running workers (`timely/running/checking/monitor.py`), or of a model of them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TypeAlias

from progress.checking.predicates import (
    Counts,
    merely_negative,
    negative_counts,
    not_upright,
    retained_rights,
    total,
    unaccounted,
    unforeseen,
    unforeseen_positive,
    unheralded,
    unjustified,
    unjustified_with,
)
from progress.graph.pointstamp_order import Pointstamp, PointstampOrder

Failure: TypeAlias = tuple[str, str, list[Pointstamp]]
"""(label of the predicate, at which workers, at which pointstamps)."""


@dataclass(frozen=True)
class ProtocolState:
    """What is true, what each worker owns, has to tell and believes, and what is under way."""

    nrec: Counts
    records: Counts
    caps: list[Counts]
    temp: list[Counts]
    glob: list[Counts]
    msg: dict[tuple[int, int], list[Counts]]
    hold: int = 0
    """How often a hold of a compiled loop is counted; 0: there are no compiled loops."""
    _infos: dict[tuple[int, int], list[dict[Pointstamp, int]]] = field(
        default_factory=dict, init=False, repr=False, compare=False
    )
    """Those of each pair of workers, as `failures` has computed them."""

    @property
    def workers(self) -> int:
        """How many there are."""
        return len(self.caps)

    def infos(self, p: int, q: int) -> list[dict[Pointstamp, int]]:
        """Info(k, p, q) for k = 0, 1, … up to the number of payloads under way."""
        result = [total(self.temp[p])]
        for payload in reversed(self.msg.get((p, q), [])):
            result.append(total(result[-1], payload))
        assert len(result) == 1 + len(self.msg.get((p, q), [])), (p, q)
        return result[::-1]


def failures(
    state: ProtocolState, order: PointstampOrder, before: ProtocolState | None = None
) -> Iterator[Failure]:
    """Which of A1–A6, B1–B6 and B9 do not hold, where, and at which pointstamps.

    `before`: a state in which all of them held; what is as it was then is not looked at again.
    """
    assert len(state.temp) == len(state.glob) == state.workers
    everyone, stages = range(state.workers), len(order.graph.stages)
    infos = {
        (p, q): before._infos[p, q]
        if before is not None and (p, q) in before._infos and _is_under_way(before, state, p, q)
        else state.infos(p, q)
        for p in everyone
        for q in everyone
    }
    state._infos.update(infos)
    unheard = [total(*(infos[p, q][0] for p in everyone)) for q in everyone]
    # Whether counts say what is there comes first: where they do not, all else fails as a consequence.
    yield from _found("A1", "", negative_counts(state.nrec))
    is_one = state.nrec == state.records
    for q in everyone:
        yield from _found("B1", f"at worker {q}", negative_counts(state.caps[q]))
        points = unaccounted(state.nrec, state.glob[q], unheard[q])
        yield from _found("A5", f"at worker {q}", points)
        points = points if is_one else unaccounted(state.records, state.glob[q], unheard[q])
        yield from _found("B2", f"at worker {q}", points)
    for p in everyone:
        caps, temp = state.caps[p], state.temp[p]
        yield from _found(
            "A2", f"at worker {p}", not_upright(temp, order, retained_rights(caps, temp, stages, state.hold))
        )
    for q in everyone:
        for p in everyone:
            if before is None or not _tells_the_same(before, state, p, q):
                yield from _of_one(state, order, p, q, infos[p, q])
        of_q = [infos[p, q] for p in everyone]
        is_known = (
            before is not None
            and before.records == state.records
            and all(before._infos.get((p, q)) == infos[p, q] for p in everyone)
        )
        if not is_known:
            yield from _of_all(state, order, q, of_q, unheard[q])
        yield from _of_view(state, order, q)


def alone(state: ProtocolState, order: PointstampOrder) -> Iterator[Failure]:
    """Which of A1, A6, B1 and B6 do not hold: those for which it is irrelevant what is under way."""
    yield from _found("A1", "", negative_counts(state.nrec))
    for q in range(state.workers):
        yield from _found("B1", f"at worker {q}", negative_counts(state.caps[q]))
        yield from _of_view(state, order, q)


def _tells_the_same(before: ProtocolState, after: ProtocolState, p: int, q: int) -> bool:
    """Whether what `_of_one` looks at is unchanged."""
    assert before.workers == after.workers
    return (
        before.caps[p] == after.caps[p]
        and before.glob[q] == after.glob[q]
        and _is_under_way(before, after, p, q)
    )


def _is_under_way(before: ProtocolState, after: ProtocolState, p: int, q: int) -> bool:
    """Whether p has as much to tell q as before."""
    return before.temp[p] == after.temp[p] and before.msg.get((p, q)) == after.msg.get((p, q))


def failures_between(
    before: ProtocolState, after: ProtocolState, order: PointstampOrder
) -> Iterator[Failure]:
    """Which of S1–S3 do not hold from one state to the next. Where `records` is `nrec` (A5 and B2) they are
    B3, B7 and B8, too; and from each to the next means for ever.
    """
    assert before.workers == after.workers
    le = order
    yield from _found("S1", "", unforeseen(after.nrec, before.nrec, le))
    for q in range(after.workers):
        yield from _found("S2", f"at worker {q}", unforeseen(after.nrec, before.glob[q], le))
        yield from _found("S3", f"at worker {q}", unforeseen(after.glob[q], before.glob[q], le))


def _of_one(
    state: ProtocolState, order: PointstampOrder, p: int, q: int, infos: list[dict[Pointstamp, int]]
) -> Iterator[Failure]:
    """A3, B4 and B9: what p has to tell q."""
    assert len(infos) >= 1
    le, caps = order, state.caps[p]
    payloads, stages = state.msg.get((p, q), []), len(order.graph.stages)
    for k, info in enumerate(infos):
        where = f"at worker {p} towards worker {q}, after {k} of {len(payloads)} payloads"
        yield from _found("A3", where, not_upright(info, le, retained_rights(caps, info, stages, state.hold)))
        yield from _found("B4", where, unjustified(caps, info, le))
        if k < len(payloads):
            yield from _found("B4", where, unjustified_with(caps, payloads[k], infos[k + 1], le))
            yield from _found("B9", where, unheralded(payloads[k], state.glob[q], le))


def _of_all(
    state: ProtocolState,
    order: PointstampOrder,
    q: int,
    infos: list[list[dict[Pointstamp, int]]],
    unheard: Counts,
) -> Iterator[Failure]:
    """A4 and B5: what all have to tell q, without the first payloads of one of them."""
    assert len(infos) == state.workers
    le = order
    stages = len(order.graph.stages)
    for p in range(state.workers):
        for k, info in enumerate(infos[p]):
            if k == 0 and p > 0:
                continue  # the same as for worker 0
            ginfo = unheard if k == 0 else total(unheard, _negated(infos[p][0]), info)
            where = f"at worker {q}, after {k} payloads of worker {p}"
            yield from _found(
                "A4", where, not_upright(ginfo, le, retained_rights(state.records, ginfo, stages))
            )
            yield from _found("B5", where, unjustified(state.records, ginfo, le))


def _negated(counts: Counts) -> dict[Pointstamp, int]:
    return {t: -count for t, count in counts.items()}


def _of_view(state: ProtocolState, order: PointstampOrder, q: int) -> Iterator[Failure]:
    """A6 and B6: what q believes."""
    le, view, where = order, state.glob[q], f"at worker {q}"
    assert all(view.values()), view
    yield from _found("A6", where, unforeseen(state.nrec, view, le))
    yield from _found("B6", where, merely_negative(view, le))
    yield from _found("B6", where, unforeseen_positive(state.records, view, le))


def _found(label: str, where: str, points: list[Pointstamp]) -> list[Failure]:
    assert label, where
    return [(label, where, points)] if points else []
