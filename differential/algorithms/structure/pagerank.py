"""How important is each node, if importance comes from the nodes that point to it?"""

from __future__ import annotations

from differential.aggregates import count, count_if
from differential.algorithms.graphs import as_edges, ends, whole_number
from differential.collections.collection import Collection
from differential.expressions.expression import col, lit
from progress.errors import MisuseError
from timely.user_code.call_site import call_site
from timely.user_code.short_traces import short

__all__ = ["pagerank"]

_WHO = "pagerank"


@short
def pagerank(
    edges: Collection,
    iterations: int = 20,
    *,
    src: str = "src",
    dst: str = "dst",
    unit: int = 1_000_000,
    damping: tuple[int, int] = (85, 100),
) -> Collection:
    """The rank of every node after so many iterations, in whole numbers: `node`, `rank`.

    All nodes begin with `unit`. In every iteration a node hands on the damped part of its rank in equal
    shares along its edges, and has then what it was handed and the rest of `unit`:

        share(n) = rank(n) · damping // degree(n)        rank'(m) = unit − unit · damping + Σ share(n), n → m

    So ranks are about 1 · unit on average, not 1 in all; what a node without edges would hand on is lost, and
    so is what does not divide. Source: S. Brin, L. Page, *The anatomy of a large-scale hypertextual Web
    search engine*, 1998; in whole numbers as Rust's example `pagerank`, for sums of floats depend on their
    order: here what is undone gives the same ranks again, to the last digit.

    Args:
        edges: two columns of one type, directed. An edge that is there twice counts twice, as two links
            do; one to oneself hands on to oneself.
        iterations: exactly so many, from 1 up.
        unit: how fine ranks are; times the numerator of `damping`, and times the nodes, it must fit 64 bits.
        damping: numerator and denominator, at most 1.

    Cost: all edges in the first iteration, and in the next ones those of nodes whose rank has changed: to the
    last digit, and so most of them. A change spreads as far as there are iterations: it may cost as much as
    all.
    """
    whole_number(_WHO, "iterations", iterations)
    whole_number(_WHO, "unit", unit)
    numerator, denominator = damping
    whole_number(_WHO, "the numerator of damping", numerator, 0)
    if whole_number(_WHO, "the denominator of damping", denominator) < numerator:
        raise MisuseError(f"{_WHO} ({call_site()}): damping is at most 1, not {numerator}/{denominator}")
    along = as_edges(_WHO, edges, src, dst)
    nodes = ends(along)
    # A rank is how often its node is there: what is handed on is added up as multiplicities are, with one row
    # for a node in place of one for each sum. And 1 more, so that a node of rank 0 is there, too.
    own = nodes.repeat(unit - unit * numerator // denominator + 1)
    leaving = along.select(node=col.src, leaves=lit(True))

    def hand_on(ranks: Collection) -> Collection:
        # Rank and degree come of one group, so that neither is kept to be joined with the other.
        known = ranks.select("node", leaves=lit(False)).concat(leaving)
        each = known.group_by("node").agg(rows=count(), degree=count_if("leaves"))
        share = (col.rows - col.degree - 1) * numerator // (denominator * col.degree)
        # By node before it is by edge: a division for each node, and one row for each share that has changed.
        shares = each.filter(col.degree > 0).repeat(share).select("node")
        return shares.join(along, on={"node": "src"}).select(node=col.dst).concat(own)

    ranks = nodes.repeat(unit + 1).iterate(hand_on, times=iterations, name=_WHO)
    return ranks.group_by("node").agg(times=count()).select("node", rank=col.times - 1)
