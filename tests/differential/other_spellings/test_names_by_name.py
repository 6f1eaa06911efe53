"""What users of PySpark, Polars, pandas and SQL type, name by name: the tables at the end of
docs/spellings.md are carried out.

same_*      what means the same gives the same plan, expression or aggregate
another_*   all else is refused by an error that says what the page says
"""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest
from house import ROOT

import differential as dd
from differential import col
from timely import Dataflow, TimelyError

PAGE = (ROOT / "docs" / "spellings.md").read_text()
COLUMNS = "k: int, x: int?, s: string?, t: timestamp, tags: any"


def rows_of(head: str) -> Iterator[tuple[str, str]]:
    """The first and the last cell of each row of the tables whose last column is called `head`."""
    for table in re.findall(rf"^\| typed \| in \| {head} \|\n.*\n((?:\|.*\n)+)", PAGE, re.MULTILINE):
        for line in table.splitlines():
            cells = [each.strip().replace(r"\|", "|") for each in re.split(r"(?<!\\)\|", line)[1:-1]]
            yield cells[0].strip("`"), cells[-1].strip("`")


SAME = list(rows_of("the same as"))
ANOTHER = list(rows_of("the error says"))


def evaluated(code: str) -> object:
    """The value of `code` over a dataflow of its own."""
    dataflow = Dataflow("typed")
    c = dd.input(dataflow, "c", COLUMNS)
    names = {
        "c": c, "d": dd.input(dataflow, "d", COLUMNS), "e": dd.input(dataflow, "e", "k: int"),
        "f": dd.input(dataflow, "f", "y: int"), "g": c.group_by("k"), "x": col.x, "s": col.s, "t": col.t,
        "tags": col.tags, "dd": dd, "col": col, "fn": lambda *_: [],
    }  # fmt: skip
    value: object = eval(code, names)
    return value


def shown(value: object) -> str:
    """What is to be the same of two values: the plan of a collection, without lines; the text of others."""
    if isinstance(value, dd.Grouped):
        value = value.count()
    if isinstance(value, dd.Collection):
        return re.sub(r"\b[\w<>]+(\.py)?>?:\d+", "", value.explain())
    return repr(value)


def test_same_and_another_are_some_two_hundred_names() -> None:
    assert len(SAME) > 150 and len(ANOTHER) > 50
    assert len({typed for typed, _ in [*SAME, *ANOTHER]}) == len(SAME) + len(ANOTHER), (
        "each stands there once"
    )


@pytest.mark.parametrize(("typed", "here"), SAME)
def test_same_what_is_typed_is_what_the_page_says(typed: str, here: str) -> None:
    assert shown(evaluated(typed)) == shown(evaluated(here))


@pytest.mark.parametrize(("typed", "told"), ANOTHER)
def test_another_way_of_writing_is_told(typed: str, told: str) -> None:
    with pytest.raises((AttributeError, TimelyError)) as refused:
        evaluated(typed)
    assert told in str(refused.value)
