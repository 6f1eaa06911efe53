"""Loops too long, too wide or too many for one call of a kernel: what they give, and what is told of them.

Each is run as a region and as ordinary loops; both must say the same.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Sequence

import pytest

import differential as dd
import timely
from differential import Collection, col
from differential.columns.packed import parts
from differential.compiled_loops import slots
from differential.compiled_loops.slots import Slots

Row = tuple[object, ...]
Changes = Sequence[tuple[Row, int]]
Told = tuple[list[Counter[Row]], object]


def _distances(edges: Collection, roots: Collection, limit: int = 1_000_000) -> Collection:
    own = roots.select("node", far=0)

    def body(reached: Collection) -> Collection:
        further = reached.join(edges, on={"node": "src"}).select(node=col.dst, far=col.far + 1)
        return further.concat(own).group_by("node").agg(far=dd.min("far"))

    return own.iterate(body, iterations_max=limit)


def _labels(edges: Collection, roots: Collection) -> Collection:
    both = edges.concat(edges.select(src=col.dst, dst=col.src))
    nodes = both.select(node=col.src, label=col.src).concat(roots.select("node", label=col.node)).distinct()

    def body(labels: Collection) -> Collection:
        spread = labels.join(both, on={"node": "src"}).select(node=col.dst, label=col.label)
        return spread.concat(nodes).group_by("node").agg(label=dd.min("label"))

    return nodes.iterate(body)


def _siblings(edges: Collection, roots: Collection) -> Collection:
    """Both sides of the join are what goes round."""
    start = edges.concat(roots.select(src=col.node, dst=col.node)).distinct()

    def body(near: Collection) -> Collection:
        pairs = near.join(near.select("src", other=col.dst), on="src")
        return pairs.select(src=col.dst, dst=col.other).concat(start).distinct()

    return start.iterate(body)


def _read_by_groups(edges: Collection, roots: Collection) -> Collection:
    """Groups and a join read one arrangement, which is inserted into several times in an iteration."""
    start = edges.concat(roots.select(src=col.node, dst=col.node)).distinct()

    def body(near: Collection) -> Collection:
        kept = near.arrange(by="src")
        largest = kept.group_by("src").agg(dst=dd.max("dst"))
        number = kept.group_by("src").agg(dst=dd.count()).filter(col.dst < 4)
        further = kept.join(edges.distinct().select("src", to=col.dst), on="src").select(
            src=col.to, dst=col.dst
        )
        turned = largest.select(src=col.dst, dst=col.src)
        return further.concat(near, start, turned, number).distinct()

    return start.iterate(body)


def _delayed(edges: Collection, roots: Collection) -> Collection:
    """Of each epoch a half comes with the rows of an epoch that is open for long."""
    return _labels(edges.filter(col.src % 2 == 0).concat(edges.filter(col.src % 2 == 1).delay(2)), roots)


def _told(
    build: Callable[[Collection, Collection], Collection],
    epochs: Sequence[Changes],
    type_: str,
    is_region: bool,
    monkeypatch: pytest.MonkeyPatch,
    bits: tuple[int, ...] | None = None,
    at_once: int = 1,
    leap: int = 0,
) -> Told:
    """The output after each wait, and what is said of iterations at the end. After each two epochs so many
    are leapt over.
    """
    monkeypatch.setenv("NAIAD_REGIONS", "1" if is_region else "0")

    def flow_of(flow: timely.Dataflow) -> None:
        flow.level_bits = bits
        edges = dd.input(flow, "edges", f"src: {type_}, dst: {type_}")
        build(edges, dd.input(flow, "roots", f"node: {type_}")).output("out")

    found: list[Counter[Row]] = []
    now: Counter[Row] = Counter()
    with timely.connect(workers=1, embedded=True) as cluster:
        flow = cluster.install(flow_of)
        flow.input("roots").insert([(0 if type_ == "int" else "0",)])
        for number, changes in enumerate(epochs, 1):
            for diff, call in ((1, flow.input("edges").insert), (-1, flow.input("edges").remove)):
                rows = [row for row, each in changes if each == diff]
                if rows:
                    call(rows)
            epoch = flow.seal()
            if leap and number % 2 == 0:
                epoch = flow.seal(through=epoch + leap)
            if number % at_once == 0:
                flow.wait(epoch)
                for *row, _, diff in zip(*flow.output("out").changes().to_pydict().values(), strict=True):
                    now[tuple(row)] += diff
                flow.output("out").forget()
                found.append(Counter({row: count for row, count in now.items() if count}))
        iterations = sorted(flow.iterations().to_pylist(), key=str)
    return found, iterations


def _random_changes(seed: int, nodes: int, first: int, changes: int, each: int) -> list[Changes]:
    rng = random.Random(seed)
    present = [(rng.randrange(nodes), rng.randrange(nodes)) for _ in range(first)]
    epochs: list[Changes] = [[(row, 1) for row in present]]
    for _ in range(changes):
        gone = [present.pop(rng.randrange(len(present))) for _ in range(each)]
        new = [(rng.randrange(nodes), rng.randrange(nodes)) for _ in range(each)]
        present += new
        epochs.append([*((row, -1) for row in gone), *((row, 1) for row in new)])
    return epochs


def _path(edges: int) -> Changes:
    return [((node, node + 1), 1) for node in range(edges)]


def _star(diff: int, rays: int) -> Changes:
    return [((0, node), diff) for node in range(1, rays)]


Case = tuple[Callable[[Collection, Collection], Collection], list[Changes], dict[str, object]]

CASES: dict[str, Case] = {
    # More rounds than are told at once, more barriers than are opened at once; heads that fill up.
    "long": (
        _distances,
        [[((n, n + 1), 1) for n in range(3_000)], [((0, 7), 1)], [((1_500, 1_501), -1)]],
        {},
    ),
    # More rows in an iteration than a kernel takes, in the load and in a change.
    "wide": (_labels, _random_changes(1, 4_000, 9_000, 8, 700), {}),
    "star": (
        _distances,
        [[((0, n), 1) for n in range(1, 3_000)], [((0, n), -1) for n in range(1, 2_000)]],
        {},
    ),
    # So many small changes that heads are frozen and runs merged between calls.
    "many": (_labels, _random_changes(2, 300, 350, 400, 3), {}),
    # Words count from a later epoch again and again.
    "few bits": (_labels, _random_changes(3, 60, 70, 60, 2), {"bits": (3, 14)}),
    # Rows of later epochs are among those that are too many for a kernel.
    "delayed": (_delayed, _random_changes(6, 3_000, 4_000, 6, 900), {}),
    "siblings": (_siblings, _random_changes(7, 14, 12, 25, 2), {}),
    # Rows of an arrangement that wait at a barrier are more than a kernel takes, and came in several parts.
    "groups at once": (_read_by_groups, _random_changes(0, 60, 60, 60, 4), {"at_once": 20}),
    # What is not closed is further ahead than words can say, while rows of later epochs of a stretch wait.
    "leaps": (
        _read_by_groups,
        _random_changes(0, 40, 40, 24, 8),
        {"at_once": 12, "bits": (3, 14), "leap": 20},
    ),
    "at once": (_distances, _random_changes(4, 60, 90, 60, 2), {"at_once": 10}),
}


@pytest.mark.parametrize("case", CASES)
def test_compiled_and_ordinary_loops_say_the_same(case: str, monkeypatch: pytest.MonkeyPatch) -> None:
    build, epochs, more = CASES[case]
    ours, rounds = _told(build, epochs, "int", True, monkeypatch, **more)  # type: ignore[arg-type]
    others, known = _told(build, epochs, "int", False, monkeypatch, **more)  # type: ignore[arg-type]
    assert ours == others
    assert any(ours)
    if "at_once" not in more:  # where epochs wait together ordinary loops tell of rows by the first of them
        assert rounds == known


@pytest.mark.parametrize(
    ("case", "bits"),
    [("wide", None), ("wide", (2, 14)), ("star", None), ("delayed", (2, 14)), ("groups at once", None)],
)
def test_the_same_where_rows_that_wait_are_packed(
    case: str, bits: tuple[int, ...] | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(slots, "SLOT_LOOSE_ROWS_MAX", 600)
    monkeypatch.setattr(parts, "PACKED_ROWS", 64)
    packed: list[int] = []
    whole = Slots._put_many
    monkeypatch.setattr(
        Slots, "_put_many", lambda self, slot, words: (packed.append(slot), whole(self, slot, words))[1]
    )
    build, epochs, more = CASES[case]
    more = {"bits": bits, **more}
    ours, _ = _told(build, epochs, "int", True, monkeypatch, **more)  # type: ignore[arg-type]
    assert packed
    others, _ = _told(build, epochs, "int", False, monkeypatch, **more)  # type: ignore[arg-type]
    assert ours == others


def test_texts_are_known_as_long_as_they_go_round(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NAIAD_SYMBOLS_MIN", "1")
    epochs = [
        [((str(a), str(b)), diff) for (a, b), diff in changes]
        for changes in _random_changes(5, 40, 50, 40, 2)
    ]
    ours, _ = _told(_distances, epochs, "str", True, monkeypatch)
    others, _ = _told(_distances, epochs, "str", False, monkeypatch)
    assert ours == others
    assert any(ours)


@pytest.mark.parametrize("limit", [3, 40])
def test_a_loop_without_an_end_ends_with_the_same_words(limit: int, monkeypatch: pytest.MonkeyPatch) -> None:
    said = []
    for is_region in (True, False):
        with pytest.raises(timely.TimelyError) as caught:
            _told(
                lambda edges, roots: _distances(edges, roots, limit),
                [_path(100)],
                "int",
                is_region,
                monkeypatch,
            )
        said.append(str(caught.value))
    assert said[0] == said[1]
    assert f"limit of {limit} iterations" in said[0] and "Rows that came and went" in said[0]
