"""A collection that changes: named, typed columns, and a multiset of rows that has a value at every time.

Operators return new collections and do nothing yet; they write a plan (`plan/`), which becomes a dataflow
when this is installed. A collection is a node of that plan, and the loops that it is in.

For every operator and every time: what it has put out, accumulated up to that time, is the operator's plain
definition applied to what has come in, accumulated up to that time.
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


@dataclass(frozen=True, eq=False, repr=False)
class Collection(TimeOperators, LoopOperators):
    """A node of a plan, and the loops that it is in; its operators are in the files beside this one."""

    def output(self, name: str, *, strict: bool = False) -> None:
        """Make the collection readable by clients under `name`.

        Where something fails on a row (a division by zero, a function that raises), the output has no answer:
        reading it raises the error, until an epoch is complete in which no such row is left. Other outputs go
        on. `strict`: such an epoch ends the whole dataflow instead.
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
        """Keep the collection by the columns `by` (all of them, if none are named), for other dataflows of
        the cluster to read from its present state on: `dd.imported`.
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
        """How the collection is computed: the plan as it was written, after the rules, and as stages.

        Nothing is installed by asking. Each operator is shown with the line that wrote it; one that is read
        several times is written out once, and referred to by its number. It is shown as if nobody asked for
        others; all that a dataflow asks for: `dd.explain(dataflow)`.
        """
        return explain_plan(self.plan, [self.node])

    def feeds(self, port: int = 0, keys: Sequence[str] | None = None) -> list[Feed]:
        """Feeds of input `port` of a stage: rows laid out key first and sent to the worker of their key.

        `keys` None: columns in order, and rows stay on their worker.
        """
        if any(isinstance(loop, OpenLoop) for loop in self.place):
            raise GraphError(
                f"a stage that is written by hand cannot be fed inside {self.path(self.place)!r}, which is "
                "still being written: build the loop by hand, too, or look at updates with inspect(…)"
            )
        return self.plan.lowering.feeds(self.node, port, keys)
