"""The catalogue is what runs: notes, exports and imports of dataflows."""

from __future__ import annotations

import pytest

import differential as dd
import timely
from differential.columns.schema import Schema
from differential.relational.statements.catalogue import Catalogue, CatalogueEntry


def exports(name: str, *others: str) -> timely.building.builders.Builder:
    def build(flow: timely.Dataflow) -> None:
        flow.note(f"of {name}")
        rows = dd.input(flow, "rows", "a: int, b: string?")
        for each in ("rows", *others):
            rows.export(each, by="b")

    build.__name__ = name
    return build


def test_a_flow_says_what_it_was_made_from_what_it_exports_and_what_it_reads() -> None:
    def reads(flow: timely.Dataflow) -> None:
        dd.imported(flow, "one", "rows", "a: int, b: string?").output("out")

    with timely.connect(workers=1, embedded=True) as cluster:
        cluster.install(exports("one"))
        cluster.install(reads)
        one, other = cluster.flow(0), cluster.flow(1)
        assert one.note == "of one" and one.exports == ["rows"] and one.reads == []
        assert str(one.exported["rows"]) == "a: int64 not null\nb: string"
        assert other.note == "" and other.exported == {} and other.reads == [(0, "rows")]


def test_a_note_is_a_text_of_a_megabyte_at_most() -> None:
    for wrong in ("x" * ((1 << 20) + 1), 7):
        with pytest.raises(timely.GraphError, match=r"'dataflow': a note is a text of up to 1,048,576 char"):
            timely.Dataflow().note(wrong)  # type: ignore[arg-type]


def test_what_several_dataflows_export_is_named_with_its_dataflow() -> None:
    with timely.connect(workers=1, embedded=True) as cluster:
        for name, row in (("one", (1, "x")), ("two", (2, None))):
            flow = cluster.install(exports(name, f"only_{name}"))
            flow.input("rows").insert([row])
            flow.seal()
        with pytest.raises(
            dd.SqlError, match=r"1:15: several dataflows export rows: write one of one\.rows, two"
        ):
            cluster.sql("select * from rows")
        text = "select rows.a, o.b from two.rows join only_one as o on rows.a = o.a + 1"
        assert cluster.sql(text).fetchall() == [(2, "x")]
        with pytest.raises(
            dd.SqlError, match=r"1:14: rows is the name of one\.rows, an export: choose another"
        ):
            cluster.sql("create table rows (a int)")
        with pytest.raises(
            dd.SqlError, match=r"no dataflow exports three\.rows; there are: one\.only_one, one\.rows"
        ):
            cluster.sql("select * from three.rows")


def test_diamonds_of_views_are_walked_once() -> None:
    catalogue = Catalogue()
    for level in range(40):
        below = frozenset(f"{side}{level - 1}" for side in "ab") if level else frozenset(("t",))
        for side in "ab":
            key = f"{side}{level}"
            catalogue.entries[key] = CatalogueEntry(key, key, "view", Schema.of("a: int"), reads=below)
    assert len(catalogue.views_over("t")) == 80
