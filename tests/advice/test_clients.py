"""What errors about data and calls of clients tell users to write gives what they meant."""

from __future__ import annotations

import dataclasses
import datetime as dt
from collections.abc import Iterator
from decimal import Decimal

import pytest
from advised_programs import Advised, ask_program, follows_advice

import timely


def typed(
    kind: str, value: str, advice: str, answer: object, instead: str = r"\1", **more: object
) -> Advised:
    """A value of one type for a column of another."""
    program = (
        f"flow = cluster.install(lambda flow: dd.input(flow, 'typed', 'v: {kind}').output('out'))\n"
        f"x = {value}\nflow.input('typed').insert([(«x»,)])\nflow.seal()\nflow.output('out').snapshot()"
    )
    return Advised(program, advice, [answer], instead=instead, **more)


def declared(
    schema: str, row: str, advice: str, answer: object, instead: str = r"\1", **more: object
) -> Advised:
    """Rows for an input whose schema is declared wrongly."""
    program = (
        f"flow = cluster.install(lambda flow: dd.input(flow, 'typed', {schema}).output('out'))\n"
        f"flow.input('typed').insert({row})\nflow.seal()\nflow.output('out').snapshot()"
    )
    return Advised(program, advice, answer, instead=instead, **more)


CONVERT = r"Convert it, (.+?)(?: or .*| of seconds)?, or declare"
NOON = dt.datetime(2024, 1, 1, 12, tzinfo=dt.UTC)
MIDNIGHT = NOON.replace(hour=0)

