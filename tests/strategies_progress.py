"""Times, summaries, antichains and dataflow graphs to test `progress` with.

Scopes nest up to three loops deep, of all kinds: product, prioritised, lexicographic. Times are small, so
that they meet; `wide_times` goes up to the limits of a layout.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass

from hypothesis import strategies as st

from progress.graph.graph import ConnectorSpec, Graph, StageSpec
from progress.times.path_summary import PathSummary
from progress.times.time_words import TimeCode, TimeLayout
from progress.times.timestamp import ROOT, TimeShape, Timestamp

LOOP_KINDS = ("product", "prioritized", "lexicographic")


def loop_in(shape: TimeShape, kind: str) -> TimeShape:
    """The scope of a loop of the given kind in `shape`."""
    if kind == "product":
        return shape.loop()
    return shape.prioritized_loop() if kind == "prioritized" else shape.lexicographic_loop()


def nested(kinds: tuple[str, ...] | list[str]) -> TimeShape:
    """The scope of loops of these kinds, one within the other."""
    shape = ROOT
    for kind in kinds:
        shape = loop_in(shape, kind)
    return shape


def kinds(depth_max: int = 3) -> st.SearchStrategy[tuple[str, ...]]:
    """Kinds of nested loops, outermost first."""
    return st.lists(st.sampled_from(LOOP_KINDS), max_size=depth_max).map(tuple)


def shapes(depth_max: int = 3) -> st.SearchStrategy[TimeShape]:
    """Scopes up to `depth_max` loops deep."""
    return kinds(depth_max).map(nested)


def times(shape: TimeShape, value_max: int = 3) -> st.SearchStrategy[Timestamp]:
    """Times of a scope with small coordinates."""
    return st.tuples(*[st.integers(0, value_max)] * shape.coordinates)


def wide_times(code: TimeCode) -> st.SearchStrategy[Timestamp]:
    """Times of a scope up to the limit of each field, limits and their neighbours preferred."""
    last = [code.layout.epochs - 1, *((1 << bits) - 1 for _, bits in code.fields[1:])]
    return st.tuples(
        *[
            st.one_of(
                st.integers(0, most),
                st.sampled_from([0, 1, most, (1 << (bits - 1)), max(0, (1 << (bits - 1)) - 1)]),
            )
            for most, (_, bits) in zip(last, code.fields, strict=True)
        ]
    )


@st.composite
def codes(draw: st.DrawFn, depth_max: int = 3) -> TimeCode:
    """A scope seen through the default layout of a dataflow that may be deeper than the scope."""
    shape = draw(shapes(depth_max))
    return TimeCode(TimeLayout.default(draw(st.integers(shape.levels, depth_max + 1))), shape)


@st.composite
def scope_paths(draw: st.DrawFn, length: int) -> list[TimeShape]:
    """Scopes of one dataflow, each reached from the one before by leaving some loops and entering others."""
    path = [draw(kinds())]
    while len(path) < length:
        kept = path[-1][: draw(st.integers(0, len(path[-1])))]
        path.append((kept + draw(kinds()))[:3])
    return [nested(each) for each in path]


@st.composite
def summaries(draw: st.DrawFn, source: TimeShape, target: TimeShape, constant_max: int = 3) -> PathSummary:
    """Some summary of a path from times of `source` to times of `target`."""
    possible = [
        kept
        for kept in range(1, min(source.coordinates, target.coordinates) + 1)
        if PathSummary(kept, 0, (0,) * (target.coordinates - kept)).is_between(source, target)
    ]
    kept = draw(st.sampled_from(possible))
    constants = st.integers(0, constant_max)
    return PathSummary(kept, draw(constants), draw(st.tuples(*[constants] * (target.coordinates - kept))))


@dataclass(frozen=True)
class _Scope:
    shape: TimeShape
    path: tuple[int, ...]


def random_graph(
    rng: random.Random,
    stages_max: int = 6,
    depth_max: int = 3,
    plain: bool = False,
    kinds: Sequence[str] = LOOP_KINDS,
) -> Graph:
    """A dataflow with nested loops, of some `kinds`, in which every cycle advances.

    Stages of a loop are numbered without gap, and a connector to an earlier stage, or the same one, adds to
    the counter of the innermost loop around both. With `plain`, no stage restricts what leads to which
    output. Stage 0 is an input: at the root, without input ports.
    """
    scopes: list[_Scope] = [_Scope(ROOT, ())]
    stack = [_Scope(ROOT, ())]
    for _ in range(rng.randint(1, stages_max - 1)):
        for _ in range(rng.randint(0, len(stack) - 1)):
            if rng.random() < 0.4:
                stack.pop()
        if len(stack) <= depth_max and rng.random() < 0.45:
            shape = loop_in(stack[-1].shape, rng.choice(kinds))
            stack.append(_Scope(shape, (*stack[-1].path, len(scopes))))
        scopes.append(stack[-1])
    inputs = [0] + [rng.randint(1, 2) for _ in scopes[1:]]
    outputs = [rng.randint(1, 2)] + [rng.randint(0, 2) for _ in scopes[1:]]
    connectors: list[ConnectorSpec] = []
    for target in range(1, len(scopes)):
        for input in range(inputs[target]):
            for _ in range(1 if rng.random() < 0.7 else 2):
                source = rng.randrange(target if rng.random() < 0.6 else len(scopes))
                outputs[source] = max(outputs[source], 1)
                summary = _summary_between(rng, scopes[source], scopes[target], backward=source >= target)
                output = rng.randrange(outputs[source])
                connectors.append(ConnectorSpec(source, output, target, input, summary))
    stages: list[StageSpec] = []
    for number, scope in enumerate(scopes):
        internal = {} if plain else _internal(rng, scope, inputs[number], outputs[number])
        stages.append(StageSpec(f"s{number}", scope.shape, inputs[number], outputs[number], internal))
    return Graph(stages, connectors)


def _summary_between(rng: random.Random, source: _Scope, target: _Scope, backward: bool) -> PathSummary:
    """Leave to the innermost loop around both, advance there if the connector leads backward, enter."""
    common = 0
    while common < min(len(source.path), len(target.path)) and source.path[common] == target.path[common]:
        common += 1
    kept = sum(source.shape.level_coordinates[: common + 1])
    add = rng.choice((1, 1, 2)) if backward else rng.choice((0, 0, 0, 0, 1))
    rest = target.shape.coordinates - kept
    return PathSummary(kept, add, tuple(rng.choice((0, 0, 0, 1)) for _ in range(rest)))


def _internal(
    rng: random.Random, scope: _Scope, inputs: int, outputs: int
) -> dict[tuple[int, int], PathSummary | None]:
    """Sometimes nothing leads from an input to an output, or only later."""
    internal: dict[tuple[int, int], PathSummary | None] = {}
    for input in range(inputs):
        for output in range(outputs):
            if rng.random() < 0.15:
                internal[input, output] = None
            elif rng.random() < 0.15:
                internal[input, output] = PathSummary.feedback(scope.shape)
    return internal


def graphs(stages_max: int = 6, depth_max: int = 3, plain: bool = False) -> st.SearchStrategy[Graph]:
    """Dataflows of `random_graph`."""
    return st.randoms(use_true_random=False).map(lambda rng: random_graph(rng, stages_max, depth_max, plain))
