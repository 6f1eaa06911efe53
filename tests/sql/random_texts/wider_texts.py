"""Random SQL texts with what `texts.py` leaves out: WITH and recursion, windows of all frames, DISTINCT ON,
QUALIFY, joins by any condition, SEMI and ANTI joins, UNNEST, VALUES, groups of several sets, more kinds of
columns. Each text has one answer whatever the order of rows: what picks rows sorts them by all columns.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence

from sql.random_texts.plain_texts import Columns, TextWriter

__all__ = ["WIDER_TABLES", "wider_text"]

WIDER_TABLES = {
    "t": "a: int?, b: int?, s: string?",
    "u": "a: int?, c: int, s: string?",
    "v": "k: int, l: list<int>?, x: float?, d: date?, y: bool?",
}

_KINDS = ("int", "int", "int", "int", "string", "string", "float", "date", "bool")
_NUMBERS = ("int", "float")

_WIDE_FRAMES = (
    "ROWS BETWEEN 1 PRECEDING AND 1 FOLLOWING",
    "ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW",
    "ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING",
    "ROWS BETWEEN 2 PRECEDING AND 1 PRECEDING",
    "ROWS BETWEEN 1 FOLLOWING AND 2 FOLLOWING",
    "ROWS BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING",
    "ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING",
    "GROUPS BETWEEN 1 PRECEDING AND CURRENT ROW",
    "GROUPS BETWEEN CURRENT ROW AND 1 FOLLOWING",
    "RANGE BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW",
    "RANGE BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING",
    "RANGE BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING",
)
_DISTANCES = (
    "RANGE BETWEEN 1 PRECEDING AND CURRENT ROW",
    "RANGE BETWEEN 1 PRECEDING AND 1 FOLLOWING",
    "RANGE BETWEEN 2 PRECEDING AND 1 PRECEDING",
    "RANGE BETWEEN CURRENT ROW AND 2 FOLLOWING",
    "RANGE BETWEEN UNBOUNDED PRECEDING AND 1 FOLLOWING",
)
"""Frames that need one number as their order."""


def wider_text(rng: random.Random, depth: int = 3) -> str:
    """A query whose columns are called c0, c1, and so on."""
    writer = _WiderWriter(rng)
    kinds = [rng.choice(_KINDS) for _ in range(rng.randint(1, 3))]
    return writer.whole(depth, kinds)


class _WiderWriter(TextWriter):
    tables = WIDER_TABLES

    def __init__(self, rng: random.Random) -> None:
        super().__init__(rng)
        self.budget = 12
        self.named: list[tuple[str, Columns]] = []
        """Queries of WITH that are known: the name, and the columns without it."""
        self.sorted: Columns = []
        """The columns of the last query with a window. One with two windows has several answers if rows are
        there twice, since each window may take them in another order.
        """

    def whole(self, depth: int, kinds: list[str]) -> str:
        """A query with its WITH."""
        made = self.rng.random()
        parts = []
        if made < 0.15:
            parts.append(self.recursive())
        for _ in range(self.rng.choice([0, 0, 0, 0, 1, 2])):
            inner, its = self.query(max(0, depth - 1), [], self.rng.randint(1, 2))
            name = f"w{len(self.named)}"
            parts.append(f"{name} AS ({inner})")
            self.named.append((name, [(f"c{place}", kind) for place, kind in enumerate(its)]))
        body = self.query(depth, [], len(kinds), kinds)[0]
        start = f"WITH {'RECURSIVE ' if made < 0.15 else ''}{', '.join(parts)} " if parts else ""
        return f"{start}{body}"

    def recursive(self) -> str:
        """A recursion that ends, and that a working table computes as a fixed point does."""
        name = f"w{len(self.named)}"
        one, other = self.rng.sample(["a", "b"], 2)
        self.named.append((name, [("x", "int"), ("z", "int")]))
        edges = self.rng.choice(["t", "(SELECT a, c AS b FROM u)", "(SELECT DISTINCT a, b FROM t)"])
        first = self.rng.choice([
            f"SELECT {one}, {other} FROM t", "SELECT a, c FROM u", "VALUES (1, 2)", "SELECT 0, a FROM t",
            "SELECT a, max(b) FROM t GROUP BY a",
        ])  # fmt: skip
        made = self.rng.random()
        if made < 0.25:
            most = self.rng.randint(1, 4)
            step = f"SELECT x + 1, z FROM {name} WHERE x < {most}"
            return f"{name}(x, z) AS ({first} {self.rng.choice(['UNION', 'UNION ALL'])} {step})"
        how = self.rng.choice(["JOIN", "JOIN", "LEFT JOIN"])
        kept = self.rng.choice([f"{name}.x", f"e.{one}", "coalesce(e.b, 0)"])
        where = self.rng.choice(["", f" WHERE {self.condition(0, [[('x', 'int'), ('e.a', 'int')]])}"])
        if self.chance(0.3):
            where = f"{where or ' WHERE true'} AND NOT EXISTS (SELECT 1 FROM u WHERE u.a = {name}.z)"
        on = f"{name}.z {self.rng.choice(['=', '=', '='])} e.{one}"
        step = f"SELECT {kept}, e.{other} FROM {name} {how} {edges} AS e ON {on}{where}"
        return f"{name}(x, z) AS ({first} UNION {step})"

    def query(
        self, depth: int, outer: Sequence[Columns], width: int, kinds: list[str] | None = None
    ) -> tuple[str, list[str]]:
        return super().query(depth, outer, width, kinds or [self.rng.choice(_KINDS) for _ in range(width)])

    # FROM

    def source(self, depth: int, outer: Sequence[Columns], left: Columns) -> tuple[str, Columns]:
        made = self.rng.random()
        if self.named and made < 0.4:
            alias, (name, its) = self.alias(), self.rng.choice(self.named)
            return f"{name} AS {alias}", [(f"{alias}.{column}", kind) for column, kind in its]
        if made > 0.93:
            alias, kinds = self.alias(), [self.rng.choice(_KINDS) for _ in range(self.rng.randint(1, 2))]
            rows = [
                [self.constant(kind) if not place or self.chance(0.8) else "NULL" for kind in kinds]
                for place in range(self.rng.randint(1, 3))
            ]
            listed = ", ".join(f"({', '.join(row)})" for row in rows)
            names = [f"p{place}" for place in range(len(kinds))]
            return f"(VALUES {listed}) AS {alias}({', '.join(names)})", [
                (f"{alias}.{name}", kind) for name, kind in zip(names, kinds, strict=True)
            ]
        sql, columns = super().source(depth, outer, left)
        return sql, [(name, kind) for name, kind in columns if not kind.startswith("list")]

    def clause(self, depth: int, outer: Sequence[Columns]) -> tuple[str, Columns]:
        made = self.rng.random()
        if made < 0.07:
            alias, element = self.alias(), self.alias()
            sql = f"v AS {alias}, UNNEST({alias}.l) AS {element}(e)"
            own = [(f"{alias}.k", "int"), (f"{alias}.x", "float"), (f"{element}.e", "int")]
            return sql, own
        if made < 0.75:
            return super().clause(depth, outer)
        sql, columns = self.source(depth, outer, [])
        for _ in range(self.rng.choice([1, 1, 2])):
            item, others = self.source(depth, outer, [])
            how = self.rng.choice(["JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN", "SEMI JOIN", "ANTI JOIN"])
            on = [self.compared(columns, others)]
            if self.chance(0.5):
                on.append(self.matched(columns, others))
            if self.chance(0.3):
                on.append(self.condition(0, [columns + others]))
            link = self.rng.choice([" AND ", " AND ", " OR "])
            sql = f"{sql} {how} {item} ON {link.join(on)}"
            columns = columns if how in ("SEMI JOIN", "ANTI JOIN") else columns + others
        return sql, columns

    def compared(self, columns: Columns, others: Columns) -> str:
        pairs = [(a, b) for a, kind in columns for b, other in others if kind == other]
        if not pairs:
            return "true"
        a, b = self.rng.choice(pairs)
        op = self.rng.choice(["<", "<=", ">", ">=", "<>", "IS NOT DISTINCT FROM", "IS DISTINCT FROM"])
        return f"{a} {op} {b}"

    # Expressions

    def constant(self, kind: str) -> str:
        if kind == "float":
            return self.rng.choice(["0.5::double", "1.0::double", "(-1.5)::double"])
        if kind == "date":
            return f"DATE '2024-01-0{self.rng.randint(1, 4)}'"
        if kind == "bool":
            return self.rng.choice(["true", "false"])
        return super().constant(kind)

    def value(self, kind: str, depth: int, scopes: Sequence[Columns], size: int = 2) -> str:
        if size == 0 or self.budget <= 0 or self.chance(0.5):
            return super().value(kind, depth, scopes, size)

        def part(of: str) -> str:
            return self.value(of, 0, scopes, size - 1)

        made = self.rng.random()
        if depth > 0 and made < 0.15:
            return self.picked(kind, depth - 1, scopes)
        if kind == "bool":
            return f"({self.condition(min(depth, 1), scopes)})"
        if made < 0.3:
            return f"CASE {part('int')} WHEN 1 THEN {part(kind)} WHEN {part('int')} THEN {part(kind)} END"
        if made < 0.4:
            return f"{self.rng.choice(['greatest', 'least'])}({part(kind)}, {part(kind)})"
        if kind == "int":
            return self.rng.choice([
                f"({part('int')} * {part('int')})", f"abs({part('int')})", f"({part('int')} // 2)",
                f"length({part('string')})", f"({part('int')} % 3)", f"extract(day FROM {part('date')})",
                f"-{part('int')}", f"({part('date')} - {part('date')})", f"round({part('float')})::int",
            ])  # fmt: skip
        if kind == "float":
            return self.rng.choice([
                f"({part('int')} / 2)", f"({part('float')} + {part('int')})", f"({part('float')} * 2)",
                f"({part('int')}::double)", f"abs({part('float')})", f"({part('float')} / {part('int')})",
            ])  # fmt: skip
        if kind == "date":
            return f"({part('date')} {self.rng.choice(['+', '-'])} {part('int')})"
        return self.rng.choice([
            f"({part('string')} || {part('string')})", f"lower({part('string')})",
            f"substring({part('string')}, 1, 1)", f"replace({part('string')}, 'a', 'c')",
            f"({part('int')}::varchar)",
        ])  # fmt: skip

    def sorted_by(self, names: Sequence[str]) -> str:
        order = [
            f"{name} {self.rng.choice(['', 'DESC '])}NULLS {self.rng.choice(['FIRST', 'LAST'])}"
            for name in names
        ]
        return f"ORDER BY {', '.join(order)}"

    def names(self, columns: Columns) -> list[str]:
        names = [name for name, _ in columns]
        self.rng.shuffle(names)
        return names

    def picked(self, kind: str, depth: int, scopes: Sequence[Columns]) -> str:
        """A scalar subquery that has one row at most, or, if DuckDB has no error either, by chance."""
        sql, columns = self.clause(depth, scopes)
        inner = [*scopes, columns]
        where, value = self.where(depth, inner), self.value(kind, 0, inner, 1)
        cut = f" {self.sorted_by(self.names(columns))} LIMIT 1" if self.chance(0.9) else ""
        return f"(SELECT {value} AS c0 FROM {sql}{where}{cut})"

    def condition(self, depth: int, scopes: Sequence[Columns]) -> str:
        if self.budget <= 0 or self.chance(0.7):
            return super().condition(depth, scopes)
        self.budget -= 1
        kind = self.rng.choice(_KINDS)
        one, two, three = (self.value(kind, 0, scopes, 1) for _ in range(3))
        made = self.rng.random()
        if depth > 0 and made < 0.3:
            other = self.rng.choice(_KINDS)
            pair = f"({one}, {self.value(other, 0, scopes, 1)})"
            inner = self.query(depth - 1, scopes, 2, [kind, other])[0]
            return f"{pair} {self.rng.choice(['', 'NOT '])}IN ({inner})"
        if made < 0.5:
            return f"{one} {self.rng.choice(['', 'NOT '])}BETWEEN {two} AND {three}"
        if made < 0.65:
            return f"coalesce({one} = {two}, {self.rng.choice(['true', 'false'])})"
        if made < 0.75 and kind != "bool":
            return f"{one} {self.rng.choice(['', 'NOT '])}IN ({two}, {three}, NULL)"
        op = self.rng.choice(["=", "<>", "<", "<=", ">", ">="])
        return f"{one} {op} {two}"

    # SELECT

    def select(self, depth: int, outer: Sequence[Columns], kinds: list[str]) -> str:
        made = self.rng.random()
        if made > 0.3:
            return super().select(depth, outer, kinds)
        sql, columns = self.clause(depth, outer)
        scopes = [*outer, columns]
        where = self.where(depth, scopes)
        values = [self.value(kind, depth, scopes) for kind in kinds]
        listed = ", ".join(f"{value} AS c{place}" for place, value in enumerate(values))
        names = self.names(columns)
        if made < 0.12:
            keys = names[: self.rng.randint(1, 2)]
            order = self.sorted_by([*keys, *names])
            return f"(SELECT DISTINCT ON ({', '.join(keys)}) {listed} FROM {sql}{where} {order})"
        ranked = self.rng.choice(["row_number", "rank", "dense_rank", "ntile"])
        parts = f"PARTITION BY {self.rng.choice(names)} " if self.chance(0.6) else ""
        order = self.sorted_by(names if ranked in ("row_number", "ntile") else names[:1])
        call = f"{ranked}({3 if ranked == 'ntile' else ''}) OVER ({parts}{order})"
        test = f"{call} {self.rng.choice(['=', '<=', '>'])} {self.rng.randint(1, 2)}"
        return f"SELECT {listed} FROM {sql}{where} QUALIFY {test}"

    def window(self, value: str, kind: str, scopes: Sequence[Columns]) -> str:
        columns = scopes[-1]
        own = [name for name, its in columns if its == kind]
        if self.sorted is columns or self.chance(0.3) or (not own and kind != "int"):
            return value
        self.sorted = columns
        names = self.names(columns)
        keys = f"PARTITION BY {self.rng.choice(names)} " if self.chance(0.6) else ""
        total = self.sorted_by(names)
        made = self.rng.random()
        if kind == "int" and (made < 0.3 or not own):
            call = self.rng.choice(["row_number()", "rank()", "dense_rank()", "ntile(2)", "ntile(3)"])
            return f"{call} OVER ({keys}{total})"
        if kind == "float" and made < 0.3:
            call = self.rng.choice(["percent_rank()", "cume_dist()"])
            return f"{call} OVER ({keys}{self.sorted_by(names[:1])})"
        column = self.rng.choice(own)
        if made < 0.5:
            call = self.rng.choice([
                f"lag({column})", f"lead({column})", f"lag({column}, 2)",
                f"lead({column}, 1, {self.constant(kind)})",
            ])  # fmt: skip
            return f"{call} OVER ({keys}{total})"
        frame = self.rng.choice(_WIDE_FRAMES)
        if made < 0.7:
            call = self.rng.choice(["first_value({})", "last_value({})", "nth_value({}, 2)"]).format(column)
            return f"{call} OVER ({keys}{total} {frame})"
        return (
            f"{self.framed(kind, column, columns)} OVER ({keys}{self.order_of_frame(columns, names, frame)})"
        )

    def framed(self, kind: str, column: str, columns: Columns) -> str:
        calls: list[Callable[[], str]] = [lambda: f"min({column})", lambda: f"max({column})"]
        if kind == "bool":
            return self.rng.choice(calls)()
        if kind == "int":
            calls += [lambda: f"sum({column})", lambda: f"count({column})", lambda: "count(*)"]
        if kind == "float":
            numbers = [name for name, its in columns if its in _NUMBERS]
            calls += [lambda: f"sum({column})", lambda: f"avg({self.rng.choice(numbers)})"]
        call = self.rng.choice(calls)()
        if self.chance(0.2):
            call = f"{call} FILTER (WHERE {self.condition(0, [columns])})"
        return call

    def order_of_frame(self, columns: Columns, names: list[str], frame: str) -> str:
        numbers = [name for name, its in columns if its == "int"]
        if numbers and self.chance(0.3):
            return f"{self.sorted_by([self.rng.choice(numbers)])} {self.rng.choice(_DISTANCES)}"
        if self.chance(0.15):
            return ""
        if frame.startswith("ROWS"):
            return f"{self.sorted_by(names)} {frame}"
        return f"{self.sorted_by(names[: self.rng.randint(1, 2)])} {frame}"

    def grouped(self, depth: int, sql: str, where: str, scopes: Sequence[Columns], kinds: list[str]) -> str:
        columns = scopes[-1]
        if self.chance(0.4) or not columns:
            return super().grouped(depth, sql, where, scopes, kinds)
        names = self.names(columns)
        keys, kind_of = names[: self.rng.choice([1, 1, 2, 3])], dict(columns)
        values = [self.of_group(kind, keys, kind_of, scopes) for kind in kinds]
        if self.chance(0.15):
            value = self.rng.choice(keys)
            part = f"PARTITION BY {self.rng.choice(keys)} " if self.chance(0.5) else ""
            for place, kind in enumerate(kinds):
                if kind == "int":
                    order = self.sorted_by([value])
                    values[place] = self.rng.choice([
                        f"sum(count(*)) OVER ({part})", f"rank() OVER ({part}ORDER BY count(*))",
                        f"max(count(*)) OVER ({part}{order})",
                    ])  # fmt: skip
        listed = ", ".join(f"{value} AS c{place}" for place, value in enumerate(values))
        form = self.rng.choice([
            "{0}", "{0}", "ROLLUP ({0})", "CUBE ({0})", "GROUPING SETS (({0}), ({1}), ())",
            "{1}, ROLLUP ({0})", "GROUPING SETS (({0}), ({1}), ({1}))",
        ])  # fmt: skip
        by = form.format(", ".join(keys), keys[0])
        having = (
            f" HAVING {self.condition(min(depth, 1), [*scopes[:-1], [(key, kind_of[key]) for key in keys]])}"
            if self.chance(0.3)
            else ""
        )
        return f"SELECT {listed} FROM {sql}{where} GROUP BY {by}{having}"

    def of_group(self, kind: str, keys: list[str], kind_of: dict[str, str], scopes: Sequence[Columns]) -> str:
        same = [key for key in keys if kind_of[key] == kind]
        if same and self.chance(0.5):
            return self.rng.choice(same)
        value = self.value(kind, 0, scopes[-1:], 1)
        if kind == "bool":
            return f"{self.rng.choice(['bool_or', 'bool_and'])}({value})"
        if kind == "float":
            number = self.value(self.rng.choice(_NUMBERS), 0, scopes[-1:], 1)
            made = f"{self.rng.choice(['avg', 'median'])}({number})"
            return self.rng.choice([made, f"sum({value})", f"min({value})", f"avg(DISTINCT {number})"])
        if kind == "int":
            flag = self.condition(0, scopes[-1:])
            return self.rng.choice([
                f"count(DISTINCT {value})", f"sum(DISTINCT {value})", f"sum({value}) FILTER (WHERE {flag})",
f"grouping({self.rng.choice(keys)})", f"max({value})",
                f"count(DISTINCT {value}) FILTER (WHERE {flag})",
            ])  # fmt: skip
        if kind == "string" and self.chance(0.3):
            return f"string_agg({value}, '-' ORDER BY {value})"
        return f"{self.rng.choice(['min', 'max'])}({value})"
