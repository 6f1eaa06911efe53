"""What other libraries call it is told what flows, inputs and outputs call it."""

from __future__ import annotations

import sys
import traceback
from collections.abc import Callable, Iterator

import pyarrow as pa
import pytest
from names_elsewhere import unanswered

import differential as dd
import timely
from timely.client.other_spellings import (
    OF_CLUSTERS,
    OF_FLOWS,
    OF_INPUTS,
    OF_MODULE,
    OF_OUTPUTS,
    OF_PROBES,
    OF_PROGRAM_WORKERS,
    OF_SEQUENCERS,
)
from timely.client.session import Flow
from timely.errors import MisuseError
from timely.own_files import OWN_FOLDERS
from timely.user_code.spellings import Same, Spellings


def passing(dataflow: timely.Dataflow) -> None:
    dd.input(dataflow, "in", "a: int").output("out")


@pytest.fixture
def flow() -> Iterator[Flow]:
    with timely.connect(workers=1, embedded=True) as cluster:
        yield cluster.install(passing)


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("commit", "Write instead: seal()"),
        ("advance_to", "seal(through=epoch)"),
        ("insert", "input('name').insert(rows)"),
        ("snapshot", "output('name').snapshot()"),
        ("stop", "uninstall()"),
        ("plan", "dd.explain(dataflow)"),
        ("stats", "cluster.stats()"),
    ],
)
def test_flows_say_what_to_write(flow: Flow, name: str, said: str) -> None:
    with pytest.raises(AttributeError, match=f"a flow has no '{name}'") as caught:
        getattr(flow, name)
    assert said in str(caught.value)


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("seal", r"cluster\.flow\('name'\) of one that runs; then flow\.seal"),
        ("uninstall", r"Write instead: flow\('name'\)\.uninstall\(\)"),
        ("list", r"Write instead: flows\(\)"),
        ("instal", "Did you mean 'install'"),
    ],
)
def test_clusters_say_what_to_write(name: str, said: str) -> None:
    with timely.connect(workers=1, embedded=True) as cluster:
        with pytest.raises(AttributeError, match=f"a cluster has no '{name}'.*{said}"):
            getattr(cluster, name)
        assert not hasattr(cluster, "_repr_latex_")


def test_an_output_and_an_input_are_no_attributes_of_a_flow_but_named_as_what_they_are(flow: Flow) -> None:
    with pytest.raises(AttributeError, match=r"no 'out': it is an output; write output\('out'\)$"):
        getattr(flow, "out")  # noqa: B009
    with pytest.raises(AttributeError, match=r"no 'in': it is an input; write input\('in'\)$"):
        getattr(flow, "in")
    with pytest.raises(AttributeError, match="a flow has no 'name'$"):
        Flow.__new__(Flow).name  # noqa: B018


def test_inputs_and_outputs_say_what_to_write(flow: Flow) -> None:
    for name in ("fetch", "rows", "read"):
        with pytest.raises(AttributeError, match=rf"output .* no '{name}'. Write instead: snapshot\(\)"):
            getattr(flow.output("out"), name)
    with pytest.raises(AttributeError, match=r"input .* no 'send'. Write instead: insert\(rows\)"):
        getattr(flow.input("in"), "send")  # noqa: B009
    for each in (flow, flow.input("in"), flow.output("out")):
        with pytest.raises(AttributeError, match="no 'nonsense'$"):
            getattr(each, "nonsense")  # noqa: B009


