"""How long each stage of a dataflow has worked on one worker, and what waits for it.

A compiled loop runs its stages together, and clocks within its kernels would cost more than most steps. So
its time is shared out among its stages, by the rows that each took in meanwhile and the turns that it had.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from ...operators.inputs.handle import InputHandle
from ...running.instance import Instance
from ...running.stages.compiled_loop import CompiledLoopRunner
from ...wire.batch import HasBytes, Records
from ...wire.frames.record_values import pack_value

__all__ = ["busy_nanoseconds", "bytes_at_input", "waiting"]

_SAMPLE: Final = 16
"""Records of a batch whose size is measured."""

_BATCHES_SAMPLE: Final = 256
"""Batches at an input whose sizes are looked up: small insertions may have left very many."""


def busy_nanoseconds(instance: Instance) -> Sequence[int]:
    """Return for each stage how many nanoseconds it has worked in all, with what it sent meanwhile. No
    stage's time falls: only what has come since the last call is shared out.
    """
    busy = instance.turns.busy
    for loop in instance.loops:
        loop.report()
        taken_in = dict.fromkeys(loop.stages, 0)
        for spec, connector in zip(instance.frozen.connectors, instance.connectors, strict=True):
            if spec.target in taken_in:
                taken_in[spec.target] += connector.rows_sent
        gained: dict[int, int] = {}
        for stage in loop.stages:
            done = taken_in[stage] + instance.runners[stage].activations
            gained[stage] = done - loop.work_told.get(stage, 0)
            loop.work_told[stage] = done
        total, taken = sum(gained.values()), busy[loop.stage]
        if total:
            for stage, part in gained.items():
                busy[stage] += taken * part // total
                busy[loop.stage] -= taken * part // total
    return busy[: len(instance.runners)]


def waiting(instance: Instance, stage: int) -> tuple[int, int]:
    """Return how many rows have come for a stage that it has not taken yet, and about how many bytes they
    take.
    """
    actor = instance.turns.actors[stage]
    if isinstance(actor, CompiledLoopRunner):
        inbox = [
            batch for _, at, _, batch in actor.inbox if at in actor.ports and actor.ports[at][0] == stage
        ]
    else:
        inbox = [batch for _, _, _, batch in actor.inbox]
    records = [batch for batch in inbox if isinstance(batch, Records)]
    return sum(batch.rows for batch in inbox), sum(map(_size_of, inbox)) + _bytes_of(records)


def bytes_at_input(handle: InputHandle) -> int:
    """Return about how many bytes the rows take that wait at an input for their epoch."""
    batches, plain = handle.waiting()
    records = [batch for batch in batches if isinstance(batch, Records)]
    others = [batch for batch in batches if not isinstance(batch, Records)] if records else batches
    chosen = others[:: max(1, len(others) // _BATCHES_SAMPLE)][:_BATCHES_SAMPLE]
    size = sum(map(_size_of, chosen))
    if len(chosen) < len(others):
        size = size * sum(batch.rows for batch in others) // max(1, sum(batch.rows for batch in chosen))
    return size + _bytes_of(records) + _bytes_of([Records(list(plain))] if plain else [])


def _size_of(batch: object) -> int:
    """Return the bytes of a batch; 0 if it does not know them. A user's batch may use the name otherwise."""
    size: object = batch.size_bytes if isinstance(batch, HasBytes) else 0
    return size if isinstance(size, int) else 0


def _bytes_of(batches: Sequence[Records]) -> int:
    """Return about how many bytes Python records take on a wire: some of them are measured."""
    chosen = batches[:: max(1, len(batches) // _SAMPLE)][:_SAMPLE]
    each = max(1, _SAMPLE // max(1, len(chosen)))
    sample = [record for batch in chosen for record in batch.records[:each]]
    try:
        size = sum(len(pack_value(record)) for record in sample)
    except (TypeError, ValueError, OverflowError):  # no wire takes it: it never leaves its worker
        return 0
    return size * sum(batch.rows for batch in batches) // max(1, len(sample))
