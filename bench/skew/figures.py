"""Which runs are made?

A *measurement* is one run of one query under one scheme: an object of `--json`. `checked` and `settled` are
the worst imbalance behind a check and between checks from epoch 10 on; `throughput` is rows over the work of
the busiest unit, work being rows kept, rows that look, and pairs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from differential.skew.placements.biclique import biclique
from differential.skew.placements.groups import grouped
from differential.skew.placements.hash import hash_placement
from differential.skew.placements.hybrid import hybrid
from differential.skew.placements.matrix import matrix
from differential.skew.placements.placement import Placement
from differential.skew.planning.controller import PlanSettings
from differential.skew.planning.cost import Weights

from .counting import SETTLED, simulate
from .queries import Join, band, lines_of_orders, lrb, q3, q5, self_join

__all__ = [
    "BY_WORK",
    "EXCHANGED",
    "JOINING",
    "SCHEMES",
    "Extent",
    "Measurement",
    "measure_all",
    "measured",
]

SCHEMES: dict[str, Callable[[int], Placement]] = {
    "hash": hash_placement,
    "JB": biclique,
    "JB6": grouped,
    "D-JB": hybrid,
    "matrix": matrix,
}
BALANCED = ("D-JB", "matrix")
"""Schemes that are changed while they run."""
JOINING = "12 units from epoch 50 on"
EXCHANGED = "hot keys exchanged"
BY_WORK = "by work"
WEIGHTS = ((0.2, 0.3, 0.5), (0.1, 0.3, 0.6), (0.1, 0.4, 0.5))
"""α, β, γ as the seed compares them."""


@dataclass(frozen=True)
class Measurement:
    """One run. Rows sent: stores, probes, moved. imbalance: of kept rows at the end. storage: kept rows,
    copies included, over rows. seconds: of the simulation.
    """

    query: str
    scheme: str
    z: float | None
    units: int
    rows: int
    stores: int
    probes: int
    moved: int
    imbalance: float
    storage: float
    pairs: int
    seconds: float
    variant: str
    messages: float
    throughput: float
    checked: float
    settled: float
    excess: float
    cost: float
    input_load: float
    must_move: float

    def as_object(self) -> dict[str, object]:
        """For JSON."""
        return asdict(self)


@dataclass(frozen=True)
class Extent:
    """How much is run."""

    zs: tuple[float, ...] = (0.0, 0.5, 1.0, 1.5)
    units: tuple[int, ...] = (4, 16, 32, 64)
    wide: tuple[int, ...] = (16, 32, 64)
    reports: tuple[int, ...] = (120, 300)

    @staticmethod
    def quick() -> Extent:
        """About a minute."""
        return Extent((0.0, 1.0), (16,), (16, 64), (120,))


def measured(
    query: str,
    joins: Sequence[Join],
    scheme: str,
    units: int,
    z: float | None,
    variant: str = "",
    settings: PlanSettings | None = None,
    joining: tuple[int, int] | None = None,
) -> Measurement:
    """One run; of a scheme that is changed while it runs with the usual settings, if none are given."""
    if settings is None and scheme in BALANCED:
        settings = PlanSettings()
    counted = simulate(list(joins), SCHEMES[scheme](units), settings, joining)
    return Measurement(
        query=query,
        scheme=scheme,
        z=z,
        units=units,
        variant=variant,
        rows=counted.rows,
        stores=counted.stores,
        probes=counted.probes,
        moved=counted.moved,
        imbalance=round(counted.epochs[-1], 4),
        storage=round(counted.kept / counted.rows, 4),
        pairs=counted.pairs,
        seconds=round(counted.seconds, 3),
        messages=round(counted.messages / counted.rows, 4),
        throughput=round(counted.rows / int(counted.work.max()), 4),
        checked=round(max(counted.checked, default=0.0), 4),
        settled=round(counted.settled, 4),
        excess=round(counted.excess, 1),
        cost=round(counted.cost, 4),
        input_load=round(max(counted.grids[SETTLED:], default=0.0), 4),
        must_move=round(counted.must_move, 1),
    )


def measure_all(tpch: Path, road: Path | None, extent: Extent) -> Iterable[Measurement]:
    """Every run of every figure."""
    for z in extent.zs:
        joins = lines_of_orders(tpch, z)
        for units in extent.units:
            yield from (measured("lineitem ⋈ orders", joins, scheme, units, z) for scheme in SCHEMES)
        exchanged = lines_of_orders(tpch, z, exchanged=True)
        for units in extent.wide:
            yield measured("lineitem ⋈ orders", exchanged, "D-JB", units, z, EXCHANGED)
    same = self_join(tpch, max(extent.zs))
    for scheme in ("JB", "JB6", "D-JB"):
        yield measured("lineitem ⋈ lineitem", same, scheme, extent.wide[-1], max(extent.zs))
    joining = lines_of_orders(tpch, 1.0)
    yield measured("lineitem ⋈ orders", joining, "D-JB", 8, 1.0, JOINING, joining=(50, 12))
    work = PlanSettings(measure="work")
    queries = {"Q3": q3(tpch, 1.0), "Q5": q5(tpch, 1.0), "Band": band(tpch, 1.0)}
    for query, joins in queries.items():
        for units in extent.wide:
            for scheme in SCHEMES:
                if (query, scheme) != (
                    "Band",
                    "hash",
                ):  # in cells of keys neighbours would meet twice, or never
                    settings = work if scheme == "D-JB" else None
                    yield measured(query, joins, scheme, units, 1.0, BY_WORK, settings)
    for weights in WEIGHTS:
        settings = PlanSettings(measure="work", weights=Weights(*weights))
        yield measured("Q3", queries["Q3"], "D-JB", 16, 1.0, f"weights {weights}", settings)
    if road is not None:
        for seconds in extent.reports:
            reports = lrb(road, seconds)
            for scheme in ("JB", "JB6", "D-JB"):
                settings = work if scheme == "D-JB" else None
                yield measured("LRB", reports, scheme, 16, None, f"{seconds} s", settings)
