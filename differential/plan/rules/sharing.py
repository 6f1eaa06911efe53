"""Decide which collections are stored by key once, and read by several operators.

A join stores both of its sides by key, a reduce its rows by key and its answers. Rows that two of
them would store alike are stored once, as an *arrangement* (`operators/arrange.py`):

    answers     a join by the keys of a reduce (or a distinct) reads the answers that this stores
    returned    a loop whose variable goes on as such answers: they are the variable, one iteration later
    arranged    joins, and reduces, of one collection by the same keys; `arrange(by)` asks for it, and exports
                to other dataflows are arranged

The decision is made on a finished plan, by the collection and its columns. Nodes that only move columns are
looked through (so another name for a column makes no difference), filters are not.

When it must not be done:

    a join, or `Keys`, may read rows that have more columns than it needs; a reduce may not: where
    multiplicities cancel, rows that differ in another column only are still there, and would count
    the order of keys decides on which worker rows are: it must be the same
    sums store no rows that others could read; counts of rows alone are multiplicities of keys, and may share
    one reader gains nothing by an arrangement of its own
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from ...columns.schema import Schema
from ...expressions.expression import ColumnRef
from ..facts import small_side
from ..nodes import (
    Accumulate,
    Arrange,
    Distinct,
    Export,
    GroupValues,
    Join,
    Keys,
    LetRec,
    Node,
    OverWindow,
    Pairs,
    Reduce,
    ReduceFunction,
    Select,
    Sweep,
    TopK,
    Variable,
)
from ..rewriting import beneath

__all__ = [
    "Identity",
    "Reading",
    "SharedArrangement",
    "Sharing",
    "answers_of",
    "collection_of",
    "half_join_arrangement",
    "read_by_reduce",
    "read_of",
    "reads_answers",
    "requested_arrangement",
    "returned_answers",
    "share",
]


Identity = tuple[bytes, tuple[str, ...], tuple[str, ...]]
"""The identity of an arrangement: digest of the node, keys, values."""


@dataclass(frozen=True)
class SharedArrangement:
    """An arrangement: the columns `keys`, then `values`, of `node`."""

    node: Node
    keys: tuple[str, ...]
    values: tuple[str, ...]

    @cached_property
    def schema(self) -> Schema:
        """Its columns, in its order."""
        return self.node.schema.picked((*self.keys, *self.values))

    def describe(self) -> str:
        """Return the node, and its keys."""
        text = self.node.describe()
        return text if isinstance(self.node, Arrange) else f"{text} by {', '.join(self.keys)}"

    @property
    def identity(self) -> Identity:
        """Equal for the same arrangement."""
        return (self.node.digest, self.keys, self.values)


@dataclass(frozen=True)
class Reading:
    """Rows that an operator stores by key: `columns` maps its own names to columns of `node`."""

    node: Node
    keys: tuple[str, ...]
    columns: dict[str, str]

    @property
    def values(self) -> frozenset[str]:
        """The columns of `node` that it needs besides the keys."""
        return frozenset(self.columns.values()) - frozenset(self.keys)


@dataclass
class Sharing:
    """The arrangements that a plan shares.

    joins      by join and side: the arrangement that is read there; variables of loops aside
    reduces    by reduce, or `Keys`: the arrangement that it reads
    answers    the reduces whose answers other operators read
    returns    by loop and variable: how many sides of joins read the answers that the variable goes on as
    exports    by identity of an arrangement: the export that stores it for other dataflows, too
    """

    joins: dict[tuple[bytes, int], SharedArrangement] = field(default_factory=dict)
    reduces: dict[bytes, SharedArrangement] = field(default_factory=dict)
    answers: set[bytes] = field(default_factory=set)
    returns: Counter[tuple[bytes, int]] = field(default_factory=Counter)
    exports: dict[Identity, Export] = field(default_factory=dict)

    def describe(self) -> str:
        """Return what is stored once for several operators."""
        read = {
            arrangement.identity: arrangement
            for arrangement in (*self.joins.values(), *self.reduces.values())
        }
        named = [
            arrangement.describe()
            for arrangement in read.values()
            if arrangement.node.digest not in self.answers
        ]
        if self.answers:
            named.append(f"answers of {len(self.answers)} operator{'s' * (len(self.answers) > 1)}")
        return f"kept once: {', '.join(named)}" if named else "nothing is kept for several"


def share(roots: Sequence[Node]) -> Sharing:
    """Return what is worth sharing beneath `roots`."""
    sharing = Sharing()
    nodes = list(beneath(roots))
    loops = Counter(
        join.digest
        for loop in nodes
        if isinstance(loop, LetRec)
        for join in _within(loop)
        if max(join.free) == loop.depth
    )
    demands: defaultdict[tuple[bytes, tuple[str, ...]], _Demand] = defaultdict(_Demand)
    for node in nodes:
        if isinstance(node, Join):
            for side in (0, 1):
                reading = read_of(node, side)
                if reading is not None and not isinstance(reading.node, Variable):
                    # Equal joins are one node, and have a stage in each of the loops that they are in.
                    is_outside = reading.node.free != node.free
                    times = max(1, loops[node.digest]) if is_outside else 1
                    demands[reading.node.digest, reading.keys].joins += [(node, side, reading)] * times
        elif isinstance(node, Reduce) or (isinstance(node, Accumulate) and node.counts_only):
            reading = read_by_reduce(node)
            if reading is not None:
                demands[reading.node.digest, reading.keys].reduces[reading.values].append((node, reading))
        elif isinstance(node, Keys):
            reading = _reading(node.source, node.keys, node.keys)
            if reading is not None and not isinstance(reading.node, Variable):
                demands[reading.node.digest, reading.keys].keys.append((node, reading))
        elif isinstance(node, LetRec):
            _share_returned(node, sharing)
        elif isinstance(node, Export):
            demands[node.source.digest, node.keys].export = node
    for each in demands.values():
        each.decide(sharing)
    return sharing


def read_of(join: Pairs, side: int) -> Reading | None:
    """Return what a side of a join stores; None if two of its keys are one column, or if a side goes to all
    workers: then neither is stored as others store it.
    """
    if small_side(join) is not None:
        return None
    return _reading(join.children[side], join.keys[side], join.children[side].schema.names)


def half_join_arrangement(join: Pairs, side: int) -> tuple[SharedArrangement, dict[str, str]]:
    """Return the arrangement that a half join looks up on a side, and by the side's columns those of it."""
    child, keys = join.children[side], join.keys[side]
    reading = read_of(join, side) or Reading(child, keys, {name: name for name in child.schema.names})
    return _arrangement_of(reading.node, reading.keys, reading.values), reading.columns


