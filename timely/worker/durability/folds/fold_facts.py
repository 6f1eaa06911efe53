"""How is a dataflow folded? Its descriptions say so for the inputs that they know; this file looks whether
stages that were written by hand read them, too.

A fold can drop or sum rows only if whatever reads them is the same without them. Our own operators are, by
the rules of the description they come from. A vertex of a user may keep anything. Its class can promise
`keeps = "nothing"`: what it does in an epoch depends on the rows of that epoch alone. Then rows of epochs
whose answers nobody asks for may go.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Protocol, cast

from ....building.builders import load_function
from ....durable.bases.facts import FoldFacts, InputFacts, OutputFacts
from ....durable.bases.positions import source_key
from ....operators.vertex import Vertex
from ....own_files import OWN_NAMES
from ....running.instance import Instance
from ....wire.frames.table_batch import TableBatch

__all__ = ["fold_facts"]


class _DescribedFacts(Protocol):
    """What a description knows of its inputs and imports."""

    @property
    def lookback(self) -> int: ...

    @property
    def inputs(self) -> tuple[InputFacts, ...]: ...

    @property
    def import_reason(self) -> str: ...


def fold_facts(instance: Instance) -> FoldFacts:
    """Return how a dataflow is folded."""
    frozen = instance.frozen
    described: dict[str, InputFacts] = {}
    lookback, import_reason = 0, ""
    for description in frozen.descriptions:
        load = cast("Callable[[object], _DescribedFacts]", load_function(description.folding, "facts"))
        facts = load(description)
        described.update({each.name: each for each in facts.inputs})
        lookback = max(lookback, facts.lookback)
        import_reason = import_reason or facts.import_reason
    follows = _follows(instance)
    inputs = []
    for name, declared in frozen.inputs.items():
        stage = frozen.stage_of[declared.stage]
        why = _reason_by_hand(instance, stage, follows, is_described=name in described)
        raw = InputFacts(name, "", _raw_details(declared.codec), not why, why)
        inputs.append(raw if why else described.get(name, raw))
    for stage in frozen.sources:
        why = _reason_by_hand(instance, stage, follows, is_described=False)
        key = source_key(frozen.stages[stage].name)
        inputs.append(InputFacts(key, "", [TableBatch.__module__], not why, why))
    for imported in frozen.imports:
        stage = frozen.stage_of[imported.stage]
        import_reason = import_reason or _reason_by_hand(
            instance, stage, follows, is_described=bool(frozen.descriptions)
        )
    outputs = tuple(_output_facts(name, declared.codec) for name, declared in frozen.outputs.items())
    return FoldFacts(lookback, tuple(inputs), outputs, import_reason)


def _output_facts(name: str, codec: object) -> OutputFacts:
    base_form = getattr(codec, "base_form", None)
    if base_form is None:
        return OutputFacts(name, "", _raw_details(codec))
    form, details = base_form()
    return OutputFacts(name, form, details)


def _raw_details(codec: object) -> list[object]:
    """Return what `RawRows` has to know of the batches of a codec."""
    raw_form = getattr(codec, "raw_form", None)
    return [type(codec).__module__, *([] if raw_form is None else raw_form())]


def _follows(instance: Instance) -> Mapping[int, list[int]]:
    """Return the stages to which each stage sends."""
    follows: dict[int, list[int]] = {}
    for connector in instance.frozen.connectors:
        follows.setdefault(connector.source, []).append(connector.target)
    return follows


def _reason_by_hand(
    instance: Instance, source: int, follows: Mapping[int, list[int]], is_described: bool
) -> str:
    """Return why stages written by hand need all epochs of what comes in at the stage `source`; "" if none
    does. `is_described`: a description knows how our own stages directly behind it take sums.
    """
    waiting = [(target, not is_described) for target in follows.get(source, ())]
    seen: set[tuple[int, bool]] = set()
    while waiting:
        stage, is_behind = waiting.pop()
        if (stage, is_behind) in seen:
            continue
        seen.add((stage, is_behind))
        vertex = instance.runners[stage].vertex
        is_users = vertex is not None and type(vertex).__module__.partition(".")[0] not in OWN_NAMES
        if vertex is not None and vertex.keeps != "nothing" and (is_users or is_behind):
            return _reason(instance, stage, vertex, is_users)
        waiting += [(target, is_behind or is_users) for target in follows.get(stage, ())]
    return _reason_of_feedback(instance, {source, *(stage for stage, _ in seen)})


def _reason_of_feedback(instance: Instance, stages: set[int]) -> str:
    """Return why all epochs are needed of what comes to these stages, if it comes to later epochs by a way
    back of the root; else "".
    """
    for connector in instance.frozen.connectors:
        if connector.advances and connector.source in stages:
            declared = instance.frozen.stages[connector.source]
            return (
                f"what stage {declared.name!r} ({declared.site}) sends comes back at later epochs, by "
                "dataflow.feedback(), so all epochs are kept"
            )
    return ""


def _reason(instance: Instance, stage: int, vertex: Vertex, is_users: bool) -> str:
    declared = instance.frozen.stages[stage]
    where = f"stage {declared.name!r} ({declared.site})"
    if is_users:
        return (
            f"{where} does not say what its vertices keep from one epoch to the next, so all epochs are "
            f'kept. If that is nothing, write keeps = "nothing" in the class {type(vertex).__qualname__}'
        )
    return (
        f"{where} is behind stages that were written by hand, so all epochs are kept. Where you can, write "
        "these as operators of collections"
    )
