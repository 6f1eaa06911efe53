"""What a fold knows of a dataflow: it comes back from a log, and says what is not summed."""

from __future__ import annotations

import msgpack

from timely.durable.bases.facts import FoldFacts, InputFacts, OutputFacts

FACTS = FoldFacts(
    2,
    (
        InputFacts("a", "module:function", ["a", [["x", "int"]], [], b"plan", ["all"], True], True, "", True),
        InputFacts("b", why="split_late (query.py:7) decides"),
    ),
    (OutputFacts("out", "module:function", [[]]),),
    "a stage",
)


def test_facts_come_back_from_a_log() -> None:
    plain = msgpack.unpackb(msgpack.packb(FACTS.plain()))
    facts = FoldFacts.of(plain)
    assert msgpack.packb(facts.plain()) == msgpack.packb(FACTS.plain())
    assert facts.input("a").expires and facts.input("a").sums
    assert facts.output("out").form == "module:function"


def test_facts_of_what_nobody_knows_keep_it_as_it_is() -> None:
    assert FACTS.input("unknown") == InputFacts("unknown") and not FACTS.input("unknown").sums
    assert FACTS.output("unknown").form == ""


def test_facts_say_what_is_not_summed() -> None:
    assert FACTS.reasons() == [
        "input 'b': split_late (query.py:7) decides",
        "what it imports: a stage",
    ]
    assert FoldFacts().reasons() == []
