"""Names of other libraries for streams, dataflows and loops; and the page of these and all others."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest
from house import ROOT
from names_elsewhere import unanswered

import timely
from timely import Capability, Cluster, Dataflow, Flow, Loop, ProgramWorker, Vertex
from timely.building.other_spellings import OF_DATAFLOWS, OF_FEEDBACKS, OF_LOOPS, OF_STREAMS
from timely.building.stream import Stream
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
from timely.client.programs.program_worker import Sequencer
from timely.client.reading import FlowOutput
from timely.client.reports.probing import FlowProbe
from timely.client.session import FlowInput
from timely.user_code.spellings import Same, Spellings
from timely.user_code.vertex_spellings import OF_ACTIVATORS, OF_CAPABILITIES, OF_VERTICES


def stream_of_a_dataflow() -> Stream:
    return Dataflow().input("numbers")


def loop_of_a_dataflow() -> Loop:
    return Dataflow().loop("loop")


RECEIVERS: list[tuple[str, Spellings, Callable[[], object]]] = [
    ("a stream", OF_STREAMS, stream_of_a_dataflow),
    ("a dataflow", OF_DATAFLOWS, Dataflow),
    ("a loop", OF_LOOPS, loop_of_a_dataflow),
    ("a feedback", OF_FEEDBACKS, lambda: loop_of_a_dataflow().feedback()),
]


@pytest.mark.parametrize(("what", "spellings", "make"), RECEIVERS, ids=[each[0] for each in RECEIVERS])
def test_each_name_works_or_says_what_to_write(
    what: str, spellings: Spellings, make: Callable[[], object]
) -> None:
    thing = make()
    for name, entry in spellings.names.items():
        assert name not in dir(type(thing)), name
        if isinstance(entry, Same):
            assert getattr(thing, name) == getattr(thing, entry.attribute)
            continue
        with pytest.raises(AttributeError) as raised:
            getattr(thing, name)
        assert str(raised.value) == f"{what} has no {name!r}. Write instead: {entry}"
    with pytest.raises(AttributeError, match=rf"^{what} has no 'conect'"):
        thing.conect  # type: ignore[attr-defined]  # noqa: B018


def test_what_is_to_be_written_is_there() -> None:
    """Each call that a message begins with is one of what it was asked of, or of what the message names."""
    things: dict[str, object] = {what: make() for what, _, make in RECEIVERS}
    by_name = {"stream": "a stream", "dataflow": "a dataflow", "loop": "a loop"}
    wrong = []
    for what, spellings, _ in RECEIVERS:
        for name, entry in spellings.names.items():
            written = f"{entry.attribute}(" if isinstance(entry, Same) else entry
            call = re.match(r"(?:(stream|dataflow|loop)\.)?(\w+)\(", written)
            if call is not None and not hasattr(things[by_name.get(call[1] or "", what)], call[2]):
                wrong.append(f"{what}, {name}: {written}")
    assert not wrong


def test_names_of_traits_and_methods_in_capitals_are_read_in_small_letters() -> None:
    stream = stream_of_a_dataflow()
    for name, said in (
        ("BranchWhen", "unary"),
        ("unaryNotify", "unary"),
        ("FlatMap", r"flat_map\(…\)"),
        ("StateMachine", r"state_machine\(…\)"),
        ("CaptureInto", "capture"),
    ):
        with pytest.raises(AttributeError, match=f"a stream has no '{name}'. Write instead: {said}"):
            getattr(stream, name)


@pytest.mark.parametrize(("what", "spellings", "make"), RECEIVERS, ids=[each[0] for each in RECEIVERS])
def test_every_public_name_of_timely_dataflow_and_naiad_is_answered(
    what: str, spellings: Spellings, make: Callable[[], object]
) -> None:
    assert not unanswered(make(), what.removeprefix("a "))


def test_streams_of_tables_answer_them_too() -> None:
    assert not unanswered(timely.tables(stream_of_a_dataflow()), "stream")


def test_a_name_that_nobody_has_is_answered_with_the_nearest_one() -> None:
    stream = Dataflow().input("numbers")
    with pytest.raises(AttributeError, match="a stream has no 'flat_maps'. Did you mean 'flat_map'"):
        _ = stream.flat_maps  # type: ignore[attr-defined]
    assert not hasattr(stream, "_ipython_display_")


PAGE = (ROOT / "docs" / "spellings.md").read_text().partition("## Streams")[2].partition("\n## ")[0]
ROWS = [
    [cell.strip() for cell in line.split("|")[1:4]]
    for line in PAGE.splitlines()
    if line.startswith("| ") and not line.startswith("| here")
]
"""Here, in timely dataflow, in Naiad."""
OF_ALL: dict[str, Spellings] = {
    "stream": OF_STREAMS,
    "dataflow": OF_DATAFLOWS,
    "loop": OF_LOOPS,
    "vertex": OF_VERTICES,
    "held": OF_CAPABILITIES,
    "worker": OF_PROGRAM_WORKERS,
    "sequencer": OF_SEQUENCERS,
    "bell": OF_ACTIVATORS,
    "cluster": OF_CLUSTERS,
    "flow": OF_FLOWS,
    "i": OF_INPUTS,
    "out": OF_OUTPUTS,
    "probe": OF_PROBES,
    "timely": OF_MODULE,
}
CLASSES: dict[str, type] = {
    "stream": Stream,
    "dataflow": Dataflow,
    "loop": Loop,
    "vertex": Vertex,
    "held": Capability,
    "worker": ProgramWorker,
    "sequencer": Sequencer,
    "bell": timely.Activator,
    "cluster": Cluster,
    "flow": Flow,
    "i": FlowInput,
    "out": FlowOutput,
    "probe": FlowProbe,
}


def test_page_of_spellings_has_all_operators_of_streams() -> None:
    named = {name for here, _, _ in ROWS for name in re.findall(r"`stream\.(\w+)", here)}
    assert named == {name for name in vars(Stream) if not name.startswith("_")} - set(
        Stream.__dataclass_fields__
    )


def written(spellings: Spellings, name: str) -> str:
    entry = spellings.names.get(name)
    return entry.attribute if isinstance(entry, Same) else entry or ""


@pytest.mark.parametrize(("here", "timely", "naiad"), ROWS, ids=[here for here, _, _ in ROWS])
def test_page_of_spellings_says_what_is_answered(here: str, timely: str, naiad: str) -> None:
    """A foreign name in a row is an attribute of what the row is about, or is answered by a name in it."""
    ours = re.findall(r"`(\w+)\.(\w+)", here)
    assert ours
    assert not [name for of, name in ours if of in CLASSES and name not in offered_or_own(CLASSES[of])]
    for name in re.findall(r"`(?:\w+\.)?(\w+)`", f"{timely} {naiad}"):
        asked = {of for of, _ in ours} & set(OF_ALL) | {"stream"}
        answers = [written(OF_ALL[of], name) for of in sorted(asked)]
        assert any(own == name or re.search(rf"\b{own}\b", said) for _, own in ours for said in answers), (
            name,
            answers,
        )


def offered_or_own(kind: type) -> set[str]:
    """What objects of a class have, also what `__init__` makes."""
    made_in_init = {"index", "workers", "epoch", "name"}
    return {*dir(kind), *made_in_init}
