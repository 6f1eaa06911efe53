"""Loops: apply operators again and again, until nothing changes."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import replace
from numbers import Integral
from typing import Self, TypeVar, cast

from timely.building.loop import Loop
from timely.building.scope import ITERATIONS_MAX
from timely.errors import GraphError
from timely.user_code.call_site import call_site

from ..columns.schema import Schema, SchemaSpec
from ..expressions.expression import Expr, ExprLike, as_expr, col
from ..operators.loops.priority import ITERATIONS_TO_COME_IN
from ..other_spellings import written_as
from ..plan.building import OpenLoop, Plan
from ..plan.nodes import ByPriority, Empty, LeaveLoop, LetRec, Node, NotNull, Select, Variable
from ..plan.rewriting import beneath
from .handle import Handle

__all__ = ["LoopOperators", "iterate"]

H = TypeVar("H", bound=Handle)

_Start = Handle | Schema


class LoopOperators(Handle):
    """Fixed points."""

    @written_as("iterate(body, times=3), or iterate(body, iterations_max=100) to the fixed point")
    def iterate(
        self,
        body: Callable[[Self], Self],
        *,
        name: str = "iterate",
        times: int | None = None,
        iterations_max: int = ITERATIONS_MAX,
    ) -> Self:
        """The fixed point of `body`, starting from this collection; or its value after `times` iterations.

        `body` is called once, with a collection that stands for any iteration. It is called once more if its
        result may be null in a column that, at the beginning, only a filter makes non-null. `body` may use
        collections of the scope around the loop as they are. Without `times` the loop ends when nothing
        changes any more; if that has not happened after `iterations_max` iterations, the dataflow stops with
        an error that names the loop and shows rows that come and go. With `times` the loop makes exactly that
        many iterations, whether or not something would still change.

        Law: iterate(body, times=n) is body applied n times, at every time. Rust: `iterate`; LINQ in Naiad:
        `FixedPoint`. Cost: that of the body for what changes from one iteration to the next.
        """
        results = _iterated(
            self, {"": self}, lambda variables: {"": body(variables[""])}, name, times, iterations_max
        )
        return results[""]

    @written_as("prioritized_iterate(lambda found, begun: …, priority='label')")
    def prioritized_iterate(
        self,
        body: Callable[[Self, Self], Self],
        priority: str | ExprLike,
        *,
        name: str = "prioritized_iterate",
        iterations_max: int = ITERATIONS_MAX,
    ) -> Self:
        """The fixed point of `body`, to which the rows of this collection come in by `priority`, small first.

        `body(found, begun)` gets the result so far, at first empty, and the rows of this collection whose
        turn has come, at last all. `priority` is a column, or an expression over this collection's columns: a
        whole number that is never null. Rows whose priorities have equally many bits come in together: first
        0, then 1, 2 and 3, 4 to 7, and so on; a number below 0 counts as 0.

            own.prioritized_iterate(
                lambda labels, own: (
                    labels.join(edges, on={"node": "src"}).select(node=col.dst, label=col.label)
                          .concat(own).group_by("node").agg(label=dd.min("label"))
                ),
                priority="label",
            )

        Law: the result is a fixed point of `body(…, this collection)`. If only one can be reached, as with a
        body that only ever adds rows or only ever takes smaller values, it is that of `iterate(lambda found:
        body(found, this collection))`. Only the way there differs, and its cost: rows that come in late meet
        rows that have won already, and go no further. The paper: `PrioritizedFP`; Rust: `enter_at`, as in
        `propagate_at`.
        """
        by = col(priority) if isinstance(priority, str) else as_expr(priority)

        def with_start(variables: Mapping[str, Self], loop: OpenLoop) -> Mapping[str, Self]:
            start = self.within(loop.around)
            entering = self.plan.add(ByPriority(start.node, by, loop.depth))
            return {"": body(variables[""], replace(start, node=entering, place=loop.loop_path))}

        _check_takes(name, body, ("found", "begun"), ())
        limit = min(iterations_max, ITERATIONS_MAX) + ITERATIONS_TO_COME_IN
        _check_limit(name, None, iterations_max)
        return _loop(self, name, {"": self.schema}, with_start, limit, stops=False)[""]


def iterate(  # type: ignore[explicit-any]  # a body has a parameter for each name
    start: Mapping[str, H | SchemaSpec],
    body: Callable[..., Mapping[str, H]],
    *,
    name: str = "iterate",
    times: int | None = None,
    iterations_max: int = ITERATIONS_MAX,
) -> dict[str, H]:
    """The fixed point of several interdependent collections; or their values after `times` iterations.

    `body` is called once, with a collection for each name of `start`, by name. It returns the value of each
    in the next iteration, by the same names:

        found = dd.iterate(
            {"even": zero, "odd": "n: int"},
            lambda even, odd: {
                "even": odd.join(next, on="n").select(n=col.successor).concat(zero).distinct(),
                "odd": even.join(next, on="n").select(n=col.successor).distinct(),
            },
        )
        found["odd"].output("odd")

    A name may begin as a schema instead of a collection: then it begins empty. Everything else is as for
    `Collection.iterate`, which is this with one collection. Law: all collections move on at once; the value
    of each in iteration i + 1 is the result of `body` for the values of all in iteration i.
    """
    as_passed: object = start
    if not isinstance(as_passed, Mapping):
        raise GraphError(
            f"{name!r} ({call_site()}) begins with collections by name: write iterate({{'a': …, 'b': …}}, "
            "lambda a, b: {'a': …, 'b': …})"
        )
    starts: dict[str, _Start] = {
        key: value if isinstance(value, Handle) else Schema.of(value) for key, value in start.items()
    }
    first = cast("H | None", next((value for value in start.values() if isinstance(value, Handle)), None))
    if first is None:
        raise GraphError(
            f"{name!r} begins with no collection: one of its names must begin as one, such as what its first "
            "rule gives, {'reached': roots, …}"
        )
    _check_takes(name, body, (), tuple(start))
    return _iterated(
        first,
        starts,
        lambda variables: _by_name(name, body(**variables), variables),
        name,
        times,
        iterations_max,
    )


def _by_name(name: str, results: Mapping[str, H], variables: Mapping[str, H]) -> Mapping[str, H]:
    """Return the results of a body; raise GraphError unless it has all of the names, and no others."""
    if not isinstance(results, Mapping):
        raise GraphError(
            f"the body of {name!r} must return collections by name, as in "
            f"{{{', '.join(f'{key!r}: …' for key in variables)}}}; it returned {type(results).__name__}"
        )
    if set(results) != set(variables):
        raise GraphError(
            f"the body of {name!r} must return {', '.join(variables)}; it returned "
            f"{', '.join(map(str, results)) or 'nothing'}"
        )
    return results


def _iterated(
    like: H,
    starts: Mapping[str, H | _Start],
    body: Callable[[Mapping[str, H]], Mapping[str, H]],
    name: str,
    times: int | None,
    iterations_max: int,
) -> dict[str, H]:
    _check_limit(name, times, iterations_max)
    limit = iterations_max if times is None else times
    return _loop(like, name, starts, lambda variables, _: body(variables), limit, stops=times is not None)


def _check_takes(name: str, body: object, positional: tuple[str, ...], named: tuple[str, ...]) -> None:
    """Raise GraphError for a body that cannot be called with these positional and these named collections."""
    if not callable(body):
        raise GraphError(f"the body of {name!r} is a function of collections, not {type(body).__name__}")
    try:
        inspect.signature(body).bind(*positional, **dict.fromkeys(named))
    except TypeError as error:
        raise GraphError(
            f"the body of {name!r} is called as body({', '.join((*positional, *named))}): {error}. Its "
            + (
                "parameters have the names of the collections"
                if named
                else "parameters are the result so far, and the rows that have come in so far"
            )
        ) from None
    except ValueError:  # its parameters are not known
        return


def _check_limit(name: str, times: int | None, iterations_max: int) -> None:
    limits: dict[str, object] = {"times": times, "iterations_max": iterations_max}
    for argument, limit in limits.items():
        if limit is not None and not isinstance(limit, Integral):
            raise GraphError(f"the loop {name!r}: {argument} is a whole number, not {limit!r:.80}")
    if times is not None and times < 1:
        raise GraphError(f"the loop {name!r} needs at least one iteration, not times={times}")
    if iterations_max < 1:
        raise GraphError(f"the loop {name!r} needs a limit of at least one iteration, not {iterations_max}")


def _loop(
    like: H,
    name: str,
    starts: Mapping[str, H | _Start],
    body: Callable[[Mapping[str, H], OpenLoop], Mapping[str, H]],
    limit: int,
    *,
    stops: bool,
) -> dict[str, H]:
    """Return the final values of a loop's variables, by name; the handles are copies of `like`."""
    plan = like.plan
    around = plan.open_loops()
    handles = [value for value in (like, *starts.values()) if isinstance(value, Handle)]
    places = [value.place for value in handles]
    place = max([*places, around[-1].loop_path if around else ()], key=len)
    initials = [_initial(plan, value, place) for value in starts.values()]
    while True:
        before = plan.mark()
        with plan.opened(name, place) as loop:
            variables = {
                key: replace(
                    like, node=plan.add(Variable(initial.schema, loop.depth, index)), place=loop.loop_path
                )
                for index, (key, initial) in enumerate(zip(starts, initials, strict=True))
            }
            results = body(variables, loop)
            wider = [_wider(initial, results[key]) for key, initial in zip(starts, initials, strict=True)]
            if wider == initials or not plan.take_back(before):
                bodies = [
                    _body(results[key], initial.schema, loop, f"the body of {name!r}", key)
                    for key, initial in zip(starts, initials, strict=True)
                ]
                break
        initials = [plan.add(initial) for initial in wider]
    written = LetRec(name, loop.depth, tuple(initials), tuple(bodies), limit, tuple(loop.effects), stops)
    closed = plan.closed(written)
    # Outside of loops that the result does not depend on: there it is computed once.
    needed = max(closed.free, default=0)
    by_hand = tuple(each for each in place if isinstance(each, Loop))
    inside = next((each.loop_path for each in reversed(around) if each.depth == needed), by_hand)
    return {
        key: replace(like, node=plan.add(LeaveLoop(closed, index)), place=inside)
        for index, key in enumerate(starts)
    }


