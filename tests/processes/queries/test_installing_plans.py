"""Queries that workers cannot import: written in a REPL, a notebook, in a function, in `__main__`.

installed_*   the plan travels, with functions as source or by name; answers are those of an embedded cluster
refused_*     what cannot travel; code for a cluster that somebody else has started
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import differential as dd
import timely
from differential import Collection, col
from timely.own_files import ROOT

EDGES = [(1, 2), (2, 3), (3, 1), (4, 5)]


@pytest.fixture(scope="module")
def cluster() -> Iterator[timely.Cluster]:
    with timely.connect(workers=2) as cluster:
        yield cluster


def answers(cluster: timely.Cluster, query: object, **arguments: object) -> list[dict[str, object]]:
    flow = cluster.install(query, **arguments)  # type: ignore[arg-type]  # builders of all kinds
    flow.input("edges").insert(EDGES)
    flow.wait(flow.seal())
    rows: list[dict[str, object]] = flow.output("out").snapshot().to_pylist()
    return sorted(rows, key=repr)


def queries() -> dict[str, object]:
    """Functions in a function: nobody can import them."""
    offset = 10

    def plain(flow: timely.Dataflow, above: int = 0) -> None:
        edges = dd.input(flow, "edges", "src: int, dst: int")
        edges.filter(col.src > above).group_by("src").agg(n=dd.count()).output("out")

    def with_functions(flow: timely.Dataflow) -> None:
        def moved(row: tuple[int, int]) -> tuple[int, int]:
            return row[0] + offset, row[1] + offset

        edges = dd.input(flow, "edges", "src: int, dst: int")
        counted = edges.map(moved).group_by("src").reduce(lambda key, rows: [len(rows) + key[0]], "n: int")
        counted.output("out")

    def loops(flow: timely.Dataflow) -> None:
        edges = dd.input(flow, "edges", "src: int, dst: int")

        def step(x: Collection) -> Collection:
            further = x.join(edges.select(dst=col.src, to=col.dst), on="dst").select("src", dst=col.to)
            return further.concat(edges).distinct()

        edges.iterate(step, name="reach").output("out")

    return {"plain": plain, "functions": with_functions, "loops": loops}


@pytest.mark.parametrize("name", queries())
def test_installed_as_in_this_process(cluster: timely.Cluster, name: str) -> None:
    with timely.connect(workers=1, embedded=True) as here:
        wanted = answers(here, queries()[name])
    assert answers(cluster, queries()[name]) == wanted != []


def test_installed_with_arguments_of_any_kind(cluster: timely.Cluster) -> None:
    assert [row["src"] for row in answers(cluster, queries()["plain"], above=2)] == [3, 4]


def test_installed_it_is_listed_by_its_name_and_errors_name_the_users_line(cluster: timely.Cluster) -> None:
    def divides(flow: timely.Dataflow) -> None:
        edges = dd.input(flow, "edges", "src: int, dst: int")
        edges.map(lambda row: (row[0], 1 // (row[1] - 2))).output("out")

    said = (
        r"map\(.*test_installing_plans.py:\d+\) failed on src=1, dst=2:\n"
        r"  ZeroDivisionError: .*, in line 1 of <lambda>"
    )
    with pytest.raises(dd.errors.UserFunctionError, match=said):
        answers(cluster, divides)
    flow = cluster.install(queries()["plain"])  # type: ignore[arg-type]
    assert "plain" in cluster.flows()[flow.index]


@pytest.mark.parametrize(("op", "why"), [("//", "divides by zero"), ("*", "64 bits")])
def test_installed_errors_of_expressions_name_the_users_line(
    cluster: timely.Cluster, op: str, why: str
) -> None:
    def selects(flow: timely.Dataflow) -> None:
        edges = dd.input(flow, "edges", "src: int, dst: int")
        edges.select(src=1 // (col.dst - 2) if op == "//" else col.dst * 2**62).output("out")

    line = selects.__code__.co_firstlineno + 2
    with pytest.raises(dd.errors.RowError, match=rf"test_installing_plans.py:{line}\).*{why}"):
        answers(cluster, selects)


def test_installed_from_a_repl_and_a_script(tmp_path: Path) -> None:
    program = """
