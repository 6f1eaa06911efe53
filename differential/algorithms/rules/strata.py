"""In which order are relations computed?

A relation *needs* the relations in the bodies of its rules, and all that these need. Relations that need one
another are computed together, in one loop; any other once the relations it needs are there. These groups,
each behind those that it needs, are the *strata*. The absence of a fact is known only once its relation is
complete, so not within the loop that computes it: rules that ask for it there are not *stratified*.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from differential.algorithms.rules.checking import refuse
from differential.algorithms.rules.syntax import Atom, Rule

__all__ = ["Stratum", "strata"]


@dataclass(frozen=True)
class Stratum:
    """Relations that need one another, or a single one, and all rules with these as heads."""

    names: tuple[str, ...]
    rules: tuple[Rule, ...]

    def is_round(self, rule: Rule) -> bool:
        """Return True if the body of `rule` has a relation of this stratum."""
        return not rule.relations.isdisjoint(self.names)

    @property
    def is_loop(self) -> bool:
        """True if some relation of it needs itself."""
        return any(self.is_round(rule) for rule in self.rules)


def strata(rules: Sequence[Rule]) -> list[Stratum]:
    """Return the strata of all relations that are heads.

    Raises RuleError, with the rule, if the rules are not stratified.
    """
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
    # A relation needs all that a relation it needs needs, and it is needed back only in the same stratum. So
    # a later stratum needs more relations than those it needs.
    ordered = sorted(dict.fromkeys(together), key=lambda names: len(needs[names[0]] | set(names)))
    return [Stratum(names, tuple(rule for rule in rules if rule.head.relation in names)) for names in ordered]


def _needs(head: str, rules: Sequence[Rule]) -> frozenset[str]:
    """Return all relations on which the facts of `head` depend, directly or through others."""
    needed: set[str] = set()
    waiting = [head]
    while waiting:
        name = waiting.pop()
        for rule in rules:
            if rule.head.relation == name:
                waiting += rule.relations - needed
                needed |= rule.relations
    return frozenset(needed)
