"""Durable clusters that crash at random moments, on a disk that loses what was not synced.

any_*    at any operation of the disk, also while an incarnation begins
each_*   at each operation of one program, and again in the restart
long_*   the command that runs many of them: `./scripts/crashes`
"""

from __future__ import annotations

import random
import sys
from collections.abc import Sequence

import pytest
from durability import __main__ as long_form
from durability.crashes import run, run_with_crash_at
from durability.kinds import KINDS
from durability.program import Program


@pytest.mark.parametrize("kind", KINDS)
def test_any_operation(kind: str, seed: int, effort: int) -> None:
    for number in range(effort):
        run(seed + number, [kind], 40)


def test_any_operation_while_clients_go_on(seed: int, effort: int) -> None:
    for number in range(6 * effort):
        run(seed + number, random.Random(seed + number).sample([*KINDS], 2), 40, resumes=True)


def test_each_operation_of_one_program(seed: int, effort: int) -> None:
    kind = [*KINDS][seed % len(KINDS)]
    _, operations = run_with_crash_at(0, seed, kind, 3)
    assert operations > 20
    for at in range(1, operations + 1, 1 if effort > 1 else 8):
        program, _ = run_with_crash_at(at, seed, kind, 3)
        assert program.restarts > 3, "it has crashed, and was started twice to read everything"


def test_long_form_says_which_programs_failed(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["crashes", "3", "--seed", "23"])
    assert long_form.main() == 0
    assert "3 programs ran, 0 failed" in capsys.readouterr().out
    monkeypatch.setattr(long_form, "run", _refuse_odd)
    assert long_form.main() == 1
    said = capsys.readouterr().out
    assert "./scripts/crashes 1 --seed 23 (versioned) failed" in said and "an odd seed" in said
    assert "3 programs ran, 2 failed" in said


def _refuse_odd(seed: int, kinds: Sequence[str], actions: int, resumes: bool) -> Program:
    assert seed % 2 == 0, "an odd seed"
    return run(seed, kinds, actions, resumes)
