"""How much does each process of a cluster grow while a worker is stopped under full load?

A *scene* is a dataflow whose rows change workers, and a client that inserts and seals without a pause. One
worker is stopped (SIGSTOP) for some seconds and goes on; the answers afterwards must be those of all rows
that the client has inserted. Memory is what Linux counts as resident, from the stop on.
"""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np
import pyarrow as pa

import differential as dd
import timely
from differential import col
from timely.worker.launcher import Launcher

__all__ = ["SCENES", "Growth", "Scene", "measure", "resident_mib", "stopped"]

_KEYS: Final = 5_000
_LOOK_SECONDS: Final = 0.05
_ROWS: Final = 1_200
"""A table of so many rows of ten numbers is posted: the client does not wait for each answer."""
_FEW: Final = 16


@dataclass(frozen=True)
class Scene:
    """`build` makes the dataflow, with an input `rows`. `rows` makes the rows of a call from its number.
    `check` raises if the answers are not those after so many calls.
    """

    build: Callable[[timely.Dataflow], None]
    rows: Callable[[int], object]
    check: Callable[[timely.Flow, int], None]


@dataclass
class Growth:
    """What a scene came to: MiB by process name, at most during the stop, and at most until the end; calls
    made before, during and behind the stop.
    """

    mib: dict[str, float]
    mib_behind: dict[str, float]
    calls: tuple[int, int, int]
    seconds_behind: float


def resident_mib(pid: int) -> float:
    """Return the resident memory of a process."""
    pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 2**20


def _pids(cluster: timely.Cluster) -> list[int]:
    launcher = getattr(cluster._workers, "_launcher")  # noqa: B009 - a test looks behind the curtain
    assert isinstance(launcher, Launcher)
    return launcher.pids


@contextmanager
def stopped(pid: int) -> Iterator[None]:
    """Stop a process for as long as the block runs."""
    os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(pid, signal.SIGCONT)


def _wide(flow: timely.Dataflow) -> None:
    columns = ", ".join(f"c{n}: int" for n in range(9))
    rows = dd.input(flow, "rows", f"key: int, {columns}")
    rows.group_by("key").agg(
        total=dd.sum("c0"), seen=dd.count(), **{f"s{n}": dd.sum(f"c{n}") for n in range(9)}
    ).output("sums")


def _wide_rows(call: int) -> pa.Table:
    keys = np.arange(_ROWS, dtype=np.int64) % _KEYS
    numbers = {f"c{n}": np.arange(_ROWS, dtype=np.int64) * (n + 1) + call for n in range(9)}
    return pa.table({"key": keys, **numbers})


def _check_wide(flow: timely.Flow, calls: int) -> None:
    seen = flow.output("sums").snapshot()
    assert sum(seen["seen"].to_pylist()) == calls * _ROWS
    total = sum(int(np.sum(np.arange(_ROWS) + call)) for call in range(calls))
    assert sum(seen["total"].to_pylist()) == total


def _few(flow: timely.Dataflow) -> None:
    rows = dd.input(flow, "rows", "key: int, n: int")
    rows.group_by("key").agg(total=dd.sum("n"), seen=dd.count()).output("sums")


def _few_rows(call: int) -> list[tuple[int, int]]:
    return [((call * _FEW + n) % _KEYS, n) for n in range(_FEW)]


def _check_few(flow: timely.Flow, calls: int) -> None:
    seen = flow.output("sums").snapshot()
    assert sum(seen["seen"].to_pylist()) == calls * _FEW
    assert sum(seen["total"].to_pylist()) == calls * sum(range(_FEW))


_SIDE: Final = 1_000


def _join(flow: timely.Dataflow) -> None:
    rows = dd.input(flow, "rows", "a: int, b: int")
    many = dd.input(flow, "many", "a: int, c: int")
    rows.join(many, on="a").group_by("c").agg(total=dd.sum("b"), seen=dd.count()).output("sums")


def _join_rows(call: int) -> list[tuple[int, int]]:
    return [(n, call) for n in range(_FEW)]


