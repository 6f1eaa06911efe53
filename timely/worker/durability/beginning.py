"""How a worker process becomes part of an incarnation, before anybody hears of it."""

from __future__ import annotations

from collections.abc import Callable

from ...durable.folder_store import FolderStore
from ...durable.incarnations import announce, hello_of, joined, note_hello
from ...durable.log import Log
from ...running.core import Worker
from ..settings import WorkerSettings
from .durability import Durability

__all__ = ["begun"]


def begun(
    settings: WorkerSettings, worker: Worker, incarnation: int, on_news: Callable[[], None]
) -> Durability:
    """Return the durable part of a worker, whose log has its `hello`. Worker 0 makes the incarnation; for the
    others it is the one that worker 0 has named.

    Raise `StoreError` if the store cannot be used.
    """
    store = FolderStore(settings.durable)
    present = joined(store, incarnation) if settings.index else announce(store, settings.workers)
    syncs = settings.sync == "disk"
    log = Log(store, present.cluster, present.number, settings.index, syncs=syncs, on_news=on_news, by="loop")
    log.wait(log.add(hello_of(present, settings.index)), settings.gather_seconds)
    if settings.index == 0:
        note_hello(store, present.number)
    return Durability(worker, store, present, log, begins_together=True)
