"""The mistakes of one user cost no other user anything, whatever he hands in.

The hooks of `misused_hooks.py` are misused in the ways that are listed there. Such a mistake is refused, or
ends its own dataflow. After each one a neighbouring dataflow of the same cluster takes an epoch and answers
right, and the cluster tells its statistics, which all of its users read.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import product
from pathlib import Path
from typing import Final

import misused_hooks
import pytest
from misused_hooks import HOOKS, MISUSES

import timely

PAIRS: Final = list(product(HOOKS, MISUSES))
KINDS: Final = {"processes": 0, "embedded": 1, "threads": 2}
"""Where the workers are, and the first pair that is tried there: from it on every eleventh is tried in
processes, every twenty-second elsewhere. Eleven and the number of misuses have no common divisor, so each
misuse has its turn with other hooks.
"""
_WAIT_SECONDS: Final = 0.3
_ANSWER_SECONDS: Final = 60.0


class Tried:
    """One cluster with its neighbour, for as many misuses as it survives."""

    def __init__(self, kind: str) -> None:
        self.kind = kind
        self._cluster: timely.Cluster | None = None
        self._sealed = 0

    def builder(self, name: str) -> str | Callable[..., object]:
        builder: Callable[..., object] = getattr(misused_hooks, name)
        return f"misused_hooks:{name}" if self.kind == "processes" else builder

    def cluster(self) -> timely.Cluster:
        if self._cluster is None:
            is_embedded = self.kind != "processes"
            self._cluster = timely.connect(
                workers=2, embedded=is_embedded, **({"threads": True} if self.kind == "threads" else {})
            )
            self._neighbour = self._cluster.install(self.builder("neighbour"))
            self._sealed = 0
        return self._cluster

    def check_neighbour(self) -> None:
        """It takes an epoch and answers right."""
        number = 1_000 + self._sealed
        try:
            self._neighbour.input("numbers").insert([number])
            epoch = self._neighbour.seal()
            assert epoch == self._sealed
            self._neighbour.wait(epoch, timeout=_ANSWER_SECONDS)
            assert self._neighbour.output("doubled").changes_nowait() == [(epoch, 2 * number)]
            assert self.cluster().stats()
        except BaseException:
            self.close()
            raise
        self._sealed += 1

    def close(self) -> None:
        cluster, self._cluster = self._cluster, None
        if cluster is not None:
            cluster.close()


@pytest.fixture(scope="module")
def tried() -> Iterator[Callable[[str], Tried]]:
    made = {kind: Tried(kind) for kind in KINDS}
    yield made.__getitem__
    for each in made.values():
        each.close()


def use_it(
    cluster: timely.Cluster, flow: timely.Flow, seconds: float = _WAIT_SECONDS
) -> Iterator[Callable[[], object]]:
    """Whatever a client may ask of a dataflow; each call may be refused."""
    for name in ("records", "ordered", "plain", "folding"):
        yield lambda name=name: flow.input(name).insert(["a", "bb", "ccc"])
    yield flow.seal
    yield lambda: flow.wait(timeout=seconds)
    yield lambda: flow.output("rows").changes_nowait()
    yield lambda: flow.input("records").insert(["of a later epoch"])
    for _ in range(9):  # so far that words of times count from a later epoch
        yield flow.seal
    yield lambda: flow.wait(timeout=seconds)
    yield lambda: flow.output("rows").forget()
    yield lambda: cluster.flow(flow.index)
    yield flow.uninstall


def misuse(tried: Tried, hook: str, what: str, path: str) -> list[timely.TimelyError]:
    """What a client was told of it."""
    cluster, told = tried.cluster(), list[timely.TimelyError]()
    try:
        flow = cluster.install(tried.builder("misused"), hook=hook, misuse=what, path=path)
    except timely.TimelyError as error:
        return [error]
    for call in use_it(cluster, flow):
        try:
            call()
        except timely.TimelyError as error:
            told.append(error)
    return told


def chosen(kind: str) -> list[tuple[str, str]]:
    """The pairs that are tried with workers of a kind."""
    first = KINDS[kind]
    pairs = PAIRS[first :: 11 if kind == "processes" else 22]
    # In the program's own process it is an interrupt (Ctrl-C), and ends the cluster, which is documented.
    return [pair for pair in pairs if kind == "processes" or pair[1] != "raises KeyboardInterrupt"]


def test_there_are_two_hundred_of_them_and_each_misuse_is_among_them() -> None:
    assert len(chosen("processes")) >= 200
    assert {what for _, what in chosen("processes")} == set(MISUSES)
    assert {hook for kind in KINDS for hook, _ in chosen(kind)} == set(HOOKS)


def test_without_a_misuse_the_dataflow_that_has_all_hooks_answers(tried: Callable[[str], Tried]) -> None:
    for kind in KINDS:
        one = tried(kind)
        flow = one.cluster().install(one.builder("well_behaved"))
        rows: list[object] = []
        for call in use_it(one.cluster(), flow, seconds=60.0):
            if isinstance(answer := call(), list):
                rows += [record for _, record in answer]
        assert sorted(map(str, rows)) == ["a", "bb", "ccc", "fixed", "notified", "notified"]


@pytest.mark.parametrize(("kind", "hook", "what"), [(kind, *pair) for kind in KINDS for pair in chosen(kind)])
def test_a_mistake_of_one_user_costs_no_other(
    tried: Callable[[str], Tried], kind: str, hook: str, what: str, tmp_path: Path
) -> None:
    one = tried(kind)
    is_on_one_worker = (PAIRS.index((hook, what)) // 11) % 4 == 0
    path = str(tmp_path / "the first has built") if is_on_one_worker else ""
    told = misuse(one, hook, what, path)
    one.check_neighbour()
    # Nobody is told that the cluster is lost; and what a user's code raises is not told as a bug of ours.
    assert not [error for error in told if isinstance(error, timely.PeerError)]
    if what.startswith("raises"):
        assert not [error for error in told if isinstance(error, timely.InternalError)]