def read_by_reduce(node: Reduce | Accumulate) -> Reading | None:
    """Return what a reduce, or a count, stores; None if two of its columns are one."""
    names = node.columns_read(0) if isinstance(node, Accumulate) else node.columns_read
    reading = _reading(node.children[0], node.keys, names)
    # Two columns that are one would be one word of an arrangement, but two words of the reduce.
    return (
        reading
        if reading is not None and len(set(reading.columns.values())) == len(reading.columns)
        else None
    )


def _reading(node: Node, keys: Sequence[str], names: Iterable[str]) -> Reading | None:
    columns = {name: name for name in names}
    while isinstance(node, Select):
        moved = _moved(node, columns)
        if moved is None:
            break
        node, columns = node.source, moved
    column_keys = tuple(columns[key] for key in keys)
    return Reading(node, column_keys, columns) if len(set(column_keys)) == len(column_keys) else None


def collection_of(node: Node) -> tuple[Node, dict[str, str]]:
    """Return the collection whose columns this one has moved, and by name which of these columns each is."""
    reading = _reading(node, (), node.schema.names)
    assert reading is not None
    return reading.node, reading.columns


def _moved(select: Select, columns: dict[str, str]) -> dict[str, str] | None:
    """Return `columns` as they are called below `select`; None if it computes one of them."""
    exprs = dict(select.columns)
    below: dict[str, str] = {}
    for name, column in columns.items():
        expr = exprs[column]
        if not isinstance(expr, ColumnRef):
            return None
        below[name] = expr.name
    return below


def answers_of(node: Node) -> SharedArrangement | None:
    """Return how an operator stores its answers; None for one that stores none."""
    if isinstance(node, Distinct | Keys):
        return SharedArrangement(node, node.schema.names, ())
    if isinstance(node, Accumulate | Reduce | ReduceFunction | GroupValues | Sweep | TopK | OverWindow):
        return SharedArrangement(
            node, node.keys, tuple(name for name in node.schema.names if name not in node.keys)
        )
    return None


def returned_answers(loop: LetRec, index: int) -> tuple[SharedArrangement, dict[str, str]] | None:
    """Return the answers as which a variable goes on inside the loop, and by the variable's columns theirs.

    None if the variable goes on as something else. None for a loop that stops, too: rows that go on too late
    are dropped there, and answers that are read where they are stored cannot be dropped.
    """
    if loop.stops:
        return None
    names = loop.initials[index].schema.names
    reading = _reading(loop.bodies[index], (), names)
    assert reading is not None
    answers = answers_of(reading.node)
    if answers is None or max(answers.node.free, default=0) != loop.depth:
        return None
    if sorted(reading.columns.values()) != sorted(answers.schema.names):
        return None
    return answers, reading.columns


