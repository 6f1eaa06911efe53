"""Runs operators of streams on one worker, or on two threads."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import TypeAlias

import timely
from timely.building.stream import Stream

Build: TypeAlias = Callable[[Stream], "Stream | tuple[Stream, ...] | list[Stream]"]
Changes: TypeAlias = list[Counter[tuple[int, object]]]


def run(cluster: timely.Cluster, build: Build, *epochs: list[object]) -> Changes:
    """What each output has, as (epoch, record)."""

    def built(dataflow: timely.Dataflow) -> None:
        made = build(dataflow.input("records"))
        outputs = [made] if isinstance(made, Stream) else made
        for number, stream in enumerate(outputs):
            dataflow.output(f"out {number}", stream)

    flow = cluster.install(built)
    for records in epochs:
        flow.input("records").insert(records)
        flow.seal()
    found = [Counter(flow.output(name).changes()) for name in flow.outputs]
    flow.uninstall()
    return found
