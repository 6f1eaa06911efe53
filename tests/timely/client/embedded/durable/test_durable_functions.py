"""A durable query with functions of its own is the same as long as their code is."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from durable_workers import embedded
from simulated_store import SimulatedDisk

import differential as dd
import timely
from timely import MisuseError

FUNCTIONS = """
def query(flow):
    rows = dd.input(flow, "rows", "a: string, b: int")

    def doubled(row):
        return row.a, 2 * row.b

    rows.map(doubled, "a: string, b: int").filter(lambda row: row.b > 2).output("mapped")
    rows.flat_map(lambda row: [row, row], "a: string, b: int").output("twice")
    rows.map_batches(lambda table: table, "a: string, b: int").output("batches")
    rows.group_by("a").reduce(lambda key, group: [(len(group),)], "n: int").output("reduced")
    rows.cogroup([rows], "a", lambda key, one, other: [(len(one),)], "n: int").output("together")
    rows.theta_join(rows, lambda one, other: one.b < other.b, suffix="_2").output("pairs")
    rows.delay(lambda epoch: epoch + 1).inspect(lambda row, time, diff: None).output("later")
    rows.group_by("a").agg(each=dd.collect("b")).output("collected")
"""


def query_in(path: Path, text: str) -> Callable[[timely.Dataflow], None]:
    """The query of a module with this text."""
    path.write_text(text)
    names: dict[str, object] = {"dd": dd, "__name__": "moved"}
    exec(compile(text, str(path), "exec"), names)
    query: Callable[[timely.Dataflow], None] = names["query"]  # type: ignore[assignment]
    return query


def test_a_query_whose_functions_have_moved_to_other_lines_and_files_is_the_same(
    tmp_path: Path,
) -> None:
    disk = SimulatedDisk()
    with embedded(disk) as (cluster, _):
        flow = cluster.install(query_in(tmp_path / "one.py", FUNCTIONS))
        flow.input("rows").insert([("x", 1), ("x", 2)])
        flow.seal(wait=True)
    moved = "# a comment\n\n\n" + FUNCTIONS.replace("    rows.", "\n    # another\n    rows.")
    with embedded(disk, 2) as (cluster, _):
        assert cluster.install(query_in(tmp_path / "other.py", moved)).epoch == 1
    changed = FUNCTIONS.replace("row.b > 2", "row.b > 3")
    with embedded(disk) as (cluster, _), pytest.raises(MisuseError, match="one query under each name"):
        cluster.install(query_in(tmp_path / "one.py", changed))