def _share_returned(loop: LetRec, sharing: Sharing) -> None:
    """Note which joins in `loop` can read the answers that one of its variables goes on as."""
    back = [returned_answers(loop, index) for index in range(len(loop.bodies))]
    for join in _within(loop):
        for side in (0, 1):
            reading = read_of(join, side)
            if reading is None or not isinstance(reading.node, Variable) or reading.node.depth != loop.depth:
                continue
            goes_on = back[reading.node.index]
            if goes_on is not None and reads_answers(reading, *goes_on):
                sharing.answers.add(goes_on[0].node.digest)
                sharing.returns[loop.digest, reading.node.index] += 1


def reads_answers(reading: Reading, answers: SharedArrangement, columns: dict[str, str]) -> bool:
    """Return True if an operator that reads a variable by these keys can read the answers instead.

    `columns` has the answers' column for each column of the variable.
    """
    return tuple(columns[key] for key in reading.keys) == answers.keys


def _within(loop: LetRec) -> Iterator[Join]:
    """The joins that depend on variables of `loop`."""
    waiting: list[Node] = [*loop.bodies, *loop.effects]
    seen: set[bytes] = set()
    while waiting:
        node = waiting.pop()
        if node.digest in seen or loop.depth not in node.free:
            continue
        seen.add(node.digest)
        if isinstance(node, Join):
            yield node
        waiting.extend(node.children)


@dataclass
class _Demand:
    """The operators that need one collection by the same keys; reduces by the columns that they need."""

    joins: list[tuple[Join, int, Reading]] = field(default_factory=list)
    keys: list[tuple[Keys, Reading]] = field(default_factory=list)
    export: Export | None = None
    reduces: defaultdict[frozenset[str], list[tuple[Reduce | Accumulate, Reading]]] = field(
        default_factory=lambda: defaultdict(list)
    )

    def decide(self, sharing: Sharing) -> None:
        """Enter into `sharing` which operators share it."""
        if self.export is not None:
            exported = _arrangement_of(
                self.export.source, self.export.keys, frozenset(self.export.schema.names)
            )
            sharing.exports[exported.identity] = self.export
            self._assign(sharing, exported, joins=True)
            return
        some = [reading for _, _, reading in self.joins]
        some += [reading for reduces in self.reduces.values() for _, reading in reduces]
        some += [reading for _, reading in self.keys]
        node, keys = some[0].node, some[0].keys
        answers = answers_of(node)
        if answers is not None and answers.keys == keys and self.joins:
            sharing.answers.add(node.digest)
            self._assign(sharing, answers, joins=True)
            return
        if isinstance(node, Arrange) and node.keys == keys:
            self._assign(sharing, requested_arrangement(node), joins=True)
            return
        needed = frozenset[str]().union(*(reading.values for _, _, reading in self.joins))
        for columns in sorted(self.reduces, key=lambda names: (len(names), sorted(names))):
            reduces = self.reduces[columns]
            takes_joins = bool(self.joins) and needed <= columns and not self._joins_are_assigned(sharing)
            if takes_joins or len(reduces) > 1:
                self._assign(sharing, _arrangement_of(node, keys, columns), joins=takes_joins)
        if self.joins and len(self.joins) + len(self.keys) > 1 and not self._joins_are_assigned(sharing):
            self._assign(sharing, _arrangement_of(node, keys, needed), joins=True)

    def _joins_are_assigned(self, sharing: Sharing) -> bool:
        return any((join.digest, side) in sharing.joins for join, side, _ in self.joins)

    def _assign(self, sharing: Sharing, arrangement: SharedArrangement, joins: bool) -> None:
        """Let reduces that need exactly these columns, and all joins if `joins`, read the arrangement."""
        if joins:
            for join, side, _ in self.joins:
                sharing.joins[join.digest, side] = arrangement
        if joins and answers_of(arrangement.node) is None:
            for node, _ in self.keys:
                sharing.reduces[node.digest] = arrangement
        if answers_of(arrangement.node) is None:
            for reduce, _ in self.reduces.get(frozenset(arrangement.values), ()):
                sharing.reduces[reduce.digest] = arrangement


def requested_arrangement(node: Arrange) -> SharedArrangement:
    """Return the arrangement of an `arrange` of the user: with all columns that its readers have left it."""
    return _arrangement_of(node, node.keys, frozenset(node.schema.names))


def _arrangement_of(node: Node, keys: tuple[str, ...], columns: frozenset[str]) -> SharedArrangement:
    others = (name for name in node.schema.names if name in columns and name not in keys)
    return SharedArrangement(node, keys, tuple(others))
