"""A script as statements: where each begins and ends, and which it is by its first word."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import Final

from sqlglot.dialects.dialect import Dialect
from sqlglot.errors import SqlglotError
from sqlglot.tokenizer_core import Token, TokenType
from sqlglot.tokens import Tokenizer

from ...errors import SqlError
from ..reading.texts import SqlText
from ..reading.written_rows import WrittenRows, written_rows_at

__all__ = ["Piece", "pieces_of", "tokens_of"]

_SUPPORTED: Final = (
    "SELECT, WITH, VALUES, CREATE TABLE, CREATE VIEW, ALTER TABLE, DROP, INSERT, DELETE, UPDATE, SUBSCRIBE, "
    "EXPLAIN, SHOW"
)
_PARSED: Final = frozenset(
    ("SELECT", "WITH", "VALUES", "FROM", "(", "CREATE", "ALTER", "DROP", "INSERT", "DELETE")
)
_PREFIXES: Final = frozenset(("SUBSCRIBE", "EXPLAIN", "SHOW", "DESCRIBE", "DESC"))
_INSTEAD: Final = {
    "MERGE": "upsert: INSERT into a table with a PRIMARY KEY",
    "TRUNCATE": "write DELETE FROM without WHERE",
    "BEGIN": "statements of one script between two queries count in one epoch",
    "START": "statements of one script between two queries count in one epoch",
    "COMMIT": "each statement counts as it is",
}
_BEFORE_ROWS: Final = re.compile(r";(?=\s*INSERT\s+INTO\s)", re.IGNORECASE)
_TRIES_MAX: Final = 5
"""So many semicolons before INSERT may stand in texts or comments; then tokens are made of the rest."""


@dataclass(frozen=True)
class Piece:
    """One statement. `words` are its words in capitals, but those in quotes, which are "" as they are no
    words of SQL; `tokens` are all as they are written, without quotes; `starts` says where each begins.
    """

    text: SqlText
    words: tuple[str, ...]
    tokens: tuple[str, ...]
    starts: tuple[int, ...]
    rows: WrittenRows | None = None

    @property
    def verb(self) -> str:
        """Return the first word, in capitals."""
        return self.words[0]

    def error(self, message: str, token: int = 0) -> SqlError:
        """Return an error in one line, with the place of a token."""
        return self.text.error_of_place(self.starts[min(token, len(self.starts) - 1)], message)

    def behind(self, tokens: int) -> Piece:
        """Return what is behind the first tokens, as a statement; raises SqlError if nothing is."""
        if tokens >= len(self.starts):
            raise self.error(f"{' '.join(self.words)}: something is missing behind it", len(self.starts) - 1)
        start = self.starts[tokens]
        return Piece(
            self.text.part(start, len(self.text.text)),
            self.words[tokens:],
            self.tokens[tokens:],
            tuple(each - start for each in self.starts[tokens:]),
        )

    def name_at(self, token: int) -> str:
        """Return a token and all behind it, without quotes: the name of a table, or dataflow.name. What is no
        name comes as a text that none has.
        """
        parts = self.tokens[token:]
        joints = set(parts[1::2])
        return "".join(parts) if len(parts) % 2 and joints <= {"."} else " ".join(parts)


def pieces_of(text: str, dialect: str, name: str) -> list[Piece]:
    """Return the statements of a script; raises SqlError if its words cannot be told apart, or for one that
    there is not.
    """
    whole = SqlText(text, dialect, name)
    pieces: list[Piece] = []
    for start, stop, rows in _parts(text, dialect):
        if rows is not None:
            pieces.append(_piece_of_rows(whole, rows))
            continue
        try:
            tokens = tokens_of(text[start:stop], dialect)
        except (SqlglotError, ValueError, RecursionError) as error:
            raise whole.error_of_tokens(error) from None
        statement: list[Token] = []
        for token in tokens:
            if token.token_type != TokenType.SEMICOLON:
                statement.append(token)
            elif statement:
                pieces.append(_piece(whole, statement, start))
                statement = []
        if statement:
            pieces.append(_piece(whole, statement, start))
    return pieces


def _parts(text: str, dialect: str) -> Iterator[tuple[int, int, WrittenRows | None]]:
    """Yield statements that have plain rows, which need no tokens, and what is between them: where each
    begins and ends.
    """
    start = at = failed = 0
    while failed < _TRIES_MAX:
        rows = written_rows_at(text, at, dialect)
        if rows is not None and start < at and not _ends_at(text[start:at], dialect):
            rows, failed = None, failed + 1  # the semicolon before it stands in a text or a comment
        if rows is not None:
            if start < at:
                yield start, at, None
            yield at, rows.stop, rows
            start = at = rows.stop
        semicolon = _BEFORE_ROWS.search(text, at)
        if semicolon is None:
            break
        at = semicolon.end()
    yield start, len(text), None


def _ends_at(text: str, dialect: str) -> bool:
    """Return True if the semicolon at the end of a text ends a statement, and is no part of another word."""
    try:
        tokens = tokens_of(text, dialect)
    except (SqlglotError, ValueError, RecursionError):
        return False
    return bool(tokens) and tokens[-1].token_type == TokenType.SEMICOLON and tokens[-1].end == len(text) - 1


def tokens_of(text: str, dialect: str) -> list[Token]:
    """Return the tokens of a text. sqlglot's own way takes all behind SHOW or EXPLAIN, up to the next
    semicolon, as one text, quotes or not.
    """
    return list(_tokenizer(dialect)(dialect=Dialect.get_or_raise(dialect)).tokenize(text))


@cache
def _tokenizer(dialect: str) -> type[Tokenizer]:
    """Return the tokenizer of a dialect, with no word behind which all is one text."""
    return type("PlainTokenizer", (Dialect.get_or_raise(dialect).tokenizer_class,), {"COMMANDS": set()})


def _piece_of_rows(whole: SqlText, rows: WrittenRows) -> Piece:
    words = ("INSERT", "INTO", rows.table)
    return Piece(whole.part(rows.start, rows.stop), words, words, (0, 0, 0), rows.moved(-rows.start))


def _piece(whole: SqlText, tokens: list[Token], begins: int) -> Piece:
    start = tokens[0].start
    quoted = (TokenType.IDENTIFIER, TokenType.STRING)
    piece = Piece(
        whole.part(begins + start, begins + tokens[-1].end + 1),
        tuple("" if token.token_type in quoted else token.text.upper() for token in tokens),
        tuple(token.text for token in tokens),
        tuple(token.start - start for token in tokens),
    )
    if piece.verb not in _PARSED | _PREFIXES | {"UPDATE"}:
        instead = _INSTEAD.get(piece.verb)
        why = f": {instead}" if instead else f". There are {_SUPPORTED}"
        raise piece.error(f"there is no statement {piece.tokens[0][:40]}{why}")
    return piece
