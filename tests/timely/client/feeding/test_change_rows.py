"""change_rows.py: columns of many changes at once are the rows of the changes one by one."""

from __future__ import annotations

import itertools

from hypothesis import given
from hypothesis import strategies as st
from strategies_collections import examples

from timely.client.feeding.change_rows import rows_of_envelopes

Row = dict[str, object]

values = st.sampled_from([0, 1, True, 1.0, "1", None])
rows = st.fixed_dictionaries({"a": values, "b": values, "n": st.integers(0, 1)})
changes = st.lists(
    st.tuples(st.sampled_from(["c", "u", "d"]), rows, rows, st.booleans()), min_size=1, max_size=9
)


def one_by_one(
    envelopes: list[tuple[str, Row | None, Row | None]], keys: list[str]
) -> list[tuple[bool, Row]]:
    """What comes and goes, in order. A deletion in front of a value of the same key changes nothing."""
    found = list[tuple[bool, Row]]()
    for op, before, after in envelopes:
        if before is not None and op == "d":
            found.append((False, before))
        if after is not None and op != "d":
            if before is not None and op == "u":
                same = all((type(before[k]), before[k]) == (type(after[k]), after[k]) for k in keys)
                found += [] if keys and same else [(False, before)]
            found.append((True, after))
    return found


@examples(60)
@given(changes=changes, keys=st.sampled_from([[], ["a"], ["a", "b"], ["a", "b", "n"]]))
def test_rows_come_and_go_as_one_by_one(changes: list[tuple[str, Row, Row, bool]], keys: list[str]) -> None:
    envelopes = [
        (
            op,
            before if op == "d" or (op == "u" and (has_before or not keys)) else None,
            None if op == "d" else after,
        )
        for op, before, after, has_before in changes
    ]
    messages = [{"op": op, "before": before, "after": after} for op, before, after in envelopes]
    ops = [op for op, _, _ in envelopes]
    found = rows_of_envelopes(
        messages, [op != "d" for op in ops], [op == "u" for op in ops], ["a", "b", "n"], keys
    )
    assert found is not None
    wanted = one_by_one(envelopes, keys)
    assert found.come == [comes for comes, _ in wanted]
    for name, column in found.columns.items():
        assert [(type(each), each) for each in column] == [(type(row[name]), row[name]) for _, row in wanted]


ROW: Row = {"a": 1, "b": 2, "n": 3}


def test_odd_changes_are_left_to_be_looked_at_alone() -> None:
    """A side that is missing, or has other columns; an update of which nothing says what it has changed."""
    for before, after in itertools.product(
        [None, ROW, {"a": 1}, {**ROW, "x": 1}, 5], [None, {"n": 3}, "row"]
    ):
        message = {"before": before, "after": after}
        assert rows_of_envelopes([message], [True], [True], list(ROW), ["a"]) is None
    assert rows_of_envelopes([{"before": None, "after": ROW}], [True], [True], list(ROW), []) is None
    assert rows_of_envelopes([ROW], [True], [False], list(ROW), ["a"]) is None
    assert rows_of_envelopes([{"after": ROW}], [True], [False], list(ROW), ["a"]) is not None
    assert rows_of_envelopes([{"before": None, "after": ROW}], [True], [True], list(ROW), ["a"]) is not None
