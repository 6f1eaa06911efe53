"""Machines as tests drive them: all that follows from a frontier, at once."""

from __future__ import annotations

import numpy as np

from differential.operators.machine import Machine
from progress.compiled.arrays import Int64s

__all__ = ["advanced", "pieces_of", "worked"]


def pieces_of(machine: Machine, *frontiers: Int64s) -> list[Int64s]:
    """What a machine sends when its frontiers move, piece by piece."""
    machine.advance(*frontiers)
    pieces = []
    while (rows := machine.work()) is not None:
        pieces.append(rows)
    return pieces


def advanced(machine: Machine, *frontiers: Int64s) -> Int64s:
    """The same in one array."""
    pieces = pieces_of(machine, *frontiers)
    return pieces[0] if len(pieces) == 1 else np.concatenate(pieces, axis=1)


def worked(machine: Machine) -> Int64s:
    """The next piece of a machine that has one."""
    rows = machine.work()
    assert rows is not None
    return rows
