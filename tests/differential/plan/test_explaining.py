"""explaining.py: what is said of a plan."""

from __future__ import annotations

import differential as dd
from differential import Collection, col
from timely.building.dataflow import Dataflow


def reach(edges: Collection) -> Collection:
    return edges.iterate(lambda x: x.concat(edges).distinct(), name="grow").filter(col.src > 1)


def test_a_query_is_shown_as_written_after_the_rules_and_as_stages() -> None:
    edges = dd.input(Dataflow("shown"), "edges", "src: int, dst: int")
    text = edges.distinct().distinct().filter(col.src > 1).explain()
    lines = [line.split("  test_explaining.py")[0].rstrip() for line in text.splitlines()]
    assert lines == [
        "== as written ==",
        "filter(col.src > 1)",
        "  distinct",
        "    distinct",
        "      input edges",
        "== after the rules: distinct away, filter pushed ==",
        "distinct",
        "  filter(col.src > 1)",
        "    input edges",
        "== stages: nothing is kept for several ==",
        "  1  distinct   in shown",
        "       from 0 input edges: filter(col.src > 1)   [by key of 2 words]",
        "  2  result   in shown",
        "       from 1 distinct",
    ]
    trees = text.partition("== stages")[0].splitlines()
    assert all("test_explaining.py:" in line for line in trees if "==" not in line), "each has its line"


def test_what_is_read_twice_is_written_out_once_and_loops_say_what_goes_round() -> None:
    edges = dd.input(Dataflow("shown"), "edges", "src: int, dst: int")
    shared = edges.distinct()
    text = reach(shared).concat(shared).explain()
    assert "[1] distinct" in text and text.count("input edges") == 2
    assert "begins as [1]" in text or "begins as [1] distinct" in text
    assert "goes on as" in text and "variable 1.0" in text
    assert "distinct   in shown / grow" in text


def test_asking_installs_nothing_and_changes_nothing() -> None:
    flow = Dataflow("shown")
    edges = dd.input(flow, "edges", "src: int, dst: int")
    before = len(flow.stages)
    reach(edges).explain()
    assert len(flow.stages) == before
    reach(edges).output("out")
    assert "grow" in {stage.scope.name for stage in flow.freeze().stages}


def test_inside_a_loop_the_plan_is_shown_as_far_as_it_is_known() -> None:
    edges = dd.input(Dataflow("shown"), "edges", "src: int, dst: int")
    said: list[str] = []

    def body(x: Collection) -> Collection:
        said.append(x.distinct().explain())
        return x.distinct()

    edges.iterate(body)
    assert "variable 1.0" in said[0] and "known once the loop" in said[0]


def test_lines_are_those_of_who_wrote_an_operator_and_of_no_reader_of_it() -> None:
    dataflow = Dataflow("lines")
    rows = dd.input(dataflow, "rows", "a: int, b: int")
    first = rows.filter(col.a > 1)
    second = first.select("b").join(rows, on="b")
    shown = [line for line in second.explain().splitlines() if "input rows" in line and "from" not in line]
    (line,) = {" ".join(line.split()) for line in shown}
    assert line.count("test_explaining.py") == 1


def test_what_is_kept_once_is_said_and_who_reads_it() -> None:
    dataflow = Dataflow("kept")
    rows = dd.input(dataflow, "rows", "a: int, b: int")
    pairs = rows.join(rows.select(a=col.a, c=col.b), on="a")
    text = rows.group_by("a").agg(most=dd.max("b")).join(pairs, on="a").explain()
    assert "== stages: kept once: input rows by a, answers of 1 operator ==" in text
    assert text.count("as it is kept there") == 4


def test_a_dataflow_is_shown_with_all_that_it_asks_for_and_what_is_kept_for_several() -> None:
    dataflow = Dataflow("whole")
    rows = dd.input(dataflow, "rows", "a: int, b: int")
    rows.export("rows", by="a")
    pairs = rows.join(rows.select(a=col.a, c=col.b), on="a")
    pairs.select("a", "c").output("pairs")
    rows.group_by("a").agg(most=dd.max("b")).output("most")
    rows.inspect(print)
    before = len(dataflow.stages)
    text = dd.explain(dataflow)
    for asked in ("export rows by a", "output pairs", "output most", "inspect"):
        assert f"\n{asked}" in text and f"  {asked}" in text.partition("== stages")[2], asked
    assert "== stages: kept once: input rows by a" in text
    assert "export rows by a: as it is kept there" in text and "result" not in text
    assert len(dataflow.stages) == before and dd.explain(dataflow) == text


def test_what_enters_and_leaves_a_loop_is_named() -> None:
    edges = dd.input(Dataflow("shown"), "edges", "src: int, dst: int")
    stages = reach(edges).explain().partition("== stages")[2]
    assert "enter grow (of 0 input edges)" in stages and "leave grow (of 3 distinct)" in stages


def test_what_a_store_keeps_whole_is_said_with_the_line_that_is_the_reason() -> None:
    flow = Dataflow("query")
    edges = dd.input(flow, "edges", "a: int, b: int")
    dd.input(flow, "other", "a: int").output("other")
    edges.distinct().split_late("b", 2, clock=dd.clock(0, every=1))[0].output("out")
    *_, title, last = dd.explain(flow).splitlines()
    assert title == "== in a durable cluster =="
    assert last.startswith("the whole history of input 'edges' is kept: split_late (")
    assert "test_explaining.py:" in last
    assert "durable" not in edges.distinct().explain()