def test_outputs_are_read_as_frames_of_other_libraries_are(
    flow: Flow, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    flow.input("in").insert([(2,), (1,), (3,)])
    flow.seal()
    out = flow.output("out")
    assert out.collect() == out.to_pylist() == [{"a": 1}, {"a": 2}, {"a": 3}]  # type: ignore[attr-defined]
    assert list(out.toPandas()["a"]) == out.to_polars()["a"].to_list() == [1, 2, 3]  # type: ignore[attr-defined, index]
    assert out.toArrow().equals(out.snapshot())  # type: ignore[attr-defined]
    out.show()
    out.show(1)
    assert capsys.readouterr().out == "a\n-\n1\n2\n3\n(3 rows)\na\n-\n1\n(3 rows, 2 not shown)\n"
    monkeypatch.setitem(sys.modules, "polars", None)
    with pytest.raises(MisuseError, match="to_polars needs polars, which is not installed: pip install pol"):
        out.to_polars()


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        (lambda flow: flow.input("inn"), r"has no input 'inn': there are 'in'\. Did you mean 'in'\?"),
        (lambda flow: flow.output("OUT"), r"has no output 'OUT': there are 'out'\. Did you mean 'out'\?"),
        (lambda flow: flow.output("in"), r"has no output 'in': .*'in' is an input: write input\('in'\)"),
        (lambda flow: flow.input("out"), r"has no input 'out': .*'out' is an output: write output\('out'\)"),
        (lambda flow: flow.output("zzz"), r"has no output 'zzz': there are 'out'$"),
        (lambda flow: flow.output(["out"]), r"has no output \['out'\]: there are 'out'$"),
    ],
)
def test_ends_that_are_not_there_are_told_with_what_may_be_meant(
    flow: Flow, asked: Callable[[Flow], object], said: str
) -> None:
    with pytest.raises(MisuseError, match=said):
        asked(flow)


def test_misspelt_attributes_are_told_with_what_may_be_meant(flow: Flow) -> None:
    for thing, name, meant in (
        (flow, "uninstal", "uninstall"),
        (flow.input("in"), "isnert", "insert"),
        (flow.output("out"), "snapshto", "snapshot"),
    ):
        with pytest.raises(AttributeError, match=rf"no '{name}'\. Did you mean '{meant}'\?$"):
            getattr(thing, name)
    with pytest.raises(AttributeError, match="no '_repr_htm_'$"):
        getattr(flow, "_repr_htm_")  # noqa: B009


def test_no_spelling_is_the_name_of_something_that_is_there(flow: Flow) -> None:
    for each, spellings in (
        (flow, OF_FLOWS),
        (flow.input("in"), OF_INPUTS),
        (flow.output("out"), OF_OUTPUTS),
    ):
        assert not set(spellings.names) & set(dir(each))


def lasting(dataflow: timely.Dataflow) -> None:
    dd.input(dataflow, "in", "a: int").output("out")
    dd.input(dataflow, "last", "k: int, v: int", key="k", mode="upsert").output("values")


@pytest.mark.parametrize("kind", [{"embedded": True}, {}], ids=["embedded", "processes"])
def test_who_gives_an_epoch_to_an_insertion_is_told_how_append_takes_it(kind: dict[str, bool]) -> None:
    with timely.connect(workers=1, **kind) as cluster:  # type: ignore[arg-type]
        flow = cluster.install(lasting)
        for name, call, diff in (("in", "insert", 1), ("in", "remove", -1), ("last", "upsert", 1)):
            with pytest.raises(MisuseError, match=f"FlowInput.'{name}' of .*: {call} takes no ep") as caught:
                getattr(flow.input(name), call)([(1, 2)[: 1 + (name == "last")]], epoch="day")
            said = str(caught.value)
            assert "append(table, epoch='day')" in said and f"'diff', here {diff} in" in said
            steps = traceback.extract_tb(caught.value.__traceback__)
            assert not [step for step in steps if step.filename.startswith(OWN_FOLDERS)]
            assert "".join(traceback.format_exception(caught.value)).count("Traceback") == 1
        with pytest.raises(MisuseError, match=r"delete takes no epoch.*append\(table, epoch=3\)"):
            flow.input("last").delete([1], epoch=3)  # type: ignore[call-arg]
        # What was to be written does what was meant, and what was refused has done nothing.
        flow.input("in").append(pa.table({"a": [7, 8], "day": [2, 3], "diff": [1, 1]}), epoch="day")
        flow.wait(flow.seal(through=3))
        found = flow.output("out").changes().to_pylist()
        assert [(row["a"], row["epoch"]) for row in found] == [(7, 2), (8, 3)]


def test_other_arguments_that_an_insertion_does_not_take_are_told_what_it_takes(flow: Flow) -> None:
    entered = flow.input("in")
    with pytest.raises(MisuseError, match=r"argument 'diff'.*Write instead: remove\(rows\).*append\(table\)"):
        entered.remove([(1,)], diff=-1)  # type: ignore[call-arg]
    with pytest.raises(MisuseError, match=r"missing 1 required .*Write instead: insert\(rows\)"):
        entered.insert()  # type: ignore[call-arg]
    with pytest.raises(MisuseError, match="takes 2 positional arguments but 3 were given"):
        entered.insert([(1,)], 3)  # type: ignore[misc]


