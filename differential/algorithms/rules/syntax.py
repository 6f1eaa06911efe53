"""The syntax of rules, and a rule as data.

    program     { rule }
    rule        atom ":-" literal { "," literal } "."
    literal     atom | "not" atom | term comparison term
    atom        relation "(" term { "," term } ")"
    term        variable | constant | "_"
    comparison  "=" "!=" "<" "<=" ">" ">="      also "==" and "!" for not
    constant    whole or decimal number | text in quotes | true | false

Variables are names, in large or small letters alike; each `_` is another variable. A remark begins with %, #
or //, and ends with the line.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, NamedTuple, TypeAlias

from differential.errors import RuleError
from timely.user_code.call_site import call_site

__all__ = ["ANY", "Atom", "Comparison", "Constant", "Rule", "RuleVariable", "Term", "parse", "variables_of"]


@dataclass(frozen=True)
class RuleVariable:
    """Some value, the same wherever a rule has this name."""

    name: str

    def __str__(self) -> str:
        return self.name


ANY: Final = RuleVariable("_")
"""Some value without a name; two of these need not be equal."""


@dataclass(frozen=True)
class Constant:
    """This value."""

    value: int | float | str | bool

    def __str__(self) -> str:
        if isinstance(self.value, bool):
            return str(self.value).lower()
        return repr(self.value)


Term: TypeAlias = RuleVariable | Constant


@dataclass(frozen=True)
class Atom:
    """The claim that a relation has a fact with these values, one for each column in order.

    Negated, the claim is that it has none.
    """

    relation: str
    terms: tuple[Term, ...]
    is_negated: bool = False

    def __str__(self) -> str:
        return f"{'not ' * self.is_negated}{self.relation}({', '.join(map(str, self.terms))})"


@dataclass(frozen=True)
class Comparison:
    """`left operator right`; the operator as Python writes it."""

    left: Term
    operator: str
    right: Term

    @property
    def terms(self) -> tuple[Term, ...]:
        """Both sides."""
        return self.left, self.right

    def __str__(self) -> str:
        return f"{self.left} {self.operator} {self.right}"


@dataclass(frozen=True)
class Rule:
    """The head holds for all values of the variables for which the whole body does."""

    number: int
    line: int
    head: Atom
    body: tuple[Atom | Comparison, ...]

    @property
    def positive(self) -> tuple[Atom, ...]:
        """The atoms that are not negated: all values come from these."""
        return tuple(each for each in self.body if isinstance(each, Atom) and not each.is_negated)

    @property
    def relations(self) -> frozenset[str]:
        """The relations in the body."""
        return frozenset(each.relation for each in self.body if isinstance(each, Atom))

    def __str__(self) -> str:
        text = f"{self.head} :- {', '.join(map(str, self.body))}." if self.body else f"{self.head}."
        return f"rule {self.number} (line {self.line}), {text}"


def variables_of(part: Atom | Comparison) -> tuple[str, ...]:
    """Return the variables in it, each once, in their order, without `_`."""
    names = [term.name for term in part.terms if isinstance(term, RuleVariable) and term != ANY]
    return tuple(dict.fromkeys(names))


class _Token(NamedTuple):
    kind: str
    text: str
    line: int


_TOKEN: Final = re.compile(
    r"""(?P<passed>\s+|(?:%|\#|//)[^\n]*)
      | (?P<number>-?\d+(?:\.\d+)?(?:[eE][-+]?\d+)?)
      | (?P<text>"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*')
      | (?P<name>[^\W\d]\w*)
      | (?P<mark>:-|<=|>=|!=|==|[=<>!(),.])
    """,
    re.VERBOSE,
)
_COMPARISONS: Final = {"=": "==", "==": "==", "!=": "!=", "<": "<", "<=": "<=", ">": ">", ">=": ">="}
_WORDS: Final = {"true": True, "false": False}


def _tokens(text: str) -> Iterator[_Token]:
    line, place = 1, 0
    while place < len(text):
        match = _TOKEN.match(text, place)
        if match is None:
            rest = text[place:].splitlines()[0]
            raise RuleError(
                f"datalog ({call_site()}), line {line}: {rest[:30]!r} cannot be read: no name, constant or "
                "mark begins there"
            )
        if match.lastgroup != "passed":
            yield _Token(str(match.lastgroup), match[0], line)
        line += match[0].count("\n")
        place = match.end()
    yield _Token("end", "the end of the text", line)


class _RuleReader:
    """Reads rules from the tokens, from left to right."""

    def __init__(self, text: str) -> None:
        self._tokens = list(_tokens(text))
        self._place = 0

    @property
    def next(self) -> _Token:
        return self._tokens[self._place]

    def take(self) -> _Token:
        token = self.next
        self._place += token.kind != "end"
        return token

    def takes(self, *texts: str) -> bool:
        """Pass over the next token, and return True, if it is one of these marks or words."""
        is_there = self.next.kind in ("mark", "name") and self.next.text in texts
        self._place += is_there
        return is_there

    def needs(self, text: str, where: str) -> None:
        if not self.takes(text):
            self.refuse(f"{text!r} {where}")

    def refuse(self, expected: str) -> None:
        token = self.next
        text = token.text if token.kind == "end" else repr(token.text)
        raise RuleError(
            f"datalog ({call_site()}), line {token.line}: {text} stands where {expected} is expected. A rule "
            "is written as in reach(x, z) :- reach(x, y), edge(y, z), x != z, not closed(z)."
        )

    def rule(self, number: int) -> Rule:
        line = self.next.line
        head = self.atom(False)
        body: list[Atom | Comparison] = []
        if self.takes(":-"):
            body.append(self.literal())
            while self.takes(","):
                body.append(self.literal())
        self.needs(".", "behind a rule")
        return Rule(number, line, head, tuple(body))

    def literal(self) -> Atom | Comparison:
        if self.takes("not", "!"):
            return self.atom(True)
        following = self._tokens[min(self._place + 1, len(self._tokens) - 1)]
        if self.next.kind == "name" and following.text == "(" and following.kind == "mark":
            return self.atom(False)
        left = self.term()
        operator = _COMPARISONS.get(self.next.text) if self.next.kind == "mark" else None
        if operator is None:
            self.refuse("a comparison such as < or !=")
            raise AssertionError("not reached")
        self.take()
        return Comparison(left, operator, self.term())

    def atom(self, is_negated: bool) -> Atom:
        if self.next.kind != "name":
            self.refuse("the name of a relation")
        relation = self.take().text
        self.needs("(", f"behind the relation {relation!r}")
        terms = [self.term()]
        while self.takes(","):
            terms.append(self.term())
        self.needs(")", f"behind the terms of {relation!r}")
        return Atom(relation, tuple(terms), is_negated)

    def term(self) -> Term:
        token = self.next
        if token.kind not in ("name", "number", "text"):
            self.refuse("a variable or a constant")
        self.take()
        if token.kind == "name":
            return Constant(_WORDS[token.text]) if token.text in _WORDS else RuleVariable(token.text)
        value: object = ast.literal_eval(token.text)
        assert isinstance(value, int | float | str)
        return Constant(value)


def parse(text: str) -> tuple[Rule, ...]:
    """Return the rules of a program, in order; RuleError with the line of text that cannot be read."""
    reader = _RuleReader(text)
    rules: list[Rule] = []
    while reader.next.kind != "end":
        rules.append(reader.rule(len(rules) + 1))
    if not rules:
        reader.refuse("a rule")
    return tuple(rules)
