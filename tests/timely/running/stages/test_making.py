"""What stands at each stage once a dataflow is installed: a vertex, an input, a constant or an import."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace

import pytest

from progress.times.time_words import TimeCode
from timely import Dataflow, MisuseError, Vertex
from timely.operators.imported import Exported, ImportHandle, Taken
from timely.operators.inputs.handle import InputHandle
from timely.running.core import Worker
from timely.running.instance import Instance
from timely.running.stages.making import take_hold
from timely.wire.transport.memory import MemoryNetwork


class Waits(Vertex):
    """Wants all that can be wanted."""

    wants_frontier = True
    wants_end = True
    is_patient = True
    word_times = True


def with_a_loop() -> Dataflow:
    dataflow = Dataflow("waits")
    numbers = dataflow.input("numbers")
    with dataflow.loop() as loop:
        back = loop.feedback()
        (out,) = dataflow.stage("round", Vertex, [loop.enter(numbers).feed(), back.stream.feed()])
        back.connect(out)
    dataflow.stage("behind", Waits, [loop.leave(out).feed(0), numbers.feed(1)])
    numbers.stage("beside", Waits)
    return dataflow


def named(instance: Instance, name: str) -> int:
    return next(runner.stage for runner in instance.runners if runner.name == name)


def test_a_stage_has_a_vertex_or_is_an_input() -> None:
    instance = Worker().install(with_a_loop().freeze())
    for runner in instance.runners:
        assert (runner.vertex is None) == isinstance(runner.source, InputHandle)
    assert instance.inputs["numbers"] is instance.runners[named(instance, "input numbers")].source


def test_runners_know_what_their_vertices_want() -> None:
    instance = Worker().install(with_a_loop().freeze())
    behind, around = (instance.runners[named(instance, name)] for name in ("behind", "round"))
    assert (behind.wants_frontier, behind.wants_end, behind.notifies) == (True, True, False)
    assert (around.wants_frontier, around.wants_end, around.notifies) == (False, False, True)


def test_patient_is_only_who_stands_behind_a_loop_on_one_worker_alone() -> None:
    network = MemoryNetwork(2)
    for worker, expected in ((Worker(), ["behind"]), (Worker(0, 2, network.transport(0)), [])):
        instance = worker.install(with_a_loop().freeze())
        assert [runner.name for runner in instance.runners if runner.is_patient] == expected


def test_each_port_is_watched_once_by_the_connectors_that_lead_to_it() -> None:
    instance = Worker().install(with_a_loop().freeze())
    ports = [port for runner in instance.runners for port in runner.ports]
    assert sorted(ports) == list(range(len(instance._port_owner)))
    assert all(
        instance._port_owner[port] == runner.stage for runner in instance.runners for port in runner.ports
    )
    assert len(instance.runners[named(instance, "behind")].ports) == 2


class Opened:
    """What is read of another dataflow: nothing."""

    since = 0

    def __init__(self) -> None:
        self.is_closed = False

    def begin(self, code: TimeCode, epoch: int, news: Callable[[], None]) -> None:
        pass

    def take(self, before: int) -> Taken:
        return Taken([], 0, True)

    def close(self) -> None:
        self.is_closed = True


class Reads:
    """Opens what it is told to, and refuses `refused`."""

    def __init__(self) -> None:
        self.opened: list[Opened] = []
        self.readers: list[str] = []

    def describe(self) -> str:
        return "reads"

    def open(self, exported: Exported, reader: str) -> Opened:
        if exported.name == "refused":
            raise MisuseError("not that")
        if exported.name == "interrupted":
            raise KeyboardInterrupt
        self.readers.append(reader)
        self.opened.append(Opened())
        return self.opened[-1]


class Exports:
    """Exports whatever is asked for."""

    def exported(self, owner: int | str, export: str) -> Exported:
        return Exported(7, str(owner), export, "", Vertex())


def importing(codec: Reads, *names: str) -> Instance:
    """A dataflow that reads these, with nothing behind them, which has not taken hold of them."""
    dataflow = Dataflow("reader")
    dataflow.input("numbers")
    for name in names:
        dataflow.imported("owner", name, codec)
    worker = Worker()
    worker.exported = Exports().exported  # type: ignore[method-assign]
    return Instance(worker, 3, dataflow.freeze())


def test_imports_are_held_from_the_making_on_in_their_order() -> None:
    codec = Reads()
    instance = importing(codec, "one", "two")
    assert [handle.exported.name for handle in instance.imports] == ["one", "two"]
    assert codec.readers == ["dataflow 3 (reader)"] * 2 and instance.reads == {7}
    sources = [runner.source for runner in instance.runners if isinstance(runner.source, ImportHandle)]
    assert sources == instance.imports


@pytest.mark.parametrize(
    ("bad", "error"),
    [("refused", MisuseError), ("interrupted", KeyboardInterrupt)],
    ids=["refused", "interrupt"],
)
def test_imports_are_held_all_or_none(bad: str, error: type[BaseException]) -> None:
    codec = Reads()
    with pytest.raises(error):
        importing(codec, "one", "two", bad, "three")
    assert [opened.is_closed for opened in codec.opened] == [True, True]


def test_what_inputs_are_fed_with_is_held_all_or_none_with_what_is_imported() -> None:
    codec = Reads()
    instance = importing(codec, "one")
    frozen = instance.frozen
    declared = SimpleNamespace(
        stage=frozen.inputs["numbers"].stage, codec=SimpleNamespace(as_import=lambda: codec)
    )
    fed = SimpleNamespace(
        name="reader",
        imports=frozen.imports,
        inputs=dict.fromkeys(["numbers", "refused"], declared),
        stage_of=frozen.stage_of,
    )
    feeds = {name: Exported(7, "owner", name, "", Vertex()) for name in ("numbers", "refused")}
    with pytest.raises(MisuseError, match="not that"):
        take_hold(Exports(), fed, instance.runners, feeds, 4)  # type: ignore[arg-type]
    assert [opened.is_closed for opened in codec.opened] == [False, True, True], "the first is another one's"
    del feeds["refused"]
    imports, held = take_hold(Exports(), fed, instance.runners, feeds, 4)  # type: ignore[arg-type]
    assert [handle.exported.name for handle in imports] == ["one"] and list(held) == ["numbers"]
    assert instance.runners[frozen.stage_of[declared.stage]].source is held["numbers"]
