"""Which inputs does every system get, and how is a result believed?

One generator for all: a 64-bit state, `state ← state · MULTIPLIER + INCREMENT (mod 2⁶⁴)`; a draw
below m advances the state and takes `(state >> 33) mod m`. The start state is the seed.

A *schedule* says when a row is there: the first `loaded` rows from epoch 0 on; then each *change*
is one epoch that removes the oldest `step` rows and inserts the next `step`.

A *check* is four sums over the accumulated output: `n` rows; `special` rows, what that means
depends on the workload; `sum`; `hash` = Σ mix(a, b) mod 2⁶⁴. A row counts as often as its diff
says, so that for every change

    check(output after it) = check(output before it) + check(diffs of the output in it)

A run counts only if its checks are those of `EXPECTED`. The same in Rust is
`peers/differential_dataflow`; `tests/bench/test_workloads.py` holds generator, checks and table
together.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple, TypeAlias, TypedDict

import numpy as np
from numpy.typing import NDArray

__all__ = [
    "BOOKED_DAY",
    "DAMPING",
    "DAYS",
    "DRAW_BITS",
    "EXPECTED",
    "INCREMENT",
    "ITERATIONS",
    "LINES_OF_ORDER",
    "MULTIPLIER",
    "ORDERS_OF_CUSTOMER",
    "SEGMENTS",
    "SUM_VALUES",
    "TOP_ROWS",
    "UNIT",
    "WORD_MASK",
    "Bools",
    "Check",
    "CheckJson",
    "CountWorkload",
    "Expected",
    "GraphWorkload",
    "Int64s",
    "JoinWorkload",
    "Q3Workload",
    "RowRange",
    "Schedule",
    "SumWorkload",
    "UInt64s",
    "check_bfs",
    "check_count",
    "check_join",
    "check_pagerank",
    "check_q3",
    "check_scc",
    "check_sum",
    "check_top",
    "check_wcc",
    "count",
    "draws",
    "expected",
    "graph",
    "join",
    "mix",
    "q3",
    "sum_",
]

Int64s = NDArray[np.int64]
UInt64s = NDArray[np.uint64]
Bools = NDArray[np.bool_]
RowRange: TypeAlias = "slice[int, int, int]"  # in quotes: a slice takes no parameters when run

MULTIPLIER = 6364136223846793005
INCREMENT = 1442695040888963407
WORD_MASK = 2**64 - 1
DRAW_BITS = 31
"""A draw has as many bits as are left of the state by `>> 33`."""
SUM_VALUES = 2**20
"""The values of sum, min and top are drawn below this."""
TOP_ROWS = 3
"""Of top: how many rows of each key."""
SEGMENTS, DAYS, BOOKED_DAY = 5, 2_406, 1_168
"""Of q3: how many segments and days there are, and the day that its filters name, as TPC-H has them."""
SHIPPED_DAYS, DISCOUNTS = 121, 11
"""Of q3: an order's lines are shipped so many days after it at most; discounts are drawn below this."""
ORDERS_OF_CUSTOMER, LINES_OF_ORDER = 10, 4
ITERATIONS = 20
UNIT = 6_000_000
DAMPING = (5, 6)
"""Of pagerank: how often ranks are handed on, what every node begins with, and how much goes."""


# Inputs


def _states(count: int, seed: int) -> UInt64s:
    """The `count` states after `seed`.

    Steps compose: if s ↦ a·s + c makes m steps, s ↦ a²·s + (a·c + c) makes 2m. So the states known
    are advanced all at once by as many steps as there are, and each pass doubles them.
    """
    states = np.empty(count, np.uint64)
    states[:1] = (seed * MULTIPLIER + INCREMENT) & WORD_MASK
    factor, increment, known = MULTIPLIER, INCREMENT, 1
    while known < count:
        more = states[known : 2 * known]
        np.multiply(states[: len(more)], np.uint64(factor), out=more)
        more += np.uint64(increment)
        factor, increment = factor**2 & WORD_MASK, (factor + 1) * increment & WORD_MASK
        known += len(more)
    return states


def draws(limits: tuple[int, ...], rows: int, seed: int = 1) -> tuple[Int64s, ...]:
    """`rows` rows of one draw below each of `limits`, as one column for each."""
    assert all(1 <= limit <= 2**DRAW_BITS for limit in limits), limits
    assert rows >= 0
    states = _states(rows * len(limits), seed)
    states >>= np.uint64(64 - DRAW_BITS)
    by_column = states.reshape(rows, len(limits)).T
    columns = zip(by_column, limits, strict=True)
    return tuple((column % np.uint64(limit)).view(np.int64) for column, limit in columns)


