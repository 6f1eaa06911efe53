"""Accept that a dataflow answers differently than before: its digests count anew from the next start on.

This is an incarnation of its own, whose log has one record. So it needs no rules but those of all logs, and a
cluster that runs at that time is fenced off.
"""

from __future__ import annotations

from ..errors import MisuseError
from ..limits import REPLY_SECONDS_MAX
from .bases.coverage import logs_of
from .incarnations import announce, hello_of
from .journal import Journal
from .log import Log
from .past import Past, PastFlow, read_orders
from .store import Store

__all__ = ["accept"]


def accept(store: Store, name: str) -> list[tuple[int, str]]:
    """Let the digests of a dataflow, and of those that read it, count no more; return the number and key of
    each. `name`: its number or key. Raise `MisuseError` if there is none.
    """
    incarnation = announce(store, 1)
    past = read_orders(logs_of(store, incarnation))
    flows = _with_readers(past, _flow(past, name, store.name))
    log = Log(store, incarnation.cluster, incarnation.number, 0)
    try:
        log.add(hello_of(incarnation, 0))
        log.wait(Journal(log, 0).accept([flow.number for flow in flows]), REPLY_SECONDS_MAX)
    finally:
        log.close()
    return [(flow.number, flow.key) for flow in flows]


def _flow(past: Past, name: str, store: str) -> PastFlow:
    for flow in past.flows.values():
        if name in (str(flow.number), flow.key):
            return flow
    listed = ", ".join(f"{flow.number} ({flow.key})" for flow in past.flows.values())
    raise MisuseError(f"the store {store} has no dataflow {name}: it has {listed or 'none'}")


def _with_readers(past: Past, flow: PastFlow) -> list[PastFlow]:
    """Return a dataflow, and all that read what it exports, directly or not: their numbers are higher."""
    numbers = {flow.number}
    for other in sorted(past.flows):
        if not numbers.isdisjoint(past.flows[other].reads):
            numbers.add(other)
    return [past.flows[number] for number in sorted(numbers)]
