"""Loops: what comes of doing something again and again, until nothing changes."""

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
        """The fixed point of `body`, starting from this collection; or what it is after `times` iterations.

        `body` is called once, with a collection that stands for any iteration; once more, if it gives nulls
        in a column of which only a filter has said that it is none at the beginning. Collections of the scope
        around the loop may be used in it as they are. Without `times` the loop ends when nothing changes any
        more; if that has not happened after `iterations_max` iterations, the dataflow stops with an error
        that names the loop and shows rows that come and go. With `times` it is exactly so many iterations,
        whether or not something would still change.

        Law: iterate(body, times=n) is body applied n times, at every time. Rust: `iterate`; LINQ in Naiad:
        `FixedPoint`. Cost: that of the body for what changes from one iteration to the next.
        """
        found = _iterated(
            self, {"": self}, lambda variables: {"": body(variables[""])}, name, times, iterations_max
        )
        return found[""]

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

        `body(found, start)` gets what has been found so far, at first nothing, and of this collection the
        rows whose turn has come, at last all. `priority` is a column, or an expression over this
        collection's columns: a whole number that is never null. Rows whose priorities have equally many bits
        come in together: first 0, then 1, 2 and 3, 4 to 7, and so on; a number below 0 counts as 0.

            own.prioritized_iterate(
                lambda labels, own: (
                    labels.join(edges, on={"node": "src"}).select(node=col.dst, label=col.label)
                          .concat(own).group_by("node").agg(label=dd.min("label"))
                ),
                priority="label",
            )

        Law: the result is a fixed point of `body(…, this collection)`. Where only one can be reached, as with
        a body that only ever adds rows or only ever takes smaller values, it is that of
        `iterate(lambda found: body(found, this collection))`; only the way there differs, and its cost: what
        comes in late meets what has won already, and goes no further. The paper: `PrioritizedFP`; Rust:
        `enter_at`, as in `propagate_at`.
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
    """The fixed point of several collections that are computed of one another; or what they are after
    `times` iterations.

    `body` is called once, with a collection for each name of `start`, by name, and returns what each of them
    is in the next iteration, by the same names:

        found = dd.iterate(
            {"even": zero, "odd": "n: int"},
            lambda even, odd: {
                "even": odd.join(next, on="n").select(n=col.successor).concat(zero).distinct(),
                "odd": even.join(next, on="n").select(n=col.successor).distinct(),
            },
        )
        found["odd"].output("odd")

    A name may begin as a schema instead of a collection: then it begins empty. Everything else is as for
    `Collection.iterate`, which is this with one collection. Law: all of them move on at once; the value of
    each in iteration i + 1 is what `body` makes of the values of all in iteration i.
    """
    given: object = start
    if not isinstance(given, Mapping):
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


def _by_name(name: str, found: Mapping[str, H], variables: Mapping[str, H]) -> Mapping[str, H]:
    """What a body has returned; an error unless it has all of the names, and no others."""
    if not isinstance(found, Mapping):
        raise GraphError(
            f"the body of {name!r} must return collections by name, as in "
            f"{{{', '.join(f'{key!r}: …' for key in variables)}}}; it returned {type(found).__name__}"
        )
    if set(found) != set(variables):
        raise GraphError(
            f"the body of {name!r} must return {', '.join(variables)}; it returned "
            f"{', '.join(map(str, found)) or 'nothing'}"
        )
    return found


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


def _check_takes(name: str, body: object, given: tuple[str, ...], named: tuple[str, ...]) -> None:
    """GraphError for a body that cannot be called with so many collections, and those of these names."""
    if not callable(body):
        raise GraphError(f"the body of {name!r} is a function of collections, not {type(body).__name__}")
    try:
        inspect.signature(body).bind(*given, **dict.fromkeys(named))
    except TypeError as error:
        raise GraphError(
            f"the body of {name!r} is called as body({', '.join((*given, *named))}): {error}. Its parameters "
            + (
                "have the names of the collections"
                if named
                else "are what was found so far, and what has begun so far"
            )
        ) from None
    except ValueError:  # nothing is known of its parameters
        return


def _check_limit(name: str, times: int | None, iterations_max: int) -> None:
    limits: dict[str, object] = {"times": times, "iterations_max": iterations_max}
    for argument, given in limits.items():
        if given is not None and not isinstance(given, Integral):
            raise GraphError(f"the loop {name!r}: {argument} is a whole number, not {given!r:.80}")
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
    """What the variables have become, by name; handles are made as `like`."""
    plan = like.plan
    around = plan.open_loops()
    given = [value for value in (like, *starts.values()) if isinstance(value, Handle)]
    places = [value.place for value in given]
    place = max([*places, around[-1].loop_path if around else ()], key=len)
    initials = [_initial(plan, value, place) for value in starts.values()]
    while True:
        before = plan.mark()
        with plan.opened(name, place) as loop:
            variables = {
                key: replace(like, node=plan.add(Variable(begun.schema, loop.depth, index)), place=loop.loop_path)
                for index, (key, begun) in enumerate(zip(starts, initials, strict=True))
            }
            found = body(variables, loop)
            wider = [_wider(begun, found[key]) for key, begun in zip(starts, initials, strict=True)]
            if wider == initials or not plan.take_back(before):
                bodies = [
                    _body(found[key], begun.schema, loop, f"the body of {name!r}", key)
                    for key, begun in zip(starts, initials, strict=True)
                ]
                break
        initials = [plan.add(begun) for begun in wider]
    written = LetRec(name, loop.depth, tuple(initials), tuple(bodies), limit, tuple(loop.effects), stops)
    closed = plan.closed(written)
    # Out of the loops around it that it does not depend on: there it is computed once.
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
    """What a variable begins as if it goes on as `result`: a column of which a filter has said that it is not
    null may be so later on. The same node if nothing of that kind is in the way.
    """
    if not isinstance(result, Handle) or not any(isinstance(node, NotNull) for node in beneath([initial])):
        return initial
    columns: list[tuple[str, Expr]] = []
    for name in initial.schema.names:
        begun = initial.schema[name].type
        wanted = result.schema[name].type if name in result.schema else begun
        is_wider = wanted != begun and wanted == begun.or_null()
        columns.append((name, col(name).cast(wanted) if is_wider else col(name)))
    made = Select(initial, tuple(columns))
    return initial if made.schema == initial.schema else made


def _body(result: object, schema: Schema, loop: OpenLoop, who: str, key: str) -> Node:
    """What a variable goes on as, in the loop and with the variable's columns."""
    of = f" for {key!r}" if key else ""
    if not isinstance(result, Handle):
        raise GraphError(f"{who} must return a collection{of}; it returned {type(result).__name__}")
    return result.within(loop.loop_path).conformed(schema, who + of).node
