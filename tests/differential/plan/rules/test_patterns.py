"""rules/patterns.py: what is looked up next, and how few arrangements do.

way_*       the order of steps
layouts_*   arrangements for sets of columns
places_*    of whole joins
"""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from differential import col
from differential.columns.schema import Schema
from differential.plan import nodes as n
from differential.plan.rules.patterns import layouts, positions_of, way

EDGES = n.Input(Schema.of("src: int, dst: int"), "edges")


def _edges(columns: str) -> n.Node:
    return n.Select(EDGES, ((columns[0], col.src), (columns[1], col.dst)))


def _walk(columns: str, first: int, *, fewest: bool = False) -> list[str]:
    """Each step: the parts asked, by what, for what."""
    return [
        " | ".join(f"{columns.split()[look.part]} by {''.join(look.by)}" for look in step)
        for step in way(columns.split(), first, fewest=fewest)
    ]


def test_way_asks_first_who_can_only_make_rows_fewer() -> None:
    assert _walk("ab bc ac", 0) == ["bc by b", "ac by ac"]
    assert _walk("ab bx ab", 0) == ["ab by ab", "bx by b"]
    assert _walk("ab axy aby", 0) == ["aby by ab", "axy by ay"]


def test_way_where_the_fewest_decide_asks_all_who_know_the_same() -> None:
    assert _walk("ab bc ac", 0, fewest=True) == ["bc by b | ac by a"]
    assert _walk("ab bc cd da", 0, fewest=True) == ["bc by b", "cd by c | da by a"]
    assert _walk("ab bc cd", 1, fewest=True) == ["cd by c", "ab by b"]


def test_way_asks_first_who_is_met_as_it_was_before() -> None:
    """At a load of all at once it has nothing, and nobody else needs to be asked."""
    assert _walk("ab bc ac", 1) == ["ac by c", "ab by ab"]
    assert _walk("ab bc ac", 2) == ["ab by a", "bc by bc"]
    assert _walk("xa xb xc", 1) == ["xc by x", "xa by x"]


@given(st.lists(st.sets(st.sampled_from("abcd"), min_size=1).map(frozenset), min_size=1, max_size=6))
def test_layouts_begin_with_what_is_looked_up(wanted: list[frozenset[str]]) -> None:
    found = layouts(wanted, "abcd")
    assert found.keys() == set(wanted)
    for columns, (keys, values) in found.items():
        assert sorted((*keys, *values)) == list("abcd")
        assert keys and set(keys) <= columns
        assert set((*keys, *values)[: len(columns)]) == columns


def test_layouts_are_few() -> None:
    a, ab, abc, ac, b = (frozenset(names) for names in ("a", "ab", "abc", "ac", "b"))
    assert set(layouts([abc, ab, a], "abcd").values()) == {(("a",), ("b", "c", "d"))}
    assert set(layouts([abc, a], "abcd").values()) == {(("a",), ("b", "c", "d"))}
    assert set(layouts([ab, ac], "abc").values()) == {(("a", "b"), ("c",)), (("a", "c"), ("b",))}
    assert len(set(layouts([a, ab, ac, b], "abc").values())) == 3


def test_places_of_one_collection_under_several_names_are_its_own() -> None:
    triangles = n.JoinAll((_edges("ab"), _edges("bc"), _edges("ac")), ("a", "b", "c"))
    identities = {place.arrangement.identity for place in positions_of(triangles).values()}
    assert identities == {(EDGES.digest, ("src",), ("dst",)), (EDGES.digest, ("dst",), ("src",))}
    place = positions_of(triangles)[2, frozenset("ac")]
    assert (place.lookup_names, place.routed, place.columns) == (("a", "c"), 1, {"a": "src", "c": "dst"})


def test_places_of_a_part_with_one_column_twice_are_of_the_part() -> None:
    twice = n.Select(EDGES, (("a", col.src), ("b", col.src)))
    places = positions_of(n.JoinAll((twice, _edges("ab")), ("a", "b")))
    assert places[0, frozenset("ab")].arrangement.node is twice
    assert places[1, frozenset("ab")].arrangement.node is EDGES