class Schedule(NamedTuple):
    """When which rows are there: see the module."""

    loaded: int
    changes: int
    step: int

    @property
    def rows(self) -> int:
        """How many rows there are, at whatever time."""
        return self.loaded + self.changes * self.step

    def removed(self, change: int) -> RowRange:
        """The rows that go in change 0 … changes − 1."""
        assert 0 <= change < self.changes
        return slice(change * self.step, (change + 1) * self.step)

    def inserted(self, change: int) -> RowRange:
        """The rows that come in change 0 … changes − 1."""
        assert 0 <= change < self.changes
        start = self.loaded + change * self.step
        return slice(start, start + self.step)

    def times(self, rows: int) -> Schedule:
        """The same for a table that has `rows` rows for each row of this one."""
        return Schedule(self.loaded * rows, self.changes, self.step * rows)

    def present(self, changes: int) -> RowRange:
        """The rows that are there after so many changes; 0 is after the load."""
        assert 0 <= changes <= self.changes
        return slice(changes * self.step, self.loaded + changes * self.step)


class GraphWorkload(NamedTuple):
    """Directed edges; row i is the edge from `src[i]` to `dst[i]`, both below `nodes`.

    wcc also loads all nodes, bfs loads the root 0; scc and pagerank have the nodes that occur in an edge.
    """

    nodes: int
    schedule: Schedule
    src: Int64s
    dst: Int64s


class CountWorkload(NamedTuple):
    """Rows of a key below `keys`."""

    keys: int
    schedule: Schedule
    key: Int64s


class SumWorkload(NamedTuple):
    """Rows of a key below `keys` and a value below `SUM_VALUES`; also the input of min and top."""

    keys: int
    schedule: Schedule
    key: Int64s
    value: Int64s


class JoinWorkload(NamedTuple):
    """Two tables with the same schedule, given by their keys; the value of row i is i."""

    keys: int
    schedule: Schedule
    left_key: Int64s
    right_key: Int64s


class Q3Workload(NamedTuple):
    """Customers, which stay; orders, which come and go by the schedule; and with each order its lines.

    Customer i has `segment[i]`. Order i is of a customer and a day. Line i is of order i // LINES_OF_ORDER,
    and has the day on which it was shipped and its revenue.
    """

    schedule: Schedule
    segment: Int64s
    customer: Int64s
    day: Int64s
    shipped: Int64s
    revenue: Int64s


def graph(nodes: int, edges: int, changes: int, seed: int = 1) -> GraphWorkload:
    """Load `edges` edges, then replace one edge in each change."""
    schedule = Schedule(edges, changes, step=1)
    src, dst = draws((nodes, nodes), schedule.rows, seed)
    return GraphWorkload(nodes, schedule, src, dst)


