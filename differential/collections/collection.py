"""A collection that changes: named, typed columns, and a multiset of rows at every time.

Operators return new collections and compute nothing yet; they write a plan (`plan/`), which becomes a
dataflow when it is installed. A collection is a node of that plan, and the loops around it.

Law of every operator, at every time: its output, accumulated up to that time, is the operator's plain
definition applied to its inputs, accumulated up to that time.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from timely.building.stream import Feed
from timely.errors import GraphError

from ..errors import SchemaError
from ..operators.table_io import DIFF, EPOCH
from ..plan.building import OpenLoop
from ..plan.explaining import explain_plan
from .handle import Names, names_of
from .loops import LoopOperators
from .timed.times import TimeOperators

__all__ = ["Collection"]


@dataclass(frozen=True, eq=False, repr=False, init=False)
class Collection(TimeOperators, LoopOperators):
    """A node of a plan, and the loops that it is in; its operators are in the files beside this one."""

    _internal = frozenset(
        {"applied", "conformed", "feeds", "fitted", "node", "path", "place", "plan", "with_node", "within"}
    )

    def output(self, name: str, *, strict: bool = False) -> None:
        """Make the collection readable by clients under `name`.

        While an operator fails on some row (a division by zero, a function that raises), the output has no
        answer: reading it raises the error, until an epoch is complete in which no such row is left. Other
        outputs go on. `strict`: such an epoch ends the whole dataflow instead.
        """
        if self.place:
            raise GraphError(
                f"output {name!r}: the collection is inside {self.path(self.place)!r}: "
                "only what `iterate` returns leaves a loop"
            )
        for reserved in (DIFF, EPOCH):
            if reserved in self.schema.names:
                raise SchemaError(
                    f"output {name!r}: a column cannot be called {reserved!r}, which tables of changes use: "
                    f"write rename({reserved}='…') before it"
                )
        self.plan.output(self.node, name, is_strict=strict)

    def export(self, name: str, by: Names = ()) -> None:
        """Store the collection by the columns `by` (all of them, if none are named) for other dataflows.

        Dataflows of the cluster read it under `name`, from its present state on: `dd.imported`.
        """
        if self.place:
            raise GraphError(
                f"export {name!r}: the collection is inside {self.path(self.place)!r}: "
                "only what `iterate` returns leaves a loop"
            )
        keys = names_of(by, "export") or self.schema.names
        for key in keys:
            self.schema.offset(key)
        if len(set(keys)) != len(keys):
            raise SchemaError(f"export: a key is named twice in {', '.join(keys)}")
        self.plan.export(self.node, name, keys)

    def explain(self) -> str:
        """Explain how the collection is computed: the plan as it was written, after the rules, and as stages.

        Nothing is installed. The text shows each operator with the line that wrote it; one with several
        readers is written out once, and then named by its number. It shows the collection as if nothing else
        were computed; `dd.explain(dataflow)` shows all that a dataflow computes.
        """
        return explain_plan(self.plan, [self.node])

    def feeds(self, port: int = 0, keys: Sequence[str] | None = None) -> list[Feed]:
        """Return feeds of input `port` of a stage: rows laid out key first, sent to the worker of their key.

        With `keys` None, columns stay in order, and rows on their worker.
        """
        if any(isinstance(loop, OpenLoop) for loop in self.place):
            raise GraphError(
                f"a stage that is written by hand cannot be fed inside {self.path(self.place)!r}, which is "
                "still being written: build the loop by hand, too, or look at updates with inspect(…)"
            )
        return self.plan.lowering.feeds(self.node, port, keys)
