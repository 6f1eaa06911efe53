"""A SQL text, its places, and the strict way to read sqlglot's tree.

sqlglot accepts more than we understand, and its tree changes from release to release: `NOT LIKE` was
`Not(Like)` and is `Like(negate=True)`. A reader that looks at the parts that it knows would then give wrong
answers. So each node is read by `parts_of`, which refuses a node that has any other part.
"""

from __future__ import annotations

import logging
import re
from bisect import bisect_right
from contextvars import ContextVar
from itertools import pairwise
from typing import Final

import sqlglot
from sqlglot import TokenType, exp
from sqlglot.dialects.dialect import Dialect
from sqlglot.errors import ErrorLevel, ParseError, TokenError
from sqlglot.parser import Parser

from timely.user_code.call_site import CallSite

from ...errors import SqlError
from ..spark_functions.by_name import NAMED
from .mutual import MutualRecursion, without_mutually

__all__ = ["DIALECTS", "SqlText", "children_of"]

DIALECTS: Final = ("spark", "postgres", "duckdb")

_CHARACTERS_MAX: Final = 500_000
"""Longest text; sqlglot takes some seconds for one."""

_SIGNS_MAX: Final = 20
"""So many quotes are tried, from the last one on, to find the one without an end."""

_NOT_PARTS: Final = frozenset(("big_int", "safe_division"))
"""What sqlglot notes about dialects that it writes, without a meaning in those that it reads."""

_INSTEAD: Final = {
    "conflict of Insert": ". In a table with a PRIMARY KEY an INSERT sets the whole row of its key",
    "with of Delete": ". Write the query in its WHERE",
    "with of Update": ". Write the query in its WHERE, or in SET",
    "returning of Insert": ". Ask for the rows by SELECT",
    "returning of Delete": ". Ask for the rows by SELECT, before",
    "returning of Update": ". Ask for the rows by SELECT",
    "db of Column": ". A column is written as table.column; there are no schemas",
}
"""What to write in place of a part that others know."""


_is_reading: Final[ContextVar[bool]] = ContextVar("this thread reads a text", default=False)


def _is_of_others(record: logging.LogRecord) -> bool:
    """Return True for what sqlglot logs of texts that are not ours: what we do not take is an error."""
    return not _is_reading.get()


