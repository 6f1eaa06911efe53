"""Names of attributes: each once, and the same in every process."""

from __future__ import annotations

from differential.columns.column_types import integer
from differential.relational.algebra.attributes import AttributeNames, schema_of


def test_no_name_is_made_twice_even_of_a_name_that_was_made() -> None:
    names = AttributeNames()
    made = [names.fresh(label) for label in ("a", "b", "a", "a#2", "a#3", "a", "b#7")]
    assert len(set(made)) == len(made)
    assert made[:3] == ["a", "b", "a#2"]


def test_the_same_labels_make_the_same_names() -> None:
    labels = ["x", "y", "x", "x#2", "y"]
    one, other = AttributeNames(), AttributeNames()
    assert [one.fresh(label) for label in labels] == [other.fresh(label) for label in labels]


def test_columns_have_the_unique_names() -> None:
    names = AttributeNames()
    attributes = [names.attribute("k", integer), names.attribute("k", integer.or_null())]
    assert str(schema_of(attributes)) == "k: int, k#2: int?"
