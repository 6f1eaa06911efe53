"""docs/timely_reference.md names what there is, all of it, as it is.

whole_*      every public name of `timely`, and of what its calls return, is on the page once, and no other
written_*    each with the parameters that it has
"""

from __future__ import annotations

import inspect
from collections import Counter
from dataclasses import fields, is_dataclass
from typing import NamedTuple

import pytest
from house import ROOT, report
from reference_pages import differences, lines_of, names_in

import timely
from timely import testing
from timely.building.loop import Feedback
from timely.client.programs.program_worker import Sequencer
from timely.client.reading import FlowOutput
from timely.client.reports.probing import FlowProbe
from timely.client.session import FlowInput
from timely.client.statements.results import SqlChanges, SqlResult


class Written(NamedTuple):
    """What a prefix of the page stands for.

    made       attributes that `__init__` makes, which a class does not show
    internal   names that the packages use themselves
    """

    kind: type
    made: frozenset[str] = frozenset()
    internal: frozenset[str] = frozenset()


def of(kind: type, made: str = "", internal: str = "") -> Written:
    return Written(kind, frozenset(made.split()), frozenset(internal.split()))


WRITTEN_AS = {
    "cluster": of(timely.Cluster),
    "flow": of(timely.Flow, "epoch exported exports fingerprint index name note reads stages workers"),
    "i": of(FlowInput),
    "out": of(FlowOutput, "description name schema"),
    "page": of(timely.Console, "address"),
    "result": of(SqlResult, "epoch status"),
    "updates": of(SqlChanges, "schema status"),
    "probe": of(FlowProbe, "name"),
    "report": of(timely.EpochReport),
    "retained": of(timely.RetainedReport),
    "entry": of(timely.Retained),
    "reason": of(timely.Reason, "", "age place read values when"),
    "worker": of(timely.ProgramWorker, "index workers"),
    "sequencer": of(Sequencer, "name"),
    "dataflow": of(timely.Dataflow, "name"),
    "stream": of(timely.Stream),
    "tables": of(timely.TableStream),
    "loop": of(timely.Loop),
    "feedback": of(Feedback, "stream"),
    "vertex": of(timely.Vertex),
    "held": of(timely.Capability, "", "compared granted"),
    "bell": of(timely.Activator, "", "compared"),
    "tested": of(testing.VertexHarness, "notified sent vertex"),
    "scenario": of(testing.Scenario),
    "moment": of(testing.Moment),
    "control": of(timely.RoutingInput, "control lead"),
    "route": of(timely.Route),
    "routing": of(timely.Routing, "workers", "changed compared default rebased since versions"),
    "batch": of(timely.Batch, "KIND"),
}
MODULES = {"timely": timely, "testing": testing}
PAGE = (ROOT / "docs" / "timely_reference.md").read_text()
LINES = lines_of(PAGE)
NAMES = [name for line in LINES for name in names_in(line, [*WRITTEN_AS, *MODULES])]


def public_of(prefix: str) -> set[str]:
    """Names that users may write behind a prefix."""
    if prefix in MODULES:
        return {name for name in MODULES[prefix].__all__ if not name.endswith("Error")}
    kind, made, internal = WRITTEN_AS[prefix]
    if kind is timely.TableStream:  # what it has of a stream stays as it is
        return {name for name in vars(kind) if not name.startswith("_")}
    names = set(dir(timely.Vertex())) if kind is timely.Vertex else set(dir(kind))
    own = {each.name for each in fields(kind)} if is_dataclass(kind) and kind is not timely.Stream else set()
    return {name for name in names | own | made if not name.startswith("_")} - internal


@pytest.mark.parametrize("prefix", [*WRITTEN_AS, *MODULES])
def test_whole_every_public_name_is_there_once_and_no_other(prefix: str) -> None:
    public = public_of(prefix)
    named = Counter(name for of, name, _ in NAMES if of == prefix)
    report(f"docs/timely_reference.md lacks {prefix}.{name}" for name in public - set(named))
    report(
        f"docs/timely_reference.md has {prefix}.{name}, which does not exist" for name in set(named) - public
    )
    twice = Counter({name: count for name, count in named.items() if count > 1})
    report(f"docs/timely_reference.md has {prefix}.{name} more than once" for name in twice)


def test_whole_attributes_that_only_an_object_has_are_on_one() -> None:
    """`made` of the table above, of what a small dataflow has."""

    def small(dataflow: timely.Dataflow) -> None:
        stream = dataflow.input("in")
        dataflow.probe("seen", stream)
        dataflow.output("out", stream)

    def main(worker: timely.ProgramWorker) -> list[str]:
        return missing("worker", worker) + missing("sequencer", worker.sequencer("log"))

    def missing(prefix: str, thing: object) -> list[str]:
        return [f"{prefix}.{name}" for name in WRITTEN_AS[prefix].made if not hasattr(thing, name)]

    dataflow = timely.Dataflow()
    with timely.connect(embedded=True) as cluster:
        flow = cluster.install(small)
        report(missing("flow", flow))
        report(missing("out", flow.output("out")))
        report(missing("probe", flow.probe("seen")))
        report(name for names in timely.run(main, on=cluster) for name in names)  # type: ignore[attr-defined]
    report(missing("dataflow", dataflow))
    report(missing("feedback", dataflow.loop("loop").feedback()))
    report(missing("control", dataflow.routing()))
    report(missing("routing", timely.Routing.default(2)))
    report(missing("batch", timely.Records([1])))


def test_whole_no_line_is_on_both_pages_of_reference() -> None:
    other = set((ROOT / "docs" / "reference.md").read_text().splitlines())
    both = {line for line in PAGE.splitlines() if line in other and len(line) > 40}
    # How both pages say what `a=…` is, where they say how lines are written.
    assert all("a parameter that may be left out" in line for line in both)


@pytest.mark.parametrize("prefix", [*WRITTEN_AS, *MODULES])
def test_written_with_the_parameters_that_it_has(prefix: str) -> None:
    owner: object = MODULES.get(prefix) or WRITTEN_AS[prefix].kind
    for of, name, written in NAMES:
        if of != prefix:
            continue
        what: object = inspect.getattr_static(owner, name, None)
        what = what.__func__ if isinstance(what, staticmethod | classmethod) else what
        if written is not None:
            assert callable(what), f"{prefix}.{name} is not called"
            report(f"{prefix}.{name}: {found}" for found in differences(written, what))
        else:
            assert not inspect.isfunction(what), f"{prefix}.{name}: write its parameters"


def test_written_every_section_leads_on() -> None:
    """To the page to learn from, except where there is none."""
    own = {"The module", "Routes and batches of your own"}
    for section in PAGE.split("\n## ")[1:]:
        title, _, text = section.partition("\n")
        assert title in own or "](" in text.partition("\n|")[0], title
