"""Sentences name who acts, and names say what the thing is.

Three idioms hide the actor: a "who" without a noun before it ("who cannot goes on"), "of which", and
"is said" or "is told". Nothing that users read may contain them, and comments may contain few.
"""

from __future__ import annotations

import ast
import importlib
import inspect
import io
import re
import tokenize
from collections.abc import Iterator
from pathlib import Path

import pytest
from house import PACKAGES, ROOT, Module, modules, report

IDIOMS = {
    "headless who": re.compile(
        r"(?:^|[.;:,(]\s+|\b(?:to|for|of|by|from|with|and|that|as|if|at|than|but)\s+)(?:[Ww]hoever|[Ww]ho)\b"
    ),
    "of which": re.compile(
        r"(?<!all )(?<!each )(?<!most )(?<!none )(?<!some )(?<!\bas )\b[Oo]f (?:which|whom)\b"
    ),
    "is said": re.compile(r"\b(?:is|are|was|were|be|been|being) (?:said|told(?! apart)|asked)\b"),
}

IN_COMMENTS_MAX = {"headless who": 20, "of which": 20, "is said": 25}
"""At most so often in the comments and docstrings of all packages: a tenth of what there once was."""

NAMES = {"found", "kept", "given", "made", "known", "said"}
NAMES_MAX = 50
"""Participles as names say what happened to a thing, not what it is."""


def matches(text: str) -> Iterator[tuple[str, str]]:
    """Yield the idioms in a text: which, and the words around it."""
    plain = re.sub(r"\s+", " ", text)
    for idiom, pattern in IDIOMS.items():
        for match in pattern.finditer(plain):
            yield idiom, plain[max(match.start() - 30, 0) : match.end() + 30]


def comments(module: Module) -> Iterator[tuple[int, str]]:
    """Yield the comments and docstrings of a module with their lines."""
    for token in tokenize.generate_tokens(io.StringIO(module.source).readline):
        if token.type == tokenize.COMMENT:
            yield token.start[0], token.string.lstrip("# ")
    for node in module.parts:
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            if isinstance(node.value.value, str):
                yield node.lineno, node.value.value


def documents() -> Iterator[Path]:
    """Yield the pages that users read."""
    yield ROOT / "README.md"
    yield from sorted((ROOT / "docs").glob("*.md"))


def prose(page: str) -> str:
    """Return a page without its blocks of code and its `words of code`."""
    without_blocks = re.sub(r"^```.*?^```", "", page, flags=re.DOTALL | re.MULTILINE)
    return re.sub(r"`[^`\n]*`", "`code`", without_blocks)


@pytest.mark.parametrize("page", list(documents()), ids=lambda page: page.name)
def test_documents_say_who_acts(page: Path) -> None:
    report(f"{page.name}: {idiom}: … {words} …" for idiom, words in matches(prose(page.read_text())))


def public_docstrings() -> Iterator[tuple[str, str]]:
    """Yield the docstrings of all public names of `timely` and `differential` and of their members."""
    for package in ("timely", "differential"):
        module = importlib.import_module(package)
        for name in module.__all__:
            thing = getattr(module, name)
            if not (inspect.isclass(thing) or inspect.isroutine(thing) or inspect.ismodule(thing)):
                continue
            yield f"{package}.{name}", inspect.getdoc(thing) or ""
            if inspect.isclass(thing):
                for member in dir(thing):
                    if not member.startswith("_"):
                        part = inspect.getattr_static(thing, member)
                        if callable(part) or isinstance(part, property | staticmethod | classmethod):
                            yield f"{package}.{name}.{member}", inspect.getdoc(part) or ""


def test_public_docstrings_say_who_acts() -> None:
    report(
        f"{name}: {idiom}: … {words} …"
        for name, text in public_docstrings()
        for idiom, words in matches(text)
    )


def messages(module: Module) -> Iterator[tuple[int, str]]:
    """Yield the texts in what a module raises, with their lines."""
    for node in module.parts:
        if isinstance(node, ast.Raise) and node.exc is not None:
            texts = [
                part.value
                for part in ast.walk(node.exc)
                if isinstance(part, ast.Constant) and isinstance(part.value, str)
            ]
            yield node.lineno, " ".join(texts)


def test_messages_say_who_acts() -> None:
    report(
        f"{module.where(line)}: {idiom}: … {words} …"
        for package in PACKAGES
        for module in modules(package)
        for line, text in messages(module)
        for idiom, words in matches(text)
    )


def test_comments_say_who_acts() -> None:
    places: dict[str, list[str]] = {idiom: [] for idiom in IDIOMS}
    for package in PACKAGES:
        for module in modules(package):
            for line, text in comments(module):
                for idiom, words in matches(text):
                    places[idiom].append(f"{module.where(line)}: {idiom}: … {words} …")
    report(
        place
        for idiom, found_at in places.items()
        if len(found_at) > IN_COMMENTS_MAX[idiom]
        for place in found_at
    )


def test_names_are_nouns() -> None:
    places = [
        f"{module.where(token.start[0])}: {token.string}"
        for package in PACKAGES
        for module in modules(package)
        for token in tokenize.generate_tokens(io.StringIO(module.source).readline)
        if token.type == tokenize.NAME and token.string in NAMES
    ]
    report(places if len(places) > NAMES_MAX else [])


@pytest.mark.parametrize(
    ("text", "idioms"),
    [
        ("Who cannot goes on.", ["headless who"]),
        ("Tell it to who asks.", ["headless who"]),
        ("The clients who wait get a reply.", []),
        ("Two inputs, of which one\nis open.", ["of which"]),
        ("The worker is told of it.", ["is said"]),
        ("The worker tells the client.", []),
    ],
)
def test_idioms_are_recognised(text: str, idioms: list[str]) -> None:
    assert [idiom for idiom, _ in matches(text)] == idioms
