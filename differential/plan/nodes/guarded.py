"""Linear operators that separate the rows on which they fail from the others."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import ClassVar, Final, Literal, Self, TypeAlias

from ...columns.schema import Schema
from ...errors import SchemaError
from ...expressions.expression import Expr
from ..functions import UserFunction, UserFunctions
from .linear import Apply, Filter, Negate, NotNull, Select
from .node import Node, Unary, same

__all__ = ["ERRORS", "GUARDED", "Answered", "Guarded", "GuardedStep", "Outcome", "Provided"]

ERRORS: Final = Schema.of("record: string, stage: string, line: string, error: string, traceback: string")
"""The columns of a collection of errors."""

Outcome = Literal["good", "errors"]

GuardedStep: TypeAlias = Select | Filter | Apply | Negate | NotNull
GUARDED: Final = (Select, Filter, Apply, Negate, NotNull)


@dataclass(frozen=True, eq=False, repr=False)
class Guarded(Unary):
    """The rows that `steps` make where no step fails ("good"), or a row for each row that fails ("errors").

    The first step is over `source`, each other step over the one before.
    """

    kind: ClassVar[str] = "guarded"
    is_linear: ClassVar[bool] = True
    steps: tuple[GuardedStep, ...]
    part: Outcome

    def with_children(self, children: tuple[Node, ...]) -> Self:
        """The same steps over another."""
        (source,) = children
        if source is self.source:
            return self
        steps: list[GuardedStep] = []
        for step in self.steps:
            below = steps[-1] if steps else source
            steps.append(step.with_children((below,)))
        return replace(self, source=source, steps=tuple(steps))

    def data(self) -> list[object]:
        """The part, and the steps."""
        return [self.part, [[step.kind, step.data()] for step in self.steps]]

    @classmethod
    def read(cls, data: list[object], children: tuple[Node, ...], functions: UserFunctions) -> Self | None:
        """Return the node with this data over `children`; None if there is none."""
        match data, children:
            case ["good" | "errors" as part, [_, *_] as written], [source]:
                steps: list[GuardedStep] = []
                for each in written:
                    steps.append(_step_of(each, steps[-1] if steps else source, functions))
                return cls(source, tuple(steps), part)
        return None

    @cached_property
    def schema(self) -> Schema:
        """The columns of the last step, or those of errors."""
        return self.steps[-1].schema if self.part == "good" else ERRORS

    @cached_property
    def functions(self) -> tuple[UserFunction, ...]:
        """The functions of its steps."""
        return tuple(function for step in self.steps for function in step.functions)

    @cached_property
    def expressions(self) -> tuple[Expr, ...]:
        """The expressions of its steps."""
        return tuple(expr for step in self.steps for expr in step.expressions)

    @property
    def stage(self) -> str:
        """The name in errors; it does not depend on where the operator was written."""
        return "; ".join(step.describe() for step in self.steps)

    def describe(self) -> str:
        """Return the part, and the steps."""
        return f"{self.part} of {self.stage}"


def _step_of(data: object, source: Node, functions: UserFunctions) -> GuardedStep:
    match data:
        case [str(kind), [*fields]]:
            for step in GUARDED:
                if step.kind == kind and (node := step.read(fields, (source,), functions)) is not None:
                    return node
    raise SchemaError(f"{data!r:.200} is no step of a plan")


@dataclass(frozen=True, eq=False, repr=False)
class Answered(Unary):
    """The answers of a function of groups; `source` has them with its errors as more columns.

    A group on which the function fails has no answer here, and is a failure. `text` is the function's name in
    messages.
    """

    kind: ClassVar[str] = "answered"
    is_linear: ClassVar[bool] = True
    text: str

    def data(self) -> list[object]:
        """The function's name."""
        return [self.text]

    @classmethod
    def read(cls, data: list[object], children: tuple[Node, ...], functions: UserFunctions) -> Self | None:
        """Return None: the node is made when a plan is carried out, and does not travel."""
        return None

    @cached_property
    def schema(self) -> Schema:
        """The columns that are not about errors."""
        return Schema(self.source.schema.columns[: -len(ERRORS)])

    def describe(self) -> str:
        """Return the function whose answers these are."""
        return f"answers of {self.text}"


@dataclass(frozen=True, eq=False, repr=False)
class Provided(Node):
    """The rows of `source`. No row of `claim` goes on, but its failures count as failures here, too."""

    kind: ClassVar[str] = "provided"
    is_linear: ClassVar[bool] = True
    source: Node
    claim: Node

    @property
    def children(self) -> tuple[Node, ...]:
        """Source and claim."""
        return self.source, self.claim

    def with_children(self, children: tuple[Node, ...]) -> Self:
        """The same of others."""
        source, claim = children
        return self if same(children, self.children) else replace(self, source=source, claim=claim)

    @classmethod
    def read(cls, data: list[object], children: tuple[Node, ...], functions: UserFunctions) -> Self | None:
        """Return the node with this data over `children`; None if there is none."""
        match data, children:
            case [], [source, claim]:
                return cls(source, claim)
        return None

    @cached_property
    def schema(self) -> Schema:
        """The columns of the source."""
        return self.source.schema
