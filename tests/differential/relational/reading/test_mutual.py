"""WITH MUTUALLY RECURSIVE: what sqlglot reads instead, and what is refused."""

from __future__ import annotations

import pytest

import differential as dd
import timely
from differential import SqlError
from differential.relational.reading.mutual import MutualRecursion, without_mutually
from differential.relational.reading.texts import SqlText
from timely.building.dataflow import Dataflow


def test_the_word_and_the_limit_become_blanks_and_all_places_stay() -> None:
    text = "with Mutually recursive (return at\nrecursion limit 7) r(n int) as (select 'mutually') select 1"
    source = SqlText(text, "postgres")
    read, recursions = without_mutually(text, "postgres", source.error_of_place)
    assert read == (
        "with          recursive           \n                   r(n int) as (select 'mutually') select 1"
    )
    assert recursions == {text.index("r(n"): MutualRecursion(7, None)}


def test_a_text_without_it_stays() -> None:
    for text in ("select mutually from t", "select 1"):
        assert without_mutually(text, "spark", SqlText(text, "spark").error_of_place) == (text, {})


def test_the_word_inside_of_subqueries() -> None:
    text = (
        "select * from (with mutually recursive (error at recursion limit 5) a(n int) as (select 1) "
        "select n from a) as s"
    )
    _, recursions = without_mutually(text, "duckdb", SqlText(text, "duckdb").error_of_place)
    assert recursions == {text.index("a(n"): MutualRecursion(None, 5)}


REFUSED = {
    "with mutually recursive": "1:15: WITH MUTUALLY RECURSIVE needs queries",
    "with mutually recursive (limit 3) a(n int) as (select 1) select * from a": "1:25: behind WITH MUTUALLY",
    "with mutually recursive (return at recursion limit 0) a(n int) as (select 1) select * from a": "1:25: ",
    "with mutually recursive (return at recursion limit x) a(n int) as (select 1) select * from a": "1:25: ",
    "with mutually recursive a(n) as (select 1) select * from a": "1:27: n needs a type",
    "with mutually recursive a as (select 1) select * from a": "1:25: a needs columns with types",
    "with mutually recursive a(n int primary key) as (select 1) select * from a": "1:27: n INT PRIMARY KEY",
    "with mutually recursive a(n nonsense) as (select 1) select * from a": "1:29: Expecting )",
    "with mutually recursive a(n int) as (select 'x') select * from a": "1:25: a.n is declared int, and",
    "with mutually recursive a(n int) as (select 1.5) select * from a": "1:25: a.n is declared int, and",
    "with mutually recursive a(n int, m int) as (select 1) select * from a": "1:25: a has 2 columns",
    "with mutually recursive a(n int) as (select 1), a(n int) as (select 2) select 1": "1:25: WITH",
    "with recursive a(n int) as (select 1) select * from a": "1:18: n INT: only WITH MUTUALLY RECURSIVE",
    "select * from (select 1) as t(n int)": "1:31: n INT: only WITH MUTUALLY RECURSIVE",
    "with recursive a(n) as (select 1) cycle n set c using p select * from a": "1:41: ",
    "with recursive a(n) as (select 1) search depth first by n set b select * from a": "1:57: ",
}


@pytest.mark.parametrize("text", REFUSED)
def test_a_text_is_refused_with_its_place(text: str) -> None:
    def build(flow: Dataflow) -> None:
        with pytest.raises(SqlError) as caught:
            dd.sql(flow, text)
        assert str(caught.value).startswith(f"<sql>:{REFUSED[text]}")
        dd.input(flow, "t", "n: int").output("t")

    with timely.connect(workers=1, embedded=True) as cluster:
        cluster.install(build)
