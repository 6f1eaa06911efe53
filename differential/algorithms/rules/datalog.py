"""Facts that follow from others by rules, which may need one another."""

from __future__ import annotations

from collections.abc import Mapping

from differential.algorithms.rules.bodies import derived
from differential.algorithms.rules.checking import check_rule
from differential.algorithms.rules.strata import Stratum, strata
from differential.algorithms.rules.syntax import parse
from differential.collections.collection import Collection
from differential.collections.loops import iterate
from differential.columns.schema import Schema, SchemaSpec
from differential.errors import RuleError
from timely.user_code.call_site import call_site
from timely.user_code.short_traces import short

__all__ = ["datalog"]


@short
def datalog(rules: str, relations: Mapping[str, Collection | SchemaSpec]) -> dict[str, Collection]:
    """All facts that follow by the rules, once each: a collection for each relation that is the head of one.

        found = datalog(
            '''
            reach(x, y) :- edge(x, y).
            reach(x, z) :- reach(x, y), edge(y, z).
            island(x)   :- node(x), not reach(x, _).
            ''',
            {"edge": edges, "node": nodes, "reach": "src: int, dst: int", "island": "node: int"},
        )

    A rule holds for all values of its variables; terms are matched to columns by position. A body has atoms,
    negated atoms (`not r(x, _)`), and comparisons (`x < y`, `y != "a"`); `syntax.py` has the whole grammar.

    Args:
        relations: for each relation that the rules name, its facts, or its columns if it has no facts of its
            own. A relation that is the head of rules may have facts of its own, too. Facts are a set: how
            often one is there does not matter, as long as that is not less than zero times. Null equals
            nothing, as in SQL.

    Law: the least sets that contain the facts of `relations` and satisfy all rules; with negated atoms,
    stratum by stratum. The computation always ends: rules make no new values. Rust: a `Variable` for each
    relation, joins by hand; Soufflé: rules of the same form.

    Cost: relations that need one another are one loop. Each body is a join of its atoms in the order in which
    they are written, so begin with the rarest. A change costs what it changes in the iterations of a
    computation from scratch. `explain` shows the joins.

    Raises RuleError, with the rule and its line, if a rule cannot be read, does not fit its relations, is
    unsafe (the error names the variable that no atom binds), or negates a relation that depends on its head.
    """
    program = parse(rules)
    schemas = {
        name: relation.schema if isinstance(relation, Collection) else Schema.of(relation)
        for name, relation in relations.items()
    }
    for rule in program:
        check_rule(rule, schemas)
    inputs = {name: relation for name, relation in relations.items() if isinstance(relation, Collection)}
    heads = {rule.head.relation for rule in program}
    for rule in program:
        for name in sorted(rule.relations - heads - set(inputs)):
            raise RuleError(
                f"datalog ({call_site()}), {rule}: {name!r} has columns, but no facts, and it is the head of "
                "no rule: it would be empty for ever"
            )
    derived_facts: dict[str, Collection] = {}
    for stratum in strata(program):
        derived_facts |= _facts_of(stratum, {**inputs, **derived_facts}, schemas)
    return derived_facts


def _facts_of(
    stratum: Stratum, facts: Mapping[str, Collection], schemas: Mapping[str, Schema]
) -> dict[str, Collection]:
    """Return the facts of the relations of a stratum, from `facts` of inputs and earlier strata."""
    begins: dict[str, Collection] = {}
    for name in stratum.names:
        parts = [facts[name]] if name in facts else []
        parts += [
            derived(rule, facts, schemas[name])
            for rule in stratum.rules
            if rule.head.relation == name and not stratum.is_round(rule)
        ]
        if parts:
            begins[name] = parts[0].concat(*parts[1:])
    if not begins:
        raise RuleError(
            f"datalog ({call_site()}): no fact of {' or '.join(stratum.names)} can ever be found: each rule "
            f"needs one already, as does {stratum.rules[0]} Give facts, or a rule that needs none of them"
        )
    if not stratum.is_loop:
        (name,) = stratum.names
        return {name: begins[name].distinct()}

    def following(**variables: Collection) -> dict[str, Collection]:
        relations = {**facts, **variables}
        following: dict[str, Collection] = {}
        for name in stratum.names:
            parts = [begins[name]] if name in begins else []
            parts += [
                derived(rule, relations, schemas[name])
                for rule in stratum.rules
                if rule.head.relation == name and stratum.is_round(rule)
            ]
            following[name] = parts[0].concat(*parts[1:]).distinct()
        return following

    starts: dict[str, Collection | SchemaSpec] = {
        name: begins.get(name, schemas[name]) for name in stratum.names
    }
    return iterate(starts, following, name=f"rules of {', '.join(stratum.names)}")
