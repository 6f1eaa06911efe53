"""Collections on real processes, each with its own symbols: strings travel with the rows that need them."""

from __future__ import annotations

from collections import Counter

import pytest

import timely


def _rows(table: object) -> Counter[tuple[object, ...]]:
    columns = [column.to_pylist() for column in table.columns]  # type: ignore[attr-defined]  # an Arrow table
    return Counter(zip(*columns, strict=True))


@pytest.mark.parametrize("workers", [1, 2])
def test_strings_arrive_where_they_were_never_seen(workers: int) -> None:
    with timely.connect(workers=workers) as cluster:
        flow = cluster.install("collection_flows:mentions")
        people = [f"person {number}" for number in range(12)]
        said = [(who, None if place % 4 == 0 else f"word {place % 3}") for place, who in enumerate(people)]
        knows = list(zip(people, people[1:], strict=False))
        flow.input("said").insert({"who": [who for who, _ in said], "text": [text for _, text in said]})
        flow.input("knows").insert({"who": [a for a, _ in knows], "whom": [b for _, b in knows]})
        flow.seal()
        _check(flow, said, knows)
        gone, said = said[3], [*said[:3], *said[4:]]
        flow.input("said").remove({"who": [gone[0]], "text": [gone[1]]})
        flow.input("said").insert({"who": ["person 5"], "text": ["late and new"]})
        flow.seal()
        _check(flow, [*said, ("person 5", "late and new")], knows)


def _check(flow: timely.Flow, said: list[tuple[str, str | None]], knows: list[tuple[str, str]]) -> None:
    heard = [(whom, text, "hearsay") for who, text in said for knower, whom in knows if knower == who]
    assert _rows(flow.output("heard").snapshot()) == Counter(heard)
    assert _rows(flow.output("counts").snapshot()) == Counter(Counter(text for _, text in said).items())
    texts: dict[str, set[str]] = {}
    for who, text in said:
        if text is not None:
            texts.setdefault(who, set()).add(text)
    lines = [(who, f"{who.upper()}: {' '.join(sorted(found))}") for who, found in texts.items()]
    assert _rows(flow.output("lines").snapshot()) == Counter(lines)
    everybody = {who for pair in knows for who in pair}
    assert _rows(flow.output("reached").snapshot()) == Counter((who,) for who in everybody)