VALUES = [
    typed("int", "'5'", CONVERT, 5),
    typed("float", "'5.5'", CONVERT, 5.5),
    typed("int", "5.7", CONVERT, 5),
    typed("int", "5.7", r"or (round\(x\))", 6),
    typed("int", "True", CONVERT, 1),
    typed("string", "5", CONVERT, "5"),
    typed("string", "5.5", CONVERT, "5.5"),
    typed("string", "b'a'", CONVERT, "a"),
    typed("bytes", "'a'", CONVERT, b"a"),
    typed("timestamp", "1704110400", CONVERT, NOON),
    typed("timestamp", "1704110400.0", CONVERT, NOON),
    typed("timestamp", "'2024-01-01T12:00:00'", CONVERT, NOON),
    typed("timestamp", "np.datetime64('2024-01-01T12:00:00', 'ns')", CONVERT, NOON),
    typed("date", "np.datetime64('2024-01-01')", CONVERT, dt.date(2024, 1, 1)),
    typed("timestamp", "date(2024, 1, 1)", CONVERT, MIDNIGHT),
    typed("date", "'2024-01-01'", CONVERT, dt.date(2024, 1, 1)),
    typed("date", "datetime(2024, 1, 1, 12)", CONVERT, dt.date(2024, 1, 1)),
    typed("decimal(10, 2)", "'5.25'", CONVERT, Decimal("5.25")),
    typed("decimal(10, 2)", "5.25", CONVERT, Decimal("5.25")),
    typed("int", "np.float64(5.7)", CONVERT, 5),
    typed("bool", "1", CONVERT, True),
    typed("bool", "'true'", CONVERT, True),
    typed("float", "Decimal('5.5')", CONVERT, 5.5),
    typed("float", "True", CONVERT, 1.0),
    typed("int", "Decimal('5')", CONVERT, 5),
    typed("string", "date(2024, 1, 1)", CONVERT, "2024-01-01"),
    Advised(
        "kind, convert = «'int', int»\nflow = cluster.install(lambda flow: dd.input(flow, 'typed',"
        " {'v': kind}).output('out'))\n"
        "flow.input('typed').insert([(convert(2 ** 64),)])\nflow.seal()\nflow.output('out').snapshot()",
        r"write (float)\(x\) for a column of floats",
        [2.0**64],
        instead=r"'\1', \1",
    ),
    typed("float", "2 ** 53 + 1", r"Write (float\(x\)) to round", 2.0**53),
    typed(
        "timestamp",
        "pd.Timestamp(1704110400000000001)",
        r"Round it before: value(\.floor\('us'\))",
        NOON,
        instead=r"x\1",
    ),
    typed("decimal(4, 1)", "Decimal('5.25')", r"(Round) it", Decimal("5.2"), instead="round(x, 1)"),
]
INPUTS = [
    declared("'v: «int»'", "[('a',), (2,)]", r"such as (any)", ["a", 2]),
    declared("'v: «string»'", "[(None,)]", r'Declare the column as "v: (.*?)"', [None]),
    declared("'v: «string»'", "[{'v': None}]", r'Declare the column as "v: (.*?)"', [None]),
    declared("'v: «string»'", "pa.table({'v': [1, 2]})", r'declare it "v: (.*?)"', [1, 2]),
    declared("'v: «int»'", "pa.table({'v': [Decimal('1.5')]})", r'declare it "v: (.*?)"', [Decimal("1.5")]),
    declared(
        "'v: int'",
        "«[1, 2]»",
        r"write a row of one column as (\(value,\))",
        [1, 2],
        instead=r"[\1 for value in [1, 2]]",
    ),
    declared("'v: int'", "«{'v': 1}»", r"write a list of it: (\[\{…\}\])", [1], gaps=("'v': 1",)),
    declared(
        "'v: int, w: int'",
        "«np.array([[1, 2], [3, 4]])»",
        r"Give a dict of columns, (\{'name': array\[:, 0\], …\})",
        [(1, 2), (3, 4)],
        reads={"'name'": "'v'", "array": "np.array([[1, 2], [3, 4]])"},
        gaps=("'w': np.array([2, 4])",),
    ),
    declared(
        "'v: int, w: int'",
        "«np.array([[1, 2], [3, 4]])»",
        r"as tuples: (map\(.*?\(\)\))",
        [(1, 2), (3, 4)],
        reads={"array": "np.array([[1, 2], [3, 4]])"},
    ),
    declared(
        "'v: int'",
        "[«Point(3)»]",
        r"of a dataclass write (\S+?)\.$",
        [3],
        reads={"row": "Point(3)"},
        names={"dataclasses": dataclasses, "Point": dataclasses.make_dataclass("Point", ["v"])},
    ),
    declared("«3»", "[(1, 'a')]", r"write, say, (.*)$", [(1, "a")]),
    declared("'«v int»'", "[(1,)]", r"as in (src: int)\.", [1]),
    declared("{'v': «Decimal»}", "[(Decimal('1.5'),)]", r"write (dd\.decimal\(10, 2\)),", [Decimal("1.50")]),
    declared("{'v': «Decimal»}", "[(Decimal('1.5'),)]", r"or ('decimal\(10, 2\)')", [Decimal("1.50")]),
    declared("'v: «decimal(50, 2)»'", "[(1.5,)]", r"Use fewer, (float),", [1.5]),
    declared("'v: «varint»'", "[(1,)]", r"Types are (int),", [1]),
    declared("'v: int«, v: int»'", "[(1, 2)]", r"(Rename) one", [(1, 2)], instead=", w: int"),
    declared("[«'a', 'b'»]", "[(1,)]", r"as (\('src', 'int'\))", [1]),
    declared(
        "'id: int, v: int'«, key='id'»",
        "[(1, 2)]",
        r"write key='id', mode='upsert' for .*, or (neither)",
        [(1, 2)],
        instead="",
    ),
    Advised(
        "flow = cluster.install(lambda flow: dd.input(flow, 'out', 'id: int, v: int'«, mode='upsert'»)."
        "output('out'))\n"
        "flow.input('out').upsert([(1, 2), (1, 3)])\nflow.seal()\nflow.output('out').snapshot()",
        r"write (key='id', mode='upsert')",
        [(1, 3)],
        instead=r", \1",
    ),
    declared("'«epoch»: int, v: int'", "[(1, 2)]", r"another name, such as '(\w+)'", [(1, 2)]),
    Advised(
        "flow = cluster.install(lambda flow: dd.input(flow, 'in', 'v: int').with_columns(diff=col."
        "v)«».output('out'))\n"
        "flow.input('in').insert([(1,)])\nflow.seal()\nflow.output('out').snapshot()",
        r"write (rename\(.*?\))",
        [(1, 1)],
        gaps=("w",),
        instead=r".\1",
    ),
]
SEAL = "flow.seal()\nflow.output('numbers').snapshot()"
CALLS = [
    Advised(
        "flow.input('numbers').«send([(1,)])»\n" + SEAL,
        r"Write instead: (insert\(rows\)),",
        [1],
        reads={"rows": "[(1,)]"},
    ),
    Advised(
        "flow.input('numbers').«insert([(1,)], epoch=0)»\n" + SEAL,
        r"Write instead: (append\(table, epoch=0\))\.",
        [1],
        reads={"table": "pa.table({'n': [1], 'diff': [1]})"},
    ),
    Advised(
        "flow.input('numbers').«insert([(1,)], 5, 6, 7)»\n" + SEAL,
        r"Write instead: (insert\(rows\)),",
        [1],
        reads={"rows": "[(1,)]"},
    ),
    Advised(
        "flow.input('numbers').«insert([(1,)], 5, 6, 7)»\n" + SEAL,
        r"or (insert\(rows, writer='load', sequence=0\))",
        [1],
        reads={"rows": "[(1,)]"},
    ),
    Advised(
        "flow.input('numbers').«append([(1,)])»\n" + SEAL,
        r"(insert)\(…\) and remove",
        [1],
        instead=r"\1([(1,)])",
    ),
    Advised(
        "frame = pd.DataFrame({'n': [1], 'diff': [1]})\nflow.input('numbers').append(«frame»)\n" + SEAL,
        r": (pa\.Table\.from_pandas\(.*?\)),",
        [1],
    ),
    Advised(
        "table = pa.table({'n': [1]})\nflow.input('numbers').append(«table»)\n" + SEAL,
        r"write (table\.append_column\(.*\))$",
        [1],
    ),
    Advised(
        "flow.input('numbers').«upsert([(1,)])»\n" + SEAL,
        r"write (insert\(rows\)) and",
        [1],
        reads={"rows": "[(1,)]"},
    ),
    Advised(
        "flow = cluster.install(lambda flow: «dd.input(flow, 'numbers', 'id: int, v: int')».output("
        "'numbers'))\n"
        "flow.input('numbers').upsert([(1, 2)])\nflow.input('numbers').upsert([(1, 3)])\n" + SEAL,
        r"declared by (dd\.input\(.*\))$",
        [(1, 3)],
        gaps=("'id: int, v: int'",),
    ),
    Advised(
        "flow.input('last').«insert([(1, 'a')])»\nflow.seal()\nflow.output('last').snapshot()",
        r"write (upsert\(rows\)),",
        [(1, "a")],
        reads={"rows": "[(1, 'a')]"},
    ),
    Advised(
        "flow.input('last').upsert([(1, 'a'), (2, 'b')])\nflow.input('last').«remove([(1,)])»\n"
        "flow.seal()\nflow.output('last').snapshot()",
        r"or (delete\(keys\)),",
        [(2, "b")],
        reads={"keys": "[(1,)]"},
    ),
    Advised(
        "flow.input('records').insert(«'one'»)\nflow.seal()\n"
        "[record for _, record in flow.output('records').changes()]",
        r"write (\[record, …\])$",
        ["one", "two"],
        reads={"record": "'one'"},
        gaps=("'two'",),
    ),
    Advised(
        "flow.input('numbers').insert([(1,)])\nflow.«seal(0)»\nflow.output('numbers').snapshot()",
        r"write (seal\(through=0\));",
        [1],
    ),
    Advised(
        "flow.input('numbers').insert([(1,)])\nflow.«seal(0)»\nflow.output('numbers').snapshot()",
        r"alone, 0: (seal\(\))$",
        [1],
    ),
    Advised(
        "flow.input('numbers').insert([(1,)])\nflow.«seal(timeout=5)»\nflow.output('numbers').snapshot()",
        r"write (seal\(wait=True, timeout=…\))$",
        [1],
        gaps=("5",),
    ),
    Advised(
        "flow.input('numbers').insert([(1,)])\nflow.«commit()»\nflow.output('numbers').snapshot()",
        r"Write instead: (seal\(\)),",
        [1],
    ),
    Advised(
        "flow.input('numbers').insert([(1,)])\n«flow.input('numbers').commit()»\n"
        "flow.output('numbers').snapshot()",
        r"Write instead: (flow\.seal\(\))",
        [1],
    ),
    Advised(
        "flow.input('numbers').insert([(1,)])\n«»flow.output('numbers').snapshot()",
        r"first: (flow\.seal\(\));",
        [1],
        instead="\\1\n",
    ),
    Advised(
        "flow.input('numbers').insert([(1,)])\nflow.seal()\nflow.output('numbers').«snapshot(0)»",
        r"write (snapshot\(timeout=5\))$",
        [1],
    ),
    Advised(
        "flow.input('numbers').insert([(1,)])\nflow.seal()\nflow.output('numbers').«snapshot(epoch=0)»",
        r"the sum of (changes\(0, epoch \+ 1\))",
        [(1, 0, 1)],
        reads={"epoch": "0"},
    ),
    Advised(
        "flow.input('numbers').insert([(1,)])\nflow.seal()\nflow.output('numbers').«fetch()»",
        r"Write instead: (snapshot\(\)) for",
        [1],
    ),
    Advised(
        "flow.input('numbers').insert([(1,)])\nflow.seal()\noutput = flow.output('numbers')\n"
        "«for table in output.poll(): break»\nchanges.num_rows",
        r"Write instead: follow\(\): (for epoch, changes in output\.follow\(\))",
        1,
        instead=r"\1: break",
    ),
    Advised(
        "flow.input('numbers').insert([(1,)])\nflow.seal()\nflow.«snapshot()»",
        r"Write instead: (output\('name'\)\.snapshot\(\)),",
        [1],
        reads={"'name'": "'numbers'"},
    ),
    Advised(
        "flow.«insert([(1,)])»\n" + SEAL,
        r"Write instead: (input\('name'\)\.insert\(rows\))",
        [1],
        reads={"'name'": "'numbers'", "rows": "[(1,)]"},
    ),
    Advised("flow.«numbers».insert([(1,)])\n" + SEAL, r"write (\S+) or", [1]),
    Advised(
        "flow.input('numbers').insert([(1,)])\nflow.seal()\nflow.«numbers».snapshot()",
        r"or (output\(.*\))$",
        [1],
    ),
    Advised(
        "flow.input('last').upsert([(1, 'a')])\nflow.seal()\nflow.output(«'lasst'»).snapshot()",
        r"Did you mean (.*)\?$",
        [(1, "a")],
    ),
    Advised("flow.seal()\nflow.output('numbers').«changes(-1)»", r"Write (changes\(0\)) for", []),
    Advised("flow.seal()\nflow.wait(0, timeout=«'5'»)", r"or (None) to wait", 0),
    Advised(
        "flow.input('numbers').insert([(1,)], «writer='load'»)\n" + SEAL,
        r"(give both), or neither",
        [1],
        instead="writer='load', sequence=0",
    ),
    Advised(
        "flow.input('numbers').remove([(1,)])\nflow.seal()\nflow.output('numbers').«snapshot()»",
        r"read (changes\(\))",
        [(1, 0, -1)],
    ),
    Advised(
        "with timely.«connect(1)» as other: answer = other.workers\nanswer",
        r"write (connect\(workers=1\))$",
        1,
        reads={"workers=1": "workers=1, embedded=True"},
    ),
    Advised(
        "flow.input('numbers').insert([(1,)])\n«flow.input('numbers').close()»\n"
        "flow.input('numbers').insert([(2,)])\n" + SEAL,
        r"write (flow\.seal\(\)) in place of close",
        [1, 2],
    ),
    Advised(
        "def build(flow):\n    dd.input(flow, 'numbers', 'n: int')«»\nflow = cluster.install(build)\n"
        "flow.input('numbers').insert([(1,)])\nflow.seal()\nflow.output('name').snapshot()",
        r"Write (\.output\('name'\)) behind",
        [1],
    ),
]


@pytest.fixture(scope="module")
def cluster() -> Iterator[timely.Cluster]:
    with timely.connect(workers=1, embedded=True) as embedded:
        yield embedded


@pytest.mark.parametrize("advised", [*VALUES, *INPUTS, *CALLS], ids=str)
def test_advice_about_data_and_calls_runs(cluster: timely.Cluster, advised: Advised) -> None:
    follows_advice(advised, lambda program: ask_program(cluster, program, advised))
