"""The importance of each node, if importance comes from the nodes that point to it."""

from __future__ import annotations

from differential.aggregates import count, count_if
from differential.algorithms.graphs import as_edges, ends, whole_number
from differential.collections.collection import Collection
from differential.expressions.expression import col, lit
from progress.errors import MisuseError
from timely.user_code.call_site import call_site
from timely.user_code.short_traces import short

__all__ = ["pagerank"]

_NAME = "pagerank"


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
    """The rank of every node after `iterations` iterations, in whole numbers: `node`, `rank`.

    All nodes begin with `unit`. In every iteration a node hands on the damped part of its rank, in equal
    shares, along its edges. Its new rank is the sum of the shares it gets and the rest of `unit`:

        share(n) = rank(n) · damping // degree(n)        rank'(m) = unit − unit · damping + Σ share(n), n → m

    So ranks are about 1 · unit on average, not 1 in all. The damped rank of a node without edges is lost, and
    so is the remainder of a division. Source: S. Brin, L. Page, *The anatomy of a large-scale hypertextual
    Web search engine*, 1998; in whole numbers as Rust's example `pagerank`, because sums of floats depend on
    their order. So a change that is undone restores the same ranks, to the last digit.

    Args:
        edges: two columns of one type, directed. An edge that is there twice counts twice, like two links; a
            node with an edge to itself hands on to itself.
        iterations: the exact number of iterations, from 1 up.
        unit: how fine ranks are; times the numerator of `damping`, and times the nodes, it must fit 64 bits.
        damping: numerator and denominator, at most 1.

    Cost: all edges in the first iteration, then the edges of nodes whose rank has changed: ranks count to the
    last digit, so these are most of them. A change spreads further with each iteration: it may cost as much
    as a fresh run.
    """
    whole_number(_NAME, "iterations", iterations)
    whole_number(_NAME, "unit", unit)
    numerator, denominator = damping
    whole_number(_NAME, "the numerator of damping", numerator, 0)
    if whole_number(_NAME, "the denominator of damping", denominator) < numerator:
        raise MisuseError(f"{_NAME} ({call_site()}): damping is at most 1, not {numerator}/{denominator}")
    along = as_edges(_NAME, edges, src, dst)
    nodes = ends(along)
    # A rank is the multiplicity of its node's row: shares are added up as multiplicities are, in one row for
    # each node instead of one for each sum. The multiplicity is 1 more, so that a node of rank 0 has a row,
    # too.
    own = nodes.repeat(unit - unit * numerator // denominator + 1)
    leaving = along.select(node=col.src, leaves=lit(True))

    def hand_on(ranks: Collection) -> Collection:
        # Rank and degree come from one group, so that neither is kept to be joined with the other.
        rows_of_nodes = ranks.select("node", leaves=lit(False)).concat(leaving)
        each = rows_of_nodes.group_by("node").agg(rows=count(), degree=count_if("leaves"))
        share = (col.rows - col.degree - 1) * numerator // (denominator * col.degree)
        # By node before it is by edge: one division for each node, and one row for each share that has
        # changed.
        shares = each.filter(col.degree > 0).repeat(share).select("node")
        return shares.join(along, on={"node": "src"}).select(node=col.dst).concat(own)

    ranks = nodes.repeat(unit + 1).iterate(hand_on, times=iterations, name=_NAME)
    return ranks.group_by("node").agg(times=count()).select("node", rank=col.times - 1)
