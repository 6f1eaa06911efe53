"""In which order are relations computed?

A relation *needs* those that the bodies of its rules ask, and what these need. Relations that need one
another are computed together, in one loop; all others once what they need is there. These groups, in an order
in which each comes behind what it needs, are the *strata*. Whether a fact is *not* there can be asked of a
relation only when that is complete, so not within the loop that computes it: rules of which that is asked are
not *stratified*.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from differential.algorithms.rules.checking import refuse
from differential.algorithms.rules.syntax import Atom, Rule

__all__ = ["Stratum", "strata"]


@dataclass(frozen=True)
class Stratum:
    """Relations that need one another, or a single one, and all rules whose heads they are."""

    names: tuple[str, ...]
    rules: tuple[Rule, ...]

    def is_round(self, rule: Rule) -> bool:
        """Whether the body of `rule` asks a relation of this stratum."""
        return not rule.relations.isdisjoint(self.names)

    @property
    def is_loop(self) -> bool:
        """Whether some relation of it needs itself."""
        return any(self.is_round(rule) for rule in self.rules)


def strata(rules: Sequence[Rule]) -> list[Stratum]:
    """The strata of all relations that are heads; RuleError, with the rule, if they are not stratified."""
    heads = list(dict.fromkeys(rule.head.relation for rule in rules))
    needs = {head: _needs(head, rules) for head in heads}
    for rule in rules:
        for part in rule.body:
            if not isinstance(part, Atom) or not part.is_negated or part.relation not in needs:
                continue
            if rule.head.relation in needs[part.relation] | {part.relation}:
                refuse(
                    rule,
                    f"{part} cannot be decided: {part.relation!r} needs {rule.head.relation!r} itself, which "
                    "needs that it is not there",
                )
    together = [
        tuple(other for other in heads if other == head or (other in needs[head] and head in needs[other]))
        for head in heads
    ]
    # Whoever needs another needs all that this one needs, too, and itself only with it: so it needs more.
    ordered = sorted(dict.fromkeys(together), key=lambda names: len(needs[names[0]] | set(names)))
    return [Stratum(names, tuple(rule for rule in rules if rule.head.relation in names)) for names in ordered]


def _needs(head: str, rules: Sequence[Rule]) -> frozenset[str]:
    """All relations on which the facts of `head` depend, at any remove."""
    found: set[str] = set()
    asked = [head]
    while asked:
        name = asked.pop()
        for rule in rules:
            if rule.head.relation == name:
                asked += rule.relations - found
                found |= rule.relations
    return frozenset(found)
