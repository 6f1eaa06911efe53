"""stages/groups.py: what the stage of each kind of grouping keeps.

keeps_*    which columns, in which layout, and what is made of them
counts_*   of what is shared, whatever it is called
"""

from __future__ import annotations

import differential as dd
import timely
from differential import col
from differential.aggregates import count, max, sum
from differential.columns.schema import Schema
from differential.linear.chain import LinearChain
from differential.operators.edge.table_in import TableIn
from differential.operators.reduce import Accumulation, Aggregates, GroupFunction
from differential.plan.functions import UserFunction
from differential.plan.nodes import Accumulate, AddedColumn, Distinct, Input, Reduce, ReduceFunction
from differential.plan.stages.groups import Grouping, GroupStage, stage_of
from differential.plan.stages.terms import Lowered, Term
from timely.building.dataflow import Dataflow
from timely.user_code.call_site import CallSite

SOURCE = Input(Schema.of("a: int, b: int?, c: int, d: int"), "source")


def _stage(node: Grouping) -> GroupStage:
    flow = Dataflow("tested")
    stream = flow.input("source", TableIn(SOURCE.schema, "source"))
    lowered = Lowered(SOURCE.schema, (Term(stream, LinearChain.over(SOURCE.schema)),), ())
    return stage_of(node, [lowered], None, {node.digest: [CallSite("query.py", 7)]})


def test_keeps_the_keys_and_the_column_of_what_is_chosen_and_no_others() -> None:
    stage = _stage(Reduce(SOURCE, ("b",), (("top", max("c")),)))
    assert str(stage.source.schema) == "b: int?, c: int"
    assert stage.widths == (2, 1) and stage.shown.names == ("max(c)",)
    assert stage.aggregate == Aggregates((("max", 0),))


def test_keeps_keys_alone_for_a_count() -> None:
    stage = _stage(Accumulate((SOURCE,), ("b",), 1, (AddedColumn("n", 0, count()),)))
    assert (str(stage.source.schema), stage.widths) == ("b: int?", (2, 0))


def test_keeps_components_of_what_is_added_up() -> None:
    node = Accumulate((SOURCE,), ("b",), 1, (AddedColumn("n", 0, count()), AddedColumn("total", 0, sum("c"))))
    stage = _stage(node)
    assert str(stage.source.schema) == "b: int?, (component): int"
    assert isinstance(stage.aggregate, Accumulation) and stage.widths == (2, 1)
    assert stage.shown.names == ("count()", "sum(c)")


def test_keeps_every_column_for_a_function_and_says_which_function_it_is() -> None:
    function = UserFunction.of(lambda key, rows: [len(rows)])
    stage = _stage(ReduceFunction(SOURCE, ("c",), function, Schema.of("n: int")))
    assert stage.widths == (1, 4) and isinstance(stage.aggregate, GroupFunction)
    assert function.digest in stage.detail


def test_keeps_whole_rows_as_keys_of_a_distinct() -> None:
    stage = _stage(Distinct(SOURCE))
    assert stage.widths == (5, 0) and stage.aggregate == Aggregates(())


def test_counts_of_one_column_that_each_has_under_other_names_share_its_arrangement() -> None:
    """The columns of the arrangement have the names of the input, and not those of the counts."""

    def counts(flow: timely.Dataflow) -> None:
        rows = dd.input(flow, "rows", "a: int, b: int")
        twice = rows.select(r=col.a, s=col.a).select(g=col.r, u=col.s)
        twice.group_by("g").agg(n=dd.count()).output("of one column")
        rows.select(g=col.a, u=col.b).group_by("g").agg(n=dd.count()).output("of two")

    with timely.connect(workers=1, embedded=True) as cluster:
        flow = cluster.install(counts)
        flow.input("rows").insert([(1, 2), (1, 3), (2, 2)])
        flow.seal(wait=True)
        flow.input("rows").remove([(1, 3)])
        flow.seal(wait=True)
        for name in flow.outputs:
            rows = flow.output(name).snapshot().to_pylist()
            assert sorted((row["g"], row["n"]) for row in rows) == [(1, 1), (2, 1)]
