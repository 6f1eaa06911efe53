"""rounds.py: a kernel votes as Python would; the rest is in `differential/compiled_loops/test_rounds.py`."""

from __future__ import annotations

import random

import numpy as np
import pytest
from loop_bodies import BODIES
from reference.dataflow import Cluster
from strategies_collections import NUMBERS

import differential as dd
from differential.compiled_loops.loop import KernelLoop
from differential.kernels.compiled_loops.layout import (
    FAR,
)
from differential.kernels.compiled_loops.round_layout import (
    R_KEPT,
    R_VOTE,
    V_BARRIER,
    V_COUNTERS,
    V_ENDED,
    V_FIRST,
    V_IS_EMPTY,
    V_NUMBER,
    V_PASSES,
)
from differential.kernels.compiled_loops.rounds import prepare
from timely.building.dataflow import Dataflow
from timely.operators.compiled_loop import RoundInput, Vote
from timely.wire.transport import Lent
from timely.wire.transport.ring import L_IN_SIZE, L_PEER, LINE


def _region(name: str) -> KernelLoop:
    def flow(flow: Dataflow) -> None:
        first, second = dd.input(flow, "first", NUMBERS), dd.input(flow, "second", NUMBERS)
        BODIES[name][0](first, second).output("result")

    region = Cluster(flow, workers=3).instances[0].loops[0].loop
    assert isinstance(region, KernelLoop)
    return region


@pytest.mark.parametrize("name", BODIES)
def test_what_is_said_next_is_what_python_would_say(name: str, seed: int) -> None:
    """Rows wait anywhere in the region, of epochs that are closed and that are not."""
    rng = random.Random(seed)
    lines = np.zeros((2, LINE), np.int64)
    lines[:, L_PEER], lines[:, L_IN_SIZE] = [1, 2], 1 << 16
    region = _region(name)
    for _ in range(30):
        shift, slots = region._parts.epoch_shift, region._slots
        bound, anchor = 3, 40
        region.close(1 << shift, bound << shift)
        places = [*(out.slot for out in region._parts.outs), *(barrier.slot for barrier in region._barriers)]
        for slot in rng.sample(places, rng.randrange(min(3, len(places) + 1))):
            words = np.ones((len(slots.look(slot)), 1), np.int64)
            words[-2] = rng.randrange(1, 5) << shift | rng.randrange(4)
            slots.put(slot, words)
        said = Vote(0, 7, anchor + bound, anchor, -1, 0, False, False, b"")
        going = RoundInput(Lent(lines, lambda number: False, 100), said, bytes(30), 0, anchor, b"\1\0\1")
        region._rounds.begin(going)
        region._rounds._round[R_KEPT] = FAR
        first = region.first()
        prepare(region._rounds._tables, region._rounds._round)
        found = region._rounds._round[R_VOTE:]
        barrier, counters = region.next_barrier() or (-1, 0)
        outstanding = bound if first is None else min(bound, first >> shift)
        assert found[[V_NUMBER, V_BARRIER, V_COUNTERS]].tolist() == [8, barrier, counters]
        assert found[V_FIRST] == anchor + outstanding
        assert found[V_PASSES] == region.passes() and found[V_IS_EMPTY] == (first is None)
        assert found[V_ENDED] == (3 if first is None else 0)
        for slot in places:
            slots.take(slot)
