"""What errors of stages written by hand, of rules and of graphs tell users to write gives what they meant."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from advised_programs import Advised, ask_program, ask_query, follows_advice

import timely


def staged(body: str, advice: str, answer: object = None, sends: str = "message", **more: object) -> Advised:
    """A dataflow with a stage by hand that passes its records on."""
    program = (
        "class Echo(timely.Vertex):\n    def on_recv(self, edge, message, time):\n"
        f"        self.send_by(0, {sends}, time)\n"
        "def build(dataflow):\n    lines = dataflow.input('lines')\n    dataflow.input('more')\n"
        f"    {body}\n    dataflow.output('out', echoed)\n"
        "flow = cluster.install(build)\nflow.input('lines').insert([('a', 1), ('b', 2)])\nflow.seal()\n"
        "sorted(record for _, record in flow.output('out').changes())"
    )
    return Advised(program, advice, [("a", 1), ("b", 2)] if answer is None else answer, **more)


ECHOED = "echoed = lines.stage('echo', Echo)"
STAGES = [
    staged("echoed = lines.stage('echo', «Echo()»)", r"not a Echo: (Echo), or"),
    staged("echoed = lines.stage('echo', «Echo()»)", r"or (lambda: Echo\(…\))$", gaps=("",)),
    staged("echoed = lines.stage('echo', «dict»)", r"Give `stage` (a subclass)", instead="Echo"),
    staged(
        "(echoed,) = dataflow.stage('echo', Echo, «lines»)",
        r"Write (\[stream\.feed\(\)\])",
        reads={"stream": "lines"},
    ),
    staged(
        "(echoed,) = dataflow.stage('echo', Echo, «lines.feed(exchange=timely.by(0))»)",
        r"Write (\[stream\.feed\(…\)\])",
        reads={"stream": "lines"},
        gaps=("exchange=timely.by(0)",),
    ),
    staged(
        "(echoed,) = dataflow.stage('echo', Echo, [«lines»])",
        r"Write (stream\.feed\(0\)) for",
        reads={"stream": "lines"},
    ),
    staged(
        "«echoed = dataflow.stage('echo', Echo, [lines.feed()])»",
        r"Write (\(stream,\) = dataflow\.stage\(…\))",
        reads={"stream": "echoed"},
        gaps=("'echo', Echo, [lines.feed()]",),
    ),
    staged(
        "echoed = «dataflow.stage('echo', Echo, [lines.feed()])»",
        r"or (dataflow\.stage\(…\)\[0\])",
        gaps=("'echo', Echo, [lines.feed()]",),
    ),
    staged(
        "(echoed,) = dataflow.stage('echo', Echo, [«lines.feed(0, route=lambda record: record[0])»])",
        r"as in (stream\.feed\(.*\))$",
        reads={"stream": "lines"},
    ),
    staged(
        "(echoed,) = dataflow.stage('echo', Echo, [lines.feed(exchange=«lambda record: record[0]»)])",
        r"write exchange=(timely\.by\(lambda record: …\))",
        gaps=("record[0]",),
    ),
    staged(
        "(echoed,) = dataflow.stage('echo', Echo, [lines.feed(exchange=«timely.by(lambda record: {1, 2})»)])",
        r"write (timely\.by\(lambda record: …\))",
        gaps=("record[0]",),
    ),
    staged(
        "(echoed,) = dataflow.stage('echo', Echo, [lines.feed(exchange=«timely.by('name')»)])",
        r"or give a function: (timely\.by\(lambda record: …\))",
        gaps=("record[0]",),
    ),
    staged(ECHOED, r"write (\[.*?\])(?:$|\n)", ["x"], sends="«'x'»"),
    staged(
        "«class Named(Echo):\n        def __init__(self, name): self.title = name\n"
        "    echoed = lines.stage('echo', Named)»",
        r"write (lambda: MyVertex\(…\))",
        reads={"MyVertex": "Named"},
        gaps=("'n'",),
        instead=r"class Named(Echo):\n        def __init__(self, name): self.title = name\n    "
        r"echoed = lines.stage('echo', \1)",
    ),
    staged(
        "echoed = lines.stage('echo', Echo); dataflow.output(«'out'», lines)",
        r"choose (another) name",
        instead=r"'\1'",
    ),
]
GRAPHS = [
    Advised(
        "algorithms.connected_components(edges.rename(src='a')«»).select('node', 'component')",
        r"as in \w+\(…(, src='a')\)",
        [(1, 1), (2, 1), (3, 1)],
    ),
    Advised(
        "algorithms.bfs(edges, rows.filter(col.x == 1).select('x')«»).select('node', 'distance')",
        r"as in \w+\(…(, node='x')\)",
        [(1, 0), (2, 1), (3, 1)],
    ),
    Advised(
        "edges = edges.with_columns(src=col.src.cast('string'))\n"
        "algorithms.connected_components(«edges»).select('node', 'component')",
        r"before: (edges\.with_columns\(dst=…\))",
        [("1", "1"), ("2", "1"), ("3", "1")],
        gaps=("col.dst.cast('string')",),
    ),
    Advised(
        "roots = rows.filter(col.x == 1).select(node=col.x.cast('string'))\n"
        "algorithms.bfs(edges, «roots»).select('node', 'distance')",
        r"before: (roots\.with_columns\(node=…\))",
        [(1, 0), (2, 1), (3, 1)],
        gaps=("col.node.cast('int')",),
    ),
    Advised(
        "edges = edges.with_columns(weight=when(col.src == 1).then(col.dst))\n"
        "roots = rows.filter(col.x == 1).select(node=col.x)\n"
        "algorithms.weighted_shortest_paths(«edges», roots).select('node', 'distance')",
        r"fill it: (edges\.with_columns\(.*\))$",
        [(1, 0), (2, 2), (3, 2)],
    ),
    Advised(
        "algorithms.datalog('start(x) :- edge(«x»).', {'edge': edges, 'start': 'x: int'})['start']",
        r"write (_) for those",
        [1, 2],
        instead=r"x, \1",
    ),
    Advised(
        "algorithms.datalog('last(y) :- edge(x, y), not edge(y, «z»).', {'edge': edges, 'last': "
        "'x: int'})['last']",
        r"any value is meant, write (_)\.",
        [3],
    ),
    Advised(
        "algorithms.datalog('late(y) :- event(x, y).', {'event': rows.select('x', 'maybe'), "
        "'late': 'x: «int»'})['late']",
        r"declare it as (int\?),",
        [7, 9, None],
    ),
    Advised(
        "algorithms.datalog('late(y) :- event(x, y), «_ > 1».', {'event': rows.select('x', 'y'),"
        " 'late': 'x: int'})['late']",
        r"give it a (name)",
        [20, 30],
        instead="x > 1",
    ),
]


@pytest.fixture(scope="module")
def cluster() -> Iterator[timely.Cluster]:
    with timely.connect(workers=2, embedded=True) as embedded:
        yield embedded


@pytest.mark.parametrize("advised", STAGES, ids=str)
def test_advice_about_a_stage_runs(cluster: timely.Cluster, advised: Advised) -> None:
    follows_advice(advised, lambda program: ask_program(cluster, program, advised))


@pytest.mark.parametrize("advised", GRAPHS, ids=str)
def test_advice_about_graphs_and_rules_runs(cluster: timely.Cluster, advised: Advised) -> None:
    follows_advice(advised, lambda program: ask_query(cluster, program, advised))
