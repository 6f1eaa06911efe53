"""Which facts follow from those of a medical ontology, by six rules that need one another?

    python examples/galen.py FOLDER [--share 0.3] [--changes 100] [--workers 2] [--json]

FOLDER holds p.txt.gz, q.txt.gz, r.txt.gz, c.txt.gz, u.txt.gz and s.txt.gz, comma-separated whole numbers.
The rules:

    p(x,z)   :- p(x,y), p(y,z).
    q(x,r,z) :- p(x,y), q(y,r,z).
    p(x,z)   :- p(y,w), u(w,r,z), q(x,r,y).
    p(x,z)   :- c(y,w,z), p(x,w), p(x,y).
    q(x,q,z) :- q(x,r,z), s(r,q).
    q(x,e,o) :- q(x,y,z), r(y,u,e), q(z,u,o).

The program prints how many facts of each kind there are. Then it takes away some of the given facts, one in
an epoch, and puts them back: only facts that depend on them are derived anew. `--share` takes a share of p
and q, by their first column: all of it needs some minutes, and several gigabytes.
"""

from __future__ import annotations

import argparse
import json
import resource
import statistics
import sys
import time
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import csv

import differential as dd
import timely
from differential import Collection, col

SCHEMAS = {
    "p": "x: int, z: int",
    "q": "x: int, r: int, z: int",
    "r": "r: int, p: int, e: int",
    "c": "y: int, z: int, w: int",
    "u": "r: int, z: int, w: int",
    "s": "r: int, p: int",
}
"""The columns as the files have them. In the rules, c(y,w,z) and u(w,r,z) name them otherwise."""


def derived(
    given_p: Collection, given_q: Collection, r: Collection, c: Collection, u: Collection, s: Collection
) -> dict[str, Collection]:
    """All facts that follow from the given ones, and these, once each: `p` and `q`, as one fixed point."""
    return dd.iterate(
        {"p": given_p.distinct(), "q": given_q.distinct()},
        lambda p, q: {
            "p": given_p.concat(_through_p(p, p), _by_u(p, q, u), _by_c(p, c)).distinct(),
            "q": given_q.concat(_through_p(p, q), _by_s(q, s), _by_r(q, r)).distinct(),
        },
        name="rules",
    )


def _through_p(p: Collection, facts: Collection) -> Collection:
    """p(x,z) :- p(x,y), p(y,z). and q(x,r,z) :- p(x,y), q(y,r,z)."""
    pairs = p.select(first=col.x, x=col.z).join(facts, on="x")
    return pairs.drop("x").rename(first="x").select(*facts.schema.names)


def _by_u(p: Collection, q: Collection, u: Collection) -> Collection:
    """p(x,z) :- p(y,w), u(w,r,z), q(x,r,y)."""
    halves = p.select(y=col.x, w=col.z).join(u.select(w=col.r, r=col.z, z=col.w), on="w")
    pairs = halves.select("r", "y", "z").join(q.select(x=col.x, r=col.r, y=col.z), on=("r", "y"))
    return pairs.select("x", "z")


def _by_c(p: Collection, c: Collection) -> Collection:
    """p(x,z) :- c(y,w,z), p(x,w), p(x,y)."""
    halves = p.select(x=col.x, w=col.z).join(c.select(y=col.y, w=col.z, z=col.w), on="w")
    pairs = halves.select("x", "y", "z").join(p.select(x=col.x, y=col.z), on=("x", "y"))
    return pairs.select("x", "z")


def _by_s(q: Collection, s: Collection) -> Collection:
    """q(x,q,z) :- q(x,r,z), s(r,q)."""
    return q.join(s.select(r=col.r, other=col.p), on="r").select("x", "z", r=col.other).select("x", "r", "z")


