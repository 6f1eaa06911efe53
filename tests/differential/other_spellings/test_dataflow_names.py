"""Names of differential dataflow and Naiad for collections are answered by what to write."""

from __future__ import annotations

from names_elsewhere import unanswered

import differential as dd
from differential.other_spellings.dataflow_names import COLLECTIONS_OF_DATAFLOWS, FUNCTIONS_OF_DATAFLOWS
from timely import Dataflow
from timely.user_code.spellings import Same


def test_every_public_name_of_a_collection_elsewhere_is_answered() -> None:
    assert not unanswered(dd.input(Dataflow(), "edges", "src: int, dst: int"), "collection")


def test_each_name_of_the_table_works_or_says_what_to_write() -> None:
    edges = dd.input(Dataflow(), "edges", "src: int, dst: int")
    for thing, names in ((edges, COLLECTIONS_OF_DATAFLOWS), (dd, FUNCTIONS_OF_DATAFLOWS)):
        for name, entry in names.items():
            try:
                same = getattr(thing, name)
                assert isinstance(entry, Same)
                assert same == getattr(thing, entry.attribute)
            except AttributeError as error:
                assert str(error).endswith(f"Write instead: {entry}")