def _initial(plan: Plan, value: Handle | Schema, place: tuple[Loop | OpenLoop, ...]) -> Node:
    if isinstance(value, Schema):
        return plan.add(Empty(value))
    if value.plan is not plan:
        raise GraphError("collections of two dataflows cannot meet")
    return value.within(place).node


def _wider(initial: Node, result: object) -> Node:
    """Return the initial value that a variable needs if it goes on as `result`: `initial`, or a wider one.

    A column that is never null at the beginning, only because a filter says so, may be null later on.
    """
    if not isinstance(result, Handle) or not any(isinstance(node, NotNull) for node in beneath([initial])):
        return initial
    columns: list[tuple[str, Expr]] = []
    for name in initial.schema.names:
        before = initial.schema[name].type
        after = result.schema[name].type if name in result.schema else before
        is_wider = after != before and after == before.or_null()
        columns.append((name, col(name).cast(after) if is_wider else col(name)))
    widened = Select(initial, tuple(columns))
    return initial if widened.schema == initial.schema else widened


def _body(result: object, schema: Schema, loop: OpenLoop, who: str, key: str) -> Node:
    """Return what a variable goes on as, in the loop and with the variable's columns."""
    of = f" for {key!r}" if key else ""
    if not isinstance(result, Handle):
        raise GraphError(f"{who} must return a collection{of}; it returned {type(result).__name__}")
    return result.within(loop.loop_path).conformed(schema, who + of).node
