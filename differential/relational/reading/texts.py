"""A SQL text, its places, and the strict way to read sqlglot's tree.

sqlglot accepts more than we understand, and its tree changes from release to release: `NOT LIKE` was
`Not(Like)` and is `Like(negate=True)`. A reader that looks at the parts that it knows would then give wrong
answers. So each node is read by `parts_of`, which refuses a node that has any other part.
"""

from __future__ import annotations

from typing import Final

import sqlglot
from sqlglot import exp
from sqlglot.errors import ErrorLevel, ParseError, TokenError

from timely.user_code.call_site import CallSite

from ...errors import SqlError
from .mutual import MutualRecursion, without_mutually

__all__ = ["DIALECTS", "SqlText", "children_of"]

DIALECTS: Final = ("spark", "postgres", "duckdb")

_CHARACTERS_MAX: Final = 500_000
"""Longest text; sqlglot takes some seconds for one."""

_NOT_PARTS: Final = frozenset(("big_int", "safe_division"))
"""What sqlglot notes about dialects that it writes, without a meaning in those that it reads."""


class SqlText:
    """A text with a name: that of its file, or "<sql>". If it is part of a longer text, `begins` says how
    many lines are before it, and how many characters of its first line.
    """

    def __init__(
        self, text: str, dialect: str, name: str = "<sql>", begins: tuple[int, int] = (0, 0)
    ) -> None:
        self.text, self.dialect, self.name = text, dialect, name
        self._mutual: dict[int, MutualRecursion] = {}
        self._begins = begins
        if dialect not in DIALECTS:
            raise SqlError(f"there is no dialect {dialect!r:.40}: write one of {', '.join(DIALECTS)}")
        if len(text) > _CHARACTERS_MAX:
            raise self.error_of_place(
                0, f"{len(text):,} characters are too many; {_CHARACTERS_MAX:,} are possible"
            )

    def statements(self) -> list[exp.Expression]:
        """Return the trees of all statements in the text; raise SqlError if it cannot be read."""
        try:
            text, self._mutual = without_mutually(self.text, self.dialect, self.error_of_place)
            trees = sqlglot.parse(text, read=self.dialect)
        except ParseError as error:
            told = error.errors[0] if error.errors else {}
            what = str(told.get("description") or error).partition("\n")[0].strip().rstrip(".")
            near = str(told.get("highlight") or "")
            column = max(1, int(told.get("col") or 1) - max(0, len(near) - 1))
            line, column = self._within(int(told.get("line") or 1), column)
            raise SqlError(f"{self.name}:{line}:{column}: {what}, near {near[:40]!r}") from None
        except TokenError as error:
            raise self.error_of_place(0, str(error).partition("\n")[0][:200]) from None
        except SqlError:
            raise
        except RecursionError:
            raise self.error_of_place(0, "is nested too deeply: more than some hundred levels") from None
        except Exception as error:  # what a library of others raises for odd texts
            raise self.error_of_place(0, f"cannot be read: {type(error).__name__}: {error!s:.120}") from None
        return [tree for tree in trees if isinstance(tree, exp.Expression)]

    def statement(self) -> exp.Expression:
        """Return the tree of the only statement in the text."""
        trees = self.statements()
        if len(trees) != 1:
            raise self.error_of_place(0, f"needs one statement, and has {len(trees)}")
        return trees[0]

    def part(self, start: int, stop: int) -> SqlText:
        """Return a part of the text, whose places are those of the whole."""
        line, column = self._place(start)
        return SqlText(self.text[start:stop], self.dialect, self.name, (line - 1, column - 1))

    def site(self, node: exp.Expression) -> CallSite:
        """Return the place of a node; its column stands where other sites have their line."""
        line, column = self._place(_start(node))
        return CallSite(f"{self.name}:{line}", column)

    def error(self, node: exp.Expression, message: str) -> SqlError:
        """Return an error in one line, with the place of a node."""
        return self.error_of_place(_start(node), message)

    def error_of_place(self, start: int, message: str) -> SqlError:
        """Return an error in one line, with the line and column of a character."""
        line, column = self._place(start)
        return SqlError(f"{self.name}:{line}:{column}: {' '.join(message.split())}")

    def written(self, node: exp.Expression) -> str:
        """Return a node as SQL, in a few words."""
        text = " ".join(node.sql(dialect=self.dialect, unsupported_level=ErrorLevel.IGNORE).split())
        return text if len(text) <= 60 else text[:57] + "…"

    def parts_of(self, node: exp.Expression, *names: str) -> None:
        """Raise SqlError if a node has a part that its reader does not name."""
        for name, part in node.args.items():
            if name in names or name in _NOT_PARTS or part is None or part is False or part == []:
                continue
            at = part[0] if isinstance(part, list) else part
            where = at if isinstance(at, exp.Expression) and _has_start(at) else node
            what = f"{name.strip('_')} of {type(node).__name__}"
            raise self.error(where, f"{self.written(node)}: {what} is not supported")

    def labels(self, alias: exp.Expression) -> list[exp.Expression]:
        """Return the names of columns of an alias, as in `AS t (a, b)`; sqlglot takes types there, too."""
        columns = children_of(alias, "columns")
        for each in columns:
            if not isinstance(each, exp.Identifier):
                raise self.error(
                    each, f"{self.written(each)}: only WITH MUTUALLY RECURSIVE has types of columns; use CAST"
                )
        return columns

    def mutual(self, ctes: list[exp.Expression]) -> MutualRecursion | None:
        """Return what WITH MUTUALLY RECURSIVE says of these queries; None for another WITH."""
        return self._mutual.get(_start(ctes[0].args["alias"]))

    def _place(self, start: int) -> tuple[int, int]:
        return self._within(self.text.count("\n", 0, start) + 1, start - self.text.rfind("\n", 0, start))

    def _within(self, line: int, column: int) -> tuple[int, int]:
        """Return a place of this text as one of the text that it is part of."""
        return line + self._begins[0], max(1, column + (self._begins[1] if line == 1 else 0))


def _start(node: exp.Expression) -> int:
    """Return where a node begins: at its first token that sqlglot remembers, or that of a node around it."""
    at: exp.Expr | None = node
    while at is not None:
        starts = [outcome.meta["start"] for outcome in at.walk() if "start" in outcome.meta]
        if starts:
            return int(min(starts))
        at = at.parent
    return 0


def _has_start(node: exp.Expression) -> bool:
    return any("start" in outcome.meta for outcome in node.walk())


def children_of(node: exp.Expression, name: str) -> list[exp.Expression]:
    """Return a part of a node that is a list of nodes."""
    part = node.args.get(name) or []
    return [each for each in (part if isinstance(part, list) else [part]) if isinstance(each, exp.Expression)]
