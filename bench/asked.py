"""Which ratio, ours divided by the other's, is asked for?

Beside Rust row by row; beside the peers in Python at least ten times ahead in all; beside Flink in those
that are queries of tables. Of cases that are not here nothing is asked. Beside Rust the 99 % of changes may
be twice as far behind as their median, and what we hold above an idle process may be as much as all that
Rust's process holds.
"""

from __future__ import annotations

from typing import NamedTuple

from bench.cases import CASES, Case
from bench.systems import ENGINES, PYTHON_PEERS, RUST

__all__ = ["Asked", "asked"]


class Asked(NamedTuple):
    """Ratios that are asked for; `None` where none is."""

    load: float | None = None
    change: float | None = None
    change_99: float | None = None
    memory: float | None = None


_MEMORY = 1.0
_AHEAD = 0.1
"""Of the peers in Python."""

_RUST: dict[tuple[str, int | None], tuple[tuple[float, float], tuple[float, float]]] = {
    # Workload, and of how many nodes if that counts: load and change on one worker, and on two.
    ("wcc plain", 100_000): ((0.5, 0.5), (0.5, 1.0)),
    ("wcc plain", 1_000_000): ((0.5, 0.4), (0.5, 0.8)),
    ("wcc prioritised", None): ((1.0, 1.5), (1.0, 2.0)),
    ("bfs", None): ((0.8, 0.8), (0.8, 2.0)),
    ("scc plain", None): ((0.7, 0.8), (0.7, 1.5)),
    ("scc written", None): ((0.5, 0.5), (0.6, 0.6)),
    ("pagerank", None): ((0.5, 0.5), (0.5, 0.7)),
    ("count plain", 1_000_000): ((0.5, 1.0), (0.8, 1.5)),
    ("sum", None): ((0.4, 0.8), (0.6, 1.5)),
    ("join", None): ((0.6, 1.0), (0.8, 1.5)),
    ("top", None): ((0.8, 0.7), (0.9, 1.5)),
    ("q3", None): ((0.8, 0.8), (0.9, 1.5)),
}
_RUST_IN_FLIGHT = {"wcc plain": 0.5, "bfs": 1.5}
"""The change, on one worker; the load is that of the same workload one by one, of which more is asked."""
_ENGINES = {"Flink": Asked(1 / 3, 1 / 3)}
_OF_ENGINES = ("count plain", "sum", "join", "top", "q3")
_LEAST_IN_PYTHON = 10_000
"""Nodes or keys: of less nothing is asked."""


def asked(case: Case, workers: int, beside: str) -> Asked:
    """Return the ratios that a case must meet beside a system, as "Rust" or "Flink"; none beside others."""
    if beside in PYTHON_PEERS and case.sizes[0] >= _LEAST_IN_PYTHON:
        return Asked(_AHEAD, _AHEAD, _AHEAD)
    if beside in ENGINES and case in CASES and case.words in _OF_ENGINES and workers in (1, 2):
        return _ENGINES[beside]
    if beside != RUST or case not in CASES or workers not in (1, 2):
        return Asked()
    if case.batch > 1:
        return Asked(change=_RUST_IN_FLIGHT.get(case.words) if workers == 1 else None, memory=_MEMORY)
    found = _RUST.get((case.words, case.sizes[0])) or _RUST.get((case.words, None))
    if found is None:
        return Asked()
    load, change = found[workers - 1]
    return Asked(load, change, 2 * change, _MEMORY)
