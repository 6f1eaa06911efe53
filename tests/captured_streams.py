"""Captured streams: dataflows that write and replay them, also of worker processes, and what was in them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TypeAlias

import timely
from timely.wire.frames.record_values import pack_value

__all__ = ["ByEpoch", "by_epoch", "capture", "capturing", "replay", "replaying"]

ByEpoch: TypeAlias = dict[int, list[bytes]]
"""By epoch, the bytes of its records, sorted."""


@timely.builder
def capturing(dataflow: timely.Dataflow, folder: str) -> None:
    """Capture what comes in, divided among the workers."""
    records = dataflow.input("records").exchange(timely.by())
    records.capture(folder)
    dataflow.output("out", records)


@timely.builder
def replaying(dataflow: timely.Dataflow, folder: str, into: str = "") -> None:
    """Show a captured stream, and perhaps capture it again."""
    records = dataflow.replay(folder)
    if into:
        records.exchange(timely.by()).capture(into)
    dataflow.output("out", records)


def by_epoch(changes: Iterable[tuple[int, object]]) -> ByEpoch:
    """Return the records of each epoch that has any, as bytes that do not depend on their order."""
    epochs: defaultdict[int, list[bytes]] = defaultdict(list)
    for epoch, record in changes:
        epochs[epoch].append(pack_value(record))
    return {epoch: sorted(packed) for epoch, packed in sorted(epochs.items())}


def capture(cluster: timely.Cluster, folder: Path, epochs: Sequence[Sequence[object]]) -> ByEpoch:
    """Capture the records of some epochs, of a stream that ends; return what was in it."""
    flow = cluster.install(lambda dataflow: capturing(dataflow, str(folder)))
    for records in epochs:
        flow.input("records").insert(list(records))
        flow.seal(wait=True)
    flow.input("records").close()
    flow.wait()
    return by_epoch(flow.output("out").changes())


def replay(cluster: timely.Cluster, folder: Path, into: Path | None = None) -> ByEpoch:
    """Return what a captured stream has; perhaps capture it again."""
    flow = cluster.install(
        lambda dataflow: replaying(dataflow, str(folder), "" if into is None else str(into))
    )
    flow.finish()
    return by_epoch(flow.output("out").changes())
