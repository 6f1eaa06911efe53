"""Programs of a simulated durable cluster that crashes by a seed: at random operations of its disk, or at one
of them.
"""

from __future__ import annotations

import random
from collections.abc import Sequence

import pytest

from timely.client.feeding import appending as appending_module

from .machine import Machine, WorkerInSimulation, simulated
from .program import Program
from .resuming import ResumingProgram

__all__ = ["run", "run_with_crash_at"]

_PARTS_FROM = 20
_RESTART_OPERATIONS = 30
"""An incarnation has about so many operations of the disk until it serves clients."""


def _let_crash(machine: Machine, program: Program, seed: int, mean: float) -> None:
    """Let the machine, or one process, fail at an operation of the disk in each incarnation, or let the disk
    fail for a while, by a seed.
    """
    chance = random.Random(seed)
    left = 0.0

    def anew() -> None:
        nonlocal left
        left = chance.expovariate(1 / mean) if program.restarts < 6 else float("inf")

    def before(worker: WorkerInSimulation, what: str, path: str) -> None:
        nonlocal left
        left -= 1
        if left > 0:
            return
        fate = chance.random()
        if fate < 0.2 and what in ("write", "sync"):
            machine.fail_for(chance.randrange(1, 12))
            left = chance.expovariate(1 / mean)
            return
        left = float("inf")
        if fate < 0.65:
            machine.is_crashing = True
            for each in machine.cluster.workers:
                each.is_killed = True
        else:
            chance.choice(machine.cluster.workers).is_killed = True

    program.on_restart = anew
    anew()
    machine.before = before


def run(seed: int, kinds: Sequence[str], actions: int, resumes: bool = False) -> Program:
    """Run one program; an error names its seed."""
    machine = Machine(seed)
    with simulated(machine), pytest.MonkeyPatch.context() as patch:
        patch.setattr(appending_module, "SPREAD_ROWS_MIN", _PARTS_FROM)
        program = (ResumingProgram if resumes else Program)(machine, kinds, seed)
        _let_crash(machine, program, seed, machine.random.choice([20.0, 60.0, 200.0]))
        try:
            program.run(actions)
        except BaseException as error:
            error.add_note(f"run({seed}, {[*kinds]}, {actions}, {resumes})")
            raise
    return program


def run_with_crash_at(at: int, seed: int, kind: str, actions: int) -> tuple[Program, int]:
    """Run one program that fails at its `at`-th operation of the disk, and once more soon after that, most
    often while the next incarnation begins. The machine fails, or a process. With `at` 0 nothing fails.
    Return the program, and the number of operations before it completes its dataflow.
    """
    machine, chance = Machine(seed), random.Random(f"{seed} {at}")
    fails_at = [at, at + chance.randrange(1, _RESTART_OPERATIONS)] if at else []
    operations = 0

    def before(worker: WorkerInSimulation, what: str, path: str) -> None:
        nonlocal operations
        operations += 1
        if operations in fails_at:
            if chance.random() < 0.5:
                machine.is_crashing = True
                for each in machine.cluster.workers:
                    each.is_killed = True
            else:
                worker.is_killed = True

    with simulated(machine), pytest.MonkeyPatch.context() as patch:
        patch.setattr(appending_module, "SPREAD_ROWS_MIN", _PARTS_FROM)
        program = Program(machine, [kind], seed)
        machine.before = before
        program.run(actions)
    return program, operations