def _by_r(q: Collection, r: Collection) -> Collection:
    """q(x,e,o) :- q(x,y,z), r(y,u,e), q(z,u,o)."""
    halves = q.join(r.select(r=col.r, u=col.p, e=col.e), on="r").select("x", "z", "u", "e")
    pairs = halves.join(q.select(z=col.x, u=col.r, o=col.z), on=("z", "u"))
    return pairs.select("x", r=col.e, z=col.o)


@timely.builder
def count_derived(flow: timely.Dataflow) -> None:
    """The number of facts of each kind."""
    facts = derived(*(dd.input(flow, name, schema) for name, schema in SCHEMAS.items()))
    kinds = [facts[name].select(kind=name) for name in ("p", "q")]
    kinds[0].concat(kinds[1]).group_by("kind").count().output("counts")


def read(folder: Path, name: str, share: float = 1.0) -> pa.Table:
    """The facts of a file; for p and q, those whose first column is in a share of all its values."""
    names = [column.partition(":")[0].strip() for column in SCHEMAS[name].split(",")]
    table = csv.read_csv(folder / f"{name}.txt.gz", read_options=csv.ReadOptions(column_names=names))
    if share == 1 or name not in ("p", "q"):
        return table
    x = table.column("x")
    remainder = pc.subtract(x, pc.multiply(pc.divide(x, 1000), 1000))
    return table.filter(pc.less(remainder, int(1000 * share)))


def counts(flow: timely.Flow) -> tuple[int, int]:
    """Facts of p and of q as of the last epoch."""
    found = {row["kind"]: row["count"] for row in flow.output("counts").snapshot().to_pylist()}
    return found.get("p", 0), found.get("q", 0)


def say(as_json: bool, what: str, **figures: object) -> None:
    """One line of output."""
    if as_json:
        print(json.dumps({"what": what, **figures}), flush=True)
    else:
        print(f"{what:<22}", *(f"{name} {value:<12}" for name, value in figures.items()), flush=True)


def run(cluster: timely.Cluster, options: argparse.Namespace) -> None:
    """Load, then take facts away and put them back."""
    flow = cluster.install("examples.galen:count_derived")
    tables = {name: read(options.folder, name, options.share) for name in SCHEMAS}
    begun = time.perf_counter()
    for name, table in tables.items():
        flow.input(name).insert(table)
    flow.seal(wait=True, timeout=options.timeout)
    seconds = time.perf_counter() - begun
    p, q = counts(flow)
    used = resource.getrusage(resource.RUSAGE_SELF)
    figures = {"seconds": round(seconds, 3)}
    if not options.workers:
        figures |= {"cpu_seconds": round(used.ru_utime + used.ru_stime, 1), "peak_mib": used.ru_maxrss >> 10}
    say(options.json, "loaded", p=p, q=q, **figures)
    times: list[float] = []
    for number in range(options.changes):
        name = "pq"[number % 2]
        place = number * 7919 % tables[name].num_rows
        fact = tables[name].slice(place, 1)
        for change in (flow.input(name).remove, flow.input(name).insert):
            begun = time.perf_counter()
            change(fact)
            flow.seal(wait=True)
            times.append(1000 * (time.perf_counter() - begun))
    p, q = counts(flow)
    if times:
        middle, worst = statistics.median(times), max(times)
        say(options.json, "changed and back", p=p, q=q, median_ms=round(middle, 3), worst_ms=round(worst, 3))


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description="Facts that follow from an ontology, while it changes.")
    parser.add_argument("folder", type=Path)
    parser.add_argument("--share", type=float, default=1.0, help="of the facts of p and q; 1: all")
    parser.add_argument("--changes", type=int, default=100, help="facts to take away and put back")
    parser.add_argument("--workers", type=int, default=0, help="processes; 0: within this one")
    parser.add_argument("--timeout", type=float, default=3600, help="seconds that loading may take")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    with timely.connect(workers=options.workers or 1, embedded=options.workers == 0) as cluster:
        run(cluster, options)


if __name__ == "__main__":
    try:
        main()
    except timely.TimelyError as error:
        sys.exit(f"galen: {error}")
