"""What a vertex must not do, and the runtime does not notice: checks around each of its turns.

records   a vertex changes records that it got, or that it has sent; other vertices may hold them
classes   a vertex changes a list, dict or set that is an attribute of its class: all vertices of the
          process share it, and vertices of other processes do not
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from contextlib import contextmanager, suppress

from progress.checking.counterexample import Counterexample
from progress.errors import MisuseError

from ..operators.vertex import Vertex
from ..own_files import OWN_NAMES
from ..running.checking.comparable import comparable
from ..running.instance import Instance
from ..running.stages.vertex_runner import VertexRunner
from ..wire.batch import Batch, Records

__all__ = ["guarded", "state_of"]


@contextmanager
def guarded(instance: Instance, stage: int) -> Iterator[None]:
    """Raise `Counterexample` if the vertex of a stage has done so when its turn is over."""
    runner = instance.runners[stage]
    if runner.vertex is None or runner.source is not None:
        yield
        return
    batches = [(each, batch, _contents(batch)) for each in instance.runners for *_, batch in each.inbox]
    shared = _shared(runner.vertex)
    yield
    for target, batch, contents in batches:
        if contents is not None and _contents(batch) != contents:
            raise Counterexample(_changed(runner, target, batch), [])
    for (name, attribute), state in _shared(runner.vertex).items():
        if state != shared.get((name, attribute)):
            raise Counterexample(
                f"{runner.title()} changes {name}.{attribute}, an attribute of its class: all vertices in a "
                f"process share it. Write self.{attribute} = … in __init__",
                [],
            )


def state_of(vertex: Vertex) -> Hashable:
    """Return all that decides what a vertex will do, as a value."""
    return comparable(vertex.compared())


def _contents(batch: Batch) -> Hashable | None:
    if not isinstance(batch, Records):
        return None
    try:
        return comparable(batch.records)
    except MisuseError:
        return None


def _changed(runner: VertexRunner, target: VertexRunner, batch: Batch) -> str:
    assert isinstance(batch, Records)
    others = "other vertices may hold them as well. Change a copy"
    if target is runner:
        return f"{runner.title()} changes records that it got, which are now {batch.records!r:.200}: {others}"
    return (
        f"{runner.title()} changes records that were sent and wait for {target.title()}, which are now "
        f"{batch.records!r:.200}: {others}, or send one"
    )


def _shared(vertex: Vertex) -> dict[tuple[str, str], Hashable]:
    """Return the attributes of its classes that can be changed in place."""
    states: dict[tuple[str, str], Hashable] = {}
    for kind in type(vertex).__mro__:
        if kind is Vertex or kind.__module__.partition(".")[0] in OWN_NAMES:
            break
        for name, value in vars(kind).items():
            if isinstance(value, (list, dict, set, bytearray)) and not name.startswith("__"):
                with suppress(MisuseError):
                    states[kind.__name__, name] = comparable(value)
    return states