def _table_schedule(rows: int, epochs: int, updates: int) -> Schedule:
    """Load `rows` rows; half of the `updates` of an epoch remove, half insert."""
    if updates % 2 != 0:
        message = f"updates must be even, half of them removals, not {updates}"
        raise ValueError(message)
    return Schedule(rows, epochs, step=updates // 2)


def count(keys: int, rows: int, epochs: int, updates: int, seed: int = 1) -> CountWorkload:
    """Load `rows` rows, then apply `updates` updates in each of `epochs` epochs."""
    schedule = _table_schedule(rows, epochs, updates)
    (key,) = draws((keys,), schedule.rows, seed)
    return CountWorkload(keys, schedule, key)


def sum_(keys: int, rows: int, epochs: int, updates: int, seed: int = 1) -> SumWorkload:
    """As `count`, with a value drawn after each key."""
    schedule = _table_schedule(rows, epochs, updates)
    key, value = draws((keys, SUM_VALUES), schedule.rows, seed)
    return SumWorkload(keys, schedule, key, value)


def join(keys: int, rows: int, epochs: int, updates: int, seeds: tuple[int, int] = (1, 2)) -> JoinWorkload:
    """As `count`, twice: `updates` updates on each side in each epoch."""
    schedule = _table_schedule(rows, epochs, updates)
    (left_key,), (right_key,) = (draws((keys,), schedule.rows, seed) for seed in seeds)
    return JoinWorkload(keys, schedule, left_key, right_key)


def q3(orders: int, epochs: int, updates: int) -> Q3Workload:
    """Load `orders` orders, then apply `updates` updates of orders and lines in each of `epochs` epochs.

    Drawn are each customer's segment by seed 1, each order's customer and day by seed 2, and of each line how
    many days later it was shipped, its price and its discount by seed 3.
    """
    each = 2 * (1 + LINES_OF_ORDER)
    if updates % each != 0:
        message = f"updates must be a multiple of {each}, an order and its lines that go and come: {updates}"
        raise ValueError(message)
    schedule = Schedule(orders, epochs, step=updates // each)
    customers = max(1, orders // ORDERS_OF_CUSTOMER)
    (segment,) = draws((SEGMENTS,), customers, seed=1)
    customer, day = draws((customers, DAYS), schedule.rows, seed=2)
    lines = schedule.rows * LINES_OF_ORDER
    later, price, discount = draws((SHIPPED_DAYS, SUM_VALUES, DISCOUNTS), lines, seed=3)
    shipped = np.repeat(day, LINES_OF_ORDER) + later + 1
    return Q3Workload(schedule, segment, customer, day, shipped, price * (100 - discount))


# Checks


class CheckJson(TypedDict):
    """A check as the peers print it."""

    n: int
    special: int | None
    sum: int
    hash: str


@dataclass(frozen=True, slots=True)
class Check:
    """Four sums over an output; `special` is None where a workload states none.

    Laws: the check of two outputs together is the sum of their checks · order does not matter
    """

    n: int
    special: int | None
    sum: int
    hash: int

    def __add__(self, other: Check) -> Check:
        """The check of both outputs together."""
        if self.special is None or other.special is None:
            assert self.special is other.special  # otherwise they are of different workloads
            special = None
        else:
            special = self.special + other.special
        hash_ = (self.hash + other.hash) & WORD_MASK
        return Check(self.n + other.n, special, self.sum + other.sum, hash_)

    def __str__(self) -> str:
        """As in the table of the expected checks."""
        special = "-" if self.special is None else self.special
        return f"{self.n} {special} {self.sum} {self.hash:016x}"

    def to_json(self) -> CheckJson:
        """As the peers print it."""
        return {"n": self.n, "special": self.special, "sum": self.sum, "hash": f"{self.hash:016x}"}

    @staticmethod
    def from_json(json: CheckJson) -> Check:
        """The inverse of `to_json`."""
        return Check(json["n"], json["special"], json["sum"], int(json["hash"], 16))


def mix(a: Int64s, b: Int64s) -> UInt64s:
    """A well spread word for each pair: the finalizer of splitmix64 on a · 2³² | b."""
    x = a.astype(np.uint64)
    x <<= np.uint64(32)
    x |= b.astype(np.uint64)
    x ^= x >> np.uint64(30)
    x *= np.uint64(0xBF58476D1CE4E5B9)
    x ^= x >> np.uint64(27)
    x *= np.uint64(0x94D049BB133111EB)
    x ^= x >> np.uint64(31)
    return x


def _check(
    hashed: tuple[Int64s, Int64s], special: Bools | None, summand: Int64s, diffs: Int64s | None
) -> Check:
    """The check of rows given by what each contributes; without `diffs` each is there once."""
    hashes = mix(*hashed)
    if diffs is None:
        specials = None if special is None else int(np.count_nonzero(special))
        return Check(len(summand), specials, int(summand.sum()), int(hashes.sum()))
    hashes *= diffs.astype(np.uint64)  # modulo 2⁶⁴, where −1 is 2⁶⁴ − 1
    specials = None if special is None else int(diffs[special].sum())
    return Check(int(diffs.sum()), specials, int(summand @ diffs), int(hashes.sum()))


def check_wcc(nodes: Int64s, labels: Int64s, diffs: Int64s | None = None) -> Check:
    """Rows (node, label); special are labels equal to their node, so components are counted."""
    return _check((nodes, labels), nodes == labels, labels, diffs)


def check_bfs(nodes: Int64s, distances: Int64s, diffs: Int64s | None = None) -> Check:
    """Rows (node, distance); special are the nodes at distance 1."""
    return _check((nodes, distances), distances == 1, distances, diffs)


def check_scc(src: Int64s, dst: Int64s, diffs: Int64s | None = None) -> Check:
    """Rows are the directed edges inside a component; the sum is that of their endpoints."""
    return _check((src, dst), None, src + dst, diffs)


def check_pagerank(nodes: Int64s, ranks: Int64s, diffs: Int64s | None = None) -> Check:
    """Rows are the nodes, each as often as its rank says: the sum is that of the nodes."""
    times = ranks if diffs is None else ranks * diffs
    return _check((nodes, nodes), None, nodes, times)


def check_count(keys: Int64s, counts: Int64s, diffs: Int64s | None = None) -> Check:
    """Rows (key, count); special are counts of 1."""
    return _check((keys, counts), counts == 1, counts, diffs)


def check_sum(keys: Int64s, totals: Int64s, diffs: Int64s | None = None) -> Check:
    """Rows (key, total); hashed are the lower 32 bits of the total."""
    return _check((keys, totals & 0xFFFFFFFF), None, totals, diffs)


def check_join(keys: Int64s, left_rows: Int64s, right_rows: Int64s, diffs: Int64s | None = None) -> Check:
    """Rows (key, left row, right row); special are pairs with equal row numbers."""
    return _check((left_rows, right_rows), left_rows == right_rows, keys, diffs)


def check_top(keys: Int64s, values: Int64s, diffs: Int64s | None = None) -> Check:
    """Rows (key, value), at most `TOP_ROWS` of each key."""
    return _check((keys, values), None, values, diffs)


def check_q3(orders: Int64s, revenues: Int64s, diffs: Int64s | None = None) -> Check:
    """Rows (order, revenue, day), ten at most; hashed are the lower 32 bits of the revenue."""
    return _check((orders, revenues & 0xFFFFFFFF), None, revenues, diffs)


# What is expected


class Expected(NamedTuple):
    """The checks that a run must meet."""

    load: Check
    changes: Check


# Workload | n, special, sum, hash after the load | the same after the changes. Agreed upon by
# differential dataflow and recomputation; components, reach and distances also by scipy, igraph and
# networkx.
_EXPECTED_TABLE = """
wcc 100000 200000 100             | 100000 1900 95841942 6ab5d8fc67da7a27     | 100000 1902 95860218 a7ba2bcc3c850898
wcc 100000 1000000 100            | 100000 1 0 448bd65ad0aa2642               | 100000 1 0 448bd65ad0aa2642
wcc 1000000 2000000 100           | 1000000 19002 9606300467 13d2eabb01c57a9f | 1000000 19001 9607764275 0a31e406e342bdc8
bfs 100000 200000 100             | 79854 3 1223873 6abd1b0ebfd7be18          | 79854 3 1223972 a5af066dc5847524
bfs 100000 1000000 100            | 99995 12 511926 0d65b7248013ec76          | 99995 12 511973 6760f1c83b9cdd5e
bfs 1000000 2000000 100           | 796356 5 14545061 bbc02a42a99b20a1        | 796359 5 14549496 47aec6bfebe8e738
scc 100000 200000 20              | 127589 - 12770144381 4e91b0f1362d60ec     | 127606 - 12771811791 ba1c3dafc68ea2c1
pagerank 100000 200000 5          | 357749215368 - 17857705603248521 01f38c006096d3d0 | 357741880689 - 17857153731761763 1fa349aea62883ba
count 1000000 10000000 1000 1000  | 999962 494 10000000 6d156788ea3e5c3e      | 999961 476 10000000 12e2353dbbfc75ab
sum 1000000 10000000 1000 1000    | 999956 - 5242601367426 cbb7f14b51c7b774   | 999942 - 5242924281354 9bd355f078a55e15
join 1000000 1000000 1000 1000    | 1000882 1 499863005080 9299f832b6982e8b   | 1001497 1 500842604443 699cd1fca651f531
top 100000 1000000 1000 1000      | 299671 - 251687421373 d868dbd3bb523d12    | 299692 - 251602272540 2c8866b53fd582ca
q3 250000 1000 1000               | 10 - 3248254376 2e5f904c7133de3c          | 10 - 3328879690 fa0893cecf28e7aa
"""  # noqa: E501 — a table is read by its columns


def _parse_check(text: str) -> Check:
    """The inverse of `str(check)`."""
    n, special, sum_text, hash_text = text.split()
    special_count = None if special == "-" else int(special)
    return Check(int(n), special_count, int(sum_text), int(hash_text, 16))


def _parse_expected(table: str) -> dict[str, Expected]:
    parsed = {}
    for line in table.strip().splitlines():
        workload, load, changes = line.split("|")
        parsed[workload.strip()] = Expected(_parse_check(load), _parse_check(changes))
    return parsed


EXPECTED: dict[str, Expected] = _parse_expected(_EXPECTED_TABLE)
"""By workload and sizes, as in "wcc 100000 200000 100"."""


def expected(workload: str) -> Expected | None:
    """The checks of a workload as a peer prints it, if they are known.

    How it is computed does not matter: "wcc plain …" and "wcc prioritised …" are both "wcc …".
    """
    name, *rest = workload.split()
    return EXPECTED.get(" ".join([name, *(word for word in rest if word.isdecimal())]))
