"""examples/galen.py: the facts that follow from an ontology.

meaning_*   at every epoch, against the six rules, tuple by tuple, on small random facts
shows_*     the program reads files, counts, changes, and comes back to the same counts
"""

from __future__ import annotations

import gzip
import json
import os
import subprocess
import sys
from pathlib import Path

from example_programs import example
from graphs_plainly import numbers
from house import ROOT
from hypothesis import given
from hypothesis import strategies as st
from reference.collection import Collection as Rows
from reference.collection import Row, collection
from strategies_collections import examples
from strategies_graphs import Course, courses, follow

from differential import Collection, col

P, Q = 0, 1


GALEN = example("galen")


def by_the_rules(p_in: Rows, q_in: Rows, r_in: Rows, c_in: Rows, u_in: Rows, s_in: Rows) -> Rows:
    """The rules as they are written, again and again until nothing is new."""
    p = {(x, z) for x, z in numbers(p_in)}
    q = {(x, r, z) for x, r, z in numbers(q_in)}
    r, c, u, s = map(numbers, (r_in, c_in, u_in, s_in))
    while True:
        more_p = {(x, z) for x, y in p for y2, z in p if y == y2}
        more_q = {(x, r, z) for x, y in p for y2, r, z in q if y == y2}
        more_p |= {
            (x, z) for y, w in p for w2, r2, z in u if w == w2 for x, r3, y2 in q if (r3, y2) == (r2, y)
        }
        more_p |= {(x, z) for y, w, z in c for x, w2 in p if w == w2 and (x, y) in p}
        more_q |= {(x, other, z) for x, r2, z in q for r3, other in s if r2 == r3}
        more_q |= {
            (x, e, o) for x, y, z in q for y2, u2, e in r if y == y2 for z2, u3, o in q if (z2, u3) == (z, u2)
        }
        if more_p <= p and more_q <= q:
            return collection([*((P, x, 0, z) for x, z in p), *((Q, x, r2, z) for x, r2, z in q)])
        p |= more_p
        q |= more_q


def together(*inputs: Collection) -> Collection:
    """Both kinds of facts as one collection."""
    facts = GALEN.derived(*inputs)
    of_p = facts["p"].select(kind=P, x=col.x, r=0, z=col.z)
    merged: Collection = of_p.concat(facts["q"].select(kind=Q, x=col.x, r=col.r, z=col.z))
    return merged


few = st.integers(0, 4)
PAIRS, TRIPLES = st.tuples(few, few), st.tuples(few, few, few)


@examples(0.2)
@given(
    courses({"p": PAIRS, "q": TRIPLES, "r": TRIPLES, "c": TRIPLES, "u": TRIPLES, "s": PAIRS}, rows_max=5),
    st.integers(1, 3),
    st.integers(0, 2**20),
)
def test_meaning_at_every_epoch(course: Course, workers: int, seed: int) -> None:
    follow(together, by_the_rules, GALEN.SCHEMAS, course, workers, seed)


def test_shows_counts_and_comes_back_to_them(tmp_path: Path) -> None:
    facts: dict[str, list[Row]] = {
        "p": [(1, 2), (2, 3), (1004, 1), (5, 6)],
        "q": [(3, 7, 4), (9, 7, 5)],
        "r": [(7, 8, 9)],
        "c": [(2, 3, 10)],
        "u": [(6, 7, 11)],
        "s": [(7, 8)],
    }
    for name, rows in facts.items():
        text = "\n".join(",".join(map(str, row)) for row in rows)
        (tmp_path / f"{name}.txt.gz").write_bytes(gzip.compress(text.encode()))
    done = subprocess.run(
        [sys.executable, "-m", "examples.galen", str(tmp_path), "--changes", "4", "--json"],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=110,
    )
    assert done.returncode == 0, done.stderr
    loaded, changed = map(json.loads, done.stdout.splitlines())
    expected = by_the_rules(*(collection(facts[name]) for name in GALEN.SCHEMAS))
    kinds = [kind for kind, *_ in expected]
    assert (loaded["p"], loaded["q"]) == (kinds.count(P), kinds.count(Q))
    assert (changed["p"], changed["q"]) == (loaded["p"], loaded["q"])
