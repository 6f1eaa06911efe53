"""Behind an install no kernel is compiled: not for the first rows, changes, looks, merges, or a large batch.

The programs run in fresh processes, with the cache of these tests. They count each kernel that is compiled
behind the install, and each that is called first then though no operator has named it: it would be compiled
then if another query had not compiled it before. So it does not matter which kernels the cache has; one that
an operator has named is there behind the install, whether it was compiled for that or before.
"""

from __future__ import annotations

import os
import subprocess
import sys

import pytest
from house import ROOT

PROGRAM = """
import sys
import differential as dd, timely
from differential.algorithms import connected_components
from differential.expressions.expression import col
from differential.kernels import loading
from progress.compiled import kernel

named, later = set(), set()
name, compile_one, prepare = loading.compile_unless_kept, kernel.Kernel._compile, kernel.Kernel.prepare

def note_name(one, *arguments):
    named.add(one)
    name(one, *arguments)

def note_compiled(one, arguments):
    later.add(one.__name__)
    return compile_one(one, arguments)

def note_first_call(one, arguments):
    if one not in named and one.func is one._unready:
        later.add(one.__name__)
    prepare(one, arguments)

loading.compile_unless_kept = note_name

def build(flow):
    rows = dd.input(flow, "rows", "k: int, v: {type}")
    {query}.output("out")

def rows_of(numbers):
    return [(number % 7, {value}) for number in numbers]

with timely.connect(workers={workers}, embedded=True) as cluster:
    flow = cluster.install(build)
    kernel.Kernel._compile, kernel.Kernel.prepare = note_compiled, note_first_call
    rows, out = flow.input("rows"), flow.output("out")
    def go_on():
        flow.wait(flow.seal())
        out.snapshot()
    rows.insert(rows_of(range(50))); go_on()
    rows.insert(rows_of([50])); go_on()
    rows.remove(rows_of([50])); go_on()
    for number in range(60, 90):
        rows.insert(rows_of([number])); flow.seal()
    go_on()
    rows.insert(rows_of(range(100, {many}))); go_on()
    rows.remove(rows_of(range(100, {many}))); go_on()
    rows.remove(rows_of(range(50))); go_on()
    out.changes()
sys.stdout.write(" ".join(sorted(later)))
"""
QUERIES = {
    "passed on": "rows",
    "filter": "rows.filter(col.k > 2).select(k=col.k)",
    "distinct": "rows.distinct()",
    "count": 'rows.group_by("k").agg(n=dd.count())',
    "sums": 'rows.group_by("k").agg(n=dd.sum("v"), m=dd.avg("v"))',
    "least": 'rows.group_by("k").agg(n=dd.min("v"), m=dd.max("v"))',
    "first": 'rows.group_by("k").top_k(2, by="v")',
    "join": 'rows.join(rows.select(k=col.v, w=col.k), on="k")',
    "left join": 'rows.join(rows.select(k=col.v, w=col.k), on="k", how="left")',
    "reduce": 'rows.group_by("k").reduce(lambda key, some: [len(some)], "n: int")',
    "loop": "connected_components(rows.select(src=col.k, dst=col.v))",
}


def compiled_later(query: str, *, of: str = "int", workers: int = 1, many: int = 20_000) -> list[str]:
    """The names of kernels that are compiled behind the install."""
    value = "number" if of == "int" else 'f"a text {number}"'
    program = PROGRAM.format(query=query, type=of, value=value, workers=workers, many=many)
    done = subprocess.run(
        [sys.executable, "-c", program],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.split()


@pytest.mark.timeout(300)
@pytest.mark.parametrize("name", QUERIES)
def test_nothing_is_compiled_behind_an_install(name: str) -> None:
    many = 2_000 if name == "loop" else 20_000
    assert compiled_later(QUERIES[name], many=many) == []


@pytest.mark.timeout(300)
def test_nothing_is_compiled_behind_the_install_of_a_loop_of_two_workers() -> None:
    assert compiled_later(QUERIES["loop"], many=2_000, workers=2) == []


@pytest.mark.timeout(300)
@pytest.mark.parametrize("name", ["distinct", "least", "join"])
def test_nothing_is_compiled_behind_an_install_for_texts_or_by_two_workers(name: str) -> None:
    query = QUERIES[name] if name != "join" else 'rows.join(rows.select(v=col.v, w=col.k), on="v")'
    assert compiled_later(query, of="str") == []
    assert compiled_later(query, workers=2) == []
