"""Which collections are kept by key once, and read by several operators?

A join keeps both of its sides by key, a reduce its rows by key and its answers. What two of them would keep
alike is kept once, as an *arrangement* (`operators/arrange.py`):

    answers     a join by the keys of a reduce (or a distinct) reads what that keeps of its answers
    returned    a loop whose variable goes on as such answers: they are the variable, one iteration later
    arranged    joins, and reduces, of one collection by the same keys; `arrange(by)` asks for it, and what is
                exported to other dataflows is arranged

It is decided on a finished plan, by the collection and its columns: what only moves columns is looked through
(so another name for a column makes no difference), filters are not.

When it must not be done:

    a join, or who asks for keys only, may read rows that have more columns than it needs; a reduce may not:
    where multiplicities cancel, rows that differ in another column only are still there, and would count
    the order of keys decides on which worker rows are: it must be the same
    sums keep no rows that others could read; numbers of rows alone are those of keys, and may
    one reader gains nothing by an arrangement of its own
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from ...columns.schema import Schema
from ...expressions.expression import ColumnRef
from ..nodes import (
    Accumulate,
    Arrange,
    Distinct,
    Export,
    Join,
    Keys,
    LetRec,
    Node,
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
    "answered",
    "collection_of",
    "kept_by",
    "kept_for",
    "read_by_reduce",
    "read_of",
    "reads_answers",
    "returned",
    "share",
]


Identity = tuple[bytes, tuple[str, ...], tuple[str, ...]]
"""Of what is kept: digest of the node, keys, values."""


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
        """What is kept, and by what."""
        text = self.node.describe()
        return text if isinstance(self.node, Arrange) else f"{text} by {', '.join(self.keys)}"

    @property
    def identity(self) -> Identity:
        """Equal for the same arrangement."""
        return (self.node.digest, self.keys, self.values)


@dataclass(frozen=True)
class Reading:
    """What an operator keeps by key: `columns` has, by its own name, which column of `node` that is."""

    node: Node
    keys: tuple[str, ...]
    columns: dict[str, str]

    @property
    def values(self) -> frozenset[str]:
        """The columns of `node` that it needs beside the keys."""
        return frozenset(self.columns.values()) - frozenset(self.keys)


@dataclass
class Sharing:
    """What is shared in a plan.

    joins      by join and side: the arrangement that is read there; variables of loops aside
    reduces    by reduce, or who asks for keys: the arrangement that it reads
    answers    reduces of which others read the answers
    returns    by loop and variable: how many sides of joins read the answers that this goes on as
    exports    by what is kept: who keeps it for other dataflows, too
    """

    joins: dict[tuple[bytes, int], SharedArrangement] = field(default_factory=dict)
    reduces: dict[bytes, SharedArrangement] = field(default_factory=dict)
    answers: set[bytes] = field(default_factory=set)
    returns: Counter[tuple[bytes, int]] = field(default_factory=Counter)
    exports: dict[Identity, Export] = field(default_factory=dict)

    def describe(self) -> str:
        """What is kept once for several operators."""
        read = {kept.identity: kept for kept in (*self.joins.values(), *self.reduces.values())}
        named = [kept.describe() for kept in read.values() if kept.node.digest not in self.answers]
        if self.answers:
            named.append(f"answers of {len(self.answers)} operator{'s' * (len(self.answers) > 1)}")
        return f"kept once: {', '.join(named)}" if named else "nothing is kept for several"


def share(roots: Sequence[Node]) -> Sharing:
    """What is worth being shared beneath `roots`."""
    found = Sharing()
    nodes = list(beneath(roots))
    loops = Counter(
        join.digest
        for loop in nodes
        if isinstance(loop, LetRec)
        for join in _within(loop)
        if max(join.free) == loop.depth
    )
    wanted: defaultdict[tuple[bytes, tuple[str, ...]], _Wanted] = defaultdict(_Wanted)
    for node in nodes:
        if isinstance(node, Join):
            for side in (0, 1):
                reading = read_of(node, side)
                if reading is not None and not isinstance(reading.node, Variable):
                    # Joins that read alike are one node, and a stage in each of the loops that they are in.
                    is_outside = reading.node.free != node.free
                    times = max(1, loops[node.digest]) if is_outside else 1
                    wanted[reading.node.digest, reading.keys].joins += [(node, side, reading)] * times
        elif isinstance(node, Reduce) or (isinstance(node, Accumulate) and node.counts_only):
            reading = read_by_reduce(node)
            if reading is not None:
                wanted[reading.node.digest, reading.keys].reduces[reading.values].append((node, reading))
        elif isinstance(node, Keys):
            reading = _reading(node.source, node.keys, node.keys)
            if reading is not None and not isinstance(reading.node, Variable):
                wanted[reading.node.digest, reading.keys].keys.append((node, reading))
        elif isinstance(node, LetRec):
            _share_returned(node, found)
        elif isinstance(node, Export):
            wanted[node.source.digest, node.keys].export = node
    for each in wanted.values():
        each.decide(found)
    return found


def read_of(join: Pairs, side: int) -> Reading | None:
    """What a side of a join keeps; None if two of its keys are one column."""
    return _reading(join.children[side], join.keys[side], join.children[side].schema.names)


def kept_for(join: Pairs, side: int) -> tuple[SharedArrangement, dict[str, str]]:
    """What a half join looks up on a side, and by its own names which columns of that these are."""
    child, keys = join.children[side], join.keys[side]
    found = read_of(join, side) or Reading(child, keys, {name: name for name in child.schema.names})
    return _kept(found.node, found.keys, found.values), found.columns


def read_by_reduce(node: Reduce | Accumulate) -> Reading | None:
    """What a reduce, or a count, keeps; None if two of its columns are one."""
    names = node.columns_read(0) if isinstance(node, Accumulate) else node.columns_read
    found = _reading(node.children[0], node.keys, names)
    # Two columns that are one would be one word of an arrangement, and two of the reduce.
    return found if found is not None and len(set(found.columns.values())) == len(found.columns) else None


def _reading(node: Node, keys: Sequence[str], names: Iterable[str]) -> Reading | None:
    columns = {name: name for name in names}
    while isinstance(node, Select):
        moved = _moved(node, columns)
        if moved is None:
            break
        node, columns = node.source, moved
    found = tuple(columns[key] for key in keys)
    return Reading(node, found, columns) if len(set(found)) == len(found) else None


def collection_of(node: Node) -> tuple[Node, dict[str, str]]:
    """The collection of which this one has moved columns, and by name which of its columns each is."""
    found = _reading(node, (), node.schema.names)
    assert found is not None
    return found.node, found.columns


def _moved(select: Select, columns: dict[str, str]) -> dict[str, str] | None:
    """`columns` below `select`, if it computes none of them."""
    given = dict(select.columns)
    found: dict[str, str] = {}
    for name, column in columns.items():
        expr = given[column]
        if not isinstance(expr, ColumnRef):
            return None
        found[name] = expr.name
    return found


def answered(node: Node) -> SharedArrangement | None:
    """How an operator keeps its answers; None for one that keeps none."""
    if isinstance(node, Distinct | Keys):
        return SharedArrangement(node, node.schema.names, ())
    if isinstance(node, Accumulate | Reduce | ReduceFunction | Sweep | TopK):
        return SharedArrangement(
            node, node.keys, tuple(name for name in node.schema.names if name not in node.keys)
        )
    return None


def returned(loop: LetRec, index: int) -> tuple[SharedArrangement, dict[str, str]] | None:
    """The answers, kept inside the loop, as which a variable goes on; and by column of the variable the
    column of these. None if it goes on as something else, and of a loop that stops: what goes on too late is
    dropped there, and answers that are read where they are kept cannot be.
    """
    if loop.stops:
        return None
    names = loop.initials[index].schema.names
    reading = _reading(loop.bodies[index], (), names)
    assert reading is not None
    kept = answered(reading.node)
    if kept is None or max(kept.node.free, default=0) != loop.depth:
        return None
    if sorted(reading.columns.values()) != sorted(kept.schema.names):
        return None
    return kept, reading.columns


def _share_returned(loop: LetRec, found: Sharing) -> None:
    """Note which joins in `loop` can read the answers that one of its variables goes on as."""
    back = [returned(loop, index) for index in range(len(loop.bodies))]
    for join in _within(loop):
        for side in (0, 1):
            reading = read_of(join, side)
            if reading is None or not isinstance(reading.node, Variable) or reading.node.depth != loop.depth:
                continue
            goes_on = back[reading.node.index]
            if goes_on is not None and reads_answers(reading, *goes_on):
                found.answers.add(goes_on[0].node.digest)
                found.returns[loop.digest, reading.node.index] += 1


def reads_answers(reading: Reading, kept: SharedArrangement, columns: dict[str, str]) -> bool:
    """Whether what reads a variable by these keys can read answers, of which its columns are `columns`."""
    return tuple(columns[key] for key in reading.keys) == kept.keys


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
class _Wanted:
    """Who wants one collection by the same keys; reduces by the columns that they need."""

    joins: list[tuple[Join, int, Reading]] = field(default_factory=list)
    keys: list[tuple[Keys, Reading]] = field(default_factory=list)
    export: Export | None = None
    reduces: defaultdict[frozenset[str], list[tuple[Reduce | Accumulate, Reading]]] = field(
        default_factory=lambda: defaultdict(list)
    )

    def decide(self, found: Sharing) -> None:
        """Enter what is shared of it."""
        if self.export is not None:
            exported = _kept(self.export.source, self.export.keys, frozenset(self.export.schema.names))
            found.exports[exported.identity] = self.export
            self._give(found, exported, joins=True)
            return
        some = [reading for _, _, reading in self.joins]
        some += [reading for reduces in self.reduces.values() for _, reading in reduces]
        some += [reading for _, reading in self.keys]
        node, keys = some[0].node, some[0].keys
        kept = answered(node)
        if kept is not None and kept.keys == keys and self.joins:
            found.answers.add(node.digest)
            self._give(found, kept, joins=True)
            return
        if isinstance(node, Arrange) and node.keys == keys:
            self._give(found, kept_by(node), joins=True)
            return
        needed = frozenset[str]().union(*(reading.values for _, _, reading in self.joins))
        for columns in sorted(self.reduces, key=lambda names: (len(names), sorted(names))):
            reduces = self.reduces[columns]
            takes_joins = bool(self.joins) and needed <= columns and not self._are_given(found)
            if takes_joins or len(reduces) > 1:
                self._give(found, _kept(node, keys, columns), joins=takes_joins)
        if self.joins and len(self.joins) + len(self.keys) > 1 and not self._are_given(found):
            self._give(found, _kept(node, keys, needed), joins=True)

    def _are_given(self, found: Sharing) -> bool:
        return any((join.digest, side) in found.joins for join, side, _ in self.joins)

    def _give(self, found: Sharing, kept: SharedArrangement, joins: bool) -> None:
        """Let reduces that need exactly these columns, and perhaps all joins, read `kept`."""
        if joins:
            for join, side, _ in self.joins:
                found.joins[join.digest, side] = kept
        if joins and answered(kept.node) is None:
            for node, _ in self.keys:
                found.reduces[node.digest] = kept
        if answered(kept.node) is None:
            for reduce, _ in self.reduces.get(frozenset(kept.values), ()):
                found.reduces[reduce.digest] = kept


def kept_by(node: Arrange) -> SharedArrangement:
    """How an arrangement that was asked for is kept: with all columns that its readers have left it."""
    return _kept(node, node.keys, frozenset(node.schema.names))


def _kept(node: Node, keys: tuple[str, ...], columns: frozenset[str]) -> SharedArrangement:
    others = (name for name in node.schema.names if name in columns and name not in keys)
    return SharedArrangement(node, keys, tuple(others))