def test_a_mistake_of_types_within_a_call_stays_what_it_is(flow: Flow) -> None:
    class Odd:
        def __iter__(self) -> Iterator[object]:
            raise TypeError("mine")

    with pytest.raises(TypeError, match="^mine$"):
        flow.input("in").insert(Odd())


def test_a_cluster_says_what_to_write_and_a_flow_has_no_items(flow: Flow) -> None:
    with timely.connect(workers=1, embedded=True) as cluster:
        with pytest.raises(
            AttributeError, match=r"a cluster has no 'uninstall'. Write instead: flow.*uninstall"
        ):
            getattr(cluster, "uninstall")  # noqa: B009
        with pytest.raises(AttributeError, match=r"a cluster has no 'instal'. Did you mean 'install'\?"):
            getattr(cluster, "instal")  # noqa: B009
    with pytest.raises(MisuseError, match=r"a flow has no \['out'\]: write output\('out'\), or input"):
        flow["out"]


def test_the_error_of_a_refused_install_says_which_flows_are_installed() -> None:
    def refused(dataflow: timely.Dataflow) -> None:
        dd.input(dataflow, "in", "a: int").select("b").output("out")

    with timely.connect(workers=1, embedded=True) as cluster:
        with pytest.raises(dd.ExpressionError):
            cluster.install(refused)
        number = cluster.install(passing).index
        with pytest.raises(dd.ExpressionError, match="no column 'b'") as caught:
            cluster.flow(0)
        notes = "".join(getattr(caught.value, "__notes__", ()))
        assert f"cluster.flow(0) asks for that dataflow; installed are: {number} (" in notes


def numbers(dataflow: timely.Dataflow) -> None:
    stream = dataflow.input("in")
    dataflow.probe("seen", stream)
    dataflow.output("out", stream)


def wrong_answers(thing: object, spellings: Spellings) -> list[str]:
    """The names of a table that `thing` has, or that it does not answer as the table says."""
    wrong = []
    for name, entry in spellings.names.items():
        if name in dir(thing) or name in vars(thing):
            wrong.append(f"{name} is there")
        elif isinstance(entry, Same):
            if getattr(thing, name) != getattr(thing, entry.attribute):
                wrong.append(name)
        else:
            try:
                getattr(thing, name)
                wrong.append(f"{name} is there")
            except AttributeError as error:
                if not str(error).endswith(f"Write instead: {entry}"):
                    wrong.append(str(error))
    return wrong


def test_every_name_of_a_table_works_or_says_what_to_write() -> None:
    def main(worker: timely.ProgramWorker) -> list[str]:
        sequencer = worker.sequencer("words")
        wrong = [*wrong_answers(worker, OF_PROGRAM_WORKERS), *wrong_answers(sequencer, OF_SEQUENCERS)]
        return [*wrong, *unanswered(worker, "worker"), *unanswered(sequencer, "sequencer")]

    with timely.connect(workers=1, embedded=True) as cluster:
        flow = cluster.install(numbers)
        for thing, kind, spellings in (
            (flow, "flow", OF_FLOWS),
            (flow.input("in"), "input", OF_INPUTS),
            (flow.output("out"), "output", OF_OUTPUTS),
            (flow.probe("seen"), "probe", OF_PROBES),
            (cluster, "cluster", OF_CLUSTERS),
        ):
            assert not wrong_answers(thing, spellings)
            assert not unanswered(thing, kind)
        assert timely.run(main, on=cluster) == [()]


def test_the_module_says_what_to_write() -> None:
    assert not unanswered(timely, "module")
    for name, entry in OF_MODULE.names.items():
        if name in vars(timely):  # a folder of the package that something has imported
            continue
        with pytest.raises(AttributeError, match="module 'timely' has no attribute") as caught:
            getattr(timely, name)
        assert str(caught.value).endswith(f"Write instead: {entry}")
    with pytest.raises(AttributeError, match="has no attribute 'conect'. Did you mean 'connect'"):
        timely.conect  # type: ignore[attr-defined]  # noqa: B018
