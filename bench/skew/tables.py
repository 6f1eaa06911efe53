"""The figures as tables, each beside what the seed found."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from .figures import BY_WORK, EXCHANGED, SCHEMES, Measurement

__all__ = ["Table", "tables"]

_SAYS = {
    "Communication": "Rows sent for each row that comes: kept, looking, moved. Seed, figure 9: JB most, JB6 "
    "least, D-JB a little more than JB6.",
    "Communication of a self-join": "Where both sides of a hot key are split each row looks in all shares.",
    "Migration": "Kept rows that D-JB moves, of all rows; beside the least that had to. Seed, figure 10: "
    "more with more skew, little beside all traffic.",
    "Imbalance": "Rows of the most loaded unit over the mean, of all units of both sides, at the worst from "
    "epoch 10 on.",
    "Imbalance behind a check": "By what had been counted at the check; θmax allows 1.2.",
    "Storage": "How often a row is kept.",
    "Input load of the matrix": "Over that of the best grid for the same rows, at the worst from epoch 10.",
    "Throughput": "Rows for the work of the busiest unit, D-JB by work. Seed, figures 7 and 8: D-JB, then "
    "JB6, then JB; and so with more units.",
    "Weights": "Q3 on 16 units. Seed, figure 11: the first of them is best.",
    "Units that join": "From 8 to 12: moved rows, beside the third that must.",
    "LRB": "Work of the busiest of 16 units, in thousands. Seed, figure 12: D-JB is quickest.",
}


@dataclass(frozen=True)
class Table:
    """One figure."""

    title: str
    heads: tuple[str, ...]
    lines: tuple[tuple[str, ...], ...]

    def markdown(self) -> str:
        """With its title, and what it says."""
        rule = "|".join("---" for _ in self.heads)
        rows = "\n".join("| " + " | ".join(line) + " |" for line in self.lines)
        return f"## {self.title}\n\n{_SAYS[self.title]}\n\n| {' | '.join(self.heads)} |\n|{rule}|\n{rows}\n"


def tables(every: Sequence[Measurement]) -> list[Table]:
    """Those that there are measurements for."""
    plain = [each for each in every if each.query == "lineitem ⋈ orders" and not each.variant]
    by_work = [each for each in every if each.variant == BY_WORK]
    itself = [each for each in every if each.query == "lineitem ⋈ lineitem"]
    made = [
        _by_scheme("Communication", plain, lambda each: f"{each.messages:.2f}"),
        _by_scheme("Communication of a self-join", itself, lambda each: f"{each.messages:.2f}"),
        _migration([*plain, *(each for each in every if each.variant == EXCHANGED)]),
        _by_scheme("Imbalance", plain, lambda each: f"{each.settled:.2f}"),
        _by_scheme("Imbalance behind a check", _of(plain, "D-JB"), lambda each: f"{each.checked:.2f}"),
        _by_scheme("Storage", plain, lambda each: f"{each.storage:.2f}"),
        _by_scheme("Input load of the matrix", _of(plain, "matrix"), lambda each: f"{each.input_load:.3f}"),
        _by_scheme("Throughput", by_work, lambda each: f"{each.throughput:.2f}"),
        _weights([each for each in every if each.variant.startswith("weights")]),
        _joining([each for each in every if each.must_move]),
        _lrb([each for each in every if each.query == "LRB"]),
    ]
    return [table for table in made if table.lines]


def _of(listed: Sequence[Measurement], scheme: str) -> list[Measurement]:
    return [each for each in listed if each.scheme == scheme]


def _by_scheme(title: str, listed: Sequence[Measurement], shown: Callable[[Measurement], str]) -> Table:
    """A line for each query, z and number of units; a column for each scheme."""
    schemes = [scheme for scheme in SCHEMES if _of(listed, scheme)]
    cases = dict.fromkeys((each.query, each.z, each.units) for each in listed)
    values = {(each.query, each.z, each.units, each.scheme): shown(each) for each in listed}
    lines = tuple(
        (case[0], f"{case[1]}", f"{case[2]}", *(values.get((*case, scheme), "") for scheme in schemes))
        for case in cases
    )
    return Table(title, ("query", "z", "units", *schemes), lines)


def _migration(listed: Sequence[Measurement]) -> Table:
    lines = tuple(
        (
            each.variant or "as drawn",
            f"{each.z}",
            f"{each.units}",
            f"{each.moved / each.rows:.2%}",
            f"{each.moved / each.excess:.2f}" if each.excess else "",
            f"{each.cost:.3f}",
        )
        for each in _of(listed, "D-JB")
    )
    return Table("Migration", ("keys", "z", "units", "moved", "over the least", "cost"), lines)


def _weights(listed: Sequence[Measurement]) -> Table:
    lines = tuple(
        (each.variant.removeprefix("weights "), f"{each.throughput:.2f}", f"{each.moved}", f"{each.cost:.4f}")
        for each in listed
    )
    return Table("Weights", ("α, β, γ", "throughput", "moved", "cost"), lines)


def _joining(listed: Sequence[Measurement]) -> Table:
    lines = tuple(
        (each.query, f"{each.moved}", f"{each.must_move:.0f}", f"{each.moved / each.must_move:.2f}")
        for each in listed
    )
    return Table("Units that join", ("query", "moved", "must", "ratio"), lines)


def _lrb(listed: Sequence[Measurement]) -> Table:
    lines = tuple(
        (
            each.variant,
            each.scheme,
            f"{each.rows}",
            f"{each.rows / each.throughput / 1_000:.0f}",
            f"{each.messages:.2f}",
        )
        for each in listed
    )
    return Table("LRB", ("reports of", "scheme", "rows", "work", "messages"), lines)
