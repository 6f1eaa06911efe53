"""One query in all forms that `Cluster.install` and `timely.spark.run` take."""

from __future__ import annotations

from collections.abc import Callable

import differential as dd
import timely
from differential import Collection, col

__all__ = ["FORMS", "INPUTS", "OUTPUTS", "ROWS", "WANTED", "edges_of"]

INPUTS = {"edges": "src: int, dst: int"}
ROWS = [(1, 2), (3, 2), (3, 4)]
WANTED = [[{"node": 2}, {"node": 4}], [{"src": 3, "count": 2}]]
"""The rows of the first output, and of the second where there are two."""


def targets(edges: Collection) -> Collection:
    """Where edges end."""
    return edges.select(node=col.dst).distinct()


def hubs(edges: Collection) -> Collection:
    """Where several edges begin."""
    return edges.group_by("src").count().filter(col.count > 1)


def edges_of(dataflow: timely.Dataflow) -> Collection:
    """The input."""
    return dd.input(dataflow, "edges", INPUTS["edges"])


def returns_one(edges: Collection) -> Collection:
    """Of collections, and returns a collection."""
    return targets(edges)


def returns_a_tuple(edges: Collection) -> tuple[Collection, Collection]:
    """Of collections, and returns a tuple."""
    return targets(edges), hubs(edges)


def returns_a_dict(edges: Collection) -> dict[str, Collection]:
    """Of collections, and returns a dict."""
    return {"targets": targets(edges), "hubs": hubs(edges)}


def names_outputs(edges: Collection) -> None:
    """Of collections, and names its outputs."""
    targets(edges).output("targets")
    hubs(edges).output("hubs")


def names_and_returns(edges: Collection) -> Collection:
    """Of collections, and does both with one collection: that is one output."""
    found = targets(edges)
    found.output("targets")
    return found


def names_and_returns_a_dict(edges: Collection) -> dict[str, Collection]:
    """Of collections, and names one as the dict does, and one otherwise, which is two outputs then."""
    found, many = targets(edges), hubs(edges)
    found.output("targets")
    many.output("own")
    return {"targets": found, "hubs": many}


def of_a_dataflow(dataflow: timely.Dataflow) -> None:
    """Declares its input, and names its outputs."""
    names_outputs(edges_of(dataflow))


def of_a_dataflow_returned(dataflow: timely.Dataflow) -> dict[str, Collection]:
    """Declares its input, and returns a dict."""
    return returns_a_dict(edges_of(dataflow))


def of_a_dataflow_both(dataflow: timely.Dataflow) -> dict[str, Collection]:
    """Declares its input, and does both."""
    return names_and_returns_a_dict(edges_of(dataflow))


@timely.builder
def marked(dataflow: timely.Dataflow) -> Collection:
    """Found by its name, and returns a collection."""
    return targets(edges_of(dataflow))


def written(form: Callable[[Collection], object]) -> object:
    """Collections that are written already."""
    return form(edges_of(timely.Dataflow("written")))


FORMS: dict[str, Callable[[], object]] = {
    "returns_one": lambda: returns_one,
    "returns_a_tuple": lambda: returns_a_tuple,
    "returns_a_dict": lambda: returns_a_dict,
    "names_outputs": lambda: names_outputs,
    "names_and_returns": lambda: names_and_returns,
    "names_and_returns_a_dict": lambda: names_and_returns_a_dict,
    "of_a_dataflow": lambda: of_a_dataflow,
    "of_a_dataflow_returned": lambda: of_a_dataflow_returned,
    "of_a_dataflow_both": lambda: of_a_dataflow_both,
    "marked": lambda: marked,
    "by name": lambda: "query_forms:marked",
    "one that is written": lambda: written(returns_one),
    "a tuple that is written": lambda: written(returns_a_tuple),
    "a dict that is written": lambda: written(returns_a_dict),
}
NAMED = ["targets", "hubs"]
OUTPUTS = {
    "returns_one": ["result"],
    "returns_a_tuple": ["result_0", "result_1"],
    "returns_a_dict": NAMED,
    "names_outputs": NAMED,
    "names_and_returns": ["targets"],
    "names_and_returns_a_dict": [*NAMED, "own"],
    "of_a_dataflow": NAMED,
    "of_a_dataflow_returned": NAMED,
    "of_a_dataflow_both": [*NAMED, "own"],
    "marked": ["result"],
    "by name": ["result"],
    "one that is written": ["result"],
    "a tuple that is written": ["result_0", "result_1"],
    "a dict that is written": NAMED,
}
"""The outputs of each form."""