logging.getLogger("sqlglot").addFilter(_is_of_others)


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
        self._starts: dict[int, tuple[exp.Expr, int | None]] = {}
        self._lines = [0, *(match.end() for match in re.finditer("\n", text))]
        if dialect not in DIALECTS:
            raise SqlError(f"there is no dialect {dialect!r:.40}: write one of {', '.join(DIALECTS)}")
        if len(text) > _CHARACTERS_MAX:
            raise self.error_of_place(
                0, f"{len(text):,} characters are too many; {_CHARACTERS_MAX:,} are possible"
            )
        try:
            text.encode()
        except UnicodeEncodeError as error:
            raise self.error_of_place(error.start, "a surrogate, which is no character") from None

    def statements(self) -> list[exp.Expression]:
        """Return the trees of all statements in the text; raise SqlError if it cannot be read."""
        try:
            text, self._mutual = without_mutually(self.text, self.dialect, self.error_of_place)
            trees = self._parsed(text)
        except ParseError as error:
            told = error.errors[0] if error.errors else {}
            what = _plainly(str(told.get("description") or error))
            near = str(told.get("highlight") or "")
            column = max(1, int(told.get("col") or 1) - max(0, len(near) - 1))
            line, column = self._within(int(told.get("line") or 1), column)
            raise SqlError(f"{self.name}:{line}:{column}: {what}, near {near[:40]!r}") from None
        except TokenError as error:
            raise self.error_of_tokens(error) from None
        except SqlError:
            raise
        except RecursionError:
            raise self.error_of_place(0, "is nested too deeply: more than some hundred levels") from None
        except Exception as error:  # what a library of others raises for odd texts
            raise self.error_of_place(0, f"cannot be read: {type(error).__name__}: {error!s:.120}") from None
        return [tree for tree in trees if isinstance(tree, exp.Expression)]

    def _parsed(self, text: str) -> list[exp.Expr | None]:
        """Return what sqlglot makes of a text, without what it writes to its log."""
        dialect = Dialect.get_or_raise(self.dialect)
        tokens = dialect.tokenize(text)
        for one, other in pairwise(tokens):
            if other.token_type == TokenType.COMMA and one.token_type in (TokenType.COMMA, TokenType.L_PAREN):
                raise self.error_of_place(other.start, "something is missing before this comma")
        is_read = _is_reading.set(True)
        try:
            return _parser_of(dialect, self.dialect).parse(tokens, text)
        finally:
            _is_reading.reset(is_read)

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
        line, column = self._place(self._start(node))
        return CallSite(f"{self.name}:{line}", column)

    def error(self, node: exp.Expression, message: str) -> SqlError:
        """Return an error in one line, with the place of a node."""
        return self.error_of_place(self._start(node), message)

    def error_of_place(self, start: int, message: str) -> SqlError:
        """Return an error in one line, with the line and column of a character."""
        line, column = self._place(start)
        return SqlError(f"{self.name}:{line}:{column}: {' '.join(message.split())}")

    def error_of_tokens(self, error: Exception) -> SqlError:
        """Return the error of a text whose words cannot be told apart."""
        cause = str(error.__cause__ or "")
        missing = re.match(r"Missing (.+) from \d+:\d+", cause)
        sign = missing[1] if missing else "/*"
        at = self.text.rfind(sign)
        for _ in range(_SIGNS_MAX):
            if at <= 0 or self._has_words(self.text[:at]):
                break
            at = self.text.rfind(sign, 0, at)
        if at < 0:
            return self.error_of_place(0, f"its words cannot be told apart: {error!s:.100}")
        return self.error_of_place(at, f"what begins with {sign} has no end")

    def _has_words(self, text: str) -> bool:
        try:
            sqlglot.tokenize(text, read=self.dialect)
        except TokenError:
            return False
        return True

    def written(self, node: exp.Expression) -> str:
        """Return a node as SQL, in a few words."""
        try:
            text = node.sql(dialect=self.dialect, unsupported_level=ErrorLevel.IGNORE)
        except Exception:  # what sqlglot raises for nodes that lack a part
            text = self.text[self._start(node) :]
        text = " ".join(text.split())
        return text if len(text) <= 60 else text[:57] + "…"

    def label(self, node: exp.Expression) -> str:
        """Return an expression as SQL, the name of a column that has no other."""
        try:
            return node.sql(
                dialect=self.dialect, normalize_functions="lower", unsupported_level=ErrorLevel.IGNORE
            )
        except Exception:  # what sqlglot raises for nodes that lack a part
            raise self.error(node, f"{self.written(node)}: something is missing here") from None

    def parts_of(self, node: exp.Expression, *names: str) -> None:
        """Raise SqlError if a node has a part that its reader does not name."""
        for name, part in node.args.items():
            if name in names or name in _NOT_PARTS or part is None or part is False or part == []:
                continue
            at = part[0] if isinstance(part, list) else part
            where = at if isinstance(at, exp.Expression) and self._first(at) is not None else node
            what = f"{name.strip('_')} of {type(node).__name__}"
            instead = _INSTEAD.get(what, "")
            raise self.error(where, f"{self.written(node)}: {what} is not supported{instead}")

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
        return self._mutual.get(self._start(ctes[0].args["alias"]))

    def _place(self, start: int) -> tuple[int, int]:
        line = bisect_right(self._lines, start)
        return self._within(line, start - self._lines[line - 1] + 1)

    def _start(self, node: exp.Expression) -> int:
        """Return where a node begins: at its first token, or that of a node around it."""
        at: exp.Expr | None = node
        while at is not None:
            first = self._first(at)
            if first is not None:
                return first
            at = at.parent
        return 0

    def _first(self, node: exp.Expr) -> int | None:
        """Return the first token of a node and those in it; each node is looked at once."""
        waiting = [node]
        while waiting:
            top = waiting[-1]
            if id(top) in self._starts:
                waiting.pop()
                continue
            inner = [each for each in top.iter_expressions() if id(each) not in self._starts]
            if inner:
                waiting += inner
                continue
            starts = [self._starts[id(each)][1] for each in top.iter_expressions()]
            starts.append(top.meta.get("start"))
            # The node stays with its place, so that no other node can have its id.
            self._starts[id(top)] = (top, min((each for each in starts if each is not None), default=None))
            waiting.pop()
        return self._starts[id(node)][1]

    def _within(self, line: int, column: int) -> tuple[int, int]:
        """Return a place of this text as one of the text that it is part of."""
        return line + self._begins[0], max(1, column + (self._begins[1] if line == 1 else 0))


def _parser_of(dialect: Dialect, name: str) -> Parser:
    """Return a parser that leaves functions that are read by their names as they are written. sqlglot would
    change the order of their operands, and their formats.
    """
    parser = dialect.parser_class
    if name not in _PARSERS:
        unread = {each.upper() for each in NAMED[name]}
        parts = {
            table: {key: read for key, read in getattr(parser, table).items() if key not in unread}
            for table in ("FUNCTIONS", "FUNCTION_PARSERS")
        }
        _PARSERS[name] = type("ParserOfNames", (parser,), parts)
    return _PARSERS[name](dialect=dialect)


_PARSERS: Final[dict[str, type[Parser]]] = {}


def _plainly(message: str) -> str:
    """Return what sqlglot says without the names of its classes."""
    what = message.partition("\n")[0].strip().rstrip(".")
    if what.startswith("Required keyword:"):
        return "something is missing here"
    what = re.sub(r"<Token token_type: \S+, text: (.*?), line: .*", lambda match: match[1] or "the end", what)
    what = re.sub(r"<class '[\w.]*?(\w+)'>", lambda match: match[1].upper(), what)
    return re.sub(r"<Token>|\bSENTINEL\b", "the end", what)


def children_of(node: exp.Expression, name: str) -> list[exp.Expression]:
    """Return a part of a node that is a list of nodes."""
    part = node.args.get(name) or []
    return [each for each in (part if isinstance(part, list) else [part]) if isinstance(each, exp.Expression)]