def _check_join(flow: timely.Flow, calls: int) -> None:
    seen = flow.output("sums").snapshot()
    assert sum(seen["seen"].to_pylist()) == calls * _FEW * _SIDE
    assert sum(seen["total"].to_pylist()) == sum(range(calls)) * _FEW * _SIDE


def _loop(flow: timely.Dataflow) -> None:
    edges = dd.input(flow, "rows", "a: int, b: int")
    both = edges.concat(edges.select(a=col.b, b=col.a)).distinct()
    labels = both.select(node=col.a, label=col.a).distinct()

    def body(known: dd.Collection) -> dd.Collection:
        near = (
            known.select(a=col.node, label=col.label).join(both, on="a").select(node=col.b, label=col.label)
        )
        return labels.concat(near).group_by("node").agg(label=dd.min("label"))

    labels.iterate(body).output("sums")


def _loop_rows(call: int) -> pa.Table:
    begin = call * 400
    numbers = np.arange(begin, begin + 400, dtype=np.int64)
    return pa.table({"a": numbers, "b": numbers // 2})


def _check_loop(flow: timely.Flow, calls: int) -> None:
    seen = flow.output("sums").snapshot()
    assert seen.num_rows == calls * 400
    assert not any(seen["label"].to_pylist())


SCENES: Final[dict[str, Scene]] = {
    "tables": Scene(_wide, _wide_rows, _check_wide),
    "few": Scene(_few, _few_rows, _check_few),
    "join": Scene(_join, _join_rows, _check_join),
    "loop": Scene(_loop, _loop_rows, _check_loop),
}


class _Loader(threading.Thread):
    """Inserts and seals until it is told to stop."""

    def __init__(self, cluster: timely.Cluster, index: int, scene: Scene) -> None:
        super().__init__()
        self.flow = cluster.flow(index)
        self._scene = scene
        self.calls = 0
        self.error: BaseException | None = None
        self.is_over = False

    def run(self) -> None:
        try:
            while not self.is_over:
                self.flow.input("rows").insert(self._scene.rows(self.calls))
                self.flow.seal()
                self.calls += 1
        except BaseException as error:
            self.error = error


def measure(
    scene: Scene, seconds: float, workers: int = 2, before: float = 1.0, stops: bool = True
) -> Growth:
    """Run a scene; unless `stops` is False, the last worker is stopped for `seconds`."""
    with timely.connect(workers=workers, silence_seconds=10 * seconds + 60) as cluster:
        flow = cluster.install(scene.build)
        if "many" in flow.inputs:
            side = np.arange(_SIDE * _FEW, dtype=np.int64)
            flow.input("many").insert(pa.table({"a": side % _FEW, "c": side}))
            flow.input("many").close()
        loader = _Loader(cluster, flow.index, scene)
        pids = _pids(cluster)
        names = {f"worker {n}": pid for n, pid in enumerate(pids)} | {"client": os.getpid()}
        loader.start()
        time.sleep(before)
        counts = [loader.calls]
        first = {name: resident_mib(pid) for name, pid in names.items()}
        most = dict(first)

        def look_for(seconds: float) -> None:
            until = time.monotonic() + seconds
            while time.monotonic() < until:
                time.sleep(_LOOK_SECONDS)
                for name, pid in names.items():
                    most[name] = max(most[name], resident_mib(pid))

        with stopped(pids[-1]) if stops else nullcontext():
            look_for(seconds)
        counts.append(loader.calls - sum(counts))
        during = dict(most)
        begun = time.monotonic()
        look_for(before)
        loader.is_over = True
        loader.join()
        look_for(_LOOK_SECONDS)
        if loader.error is not None:
            raise loader.error
        counts.append(loader.calls - sum(counts))
        loader.flow.wait()
        scene.check(loader.flow, loader.calls)
        behind = time.monotonic() - begun
        mib, mib_behind = ({name: at[name] - first[name] for name in names} for at in (during, most))
        return Growth(mib, mib_behind, (counts[0], counts[1], counts[2]), behind)