import differential as dd
import timely

def query(flow):
    words = dd.input(flow, "words", "word: string")
    words.map(lambda row: (row[0].upper(),)).group_by("word").agg(n=dd.count()).output("out")

if __name__ == "__main__":
    with timely.connect(workers=2) as cluster:
        flow = cluster.install(query)
        flow.input("words").insert([("a",), ("b",), ("a",)])
        flow.wait(flow.seal())
        print(sorted(map(tuple, (row.values() for row in flow.output("out").snapshot().to_pylist()))))
"""
    script = tmp_path / "a script.py"
    script.write_text(program)
    environment = {"PYTHONPATH": str(ROOT), "PATH": "/usr/bin:/bin", "HOME": str(Path.home())}
    run = subprocess.run(
        [sys.executable, str(script)], capture_output=True, text=True, cwd=tmp_path, env=environment
    )
    assert run.stdout == "[('A', 2), ('B', 1)]\n", run.stderr


def test_refused_an_object_of_a_class_in_a_function(cluster: timely.Cluster) -> None:
    counter = Path("x")

    def query(flow: timely.Dataflow) -> None:
        dd.input(flow, "edges", "src: int, dst: int").map(lambda row: (len(str(counter)), 1)).output("out")

    with pytest.raises(timely.MisuseError, match=r"uses 'counter'.*Path.*[Pp]ut .*in a module"):
        cluster.install(query)


def test_refused_code_for_a_cluster_that_somebody_else_has_started() -> None:
    command = [sys.executable, "-m", "timely.worker", "-w", "1", "--client-port", "0", "--json"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=ROOT) as process:
        try:
            assert process.stdout is not None
            address = process.stdout.readline().split('"address": "')[1].split('"')[0]
            with timely.connect(address) as cluster:
                with pytest.raises(timely.MisuseError, match=r"only from the client.*@timely.builder"):
                    cluster.install(queries()["functions"])  # type: ignore[arg-type]
                assert answers(cluster, queries()["plain"])[0] == {"src": 1, "n": 1}, "no code is in this one"
        finally:
            process.terminate()


def test_refused_stages_by_hand(cluster: timely.Cluster) -> None:
    def query(flow: timely.Dataflow) -> None:
        flow.output("out", flow.input("edges").stage("by hand", timely.Vertex))

    with pytest.raises(timely.MisuseError, match="query builds stages by hand"):
        cluster.install(query)


def test_installed_with_what_is_chosen_of_groups_and_a_loop_over_two_collections(
    cluster: timely.Cluster,
) -> None:
    def query(flow: timely.Dataflow) -> None:
        rows = dd.input(flow, "rows", "k: int, s: string?, n: int?")
        rows.group_by("k").agg(
            all=dd.collect("s"),
            at=dd.argmin("s", by=col.n * 2),
            last=dd.last("n", by="s"),
            most=dd.max("s"),
            different=dd.count_distinct("s"),
            spread=dd.stddev("n"),
        ).output("chosen")
        found = dd.iterate(
            {"p": rows.select("k").distinct(), "z": "k: int"},
            lambda p, z: {"p": p, "z": p.filter(col.k > 1).concat(z).distinct()},
        )
        found["z"].output("z")

    flow = cluster.install(query)
    flow.input("rows").insert([(1, "b", 3), (1, "a", 5), (1, None, 1), (2, None, None)])
    flow.wait(flow.seal())
    rows = {row.pop("k"): row for row in flow.output("chosen").snapshot().to_pylist()}
    assert [row.pop("all") for row in (rows[1], rows[2])] == [["a", "b"], []]
    assert rows[1] == {"at": None, "last": 3, "most": "b", "different": 2, "spread": 2.0}
    assert rows[2] == {"at": None, "last": None, "most": None, "different": 0, "spread": None}
    assert flow.output("z").snapshot().to_pylist() == [{"k": 2}]
