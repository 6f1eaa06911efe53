"""Forms of rows are found by name, and take rows of some buckets."""

from __future__ import annotations

import pytest

from timely.durable.bases.facts import InputFacts, OutputFacts
from timely.durable.bases.rows_form import BUCKETS, BucketRange, new_rows

DETAILS = ["in", [["a", "int"]], [], b"", [], False]
FORM = "differential.plan.durable.summing:summed_rows"


@pytest.mark.parametrize("facts", [InputFacts("in", FORM, DETAILS), OutputFacts("out", FORM, DETAILS)])
def test_form_is_that_of_the_facts(facts: InputFacts | OutputFacts) -> None:
    ranges = [BucketRange(BUCKETS * at // 4, BUCKETS * (at + 1) // 4) for at in range(4)]
    total = 0
    for buckets in ranges:
        form = new_rows(facts, buckets)
        form.take_plain(3, [(number,) for number in range(100)], [1] * 100)
        assert 0 < form.rows < 60
        total += form.rows
        (rows,) = form.folded(ranges, 5, 0)
        assert rows.buckets == buckets and rows.table.num_rows == form.rows
    assert total == 100
