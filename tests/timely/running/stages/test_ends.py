"""Each vertex hears once why nothing will be delivered any more.

failed_* · uninstalled_* · closed_*      the three ways to end
raised_*                                 what a vertex raises then harms nobody
"""

from __future__ import annotations

import logging
import re
import time
from collections.abc import Callable
from pathlib import Path
from typing import cast

import pytest

import differential as dd
import timely
from progress.times.timestamp import Timestamp
from timely.building.dataflow import Dataflow
from timely.client.embedded.workers import EmbeddedWorkers
from timely.operators.vertex import Vertex
from timely.running.core import Worker

HEARD: list[tuple[str, str]] = []
"""(name of the stage, what it heard) of the test that runs."""


class Hears(Vertex):
    def on_recv(self, edge: int, message: list[object], time: Timestamp) -> None:
        if "fail" in message:
            raise ValueError("as told")

    def on_end(self, reason: timely.TimelyError | None) -> None:
        HEARD.append((f"{self.name} {self.worker}", "None" if reason is None else type(reason).__name__))


class Sends(Hears):
    """Does what it may not when it ends."""

    def on_recv(self, edge: int, message: list[object], time: Timestamp) -> None:
        self.kept = self.hold(time)

    def on_end(self, reason: timely.TimelyError | None) -> None:
        super().on_end(reason)
        self.send_by(0, ["late"], self.kept.time)


class Exits(Hears):
    def on_end(self, reason: timely.TimelyError | None) -> None:
        super().on_end(reason)
        raise SystemExit(3)


class Interrupts(Hears):
    def on_end(self, reason: timely.TimelyError | None) -> None:
        super().on_end(reason)
        raise KeyboardInterrupt


def two(dataflow: timely.Dataflow) -> None:
    numbers = dataflow.input("numbers")
    numbers.stage("one", Hears)
    numbers.stage("other", Hears)


def reading(dataflow: timely.Dataflow) -> None:
    dataflow.input("numbers").stage("importer", Hears)


@pytest.fixture(autouse=True)
def _nothing_heard() -> None:
    HEARD.clear()


@pytest.mark.parametrize("threads", [False, True])
def test_failed_dataflows_end_all_their_vertices_and_no_other(threads: bool) -> None:
    with timely.connect(workers=2, embedded=True, threads=threads) as cluster:
        flow = cluster.install(two)
        cluster.install(reading)
        flow.input("numbers").insert(["fail"])
        with pytest.raises(timely.VertexError):
            flow.seal(wait=True)
        failed = [(f"{name} {worker}", "VertexError") for name in ("one", "other") for worker in range(2)]
        assert sorted(HEARD) == sorted(failed)
    assert sorted(HEARD) == sorted([*failed, ("importer 0", "None"), ("importer 1", "None")])


@pytest.mark.parametrize("threads", [False, True])
def test_uninstalled_and_closed_they_hear_that(threads: bool) -> None:
    with timely.connect(workers=2, embedded=True, threads=threads) as cluster:
        flow = cluster.install(two)
        flow.uninstall()
        assert {heard for _, heard in HEARD} == {"UninstalledError"} and len(HEARD) == 4
    assert len(HEARD) == 4
    HEARD.clear()
    cluster = timely.connect(workers=2, embedded=True, threads=threads)
    cluster.install(two)
    cluster.close()
    cluster.close()
    assert {heard for _, heard in HEARD} == {"None"} and len(HEARD) == 4


class Writes(Vertex):
    """Writes into a file what it hears."""

    def __init__(self, folder: str) -> None:
        self.folder = Path(folder)

    def on_recv(self, edge: int, message: list[object], time: Timestamp) -> None:
        pass

    def on_end(self, reason: timely.TimelyError | None) -> None:
        (self.folder / f"{self.worker}").write_text(type(reason).__name__)


@timely.builder
def writing(dataflow: timely.Dataflow, folder: str) -> None:
    dataflow.input("numbers").stage("writes", lambda: Writes(folder))


@pytest.mark.parametrize("ends", ["uninstall", "close"])
def test_closed_processes_tell_their_vertices(ends: str, tmp_path: Path) -> None:
    with timely.connect(workers=2) as cluster:
        flow = cluster.install(writing, folder=str(tmp_path))
        if ends == "uninstall":
            flow.uninstall()
            deadline = time.monotonic() + 20
            while len(list(tmp_path.iterdir())) < 2 and time.monotonic() < deadline:
                time.sleep(0.01)
    told = "UninstalledError" if ends == "uninstall" else "NoneType"
    assert [file.read_text() for file in sorted(tmp_path.iterdir())] == [told, told]


@pytest.mark.parametrize(
    ("kind", "told"),
    [
        (Sends, r"TimeRegressionError: 'bad' .* sent at \(0,\), but it may act only at or after no time"),
        (Exits, "SystemExit: 3"),
    ],
)
def test_raised_is_logged_and_the_others_hear_of_their_end(
    kind: type[Hears], told: str, caplog: pytest.LogCaptureFixture
) -> None:
    dataflow = Dataflow()
    numbers = dataflow.input("numbers")
    numbers.stage("bad", kind)
    numbers.stage("good", Hears)
    worker = Worker()
    instance = worker.install(dataflow.freeze())
    instance.input("numbers").send([1])
    instance.input("numbers").seal()
    worker.run_until_idle()
    with caplog.at_level(logging.WARNING, "timely"):
        worker.end(0, timely.UninstalledError("it was uninstalled"))
    assert HEARD == [("bad 0", "UninstalledError"), ("good 0", "UninstalledError")]
    (record,) = caplog.records
    assert re.search(rf"on_end of 'bad' .* has raised {told}", record.getMessage())
    assert isinstance(worker.ended[0], timely.UninstalledError)


