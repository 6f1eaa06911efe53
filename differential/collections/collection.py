"""A collection that changes: named, typed columns, and a multiset of rows at every time.

Operators return new collections and compute nothing yet; they write a plan (`plan/`), which becomes a
dataflow when it is installed. A collection is a node of that plan, and the loops around it.

Law of every operator, at every time: its output, accumulated up to that time, is the operator's plain
definition applied to its inputs, accumulated up to that time.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from timely.building.loop import Loop
from timely.building.stream import Feed, Stream
from timely.errors import GraphError
from timely.user_code.call_site import call_site

from ..errors import SchemaError
from ..operators.edge.records import IntoRecordsVertex
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
        {
            "applied",
            "called",
            "column_in",
            "conformed",
            "feeds",
            "fitted",
            "has_column_in",
            "node",
            "orders_of",
            "path",
            "place",
            "plan",
            "sided",
            "with_node",
            "within",
        }
    )

    def output(self, name: str, *, strict: bool = False, stored: bool = False) -> None:
        """Make the collection readable by clients under `name`.

        While an operator fails on some row (a division by zero, a function that raises), the output has no
        answer: reading it raises the error, until an epoch is complete in which no such row is left. Other
        outputs go on. `strict`: such an epoch ends the whole dataflow instead.

        `stored`: a durable cluster also stores, now and then, all that the collection holds as of an epoch.
        `timely.durable.stored(FOLDER, name)` says where, for DuckDB, Spark and others, which read Parquet
        without the cluster then (docs/durability.md). A query with `stored` is another one than without it.
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
        untyped = [column.name for column in self.schema if column.type.kind == "any"]
        if stored and untyped:
            raise SchemaError(
                f"output {name!r}: column {untyped[0]!r} has the type any, and Parquet has no such type. "
                f"Leave it out: drop({untyped[0]!r}); or give it a type of its own before: map(…, "
                f"'{untyped[0]}: string')"
            )
        self.plan.output(self.node, name, is_strict=strict, is_stored=stored)

    def export(self, name: str, by: Names = ()) -> None:
        """Store the collection by the columns `by` (all of them, if none are named) for other dataflows.

        Dataflows of the cluster read it under `name`, from its present state on: `dd.imported`.
        """
        if self.place:
            raise GraphError(
                f"export {name!r}: the collection is inside {self.path(self.place)!r}: "
                "only what `iterate` returns leaves a loop"
            )
        keys = names_of(by, "export", self) or self.schema.names
        for key in keys:
            self.schema.offset(key)
        if len(set(keys)) != len(keys):
            raise SchemaError(f"export: a key is named twice in {', '.join(keys)}")
        self.plan.export(self.node, name, keys)

    def stream(self) -> Stream:
        """The changes of the collection as a stream of records (row, diff), for stages written by hand.

        A row is a tuple of values in the order of the columns. A record is at the time of its change, and on
        the worker where the change is; in the body of a loop at the time of its iteration. Changes that
        cancel may come one by one: write consolidate() before it if that matters. A stage that needs rows
        with equal values together says so by `exchange`, as in timely.by(lambda record: record[0][0]). The
        way back: `dd.collection(stream, schema)`.
        """
        schema, site = self.schema, str(call_site())
        if opened := self.plan.open_loops():
            inside = self.within(opened[-1].loop_path)
            sketch = self.plan.sketch(opened[-1], self.path(inside.place))
            return sketch.source(self.node, lambda: IntoRecordsVertex(schema, site), f"({schema})")
        loops = tuple(loop for loop in self.place if isinstance(loop, Loop))
        stage = self.dataflow.open_stage(
            "stream",
            lambda: IntoRecordsVertex(schema, site),
            loops[-1].scope if loops else self.dataflow.root,
            f"({schema})",
        )
        self.plan.stream(self.node, stage, loops)
        return stage

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
        return self.plan.feeds(self.node, port, keys)
