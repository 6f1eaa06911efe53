"""Texts of SQL: valid statements of all kinds, and a reader that plans one as a client does, over a catalogue
without a cluster. Whatever a text says, only a SqlError in one line with its place may come.
"""

from __future__ import annotations

import random
import re
from zlib import crc32

from sql.random_texts.wider_texts import WIDER_TABLES, wider_text

from differential import Schema
from differential import input as table_input
from differential.errors import SqlError
from differential.relational.statements.catalogue import Catalogue, CatalogueEntry, note_of
from differential.relational.statements.planning import planned
from differential.relational.statements.queries import ReadQuery
from timely.building.dataflow import Dataflow
from timely.errors import GraphError, MisuseError

from .mutations import Frames

__all__ = ["read_sql_text", "sql_seeds"]

_DIALECTS = ("spark", "postgres", "duckdb")
_VALUES = {"p": 1, "q": "it's"}
_PLACE = re.compile(r"<sql>:\d+:\d+: [^\n]+")
_NOT_OURS = re.compile(r"<class|<Token|sqlglot\.|SENTINEL")

_STATEMENTS = (
    "create table n (a int primary key, b decimal(10, 2) not null, c timestamp, d array<int>)",
    "create table if not exists t (a int); insert into t values (1, 2, 'x'), (null, null, null)",
    "create or replace view w (x, y) as select a, count(*) from t where s like 'a%' group by a",
    "drop view if exists w, seen cascade",
    "insert into t (a, s) select c, upper(s) from u where c = :p",
    "delete from u where s = :q or a in (select b from t)",
    "update t set a = a + 1, s = null where b between 1 and 3",
    "explain select t.*, c from t join u using (a)",
    "subscribe (select a from t where a > 1)",
    "show tables",
    "describe v",
    "with mutually recursive (return at recursion limit 9) e (n int) as (select a from t union select n + 1 "
    "from o), o (n int) as (select n from e where n < 5) select n from o",
    "select a, sum(b) over (partition by s order by a rows between 1 preceding and current row) as n from t",
    "select * from v lateral view outer posexplode(l) z as p, e where d + interval 2 months > '2024-01-31'",
    "select cast(x as int), try_cast(s as date), extract(year from d), date_trunc('month', d) from v, t",
    "select distinct on (a) a, b from t order by a, b desc nulls last limit 3 offset 1",
    "select x.a from (values (1, 'a'), (2, null)) as x (a, b) except all select a from u order by 1 limit 2",
    "select max_by(a, b), percentile_cont(0.5) within group (order by b), string_agg(s, ',' order by s) "
    "from t",
    "select a from t where a > all (select c from u where u.s = t.s) and not exists (select 1 from v "
    "where k = b)",
    "select grouping(a, s), a, s, count(distinct b) filter (where b > 0) from t group by cube (a, s), "
    "rollup (b)",
    "select coalesce(nullif(a, 1), -b, 0) as n, case when a = 1 then 'x' else s || 'y' end as m from t "
    "qualify row_number() over (order by a, b, s) = 1",
)


def sql_seeds() -> list[Frames]:
    """Return valid texts: one statement of each kind, and random queries."""
    queries = [wider_text(random.Random(seed), 2) for seed in range(400, 412)]
    return [[text.encode()] for text in (*_STATEMENTS, *(query for query in queries if "//" not in query))]


def read_sql_text(frames: list[memoryview]) -> None:
    """Plan a text, in a dialect that depends on it; raise SqlError if it is wrong."""
    content = b"".join(frames)
    text = content.decode(errors="surrogateescape")
    used = {name: value for name, value in _VALUES.items() if f":{name}" in text}
    try:
        steps = planned(text, _DIALECTS[crc32(content) % 3], "<sql>", _catalogue(), used)
        queries = [query for step in steps if isinstance(query := getattr(step, "query", None), ReadQuery)]
        for query in queries:
            query.tried()
    except SqlError as error:
        assert _PLACE.fullmatch(str(error)), f"no line with a place: {error}"
        assert not _NOT_OURS.search(str(error)), f"a name of sqlglot: {error}"
        raise
    for query in queries:
        owners = {entry.key: (0, entry.schema) for entry in query.reads.values()}
        flow = Dataflow("tried")
        table_input(flow, "some", "a: int")
        query.build(flow, owners).output("answer")
        try:
            flow.freeze()
        except (GraphError, MisuseError) as error:  # the session gives it the place of the statement
            raise SqlError(f"<sql>:1:1: {error}") from None


def _catalogue() -> Catalogue:
    entries = {
        name: CatalogueEntry(
            name, name, "table", Schema.of(fields), note=note_of("table", "spark", f"create table {name}")
        )
        for name, fields in WIDER_TABLES.items()
    }
    view = note_of("view", "spark", "create view w as select a from t")
    entries["seen"] = CatalogueEntry(
        "seen", "seen", "view", Schema.of("a: int?"), note=view, reads=frozenset({"t"})
    )
    return Catalogue(entries)
