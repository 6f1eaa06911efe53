"""A query as a function of collections, for a client that has rows and no dataflow yet.

    def paid(orders, payments):                  # the names of the inputs
        return orders.join(payments, on="order")

`as_builder` makes a builder for a cluster: it declares the inputs, calls the function, and puts out what that
returns. `put_out` makes outputs of what any query returns: a collection, several of them as a tuple or list,
or a dict of them by name. `again` makes a builder from collections that are written
already. `described` returns, for any dataflow that is being written, its inputs, its outputs, and which query
it is.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from functools import partial
from typing import NamedTuple

import pyarrow as pa

from timely.building.builders import Builder
from timely.building.dataflow import Dataflow
from timely.building.declarations import check_name
from timely.errors import GraphError, MisuseError
from timely.user_code.call_site import at_site, call_site

from .collections.collection import Collection
from .collections.sources import input as input_of
from .columns.schema import SchemaSpec
from .operators.edge.table_in import TableIn
from .operators.timed.keyed_io import KeyedTableIn
from .plan.building import Plan
from .plan.decoding import decode_plan
from .plan.encoding import encode_plan, query_identity
from .plan.nodes import Import, Input, Node, Output
from .plan.stages.timed import input_codec

__all__ = ["ANSWER", "Described", "again", "as_builder", "described", "put_out"]

ANSWER = "result"
"""The name of the output of a query that returns one collection. A tuple makes result_0, result_1, …"""


class Described(NamedTuple):
    """The columns of inputs and outputs by name, and a text that is the same for the same query."""

    inputs: dict[str, pa.Schema]
    outputs: dict[str, pa.Schema]
    identity: str


def as_builder(
    query: Builder, inputs: Mapping[str, SchemaSpec], keys: Mapping[str, tuple[str, ...]] | None = None
) -> Callable[[Dataflow], None]:
    """Return a builder that calls `query` with a collection for each of `inputs`, by name. Its outputs are
    what `query` returns (see `put_out`), and what it names itself by `output`. Inputs in `keys` keep the last
    value of these columns.

    Raises MisuseError if `query` does not take inputs of these names. The builder raises it if `query`
    returns something else, or returns nothing and names no output.
    """
    called = getattr(query, "__name__", type(query).__name__)
    _check_parameters(query, called, inputs)
    here, keyed = call_site(), dict(keys or {})

    def build(dataflow: Dataflow) -> None:
        with at_site((here,)):
            collections = {
                name: input_of(dataflow, name, schema, key=keyed[name], mode="upsert")
                if name in keyed
                else input_of(dataflow, name, schema)
                for name, schema in inputs.items()
            }
        answer = query(**collections)
        if answer is not None or not _outputs_of(dataflow):
            _name_outputs(dataflow, _named(answer, called), is_named=isinstance(answer, Mapping))

    build.__name__ = build.__qualname__ = called if called.isidentifier() else "query"
    return build


def put_out(dataflow: Dataflow, answer: object) -> None:
    """Make outputs of what a builder has returned: one collection is called "result", those of a tuple or
    list "result_0", "result_1", …, those of a dict by its keys.

    What is no collection is none of our business. A collection that the builder has put out itself stays as
    it is, unless a dict has another name for it.
    """
    named = _by_name(answer)
    if named is not None:
        _name_outputs(dataflow, named, is_named=isinstance(answer, Mapping))


def _name_outputs(dataflow: Dataflow, named: Mapping[str, Collection], *, is_named: bool) -> None:
    """Make outputs of collections, except those that are outputs already; if `is_named`, of these names."""
    there = [(output.name, output.source.digest) for output in _outputs_of(dataflow)]
    plan = Plan.of(dataflow)
    for name, collection in named.items():
        if collection.plan is not plan:
            raise GraphError(
                f"output {name!r} of {dataflow.name!r} is a collection of another dataflow, "
                f"{collection.dataflow.name!r}: a query returns collections of its own inputs"
            )
        digest = collection.within(()).node.digest
        if not any(other == digest and (own == name or not is_named) for own, other in there):
            collection.output(name)


def _outputs_of(dataflow: Dataflow) -> list[Output]:
    return [root for root in Plan.of(dataflow).roots if isinstance(root, Output)]


def again(answer: object) -> Callable[[Dataflow], None]:
    """Return a builder of the query of `answer`: a collection that is written already, or a dict of such.

    The names of the dict are those of outputs.
    """
    named = _named(answer, "to be installed")
    plan = next(iter(named.values())).plan
    roots = [plan.add(Output(each.within(()).node, name)) for name, each in named.items()]
    inputs: list[Node] = [*plan.inputs]
    packed = encode_plan(plan, [*inputs, *roots])

    def build(dataflow: Dataflow) -> None:
        target = Plan.of(dataflow)
        for root in decode_plan(packed, target, partial(_add_input, dataflow, target), True):
            if not isinstance(root, Input):
                target.ask_for(root)

    return build


def _add_input(dataflow: Dataflow, target: Plan, node: Input | Import) -> Node:
    if isinstance(node, Import):
        raise MisuseError(
            f"a query that imports {node.name!r} of another dataflow is installed by its builder"
        )
    return target.leaf(node, dataflow.input(node.name, input_codec(node)))


def described(dataflow: Dataflow) -> Described:
    """Return the inputs and outputs of a dataflow of collections; see `Described`."""
    roots = Plan.of(dataflow).roots
    outputs = {root.name: root.schema.to_arrow() for root in roots if type(root) is Output}
    inputs = {
        name: codec.arrow_schema()
        for name, declared in dataflow.inputs.items()
        if isinstance(codec := declared.codec, TableIn | KeyedTableIn)
    }
    return Described(inputs, outputs, query_identity(roots))


def _check_parameters(query: Builder, called: str, inputs: Mapping[str, SchemaSpec]) -> None:
    for name in inputs:
        check_name("input", name)
    if not callable(query):
        raise MisuseError(
            f"a query is a function of its inputs, not a {type(query).__name__}: def "
            f"query({', '.join(inputs)}): …"
        )
    try:
        signature = inspect.signature(query)
    except (TypeError, ValueError):  # some functions of C do not tell their parameters
        return
    try:
        signature.bind(**dict.fromkeys(inputs))
    except TypeError as error:
        raise MisuseError(
            f"the query {called}{signature} does not fit the inputs {', '.join(inputs)}: {error}. Its "
            "parameters are called as the inputs are"
        ) from None


def _named(answer: object, called: str) -> dict[str, Collection]:
    named = _by_name(answer)
    if named is not None:
        return named
    shown = f"a {type(answer).__name__}" if answer is not None else "nothing"
    raise MisuseError(
        f"the query {called} returns {shown}: return a collection, a tuple of collections, or a dict of them "
        "by the names of outputs; or name each by collection.output('name')"
    )


def _by_name(answer: object) -> dict[str, Collection] | None:
    """Return collections by the names of their outputs; None for anything else. Raise GraphError for a name
    that is no text.
    """
    if isinstance(answer, Collection):
        return {ANSWER: answer}
    if isinstance(answer, Mapping):
        named = dict(answer.items())
    elif isinstance(answer, tuple | list):
        named = {f"{ANSWER}_{number}": each for number, each in enumerate(answer)}
    else:
        return None
    if not named or not all(isinstance(each, Collection) for each in named.values()):
        return None
    for name in named:  # 1 and "1" would be one output
        check_name("output", name)
    return named
