"""Random SQL texts over two tables with nulls: subqueries within subqueries, correlated by any comparison,
windows, set operations, outer joins, groups. Every text has a meaning, and one answer whatever the order of
rows; DuckDB is the judge of what it is.
"""

from __future__ import annotations

import random
from collections.abc import Sequence

__all__ = ["TABLES", "Columns", "TextWriter", "random_text"]

TABLES = {"t": "a: int?, b: int?, s: string?", "u": "a: int?, c: int, s: string?"}

Columns = list[tuple[str, str]]
"""Names as they are written at a place, and kinds: "int", "string"."""


def random_text(rng: random.Random, depth: int = 3) -> str:
    """A query whose columns are called c0, c1, and so on."""
    return TextWriter(rng).query(depth, [], rng.randint(1, 3))[0]


class TextWriter:
    """Writes one text: expressions over two kinds of columns, subqueries, groups, sets."""

    tables = TABLES

    def __init__(self, rng: random.Random) -> None:
        self.rng = rng
        self.aliases = 0
        self.budget = 14

    def chance(self, part: float) -> bool:
        return self.rng.random() < part

    def alias(self) -> str:
        self.aliases += 1
        return f"q{self.aliases}"

    def query(
        self, depth: int, outer: Sequence[Columns], width: int, kinds: list[str] | None = None
    ) -> tuple[str, list[str]]:
        """A query, and the kinds of its columns."""
        wanted = kinds or [self.rng.choice(["int", "int", "int", "string"]) for _ in range(width)]
        if depth > 0 and self.chance(0.15):
            op = self.rng.choice(["UNION", "UNION ALL", "EXCEPT", "EXCEPT ALL", "INTERSECT", "INTERSECT ALL"])
            sides = [self.query(depth - 1, outer, width, wanted)[0] for _ in range(2)]
            return f"(({sides[0]}) {op} ({sides[1]}))", wanted
        return self.select(depth, outer, wanted), wanted

    # FROM

    def source(self, depth: int, outer: Sequence[Columns], left: Columns) -> tuple[str, Columns]:
        alias = self.alias()
        if depth > 0 and self.budget > 0 and self.chance(0.25):
            lateral = bool(left) and self.chance(0.4)
            scopes = [*outer, left] if lateral else outer
            sql, kinds = self.query(depth - 1, scopes, self.rng.randint(1, 3))
            columns = [(f"{alias}.c{place}", kind) for place, kind in enumerate(kinds)]
            return f"{'LATERAL ' if lateral else ''}({sql}) AS {alias}", columns
        name = self.rng.choice(sorted(self.tables))
        fields = [field.split(": ") for field in self.tables[name].split(", ")]
        return f"{name} AS {alias}", [(f"{alias}.{field}", kind.rstrip("?")) for field, kind in fields]

    def clause(self, depth: int, outer: Sequence[Columns]) -> tuple[str, Columns]:
        sql, columns = self.source(depth, outer, [])
        for _ in range(self.rng.choice([0, 0, 0, 1, 1, 2])):
            item, others = self.source(depth, outer, columns)
            lateral = item.startswith("LATERAL")
            how = self.rng.choice(
                ["JOIN", "LEFT JOIN"] if lateral else ["JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN", ","]
            )
            if how == ",":
                sql = f"{sql} CROSS JOIN {item}"
            else:
                on = self.matched(columns, others)
                if self.chance(0.3) and not lateral:
                    on = f"{on} AND {self.condition(0, [columns + others])}"
                sql = (
                    f"{sql} {how} {item} ON {on}"
                    if not (lateral and how != "JOIN")
                    else f"{sql} {how} {item} ON true"
                )
            columns = columns + others
        return sql, columns

    def matched(self, columns: Columns, others: Columns) -> str:
        pairs = [(a, b) for a, kind in columns for b, other in others if kind == other]
        if not pairs:
            return "true"
        a, b = self.rng.choice(pairs)
        return f"{a} = {b}"

    # Expressions

    def column(self, kind: str, scopes: Sequence[Columns]) -> str:
        own = [name for name, its in scopes[-1] if its == kind]
        outside = [name for scope in scopes[:-1] for name, its in scope if its == kind]
        if outside and (not own or self.chance(0.3)):
            return self.rng.choice(outside)
        return self.rng.choice(own) if own else self.constant(kind)

    def constant(self, kind: str) -> str:
        return str(self.rng.randint(0, 3)) if kind == "int" else self.rng.choice(["'a'", "'b'", "'ab'"])

    def value(self, kind: str, depth: int, scopes: Sequence[Columns], size: int = 2) -> str:
        made = self.rng.random() if self.budget > 0 else 0.4
        if size == 0 or made < 0.55:
            return self.column(kind, scopes) if made < 0.45 else self.constant(kind)

        def part() -> str:
            return self.value(kind, 0, scopes, size - 1)

        if depth > 0 and made < 0.7:
            return self.scalar(kind, depth - 1, scopes)
        if made < 0.8:
            return f"CASE WHEN {self.condition(0, scopes)} THEN {part()} ELSE {part()} END"
        if made < 0.88:
            return f"coalesce({part()}, {part()})"
        if kind == "int":
            return f"({part()} {self.rng.choice(['+', '-'])} {part()})"
        return f"upper({part()})" if kind == "string" and self.chance(0.5) else f"nullif({part()}, {part()})"

    def scalar(self, kind: str, depth: int, scopes: Sequence[Columns]) -> str:
        sql, columns = self.clause(depth, scopes)
        inner = [*scopes, columns]
        where = self.where(depth, inner)
        if kind == "int" and self.chance(0.5):
            value = self.rng.choice(
                [
                    "count(*)",
                    f"count({self.column('int', inner[-1:])})",
                    f"sum({self.column('int', inner[-1:])})",
                ]
            )
        else:
            value = f"{self.rng.choice(['min', 'max'])}({self.column(kind, inner[-1:])})"
        return f"(SELECT {value} AS c0 FROM {sql}{where})"

    def condition(self, depth: int, scopes: Sequence[Columns]) -> str:
        self.budget -= 1
        made = self.rng.random() if self.budget > 0 else 0.9
        if depth > 0 and made < 0.35:
            return self.subquery(depth - 1, scopes)
        if made < 0.42:
            one, other = (self.condition(max(0, depth - 1), scopes) for _ in range(2))
            return f"({one} OR {other})"
        if made < 0.47:
            return f"NOT ({self.condition(max(0, depth - 1), scopes)})"
        kind = self.rng.choice(["int", "int", "string"])
        one = self.value(kind, depth, scopes, 1)
        if made < 0.57:
            return f"{one} IS {self.rng.choice(['', 'NOT '])}NULL"
        if made < 0.63:
            return f"{one} IN ({', '.join(self.constant(kind) for _ in range(2))})"
        if made < 0.68:
            return f"{one} IS {self.rng.choice(['', 'NOT '])}DISTINCT FROM {self.value(kind, 0, scopes, 1)}"
        if made < 0.72 and kind == "string":
            return f"{one} LIKE '{self.rng.choice(['a%', '%b', '_', 'a_'])}'"
        op = self.rng.choice(["=", "=", "=", "<>", "<", "<=", ">", ">="])
        return f"{one} {op} {self.value(kind, 0, scopes, 1)}"

    def subquery(self, depth: int, scopes: Sequence[Columns]) -> str:
        made = self.rng.random()
        negated = "NOT " if self.chance(0.4) else ""
        if made < 0.45:
            return f"{negated}EXISTS ({self.query(depth, scopes, 1)[0]})"
        kind = self.rng.choice(["int", "int", "string"])
        one, sql = self.value(kind, 0, scopes, 1), self.query(depth, scopes, 1, [kind])[0]
        if made < 0.85:
            return f"{one} {negated}IN ({sql})"
        op = self.rng.choice(["=", "<>", "<", "<=", ">", ">="])
        return f"{one} {op} {self.rng.choice(['ANY', 'ALL'])} ({sql})"

    def where(self, depth: int, scopes: Sequence[Columns]) -> str:
        count = self.rng.choice([0, 1, 1, 2])
        conditions = [self.condition(depth, scopes) for _ in range(count)]
        return f" WHERE {' AND '.join(conditions)}" if conditions else ""

    # SELECT

    def select(self, depth: int, outer: Sequence[Columns], kinds: list[str]) -> str:
        sql, columns = self.clause(depth, outer)
        scopes = [*outer, columns]
        where = self.where(depth, scopes)
        made = self.rng.random()
        if made < 0.25:
            return self.grouped(depth, sql, where, scopes, kinds)
        values = [self.value(kind, depth, scopes) for kind in kinds]
        if made < 0.4:
            values = [self.window(value, kind, scopes) for value, kind in zip(values, kinds, strict=True)]
        listed = ", ".join(f"{value} AS c{place}" for place, value in enumerate(values))
        distinct = "DISTINCT " if self.chance(0.15) else ""
        text = f"SELECT {distinct}{listed} FROM {sql}{where}"
        if self.chance(0.15):
            order = [
                f"{place + 1} {self.rng.choice(['', 'DESC '])}NULLS {self.rng.choice(['FIRST', 'LAST'])}"
                for place in range(len(kinds))
            ]
            self.rng.shuffle(order)
            cut = f"LIMIT {self.rng.randint(1, 3)} OFFSET {self.rng.randint(0, 1)}"
            text = f"({text} ORDER BY {', '.join(order)} {cut})"
        return text

    def window(self, value: str, kind: str, scopes: Sequence[Columns]) -> str:
        if self.chance(0.5):
            return value
        part = self.column("int", scopes[-1:])
        keys = f"PARTITION BY {part} " if self.chance(0.7) else ""
        if kind == "int" and self.chance(0.5):
            ranked = self.rng.choice(["rank", "dense_rank"])
            return f"{ranked}() OVER ({keys}ORDER BY {self.column('int', scopes[-1:])} NULLS FIRST)"
        function = (
            self.rng.choice(["min", "max"]) if kind == "string" else self.rng.choice(["min", "max", "sum"])
        )
        order = (
            f"ORDER BY {self.column('int', scopes[-1:])} NULLS LAST"
            if kind == "int" and self.chance(0.5)
            else ""
        )
        return f"{function}({self.column(kind, scopes[-1:])}) OVER ({keys}{order})"

    def grouped(self, depth: int, sql: str, where: str, scopes: Sequence[Columns], kinds: list[str]) -> str:
        keys = [
            self.column(self.rng.choice(["int", "int", "string"]), scopes[-1:])
            for _ in range(self.rng.choice([0, 1, 1, 2]))
        ]
        kind_of = dict(scopes[-1])
        keys = [key for key in dict.fromkeys(keys) if key in kind_of]
        values = []
        for kind in kinds:
            same = [key for key in keys if kind_of[key] == kind]
            if same and self.chance(0.6):
                values.append(self.rng.choice(same))
            elif kind == "int" and self.chance(0.6):
                argument = self.column(self.rng.choice(["int", "string"]), scopes[-1:])
                number = self.column("int", scopes[-1:])
                values.append(self.rng.choice([
                    "count(*)", f"count({argument})", f"count(DISTINCT {argument})", f"sum({number})",
                    f"sum(DISTINCT {number})", f"count(*) FILTER (WHERE {self.condition(0, scopes[-1:])})",
                    f"sum({number}) FILTER (WHERE {number} > 0)",
                ]))  # fmt: skip
            else:
                values.append(f"{self.rng.choice(['min', 'max'])}({self.value(kind, 0, scopes[-1:], 1)})")
        listed = ", ".join(f"{value} AS c{place}" for place, value in enumerate(values))
        by = ""
        if keys:
            form = self.rng.choice(["{}", "{}", "{}", "ROLLUP ({})", "CUBE ({})", "GROUPING SETS (({}), ())"])
            by = " GROUP BY " + form.format(", ".join(keys))
        having = (
            f" HAVING count(*) {self.rng.choice(['>', '<', '='])} {self.rng.randint(0, 2)}"
            if self.chance(0.3)
            else ""
        )
        return f"SELECT {listed} FROM {sql}{where}{by}{having}"
