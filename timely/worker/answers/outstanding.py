"""What is still outstanding at an epoch, for messages to clients that wait in vain."""

from __future__ import annotations

from typing import Final

from ...running.instance import Instance

__all__ = ["outstanding"]

_SHOWN_MAX: Final = 3


def outstanding(instance: Instance, epoch: int) -> str:
    """Return what is outstanding up to `epoch`, the earliest first, for the end of a message; "" if nothing.

    A stage holds a time, or waits for a notification; messages are on their way from a stage to another. This
    is what the worker knows of all workers.
    """
    graph = instance.frozen.graph
    points = []
    for location, word, _ in instance.pointstamps():
        time = graph.code_of(location).unpack_wide(word)
        if time[0] <= epoch:
            points.append((time, location))
    points.sort()
    shown = [
        f"{graph.name_of(location)} at {time}, which it holds or waits to be notified of"
        if location < len(graph.stages)
        else f"messages of {graph.name_of(location)} at {time}"
        for time, location in points[:_SHOWN_MAX]
    ]
    if len(points) > len(shown):
        shown.append(f"and {len(points) - len(shown):,} more")
    return f"; outstanding: {' · '.join(shown)}" if shown else ""
