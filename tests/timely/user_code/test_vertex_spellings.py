"""What vertices and capabilities are called by, and call, in timely dataflow and Naiad.

names_*       each works, or the error says what to write
callbacks_*   a method that nobody would call refuses its dataflow
"""

from __future__ import annotations

from typing import cast

import pytest
from names_elsewhere import unanswered

import timely
from timely.user_code.spellings import Same, Spellings
from timely.user_code.vertex_spellings import OF_ACTIVATORS, OF_CALLBACKS, OF_CAPABILITIES, OF_VERTICES

LEFT: list[str] = []
"""What the callback of `AsksVertex` has found wrong, and that it was called."""


def wrong_answers(thing: object, spellings: Spellings) -> list[str]:
    wrong = []
    for name, entry in spellings.names.items():
        if isinstance(entry, Same):
            if getattr(thing, name) != getattr(thing, entry.attribute):
                wrong.append(name)
            continue
        try:
            getattr(thing, name)
            wrong.append(f"{name} is there")
        except AttributeError as error:
            if not str(error).endswith(f"Write instead: {entry}"):
                wrong.append(str(error))
    return wrong


class AsksVertex(timely.Vertex):
    def on_recv(self, edge: int, message: list[object], time: tuple[int, ...]) -> None:
        with self.hold(time) as held:
            bell = self.activator()
            LEFT.extend(["called", *wrong_answers(self, OF_VERTICES), *unanswered(self, "vertex")])
            LEFT.extend([*wrong_answers(held, OF_CAPABILITIES), *unanswered(held, "held")])
            LEFT.extend([*wrong_answers(bell, OF_ACTIVATORS), *unanswered(bell, "bell")])
        self.send_by(0, message, time)


def installed(vertex: type[timely.Vertex], cluster: timely.Cluster) -> timely.Flow:
    return cluster.install(
        lambda dataflow: dataflow.output("out", dataflow.input("in").stage("mine", vertex))
    )


def test_names_of_a_running_vertex_work_or_say_what_to_write() -> None:
    LEFT.clear()
    with timely.connect(embedded=True) as cluster:
        flow = installed(AsksVertex, cluster)
        flow.input("in").insert([1])
        flow.seal(wait=True)
    assert LEFT == ["called"]


def test_names_that_nobody_has_are_answered_with_the_nearest_one() -> None:
    vertex = AsksVertex()
    with pytest.raises(AttributeError, match=r"'AsksVertex' object has no attribute 'send_bi'.*'send_by'\?"):
        vertex.send_bi  # type: ignore[attr-defined]  # noqa: B018
    vertex.counts = {}  # type: ignore[attr-defined]
    with pytest.raises(AttributeError, match=r"no attribute 'cuonts'\. Did you mean 'counts'\?"):
        vertex.cuonts  # type: ignore[attr-defined]  # noqa: B018
    assert not hasattr(vertex, "_repr_html_")


def test_names_within_a_property_are_those_that_the_error_is_about() -> None:
    class SumsVertex(timely.Vertex):
        @property
        def total(self) -> int:
            return sum(self.numbers)  # type: ignore[attr-defined]

    with pytest.raises(AttributeError, match="no attribute 'numbers'"):
        SumsVertex().total  # noqa: B018


@pytest.mark.parametrize(
    ("name", "ours"), [*OF_CALLBACKS.items(), ("on_recieve", "on_recv"), ("on_notfy", "on_notify")]
)
def test_callbacks_by_another_name_refuse_their_dataflow(name: str, ours: str) -> None:
    methods: dict[str, object] = {name: lambda self, *args: None}
    if ours != "on_recv":
        methods["on_recv"] = lambda self, edge, message, time: None
    kind = cast("type[timely.Vertex]", type("OtherVertex", (timely.Vertex,), methods))
    with (
        timely.connect(embedded=True) as cluster,
        pytest.raises(timely.MisuseError, match=rf"defines {name}, which nobody calls.* def {ours}\(self"),
    ):
        installed(kind, cluster)


def test_callbacks_that_have_helpers_of_such_names_are_left_alone() -> None:
    class HelpedVertex(AsksVertex):
        def on_receive(self) -> None: ...
        def on_send(self) -> None: ...
        def on_message(self) -> None: ...

    class HeldVertex(timely.Vertex):
        def on_open(self, capability: timely.Capability) -> None:
            capability.drop()

        def on_message(self) -> None: ...

    with timely.connect(embedded=True) as cluster:
        installed(HelpedVertex, cluster)
        cluster.install(lambda dataflow: dataflow.output("out", dataflow.source("held", HeldVertex))).finish()
