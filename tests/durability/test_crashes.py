"""Durable clusters that crash at random moments, on a disk that loses what was not synced.

any_*   at any operation of the disk, also while an incarnation begins
"""

from __future__ import annotations

import random
from collections.abc import Sequence

import pytest
from durability.kinds import KINDS
from durability.machine import Machine, WorkerInSimulation, simulated
from durability.program import Program, ResumingProgram

from timely.client.feeding import appending as appending_module

_PARTS_FROM = 20


def crashes(machine: Machine, program: Program, seed: int, mean: float) -> None:
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
        crashes(machine, program, seed, machine.random.choice([20.0, 60.0, 200.0]))
        try:
            program.run(actions)
        except BaseException as error:
            error.add_note(f"run({seed}, {[*kinds]}, {actions}, {resumes})")
            raise
    return program


@pytest.mark.parametrize("kind", KINDS)
def test_any_operation(kind: str, seed: int, effort: int) -> None:
    for number in range(effort):
        run(seed + number, [kind], 40)


def test_any_operation_while_clients_go_on(seed: int, effort: int) -> None:
    for number in range(6 * effort):
        run(seed + number, random.Random(seed + number).sample([*KINDS], 2), 40, resumes=True)
