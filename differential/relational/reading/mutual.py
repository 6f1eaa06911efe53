"""WITH MUTUALLY RECURSIVE, which sqlglot's grammar does not have.

    WITH MUTUALLY RECURSIVE (RETURN AT RECURSION LIMIT 100)
        reached (n int) AS (…),
        …

Beside WITH RECURSIVE it has the word MUTUALLY, a limit, and types of columns. sqlglot reads the types. The
word and the limit are replaced by blanks before it reads the text, so that all places stay; where they
stood is remembered by the place of the first query's name.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import sqlglot
from sqlglot import Token, TokenType

from ...errors import SqlError

__all__ = ["MutualRecursion", "without_mutually"]

_FORMS = "RETURN AT RECURSION LIMIT n, or ERROR AT RECURSION LIMIT n"
_LIMIT_MAX = 1_000_000
"""The most iterations that a loop may have."""


class MutualRecursion(NamedTuple):
    """One WITH MUTUALLY RECURSIVE; a limit that it does not have is None."""

    times: int | None
    """RETURN AT: it ends after so many iterations."""
    iterations_max: int | None
    """ERROR AT: more iterations are an error."""


def without_mutually(
    text: str, dialect: str, error_at: Callable[[int, str], SqlError]
) -> tuple[str, dict[int, MutualRecursion]]:
    """Return a text of equal length that sqlglot can read, and each WITH MUTUALLY RECURSIVE in it by where
    its first name begins; `error_at` makes the error of a place.
    """
    if "mutually" not in text.lower():
        return text, {}
    tokens = sqlglot.tokenize(text, read=dialect)
    blanks: list[tuple[int, int]] = []
    recursions: dict[int, MutualRecursion] = {}
    for number, words in enumerate(zip(tokens, tokens[1:], tokens[2:], strict=False)):
        if [_word(each) for each in words] != ["WITH", "MUTUALLY", "RECURSIVE"]:
            continue
        blanks.append((words[1].start, words[1].end + 1))
        rest = tokens[number + 3 :]
        limit = MutualRecursion(None, None)
        if rest and rest[0].token_type == TokenType.L_PAREN:
            limit, behind = _limit(rest, error_at)
            blanks.append((rest[0].start, rest[behind - 1].end + 1))
            rest = rest[behind:]
        if not rest:
            raise error_at(
                words[2].start, "WITH MUTUALLY RECURSIVE needs queries: name (column type, …) AS (…)"
            )
        recursions[rest[0].start] = limit
    for start, stop in blanks:
        blank = "".join(letter if letter == "\n" else " " for letter in text[start:stop])
        text = text[:start] + blank + text[stop:]
    return text, recursions


def _word(token: Token) -> str:
    return "" if token.token_type in (TokenType.IDENTIFIER, TokenType.STRING) else token.text.upper()


def _limit(tokens: list[Token], error_at: Callable[[int, str], SqlError]) -> tuple[MutualRecursion, int]:
    """Return the limit in parentheses, and how many tokens it has."""
    end = next((place for place, each in enumerate(tokens) if each.token_type == TokenType.R_PAREN), 0)
    words = [_word(each) for each in tokens[1:end]]
    number = words[-1] if words else ""
    is_one = words[:-1] in (["RETURN", "AT", "RECURSION", "LIMIT"], ["ERROR", "AT", "RECURSION", "LIMIT"])
    if not is_one or not (number.isascii() and number.isdigit()) or not 1 <= int(number[:20]) <= _LIMIT_MAX:
        raise error_at(
            tokens[0].start, f"behind WITH MUTUALLY RECURSIVE stands ({_FORMS}), n from 1 to {_LIMIT_MAX:,}"
        )
    returns = words[0] == "RETURN"
    return MutualRecursion(int(number) if returns else None, None if returns else int(number)), end + 1