def test_raised_from_the_keyboard_it_is_raised_when_all_have_heard() -> None:
    dataflow = Dataflow()
    numbers = dataflow.input("numbers")
    numbers.stage("bad", Interrupts)
    numbers.stage("good", Hears)
    worker = Worker()
    worker.install(dataflow.freeze())
    with pytest.raises(KeyboardInterrupt):
        worker.end(0, timely.UninstalledError("it was uninstalled"))
    assert len(HEARD) == 2
    assert isinstance(worker.ended[0], timely.UninstalledError) and not worker.instances


class Drops(Hears):
    """Gives up at its end what it holds, as `with` and `ExitStack` do."""

    kept: timely.Capability | None = None

    def on_recv(self, edge: int, message: list[object], time: Timestamp) -> None:
        self.kept = self.kept or self.hold(time)

    def on_end(self, reason: timely.TimelyError | None) -> None:
        assert self.kept is not None
        self.kept.drop()
        assert not self.kept.is_held
        super().on_end(reason)


class FailsToStart(Hears):
    def on_start(self) -> None:
        raise ValueError("no file")


class FailsAndInterrupts(Interrupts):
    """Fails, and is interrupted as it hears of that."""


def _of_stages(*kinds: type[Vertex]) -> Dataflow:
    dataflow = Dataflow()
    numbers = dataflow.input("numbers")
    for number, kind in enumerate(kinds):
        numbers.stage(f"{kind.__name__} {number}", kind)
    return dataflow


@pytest.mark.parametrize("threads", [False, True])
@pytest.mark.parametrize("ends", ["uninstall", "close"])
def test_closed_or_not_they_may_drop_what_they_hold(
    ends: str, threads: bool, caplog: pytest.LogCaptureFixture
) -> None:
    def dropping(dataflow: timely.Dataflow) -> None:
        dataflow.input("numbers").stage("drops", Drops, exchange=timely.by())

    with timely.connect(workers=2, embedded=True, threads=threads) as cluster:
        flow = cluster.install(dropping)
        flow.input("numbers").insert([*range(20)])
        flow.seal(wait=False)
        with pytest.raises(timely.WaitTimeoutError):
            flow.wait(timeout=0.01)
        if ends == "uninstall":
            flow.uninstall()
    assert [name for name, _ in sorted(HEARD)] == ["drops 0", "drops 1"] and not caplog.records


def three_of_which_one_fails(dataflow: timely.Dataflow) -> None:
    numbers = dataflow.input("numbers")
    for number, kind in enumerate([Hears, FailsToStart, Hears]):
        numbers.stage(f"{number}", kind)


def test_failed_to_start_those_hear_of_it_that_have_started() -> None:
    with timely.connect(workers=1, embedded=True) as cluster:
        with pytest.raises(timely.VertexError, match="no file"):
            cluster.install(three_of_which_one_fails)
        assert HEARD == [("0 0", "VertexError")]
    assert len(HEARD) == 1


def test_failed_with_an_interrupt_on_top_other_workers_are_told() -> None:
    worker = Worker()
    told: list[int] = []
    worker.on_failure = lambda number, error: told.append(number)
    instance = worker.install(_of_stages(FailsAndInterrupts, Hears).freeze())
    instance.input("numbers").send(["fail"])
    instance.input("numbers").seal()
    with pytest.raises(KeyboardInterrupt):
        worker.run_until_idle()
    assert told == [0] and len(HEARD) == 2


def test_failed_before_the_importers_all_hear_although_one_is_interrupted() -> None:
    def exporting(dataflow: timely.Dataflow) -> None:
        dd.input(dataflow, "rows", "n: int").export("rows")
        dataflow.input("numbers").stage("owner", Hears)

    def importing(kind: type[Vertex]) -> Callable[[timely.Dataflow], None]:
        def build(dataflow: timely.Dataflow) -> None:
            dd.imported(dataflow, 0, "rows", "n: int").output("rows")
            dataflow.input("numbers").stage(kind.__name__, kind)

        return build

    with timely.connect(workers=1, embedded=True) as cluster:
        cluster.install(exporting)
        for kind in (Hears, Interrupts, Hears):
            cluster.install(importing(kind))
        (worker,) = cast("EmbeddedWorkers", cluster._workers)._workers
        with pytest.raises(KeyboardInterrupt):
            worker.end(0, timely.UninstalledError("it was uninstalled"))
        assert sorted(name for name, _ in HEARD) == ["Hears 0", "Hears 0", "Interrupts 0", "owner 0"]
        assert not worker.instances


class IsInterrupted(Hears):
    def on_recv(self, edge: int, message: list[object], time: Timestamp) -> None:
        raise KeyboardInterrupt


def interrupted(dataflow: timely.Dataflow) -> None:
    dataflow.input("numbers").stage("bad", IsInterrupted)


def test_closed_after_an_interrupt_is_not_in_good_order() -> None:
    with timely.connect(workers=1, embedded=True) as cluster:
        flow = cluster.install(interrupted)
        cluster.install(reading)
        flow.input("numbers").insert([1])
        with pytest.raises(KeyboardInterrupt):
            flow.seal(wait=True)
    assert ("importer 0", "MisuseError") in HEARD
