"""What must hold of progress tracking, at every moment, as predicates over counts.

`v`, `w` stand for counts by pointstamp (a pointstamp that is missing has 0), `s < t` for "an event at s
could result in one at t". The state of a system of workers p, q:

    nrec        how many events are outstanding, by what was *performed*: the events at the start, and every
                change that a callback has made since, whether or not any worker has heard of it
    records     the same, by *looking*: messages in queues and on wires, rights held, epochs open
    caps[p]     the share of `records` that worker p owns: its rights to act. The rest is messages under way
    temp[p]     changes that p has made and not sent
    msg[p][q]   payloads that p has sent and q has not received, oldest first
    glob[q]     what q believes: the occurrence counts of its tracker

    Info(k, p, q)  = sum of msg[p][q] without its first k + temp[p]
    GInfo(k, p, q) = Info(k, p, q) + sum over the other p' of Info(0, p', q)

Sources, and the letters: A and S from Abadi, McSherry, Murray, Rodeheffer (FORTE 2013), B and E from Brun,
Decova, Lattuada, Traytel (ITP 2021). What differs here, and why the predicates mean the same:

  * A step's changes travel as *one payload*. That is Send with the set of all points: nothing remains in
    `temp`, and 0 is upright, so the licence to send that the sources require always holds.
  * A worker applies its own changes at once: its Send is at the same moment its own Recv, and msg[p][p] stays
    empty.
  * A message is an event at its connector from the moment it is sent until it has been consumed. While it
    is on a wire it is the sources' message in flight; in the receiver's inbox it is the receiver's capability
    at the same point. The same holds for messages that a worker sends itself; they are in the inbox at once.
  * A requested notification, a hold and an open epoch are capabilities at the stage. Consuming a
    message for a hold is a step up in the order, from the connector to its stage.
  * In the A's an action gives up all that it acts by. Here a worker may act by a right at a stage and retain
    it (a hold), or turn it into another right of the same point (a hold into a notification). That is the
    same as consuming the right and producing it again, but the changes do not show it. So `not_upright` takes
    the retained points as an argument, and lets them support points as those given up do. Messages are never
    retained. Without retained points it is the sources' predicate to the letter. (In the B's everything owned
    supports; for them nothing is different.)
  * Statements "for every t" are evaluated at finitely many t: each function says at which, and why they
    suffice.

Every function returns its counterexamples, sorted: an empty list means that the predicate holds. All are slow
and obvious. Three parties evaluate them: the simulations, on all workers at once
(`timely/running/checking/monitor.py`); each worker on itself, if its settings ask for it
(`timely/running/checking/checker.py`); and the model of the protocol among the tests. All predicates are in
this file, also those that need the state of more than one worker: together they are the specification.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Final, TypeAlias

from progress.errors import InternalError
from progress.graph.pointstamp_order import Order, Pointstamp, PointstampOrder
from progress.times.timestamp import Timestamp

Counts: TypeAlias = Mapping[Pointstamp, int]

STATEMENTS: Final[Mapping[str, str]] = {
    "A1": "no count of outstanding events is negative",
    "A2": "the changes that a worker has not sent yet are upright",
    "A3": "the changes that one worker has sent and another not received, plus its unsent ones, are upright",
    "A4": "all changes that a worker has not applied are upright",
    "A5": "outstanding by all actions = what a worker believes outstanding + changes that it has not applied",
    "A6": "for every worker: each outstanding event comes at or after one that it believes outstanding",
    "S1": "an event that becomes outstanding comes at or after one that was outstanding",
    "S2": "for every worker: what becomes outstanding comes at or after an event it believed outstanding",
    "S3": "what a worker comes to believe outstanding is at or after an event that it believed outstanding",
    "B0": "new rights come at or after rights that the worker owned, new messages after them",
    "B1": "no worker owns a negative number of rights",
    "B2": "outstanding events = events that a worker believes outstanding + changes that it has not applied",
    "B2, own share": "what a worker owns = what it counted + messages from others - messages to others",
    "B4": "the changes that a worker has to send are justified by the rights that it owns",
    "B5": "all changes that a worker has not applied are justified by the outstanding events",
    "B6": "a worker's negative counts come after positive ones, and so do the outstanding events",
    "B9": "every change that a worker will receive comes at or after an event that it believes outstanding",
    "C4": "frontiers are those of the positive counts",
    "E1": "a tracker counts exactly the changes that its worker applied, its own and those of others",
    "E2": "an outstanding event holds back every frontier that it can lead to",
    "L1": "rows in a compiled loop are at or after the epoch that their worker holds for it",
    "L2": "no row comes any more into epochs that a compiled loop has closed",
    "L3": "workers run a compiled loop in the same rounds, at most one apart, and end the same spans",
    "due": "a notification comes when nothing at or before its time can come in any more",
    "no zero cycle": "every cycle of the dataflow advances a time",
}
"""What each predicate states, for messages. B3, B7, B8 are S1, S2, S3 with `records` in place of `nrec`."""


def total(*parts: Counts) -> dict[Pointstamp, int]:
    """Return the sum of some counts, without zeros."""
    result: dict[Pointstamp, int] = {}
    for part in parts:
        for point, count in part.items():
            result[point] = result.get(point, 0) + count
    return {point: count for point, count in result.items() if count}


def negative_counts(v: Counts) -> list[Pointstamp]:
    """A1 and B1: v(t) ≥ 0 for every t."""
    return sorted(t for t in v if v[t] < 0)


def supports(v: Counts, order: Order) -> list[Pointstamp]:
    """Return the points that support others: every s with v(s)<0 and v(r)≤0 for all r≤s.

    supported(v, t) of the sources states that one of these is before t.
    """
    raised = order.mark(r for r in v if v[r] > 0)
    return [s for s in v if v[s] < 0 and not order.is_after(s, raised)]


def not_upright(v: Counts, order: Order, retained: Collection[Pointstamp] = ()) -> list[Pointstamp]:
    """A2–A4, upright(v): v(t)>0 ⇒ supported(v, t), or some retained s ≤ t.

    A retained point supports itself: a worker acted by it, and there is one more of it now.
    """
    more = [t for t in v if v[t] > 0]
    return _not_after([*supports(v, order), *retained], more, order) if more else []


def retained_rights(caps: Counts, v: Counts, stages: int, hold: int = 0) -> list[Pointstamp]:
    """Return the rights at stages (locations below `stages`) that existed before the changes `v` and still
    do.

    Those are the points where `caps`, counted after `v`, has more than `v` adds. A compiled loop holds at
    connectors: there a right is one that counts `hold`; 0: there are none.
    """
    least = {s: 1 if s[0] < stages else hold for s in caps}
    return sorted(s for s in caps if least[s] and caps[s] - max(0, v.get(s, 0)) >= least[s])


def unaccounted(truth: Counts, view: Counts, unheard: Counts) -> list[Pointstamp]:
    """A5 and B2: truth = unheard + view, point by point (unheard = GInfo(0, q, q), view = glob[q])."""
    return sorted(total(truth, {t: -count for t, count in view.items()}, {t: -n for t, n in unheard.items()}))


def unforeseen(later: Counts, earlier: Counts, order: Order) -> list[Pointstamp]:
    """A6, B6, S1–S3, B3, B7, B8, vacancy: vacant(earlier, t) ⇒ vacant(later, t), where vacant(v, t): v(s)=0
    for every s≤t.

    It holds for every t iff it holds for those with later(t)≠0: if for each of these some point of `earlier`
    is at or before it, that point is also at or before every point that comes after it.
    """
    new = [t for t in later if later[t] and not earlier.get(t)]
    return _not_after([s for s in earlier if earlier[s]], new, order) if new else []


def unforeseen_positive(later: Counts, view: Counts, order: Order) -> list[Pointstamp]:
    """B6, positive part: nonpos(view, t) ⇒ nonpos(later, t), where nonpos(v, t): v(s)≤0 for every s≤t.

    It holds for every t iff it holds for those with later(t)>0. With later = view: nonpos(view, t) ⇔
    vacant(view, t) states that every negative count has a positive one before it: `merely_negative`.
    """
    return _not_positive([t for t in later if later[t] > 0], view, order)


def merely_negative(view: Counts, order: Order) -> list[Pointstamp]:
    """B6, last part: nonpos(view, t) ⇔ vacant(view, t). It holds for every t iff for those with view(t)<0."""
    return _not_positive([t for t in view if view[t] < 0], view, order)


def unjustified(caps: Counts, v: Counts, order: Order) -> list[Pointstamp]:
    """B4 and B5, justified(C, v): v(t)>0 ⇒ supported(v, t) ∨ (∃s<t. C(s)>0) ∨ v(t)<C(t)."""
    more = [t for t in v if v[t] > 0 and not v[t] < caps.get(t, 0)]
    before = [*supports(v, order), *(s for s in caps if caps[s] > 0)] if more else []
    return _not_after(before, more, order, strictly=True)


def unjustified_with(caps: Counts, v: Counts, w: Counts, order: Order) -> list[Pointstamp]:
    """B4 for one payload v and the changes w that follow it, justified_with(C, v, w).

    That is v(t)>0 ⇒ (∃s<t. v(s)<0 ∨ w(s)<0) ∨ (∃s<t. C(s)>0) ∨ v(t)+w(t)<C(t).
    """
    more = [t for t in v if v[t] > 0 and not v[t] + w.get(t, 0) < caps.get(t, 0)]
    fewer = [s for part in (v, w) for s in part if part[s] < 0]
    return _not_after([*fewer, *(s for s in caps if caps[s] > 0)], more, order, strictly=True)


def unheralded(payload: Counts, view: Counts, order: Order) -> list[Pointstamp]:
    """B9: for every t in a payload to q, up or down, some s≤t has glob[q](s)>0."""
    return _not_positive(payload, view, order)


def unearned(
    fresh: Counts, owned: Counts, is_message: Callable[[Pointstamp], bool], order: Order
) -> list[Pointstamp]:
    """B0, the rule of performop: for every new right t some s≤t was owned, for every new message some s<t."""
    return sorted(
        t
        for t in fresh
        if fresh[t] > 0
        and not any(owned[s] > 0 and order[s, t] and not (s == t and is_message(t)) for s in owned)
    )


def unheld(
    outstanding: Iterable[Pointstamp],
    port: tuple[int, ...],
    frontier: Sequence[Timestamp],
    order: PointstampOrder,
) -> list[Pointstamp]:
    """E2, safe_combined, for one port (a group of connectors): records(t)>0 and s a summary from t to one of
    them ⇒ ∃f∈frontier. f ≤ s(t). It holds for every t iff for the minimal ones, since summaries are
    monotone.

    The sources have a frontier at every location; here only ports are watched.
    """
    less_equal = order.graph.shape_of(port[0]).less_equal
    return sorted(
        t
        for t in outstanding
        if not all(any(less_equal(f, image) for f in frontier) for image in order.images(t, port))
    )


def frontier_of(
    positive: Iterable[Pointstamp], port: tuple[int, ...], order: PointstampOrder
) -> list[Timestamp]:
    """C4: the frontier of a port by its definition, the minimal times to which positive counts can lead.

    The minimal positive points suffice, as for `unheld`. C1–C3 are about work that is not propagated yet;
    here there is none between two calls of the tracker.
    """
    images = {image for t in positive for image in order.images(t, port)}
    shape, minimal = order.graph.shape_of(port[0]), list[Timestamp]()
    # Nothing comes before what stands behind it in this order, so nothing that was chosen is dropped again.
    for image in sorted(images, key=shape.sort_key):
        if not any(shape.less_equal(front, image) for front in minimal):
            minimal.append(image)
    return minimal


def violation(
    label: str, where: str, points: Sequence[Pointstamp], order: PointstampOrder, events: Iterable[str]
) -> InternalError:
    """Return the error for a violated predicate: label, where, at which pointstamps, and the last events."""
    assert label in STATEMENTS, label
    named = " · ".join(order.name(point) for point in points[:3]) or "no single pointstamp"
    more = f" and {len(points) - 3} more" if len(points) > 3 else ""
    return InternalError(
        f"progress predicate {label} does not hold {where}: {STATEMENTS[label]}. It fails at {named}{more}.\n"
        f"  last events: {' · '.join(events) or 'none'}"
    )


def _not_positive(points: Iterable[Pointstamp], view: Counts, order: Order) -> list[Pointstamp]:
    """Return the points at or before which the view counts nothing positive, sorted."""
    others = [t for t in points if not view.get(t, 0) > 0]
    return _not_after([s for s in view if view[s] > 0], others, order) if others else []


def _not_after(
    before: Iterable[Pointstamp], points: Iterable[Pointstamp], order: Order, *, strictly: bool = False
) -> list[Pointstamp]:
    """Return the points that none of `before` comes before, sorted; with `strictly`, none but themselves."""
    marks = order.mark(before)
    return sorted(t for t in points if not order.is_after(t, marks, strictly=strictly))
